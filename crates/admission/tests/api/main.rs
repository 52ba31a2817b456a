//! The webhook behind a real API server.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed expectation is how a test fails")]

mod stage;
mod texts;

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use kube::api::{Patch, PatchParams};
use kupenstack_admission::{Issuer, Lifetimes};
use kupenstack_testkit::eventually;
use serde_json::json;
use tokio::{io::AsyncWriteExt, net::TcpStream};
use tokio_util::sync::CancellationToken;

use crate::stage::{Running, Stage, word};

const OWN: Issuer = Issuer::Own(Lifetimes {
    authority: Duration::from_hours(48),
    serving: Duration::from_hours(24),
    overlap: Duration::from_secs(1),
});

#[tokio::test(flavor = "multi_thread")]
async fn faults_are_refused_warnings_shown_and_what_was_wrong_before_may_be_edited() {
    let stage = Stage::set("Fail").await;
    // as it would be if the rule had come with a later operator
    stage.configure(None).await;
    stage.write("old", &["wrong"]).await.expect("nobody asks");
    let webhook = Running::start(&stage, OWN).await;
    stage.configure(Some(webhook.address)).await;
    eventually("refused", || async { stage.write("new", &["wrong"]).await.is_err_and(|e| e.contains("wrong")) }).await;

    let refusal = stage.write("new", &["wrong", "worse"]).await.unwrap_err();
    assert!(refusal.contains("denied the request: spec.words: wrong; spec.words: worse"), "{refusal}");
    assert_eq!(stage.write("new", &["odd"]).await.unwrap(), ["spec.words: odd"]);
    assert!(stage.write("new", &["odd", "wrong"]).await.is_err(), "an update that brings a fault in");

    stage.write("old", &["wrong", "fine"]).await.expect("the fault was there before");
    assert!(stage.write("old", &["wrong", "worse"]).await.is_err());
    let marked = json!({"metadata": {"finalizers": ["example.org/f"], "annotations": {"a": "b"}}});
    stage.words.patch("old", &PatchParams::default(), &Patch::Merge(marked)).await.expect("metadata only");
    let status = json!({"status": {"told": "x"}});
    stage.words.patch_status("old", &PatchParams::default(), &Patch::Merge(status)).await.expect("status only");
    stage.words.delete("old", &kube::api::DeleteParams::default()).await.expect("it may go");
    let freed = json!({"metadata": {"finalizers": null}});
    stage.words.patch("old", &PatchParams::default(), &Patch::Merge(freed)).await.expect("released");
    eventually("gone", || async { stage.words.get_opt("old").await.unwrap().is_none() }).await;
    webhook.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_start_at_once_agree_on_one_authority() {
    let stage = Stage::set("Fail").await;
    let (one, two, reader) =
        tokio::join!(Running::start(&stage, OWN), Running::start(&stage, OWN), Running::start(&stage, Issuer::Other));
    let trusted = stage.trusted().await;
    assert_eq!(trusted.matches("BEGIN").count(), 1);
    stage.configure(Some(one.address)).await;
    eventually("announced", || async { stage.announced().await == trusted }).await;
    for replica in [&one, &two, &reader] {
        eventually("served", || async { replica.ask(&trusted, word(&["fine"])).await == Ok(200) }).await;
        let before = replica.reviews();
        assert!(before > 0);
        stage.configure(Some(replica.address)).await;
        eventually("asked", || async {
            stage.write("w", &["fine"]).await.expect("trusted");
            replica.reviews() > before
        })
        .await;
    }
    assert_eq!(stage.trusted().await, trusted, "nobody has overwritten it");
    for replica in [one, two, reader] {
        replica.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_replaced_under_load_and_no_request_is_lost() {
    let stage = Arc::new(Stage::set("Fail").await);
    let issuer = Issuer::Own(Lifetimes {
        authority: Duration::from_secs(24),
        serving: Duration::from_secs(12),
        overlap: Duration::from_secs(4),
    });
    let replicas = [Running::start(&stage, issuer).await, Running::start(&stage, issuer).await];
    stage.configure(Some(replicas[0].address)).await;
    eventually("trusted", || async { stage.write("w", &["fine"]).await.is_ok() }).await;

    let (end, asked) = (CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let (stage, end, asked) = (Arc::clone(&stage), end.clone(), Arc::clone(&asked));
            tokio::spawn(async move {
                while !end.is_cancelled() {
                    let count = asked.fetch_add(1, Ordering::Relaxed).to_string();
                    stage.write(&format!("w-{writer}"), &[&count]).await.expect("answered");
                }
            })
        })
        .collect();
    let (mut authorities, mut served) = (BTreeSet::new(), BTreeSet::new());
    eventually("three authorities, the third alone", async || {
        let secret = stage.secret().await;
        authorities.extend(secret["ca.crt"].split_inclusive("-----END CERTIFICATE-----\n").map(str::to_owned));
        served.insert(secret["tls.crt"].clone());
        authorities.len() >= 3 && secret["ca.crt"].matches("BEGIN").count() == 1
    })
    .await;
    end.cancel();
    for writer in writers {
        writer.await.expect("every request was answered");
    }
    // a connection that is made now, to either replica
    for replica in &replicas {
        assert_eq!(replica.ask(&stage.trusted().await, word(&["fine"])).await, Ok(200));
    }
    assert!(served.len() >= 3, "{} certificates", served.len());
    assert!(asked.load(Ordering::Relaxed) > 100);
    for replica in replicas {
        replica.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_authority_and_a_damaged_secret_are_put_right() {
    let stage = Stage::set("Fail").await;
    let webhook = Running::start(&stage, OWN).await;
    stage.configure(Some(webhook.address)).await;
    eventually("trusted", || async { stage.write("w", &["1"]).await.is_ok() }).await;

    let foreign = stage.foreign_authority();
    stage.announce(&foreign).await;
    eventually("announced again", || async { stage.announced().await == stage.trusted().await }).await;
    eventually("trusted again", || async { stage.write("w", &["2"]).await.is_ok() }).await;

    let before = stage.trusted().await;
    stage.overwrite(json!({"tls.crt": null, "ca.crt": "Zm9yZWlnbg=="})).await;
    eventually("made anew", || async { !["foreign", &before].contains(&stage.trusted().await.as_str()) }).await;
    eventually("trusted once more", || async { stage.write("w", &["3"]).await.is_ok() }).await;
    webhook.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_has_expired_meanwhile_is_renewed_at_the_start() {
    let stage = Stage::set("Fail").await;
    let Issuer::Own(lifetimes) = OWN else { panic!("it is our own") };
    let short = Lifetimes { serving: Duration::from_secs(1), overlap: Duration::from_hours(1), ..lifetimes };
    Running::start(&stage, Issuer::Own(short)).await.stop().await;
    let (authority, expired) = (stage.trusted().await, stage.secret().await["tls.crt"].clone());
    tokio::time::sleep(Duration::from_secs(2)).await; // nothing runs that could renew it

    let webhook = Running::start(&stage, OWN).await;
    eventually("renewed", || async { stage.secret().await["tls.crt"] != expired }).await;
    eventually("served", || async { webhook.ask(&authority, word(&["fine"])).await == Ok(200) }).await;
    assert_eq!(stage.trusted().await, authority);
    webhook.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_is_refused_and_the_next_review_answered() {
    let stage = Stage::set("Ignore").await;
    let webhook = Running::start(&stage, OWN).await;
    let trusted = stage.trusted().await;
    let ask = |body: Vec<u8>| webhook.post(&trusted, "/validate", body);
    assert_eq!(ask(b"garbage".to_vec()).await, Ok(400));
    assert_eq!(ask(vec![0xff; 1000]).await, Ok(400));
    assert_eq!(ask(Vec::new()).await, Ok(400));
    assert_eq!(ask(vec![b'['; 3 << 20]).await, Ok(400));
    // the answer may be lost behind what the client still sends
    assert!(!matches!(ask(vec![b' '; 5 << 20]).await, Ok(200..=299)));
    assert_eq!(webhook.post(&trusted, "/", Vec::new()).await, Ok(404));
    // without TLS, and never going on
    let mut plain = TcpStream::connect(webhook.address).await.unwrap();
    plain.write_all(b"POST /validate HTTP/1.1\r\n\r\n").await.unwrap();
    let silent = TcpStream::connect(webhook.address).await.unwrap();
    assert!(webhook.ask(&stage.foreign_authority(), word(&["fine"])).await.is_err(), "it is not trusted");
    assert_eq!(webhook.ask(&trusted, word(&["fine"])).await, Ok(200));
    drop(silent);
    webhook.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_secret_nothing_is_served_until_it_comes() {
    let stage = Stage::set("Ignore").await;
    stage.remove_secret().await;
    let webhook = Running::bind(&stage, OWN).await;
    stage.configure(Some(webhook.address)).await;
    stage.write("w", &["wrong"]).await.expect("a webhook that does not answer refuses nothing");
    assert!(!webhook.certified.is_cancelled());
    stage.make_secret().await;
    eventually("certified", || async { webhook.certified.is_cancelled() }).await;
    eventually("refused", || async { stage.write("v", &["wrong"]).await.is_err() }).await;
    webhook.stop().await;
    stage.write("v", &["wrong"]).await.expect("nobody answers");
}

#[tokio::test]
async fn an_address_that_is_taken_is_an_error() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let settings = stage::settings(taken.local_addr().unwrap(), OWN);
    let error = kupenstack_admission::Webhook::bind(settings).await.err().expect("taken").to_string();
    assert!(error.contains("listen on 127.0.0.1"), "{error}");
}
