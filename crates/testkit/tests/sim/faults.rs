//! What faults do to our client, and what they leave behind.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use kupenstack_openstack::{Error, ErrorKind, Image, ImageFilter, ImageStatus};
use kupenstack_testkit::sim::{Effect, Rule, Sim, SimOptions};
use rstest::rstest;

use crate::{
    life::{data, until},
    support::{ID, NO_COMMIT, admin, admin_within, member, new_image, patient_admin, start},
};

fn on_create(effect: Effect) -> Rule {
    Rule::on("image", "POST", "/v2/images", effect).once()
}

/// Whatever takes the answer away: the repeat is a conflict, and there is exactly one image.
#[rstest]
#[case::dropped(Effect::Drop { commit: true })]
#[case::reset(Effect::Reset { commit: true })]
#[case::other_answer(Effect::Answer { status: 502, body: None, retry_after: None, commit: true })]
#[case::malformed(Effect::Malformed)]
#[tokio::test]
async fn a_create_whose_answer_is_lost_is_there(#[case] effect: Effect) {
    let sim = start();
    let image = admin(&sim).image();
    sim.cloud().faults.add(on_create(effect));
    let error = image.create(&new_image(ID)).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Protocol), "{error}");
    assert_eq!(image.create(&new_image(ID)).await.unwrap_err().kind(), ErrorKind::Conflict);
    let cloud = sim.cloud();
    assert_eq!(cloud.glance.len(), 1);
    let committed: Vec<bool> =
        cloud.journal.entries().filter(|entry| entry.is_write()).map(|entry| entry.committed).collect();
    assert_eq!(committed, [true, false]);
}

#[rstest]
#[case::dropped(Effect::Drop { commit: false })]
#[case::reset(Effect::Reset { commit: false })]
#[case::refused(NO_COMMIT)]
#[tokio::test]
async fn a_create_that_did_not_arrive_is_not_there(#[case] effect: Effect) {
    let sim = start();
    let image = admin(&sim).image();
    sim.cloud().faults.add(on_create(effect));
    assert_eq!(image.create(&new_image(ID)).await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(sim.cloud().glance.is_empty());
    image.create(&new_image(ID)).await.unwrap();
}

#[tokio::test]
async fn a_request_may_be_carried_out_after_its_answer_was_lost() {
    let sim = start();
    let image = admin(&sim).image();
    sim.cloud().faults.add(on_create(Effect::CommitLater { seconds: 20.0 }));
    assert!(matches!(image.create(&new_image(ID)).await.unwrap_err(), Error::Broken { .. }));
    sim.clock().advance(Duration::from_secs(19));
    assert_eq!(image.get(ID).await.unwrap(), None);
    sim.clock().advance(Duration::from_secs(1));
    assert!(image.get(ID).await.unwrap().is_some());
    assert_eq!(image.create(&new_image(ID)).await.unwrap_err().kind(), ErrorKind::Conflict);
    let cloud = sim.cloud();
    let late = cloud.journal.entries().find(|entry| entry.fault == Some("commit later")).unwrap();
    assert!(late.committed && late.status.is_none());
}

#[tokio::test]
async fn a_silent_service_runs_into_the_time_limit() {
    let sim = start();
    admin(&sim).image().create(&new_image(ID)).await.unwrap();
    sim.cloud().faults.add(Rule::on("image", "DELETE", "*", Effect::Hang { commit: true }).once());
    let hasty = admin_within(&sim, Duration::from_secs(2));
    let error = hasty.image().delete(ID).await.unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
    assert!(sim.cloud().glance.is_empty());
}

/// What counts is the token that a request came with, not what became of it.
#[tokio::test]
async fn a_token_may_end_before_its_request_is_carried_out() {
    let sim = start();
    let image = admin(&sim).image();
    sim.cloud().faults.add(on_create(Effect::CommitLater { seconds: 5000.0 }));
    image.create(&new_image(ID)).await.unwrap_err();
    sim.clock().advance(Duration::from_secs(5000));
    assert!(image.get(ID).await.unwrap().is_some());
    // the clock moves on while the data comes
    let sim = std::sync::Arc::new(sim);
    let at_source = std::sync::Arc::clone(&sim);
    let source = data(b"abc").chain(futures::stream::once(async move {
        until(&at_source, "saving").await;
        at_source.clock().advance(Duration::from_hours(2));
        Ok(bytes::Bytes::from_static(b"def"))
    }));
    image.upload(ID, None, source).await.unwrap();
    assert_eq!(image.get(ID).await.unwrap().unwrap().size, Some(6));
}

#[tokio::test]
async fn the_journal_is_bounded() {
    let sim = Sim::start(SimOptions { journal: 10, ..SimOptions::default() });
    let image = admin(&sim).image();
    for _ in 0..20 {
        image.get(ID).await.unwrap();
    }
    let cloud = sim.cloud();
    assert_eq!((cloud.journal.entries().count(), cloud.journal.total()), (10, 21));
    let last = cloud.journal.entries().last().unwrap();
    assert_eq!((last.number, last.status, last.template), (20, Some(404), "/v2/images/{image_id}"));
    assert!(last.user_id.is_some() && last.project_id.is_some());
}

#[tokio::test]
async fn our_client_repeats_what_it_may() {
    let sim = start();
    let image = patient_admin(&sim).image();
    image.create(&new_image(ID)).await.unwrap();
    sim.cloud().faults.add(Rule::on("image", "GET", "/v2/images/*", Effect::Drop { commit: false }).times(2));
    assert!(image.get(ID).await.unwrap().is_some());
    sim.cloud().faults.add(Rule::on("image", "DELETE", "*", Effect::Drop { commit: true }).once());
    assert!(!image.delete(ID).await.unwrap(), "the repeat finds it gone");
}

#[tokio::test]
async fn an_upload_whose_answer_is_lost_is_done() {
    let sim = start();
    let image = admin(&sim).image();
    image.create(&new_image(ID)).await.unwrap();
    sim.cloud().faults.add(Rule::on("image", "PUT", "/v2/images/*/file", Effect::Drop { commit: true }).once());
    image.upload(ID, Some(3), data(b"abc")).await.unwrap_err();
    assert_eq!(image.get(ID).await.unwrap().unwrap().status, ImageStatus::Active);
}

#[tokio::test]
async fn a_stale_list_does_not_know_what_came_since() {
    let sim = start();
    let image = admin(&sim).image();
    image.create(&new_image(ID)).await.unwrap();
    sim.clock().advance(Duration::from_secs(5));
    sim.cloud().faults.add(Rule::on("image", "GET", "/v2/images", Effect::Stale { seconds: 5.0 }).nth(2));
    sim.clock().advance(Duration::from_secs(1));
    image.delete(ID).await.unwrap();
    let list = async || image.list(&ImageFilter::default()).try_collect::<Vec<Image>>().await.unwrap().len();
    assert_eq!((list().await, list().await, list().await), (0, 1, 0));
}

#[tokio::test]
async fn a_storm_of_401_costs_one_login_a_call() {
    let sim = start();
    let image = admin(&sim).image();
    sim.cloud().faults.add(Rule::unauthorized("image", 3));
    assert_eq!(image.get(ID).await.unwrap_err().kind(), ErrorKind::Unauthorized);
    assert_eq!(image.get(ID).await.unwrap(), None);
    assert_eq!(sim.cloud().journal.count("POST", "/v3/auth/tokens"), 3);
}

#[tokio::test]
async fn a_skewed_clock_is_seen_in_the_token() {
    let sim = start();
    let client = admin(&sim);
    let honest = client.authenticate().await.unwrap().expires_at;
    sim.cloud().faults.add(Rule::every(Effect::ClockSkew { issued: -3600, expires: -3600 }).once());
    let skewed = client.authenticate().await.unwrap().expires_at;
    assert_eq!(honest.duration_since(skewed).as_secs(), 3600);
}

#[tokio::test]
async fn rules_count_and_draw_alike_in_every_run() {
    let outcomes = async |seed| -> Vec<bool> {
        let sim = Sim::start(SimOptions { seed, ..SimOptions::default() });
        let image = admin(&sim).image();
        sim.cloud().faults.add(Rule::on("image", "GET", "/v2/images/{image_id}", NO_COMMIT).with_probability(0.5));
        let mut outcomes = Vec::new();
        for _ in 0..32 {
            outcomes.push(image.get(ID).await.is_ok());
        }
        outcomes
    };
    let first = outcomes(7).await;
    assert!(first.contains(&true) && first.contains(&false));
    assert_eq!(first, outcomes(7).await);
    assert_ne!(first, outcomes(8).await);
}

#[tokio::test]
async fn a_delay_is_waited_for_and_others_go_on() {
    let sim = start();
    let client = admin(&sim);
    let shop = member(&sim, &client, "shop").image();
    shop.get(ID).await.unwrap();
    let rule = Rule { project_id: Some("project-shop".to_owned()), ..Rule::every(Effect::Delay { millis: 2000 }) };
    sim.cloud().faults.add(rule);
    let started = std::time::Instant::now();
    let image = client.image();
    let (slow, quick) = tokio::join!(async { shop.get(ID).await.map(|_| started.elapsed()).unwrap() }, async {
        image.get(ID).await.map(|_| started.elapsed()).unwrap()
    });
    assert!(slow >= Duration::from_secs(2) && quick < slow, "{slow:?} {quick:?}");
}

#[tokio::test]
async fn of_one_list_only_some_queries_go_wrong() {
    let sim = start();
    let image = admin(&sim).image();
    let rule = Rule::on("image", "GET", "/v2/images", Effect::refusal(400)).with_query("*name=a");
    sim.cloud().faults.add(rule);
    let list = async |name: &str| {
        let filter = ImageFilter { name: Some(name.to_owned()), ..ImageFilter::default() };
        image.list(&filter).try_collect::<Vec<_>>().await.map(|found| found.len()).map_err(|error| error.status())
    };
    assert_eq!((list("a").await, list("b").await), (Err(Some(400)), Ok(0)));
}

#[tokio::test]
async fn a_service_is_down_until_it_is_not() {
    let sim = start();
    let image = admin(&sim).image();
    let rule = sim.cloud().faults.add(Rule::down("image"));
    for _ in 0..3 {
        assert_eq!(image.get(ID).await.unwrap_err().status(), Some(503));
    }
    assert!(sim.cloud().faults.remove(rule));
    assert_eq!(image.get(ID).await.unwrap(), None);
}

/// An answer of another microversion than was asked for, as behind a proxy between two releases.
#[tokio::test]
async fn an_answer_may_claim_a_wrong_microversion() {
    let sim = start();
    sim.cloud().faults.add(Rule::every(Effect::Microversion { value: "compute 2.1".to_owned() }));
    let answer = reqwest::get(format!("{}/image/versions", sim.url())).await.unwrap();
    assert_eq!(answer.headers()["openstack-api-version"], "compute 2.1");
}

#[tokio::test]
async fn rules_can_be_set_from_outside() {
    let sim = start();
    let http = reqwest::Client::new();
    let faults = format!("{}/_sim/faults", sim.url());
    let rule = r#"{"service": "image", "times": 1, "effect": {"answer": {"status": 429, "retry_after": 7}}}"#;
    let added = http.post(&faults).body(rule).send().await.unwrap();
    assert_eq!(added.status(), 201);
    let answer = http.get(format!("{}/image/healthcheck", sim.url())).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), &answer.headers()["retry-after"]), (429, &"7".parse().unwrap()));
    assert!(sim.cloud().faults.rules().is_empty());
    let wrong = http.post(&faults).body(r#"{"efect": "malformed"}"#).send().await.unwrap();
    assert_eq!(wrong.status(), 400);
    let journal: serde_json::Value =
        http.get(format!("{}/_sim/journal", sim.url())).send().await.unwrap().json().await.unwrap();
    assert_eq!(journal[0]["template"], "/healthcheck");
}

/// The one who waits for it learns when it hangs, and that it was carried out by then.
#[tokio::test]
async fn a_request_that_hangs_is_told_of() {
    let sim = start();
    let image = admin(&sim).image();
    sim.cloud().faults.add(on_create(Effect::Hang { commit: true }));
    let mut hung = sim.hung();
    let new = new_image(ID);
    tokio::select! {
        result = image.create(&new) => panic!("{result:?}"),
        changed = hung.changed() => changed.unwrap(),
    }
    assert_eq!((*hung.borrow(), sim.cloud().glance.len()), (1, 1));
}
