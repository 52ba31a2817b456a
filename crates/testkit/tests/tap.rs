//! The tap between an operator and the API server.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{
    Api,
    api::{PostParams, WatchParams},
};
use kupenstack_testkit::{
    ControlPlane,
    tap::{Phase, Sentence, Tap, TapOptions},
};

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(serde_json::json!({"metadata": {"name": name}})).unwrap()
}

async fn maps(prefix: &str, options: TapOptions) -> (Arc<Tap>, Api<ConfigMap>, Api<ConfigMap>) {
    let plane = ControlPlane::shared().await;
    let (namespace, client) = (plane.create_namespace(prefix).await, plane.client().await);
    let tap = Tap::start_with(client.clone(), options).await;
    let tapped = Api::namespaced(tap.client(), &namespace);
    (tap, tapped, Api::namespaced(client, &namespace))
}

#[tokio::test]
async fn requests_are_named_refused_and_left_without_an_answer() {
    let (tap, tapped, real) = maps("tap", TapOptions::default()).await;
    let create = async |name: &str| tapped.create(&PostParams::default(), &config_map(name)).await;
    create("a").await.unwrap();
    for (name, phase, sentence, made) in [
        ("b", Phase::Before, Sentence::Refuse(409), false),
        ("c", Phase::Before, Sentence::Drop, false),
        ("d", Phase::After, Sentence::Drop, true),
    ] {
        tap.arm(move |point| if point.phase == phase { sentence } else { Sentence::Pass });
        let error = create(name).await.unwrap_err();
        assert_eq!(matches!(error, kube::Error::Api(_)), sentence == Sentence::Refuse(409), "{error}");
        tap.open();
        assert_eq!(real.get_opt(name).await.unwrap().is_some(), made, "{name}");
    }
    let asked: Vec<_> = tap.journal(0).iter().map(ToString::to_string).collect();
    assert_eq!(asked, ["a", "b", "c", "d"].map(|name| format!("before POST api/v1/configmaps/{name}")));
}

#[tokio::test]
async fn whoever_is_condemned_waits_for_ever() {
    let (tap, tapped, real) = maps("tap", TapOptions::default()).await;
    tap.arm(|point| if point.phase == Phase::After { Sentence::Operator } else { Sentence::Pass });
    let map = config_map("made");
    let post = PostParams::default();
    tokio::select! {
        result = tapped.create(&post, &map) => panic!("{result:?}"),
        () = tap.condemned() => {}
    }
    assert!(real.get_opt("made").await.unwrap().is_some());
    assert!(!tap.spare());
}

#[tokio::test]
async fn requests_are_led_elsewhere_and_news_are_late() {
    let lag = Duration::from_millis(500);
    let route = |sent: &str| sent.replace("/namespaces/elsewhere", "/namespaces/default");
    let (tap, tapped, real) = maps("tap", TapOptions { route: Some(Box::new(route)), watch_lag: lag }).await;
    let namespaces: Api<Namespace> = Api::all(tap.client());
    assert_eq!(namespaces.get("elsewhere").await.unwrap().metadata.name.as_deref(), Some("default"));

    let mut watch = Box::pin(tapped.watch(&WatchParams::default().fields("metadata.name=late"), "0").await.unwrap());
    let before = Instant::now();
    real.create(&PostParams::default(), &config_map("late")).await.unwrap();
    futures::StreamExt::next(&mut watch).await.unwrap().unwrap();
    assert!(before.elapsed() >= lag, "{:?}", before.elapsed());
}
