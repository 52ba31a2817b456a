//! Somebody else deletes or edits the lease, on purpose or not.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use futures::future::join_all;
use kube::api::{DeleteParams, Patch, PatchParams};
use kupenstack_runtime::lease::{Loss, Terms};
use kupenstack_testkit::eventually;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::stage::{LEASE, Stage, TERMS, Worker};

impl Stage {
    async fn edit(&self, spec: Value) {
        let patch = Patch::Merge(json!({"spec": spec}));
        self.leases.patch(LEASE, &PatchParams::default(), &patch).await.unwrap();
    }
}

#[tokio::test]
async fn a_deleted_lease_is_made_again_by_its_holder() {
    let stage = Stage::set("deleted").await;
    let (a, b) = stage.two().await;
    for _ in 0..3 {
        stage.leases.delete(LEASE, &DeleteParams::default()).await.unwrap();
        eventually("a holds it again", async || stage.holder().await.as_deref() == Some("a")).await;
        let labels = stage.leases.get(LEASE).await.unwrap().metadata.labels.unwrap_or_default();
        assert_eq!(labels.get("made-by").map(String::as_str), Some("test"), "Helm would not know it again");
    }
    sleep(TERMS.duration).await;
    assert_eq!(stage.floor.shifts(), ["a"]);
    a.stop().await;
    stage.floor.works("b").await;
    b.stop().await;
    stage.floor.assert_one_at_a_time();
}

#[tokio::test]
async fn a_lease_that_is_missing_from_the_beginning_is_made_when_nobody_else_does() {
    let stage = Stage::set("missing").await;
    stage.leases.delete(LEASE, &DeleteParams::default()).await.unwrap();
    let (a, b) = (stage.worker("a").await, stage.worker("b").await);
    sleep(TERMS.duration / 2).await;
    assert_eq!(stage.floor.working(), None);
    eventually("one works", async || stage.floor.working().is_some()).await;
    sleep(TERMS.duration).await;
    assert_eq!(stage.floor.shifts().len(), 1);
    a.stop().await;
    b.stop().await;
    stage.floor.assert_one_at_a_time();
}

#[rstest]
#[case::holder_taken_out(json!({"holderIdentity": null}))]
#[case::emptied(json!(null))]
#[case::another_time(json!({"renewTime": "2001-01-01T00:00:00.000000Z", "acquireTime": null}))]
#[case::another_duration(json!({"leaseDurationSeconds": 1}))]
#[tokio::test]
async fn an_edit_that_names_no_other_holder_changes_nothing(#[case] spec: Value) {
    let stage = Stage::set("edited").await;
    let (a, b) = stage.two().await;
    stage.edit(spec).await;
    eventually("a holds it", async || stage.holder().await.as_deref() == Some("a")).await;
    sleep(TERMS.duration).await;
    assert_eq!(stage.floor.shifts(), ["a"]);
    a.stop().await;
    b.stop().await;
    stage.floor.assert_one_at_a_time();
}

#[tokio::test]
async fn who_is_not_the_holder_any_more_stops_at_once_and_the_lease_is_waited_for() {
    let stage = Stage::set("usurped").await;
    let (a, b) = stage.two().await;
    // nobody of this name will ever renew it, and it asks for more than it gets
    stage.edit(json!({"holderIdentity": "nobody", "leaseDurationSeconds": 7})).await;
    let loss = tokio::time::timeout(TERMS.renew_deadline, a.loses()).await.expect("at once");
    assert_eq!(loss, Loss::Taken("nobody".to_owned()));
    assert_eq!(stage.floor.working(), None);
    stage.floor.works("b").await;
    b.stop().await;
    stage.floor.assert_one_at_a_time();
}

/// Writers of labels never stop, so that nearly every write of the holder meets a conflict. How many attempts it has
/// depends on the terms: these are the ones that it has in earnest.
#[tokio::test]
async fn a_storm_of_conflicts_neither_ends_the_lease_nor_keeps_others_from_it() {
    let (stage, terms) = (Stage::set("storm").await, Terms::default());
    let client = stage.plane.client().await;
    let start = |name| Worker::with(terms, &stage.floor, client.clone(), &stage.namespace, name);
    let a = start("a");
    stage.floor.works("a").await;
    let b = start("b");
    let (over, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let storm: Vec<_> = (0..2)
        .map(|i| {
            let (leases, over, written) = (stage.leases.clone(), Arc::clone(&over), Arc::clone(&written));
            tokio::spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    let n = written.fetch_add(1, Ordering::Relaxed);
                    let patch = Patch::Merge(json!({"metadata": {"labels": {format!("storm-{i}"): n.to_string()}}}));
                    leases.patch(LEASE, &PatchParams::default(), &patch).await.unwrap();
                }
            })
        })
        .collect();
    sleep(terms.duration * 2).await;
    assert_eq!(stage.floor.shifts(), ["a"]);
    a.stop().await;
    stage.floor.works("b").await;
    over.store(true, Ordering::Relaxed);
    join_all(storm).await;
    let written = written.load(Ordering::Relaxed);
    assert!(written > 100, "{written} writes are no storm");
    b.stop().await;
    stage.floor.assert_one_at_a_time();
}
