//! In which order jobs and pods come.

use k8s_openapi::api::{apps::v1::Deployment, batch::v1::Job};
use kube::ResourceExt;
use kupenstack_api::cluster::Keystone;
use kupenstack_testkit::helm_programs;
use serde_json::json;

use crate::{
    all_ready,
    common::{
        player::{Happened, Ledger},
        world::World,
    },
    keystone_with, whole_cloud,
};

fn done(ledger: &Ledger, name: &str) -> usize {
    ledger.last(|h| matches!(h, Happened::JobDone { job, .. } if job == name)).unwrap_or_else(|| panic!("{name}"))
}

fn serves(ledger: &Ledger, name: &str) -> usize {
    ledger.last(|h| matches!(h, Happened::PodReady { workload, .. } if workload == name)).unwrap()
}

fn image(deployment: &Deployment) -> Option<&str> {
    deployment.spec.as_ref()?.template.spec.as_ref()?.containers[0].image.as_deref()
}

/// Jobs that the pods wait for, and jobs that wait for the pods, in one release.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lp_2155061_hooks_and_pods_that_wait_for_each_other_do_not_block() {
    let world = whole_cloud("deadlock").await;
    let operator = world.operator();
    all_ready(&world).await;
    operator.stop().await;
    let ledger = world.player.ledger();
    for [first, second] in [
        ["keystone-db-init", "keystone-db-sync"],
        ["glance-db-init", "glance-db-sync"],
        ["glance-db-sync", "glance-ks-service"],
        ["glance-ks-service", "glance-ks-endpoints"],
        ["glance-ks-endpoints", "glance-ks-user"],
        ["glance-ks-user", "glance-metadefs-load"],
        ["glance-metadefs-load", "glance-storage-init"],
        ["keystone-bootstrap", "glance-db-init"],
    ] {
        assert!(done(&ledger, first) < done(&ledger, second), "{first} before {second}: {:#?}", ledger.all);
    }
    for (service, migration) in [("keystone", "keystone-db-sync"), ("glance", "glance-storage-init")] {
        let pods = serves(&ledger, &format!("{service}-api"));
        assert!(done(&ledger, migration) < pods, "{migration} comes before the release");
        assert!(pods < done(&ledger, &format!("{service}-bootstrap")), "{service}-bootstrap needs the service");
    }
    assert!(ledger.runs().values().all(|runs| *runs == 1), "{:?}", ledger.runs());
}

/// The new pods' init containers would take the former release's finished job for the new one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn osh_new_pods_come_after_the_new_migration() {
    for (label, helm) in helm_programs() {
        Box::pin(new_pods_come_after_the_new_migration(keystone_with(&format!("migration-{label}"), helm).await)).await;
    }
}

async fn new_pods_come_after_the_new_migration(world: World) {
    let operator = world.operator();
    world.ready::<Keystone>().await;
    let old = world.until::<Job>("keystone-db-sync", |_| true).await;

    world.player.hang("keystone-db-sync");
    world
        .declare("Keystone", &json!({"images": {"keystone_api": "keystone:2", "keystone_db_sync": "keystone:2"}}))
        .await;
    let new = world.until::<Job>("keystone-db-sync", |job| job.uid() != old.uid()).await;
    assert_eq!(new.spec.unwrap().template.spec.unwrap().containers[0].image.as_deref(), Some("keystone:2"));
    // the operator has made the job and been told of it: now it would go on if it did not wait
    let waits = |k: &Keystone| {
        k.status.as_ref().is_some_and(|s| {
            s.steps.iter().any(|s| s.name == "Job keystone-db-sync" && s.message.as_deref() == Some("running"))
        })
    };
    world.until::<Keystone>("keystone", waits).await;
    let deployment = world.until::<Deployment>("keystone-api", |_| true).await;
    assert_ne!(image(&deployment), Some("keystone:2"));
    assert_eq!((world.player.ledger().rollouts("keystone-api"), world.player.ledger().pods("keystone-api")), (1, 1));

    world.player.heal();
    world.ready::<Keystone>().await;
    operator.stop().await;
    let ledger = world.player.ledger();
    assert_eq!((ledger.rollouts("keystone-api"), ledger.pods("keystone-api")), (2, 2));
    let rolled = ledger.last(|h| matches!(h, Happened::Rolled { .. })).unwrap();
    assert!(done(&ledger, "keystone-db-sync") < rolled, "{:#?}", ledger.all);
    assert_eq!(ledger.runs_of("keystone-db-sync"), 2);
}
