//! One after the other.

use std::time::Instant;

use futures::future::join_all;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::{Api, api::PostParams};
use serde_json::json;
use tokio::time::sleep;

use crate::stage::{Stage, TERMS, Worker};

#[tokio::test]
async fn of_many_that_start_at_once_one_works() {
    let stage = Stage::set("many").await;
    let names = ["a", "b", "c", "d", "e"];
    let workers = join_all(names.map(|name| stage.worker(name))).await;
    sleep(TERMS.duration).await;
    assert_eq!(stage.floor.shifts().len(), 1);
    assert_eq!(stage.floor.working(), stage.holder().await);
    join_all(workers.into_iter().map(Worker::stop)).await;
    stage.floor.assert_one_at_a_time();
    assert_eq!(stage.holder().await, None);
}

#[tokio::test]
async fn when_the_holder_stops_another_works_at_once() {
    let stage = Stage::set("stop").await;
    let (a, b) = stage.two().await;
    let asked = Instant::now();
    assert_eq!(a.stop().await, None);
    stage.floor.works("b").await;
    let took = stage.floor.begun_after(asked);
    assert!(took + TERMS.renew_every < TERMS.duration, "as late as if it had been killed: {took:?}");
    assert_eq!(b.stop().await, None);
    stage.floor.assert_one_at_a_time();
    let spec = stage.leases.get("work").await.unwrap().spec.unwrap();
    assert_eq!((spec.holder_identity, spec.renew_time, spec.lease_transitions), (None, None, Some(2)));
}

#[tokio::test]
async fn when_the_holder_is_killed_another_works_when_the_lease_has_expired() {
    let stage = Stage::set("kill").await;
    let (a, b) = stage.two().await;
    let killed = Instant::now();
    a.crash().await;
    stage.floor.works("b").await;
    let took = stage.floor.begun_after(killed);
    // the last renewal was a moment before
    assert!(took + TERMS.renew_every * 2 > TERMS.duration, "{took:?}");
    b.stop().await;
    stage.floor.assert_one_at_a_time();
}

#[tokio::test]
async fn a_standby_that_may_not_watch_looks_every_now_and_then() {
    let stage = Stage::set("blind").await;
    let admin = stage.plane.client().await;
    let (namespace, parameters) = (&stage.namespace, PostParams::default());
    let role: Role = serde_json::from_value(json!({"metadata": {"name": "blind"},
        "rules": [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "update"]}]}))
    .unwrap();
    let binding: RoleBinding = serde_json::from_value(json!({"metadata": {"name": "blind"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "blind"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "blind"}]}))
    .unwrap();
    Api::namespaced(admin.clone(), namespace).create(&parameters, &role).await.unwrap();
    Api::namespaced(admin, namespace).create(&parameters, &binding).await.unwrap();

    let a = stage.worker("a").await;
    stage.floor.works("a").await;
    let blind = stage.plane.client_as("blind", &[]).await;
    let b = Worker::start(&stage.floor, blind, namespace, "b");
    sleep(TERMS.renew_every * 2).await;
    let asked = Instant::now();
    a.stop().await;
    stage.floor.works("b").await;
    let took = stage.floor.begun_after(asked);
    assert!(took < TERMS.duration, "{took:?}");
    // it holds the lease as well as others do
    sleep(TERMS.renew_deadline).await;
    assert_eq!(b.stop().await, None);
    stage.floor.assert_one_at_a_time();
}
