//! What must not move when nothing changed.

use k8s_openapi::api::core::v1::Secret;
use kupenstack_api::cluster::{Keystone, Memcached};
use kupenstack_testkit::tap::Who;
use serde_json::json;

use crate::{all_ready, common::world::World, keystone_alone, whole_cloud};

fn helm_processes(world: &World) -> usize {
    let counts = world.tap.counts();
    counts.iter().filter(|((who, verb, _), _)| matches!(who, Who::Helm(_)) && verb == "RUN").map(|(_, n)| n).sum()
}

/// Five operators, one after the other, find everything as it should be.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn infra_operator_580_restarts_of_the_operator_change_nothing() {
    let world = whole_cloud("restarts").await;
    let operator = world.operator();
    all_ready(&world).await;
    operator.stop().await;
    let (versions, writes_before, processes) = (world.versions().await, world.tap.changes(), helm_processes(&world));
    for _ in 0..5 {
        let operator = world.operator();
        operator.has_made(4).await;
        operator.stop().await;
    }
    assert_eq!(world.versions().await, versions);
    assert_eq!(world.tap.changes(), writes_before);
    assert_eq!(helm_processes(&world) - processes, 0);
}

/// The same declaration again, and a label, make passes and nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unchanged_declaration_costs_no_helm_process_and_no_write() {
    let world = keystone_alone("unchanged").await;
    let operator = world.operator();
    world.ready::<Keystone>().await;
    operator.stop().await;
    let (before, processes, ledger) = (world.tap.changes(), helm_processes(&world), world.player.ledger());
    let operator = world.operator();
    for round in 1..=10 {
        world.declare("Keystone", &json!({})).await;
        world.label("Keystone", &json!({"round": round.to_string()})).await;
        operator.has_made(round).await;
    }
    operator.stop().await;
    assert_eq!(world.tap.changes(), before);
    assert_eq!(helm_processes(&world) - processes, 0);
    assert_eq!(world.player.ledger().all, ledger.all);
}

/// A service comes and goes; the others keep their content.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lp_2159042_an_unrelated_service_changes_no_other() {
    let world = World::new("toggle", crate::dialect(), &["mariadb", "memcached", "keystone", "glance"]).await;
    for kind in ["MariaDB", "Memcached", "Keystone"] {
        world.declare(kind, &json!({"values": {"computed": "by hand"}})).await;
    }
    let operator = world.operator();
    let hashes = async || {
        let keystone = world.ready::<Keystone>().await.status.unwrap();
        let memcached = world.ready::<Memcached>().await.status.unwrap();
        [keystone.hash, memcached.hash, keystone.revision.map(|r| r.to_string())]
    };
    let before = hashes().await;
    assert!(before.iter().all(Option::is_some));
    world.declare("Glance", &json!({})).await;
    all_ready(&world).await;
    assert_eq!(hashes().await, before);
    world.delete("Glance").await;
    world.gone::<kupenstack_api::cluster::Glance>("glance").await;
    assert_eq!(hashes().await, before);
    operator.stop().await;
    assert_eq!(world.player.ledger().rollouts("keystone-api"), 1);
}

/// Key repositories are hooks in these charts, empty in the render: they must be neither applied nor copied.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn osh_959251_keys_survive_upgrades_and_jobs_get_the_real_ones() {
    let world = keystone_alone("keys").await;
    world.player.hang("keystone-db-sync");
    let operator = world.operator();
    let job = world.until::<k8s_openapi::api::batch::v1::Job>("keystone-db-sync", |_| true).await;
    let volumes = job.spec.unwrap().template.spec.unwrap().volumes.unwrap();
    let mounted: Vec<_> = volumes.iter().filter_map(|v| v.secret.as_ref()?.secret_name.clone()).collect();
    assert!(mounted.contains(&"keystone-fernet-keys".to_owned()), "{mounted:?}");
    world.player.heal();
    world.ready::<Keystone>().await;
    let keys = world.until::<Secret>("keystone-fernet-keys", |_| true).await.data.unwrap();
    assert!(keys.values().all(|key| key.0.len() == 44));
    world.declare("Keystone", &json!({"conf": {"DEFAULT": {"debug": true}}})).await;
    world.until::<Keystone>("keystone", |k| k.status.as_ref().is_some_and(|s| s.revision == Some(2))).await;
    world.ready::<Keystone>().await;
    operator.stop().await;
    assert_eq!(world.until::<Secret>("keystone-fernet-keys", |_| true).await.data.unwrap(), keys);
}
