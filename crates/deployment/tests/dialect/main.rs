//! The engine with charts that behave as OpenStack-Helm's do: the real Helm, a real API server, real controllers of
//! workloads. The player is the kubelet, and keeps to what pods wait for.
//!
//! Tests are named after the public reports of the outages that they stand for.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that can't go on ends")]

#[path = "../common/mod.rs"]
mod common;
mod exposure;
mod failure;
mod order;
mod render;
mod rest;

use std::path::PathBuf;

use common::world::{World, dialect, helm4};
use kupenstack_api::cluster::{Glance, Keystone, MariaDB, Memcached};
use serde_json::json;

/// Keystone alone; what it depends on is said to be there.
pub(crate) async fn keystone_alone(prefix: &str) -> World {
    keystone_with(prefix, helm4()).await
}

/// The same, with this Helm.
pub(crate) async fn keystone_with(prefix: &str, helm: PathBuf) -> World {
    let world = World::with_helm(prefix, dialect(), &["keystone"], helm).await;
    pretend_backends(&world).await;
    world.declare("Keystone", &json!({})).await;
    world
}

pub(crate) async fn pretend_backends(world: &World) {
    world.pretend_ready("MariaDB").await;
    world.pretend_ready("Memcached").await;
}

/// All four services.
pub(crate) async fn whole_cloud(prefix: &str) -> World {
    let world = World::new(prefix, dialect(), &["mariadb", "memcached", "keystone", "glance"]).await;
    for kind in ["MariaDB", "Memcached", "Keystone", "Glance"] {
        world.declare(kind, &json!({})).await;
    }
    world
}

pub(crate) async fn all_ready(world: &World) {
    world.ready::<MariaDB>().await;
    world.ready::<Memcached>().await;
    world.ready::<Keystone>().await;
    world.ready::<Glance>().await;
}
