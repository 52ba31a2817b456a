//! Changes that fail, and runs of Helm that are interrupted.

use k8s_openapi::api::batch::v1::{CronJob, Job};
use kube::ResourceExt;
use kupenstack_api::cluster::Keystone;
use kupenstack_core::conditions;
use kupenstack_testkit::{
    helm_programs,
    tap::{Phase, Sentence, Who},
};
use serde_json::json;

use crate::{
    common::{player::Happened, world::World},
    keystone_alone, keystone_with,
};

/// In the configuration of what crashes.
const POISON: &str = "poison";

/// A job that is an object of the release can't be changed: over it both an upgrade and a rollback fail half way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_change_is_taken_back_over_jobs_that_cannot_be_changed() {
    for (label, helm) in helm_programs() {
        Box::pin(failed_change_is_taken_back(keystone_with(&format!("failed-{label}"), helm).await)).await;
    }
}

async fn failed_change_is_taken_back(world: World) {
    let operator = world.operator();
    world.ready::<Keystone>().await;
    let first = world.until::<Job>("keystone-cell-setup", |_| true).await;
    world.player.crash_on(POISON);
    world.declare("Keystone", &json!({"conf": {"DEFAULT": {"debug": POISON}}})).await;
    let keystone = world.keystone_taken_back().await;
    operator.stop().await;

    let status = keystone.status.unwrap();
    let ready = conditions::find(&status.conditions, conditions::READY).unwrap();
    assert!(ready.message.contains("Pod keystone-api-"), "{}", ready.message);
    assert!(ready.message.contains("CrashLoopBackOff"), "{}", ready.message);
    assert_eq!(world.records("keystone").await, ["superseded", "superseded", "deployed"]);
    let ledger = world.player.ledger();
    assert_eq!(ledger.rollouts("keystone-api"), 3, "there and back: {:#?}", ledger.all);
    // of the release, of the change, and of the release again
    assert_eq!(ledger.runs_of("keystone-cell-setup"), 3);
    let last = world.until::<Job>("keystone-cell-setup", |_| true).await;
    let template = |job: &Job| job.spec.clone().unwrap().template.metadata.unwrap().annotations;
    assert_ne!(last.uid(), first.uid());
    assert_eq!(template(&last), template(&first), "the job is that of what runs");
    assert!(ledger.last(|h| matches!(h, Happened::PodCrashed { .. })).is_some());
}

/// A migration that is begun anew while it runs may find its own half-done work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_under_way_outlives_the_operator_and_is_not_begun_anew() {
    const JOB: &str = "keystone-db-sync";
    let world = keystone_alone("under-way").await;
    world.player.hang(JOB);
    for _ in 0..3 {
        let operator = world.operator();
        world.player.until("the job", |ledger| ledger.runs_of(JOB) > 0).await;
        operator.has_made(1).await;
        operator.rests().await;
        operator.kill().await;
    }
    world.player.heal();
    let operator = world.operator();
    world.ready::<Keystone>().await;
    operator.stop().await;
    assert_eq!(world.player.ledger().runs_of(JOB), 1);
}

/// Until a job has succeeded nothing has changed that serves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn atmosphere_1452_a_failing_migration_names_job_and_pod_and_touches_no_pod() {
    let world = keystone_alone("migration-fails").await;
    let operator = world.operator();
    world.ready::<Keystone>().await;
    world.player.fail("keystone-db-sync", POISON);
    world.declare("Keystone", &json!({"conf": {"DEFAULT": {"debug": POISON}}})).await;
    let status = world.keystone_taken_back().await.status.unwrap();
    operator.stop().await;
    let ready = conditions::find(&status.conditions, conditions::READY).unwrap();
    assert!(ready.message.contains("Job keystone-db-sync: Pod keystone-db-sync-"), "{}", ready.message);
    let ledger = world.player.ledger();
    assert_eq!((ledger.rollouts("keystone-api"), ledger.pods("keystone-api")), (1, 1));
    assert_eq!(world.records("keystone").await, ["deployed"]);
}

/// Helm dies in the middle of an upgrade; the operator lives.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn helm_4558_an_operator_goes_on_when_its_helm_has_died() {
    let world = keystone_alone("helm-dies").await;
    let operator = world.operator();
    world.ready::<Keystone>().await;
    let mut died = false;
    world.tap.arm(move |point| {
        let place = point.who == Who::Helm("upgrade") && point.what.ends_with("deployments/keystone-api");
        if place && point.writes() && point.phase == Phase::After && !std::mem::replace(&mut died, true) {
            return Sentence::Helm;
        }
        Sentence::Pass
    });
    world.declare("Keystone", &json!({"conf": {"DEFAULT": {"debug": true}}})).await;
    world.ready::<Keystone>().await;
    operator.stop().await;
    assert_eq!(world.records("keystone").await, ["superseded", "deployed"]);
    let ledger = world.player.ledger();
    assert_eq!((ledger.rollouts("keystone-api"), ledger.pods("keystone-api")), (2, 2));
    assert!(world.helm.calls().iter().filter(|c| **c == "upgrade").count() == 3, "{:?}", world.helm.calls());
}

/// An upgrade is interrupted, and when the operator is back something else is wanted: what the upgrade made goes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn helm_9548_an_interrupted_upgrade_to_something_else_leaves_nothing() {
    let world = keystone_alone("other-target").await;
    let operator = world.operator();
    world.ready::<Keystone>().await;
    operator.stop().await;

    world.tap.arm(|point| {
        let recording = point.verb == "PUT" && point.what.contains("sh.helm.release");
        if recording { Sentence::Operator } else { Sentence::Pass }
    });
    let extra = json!({"values": {"extra": {"name": "keystone-extra"}}});
    world.declare("Keystone", &extra).await;
    let operator = world.operator();
    world.tap.condemned().await;
    operator.kill().await;
    world.until::<CronJob>("keystone-extra", |_| true).await;
    assert_eq!(world.records("keystone").await, ["deployed", "pending-upgrade"]);

    world.tap.open();
    world.declare("Keystone", &json!({"conf": {"DEFAULT": {"debug": true}}})).await;
    let operator = world.operator();
    world.ready::<Keystone>().await;
    operator.stop().await;
    assert!(world.names::<CronJob>("").await.iter().all(|name| name != "keystone-extra"));
    assert_eq!(world.records("keystone").await.last().map(String::as_str), Some("deployed"));
}
