//! The API server goes away, for all or for the holder alone.

use std::time::{Duration, Instant};

use kupenstack_runtime::lease::Loss;
use kupenstack_testkit::{ControlPlane, eventually};
use tokio::time::sleep;

use crate::{
    proxy::Proxy,
    stage::{Stage, TERMS, Worker},
};

#[tokio::test]
async fn a_holder_that_is_cut_off_stops_before_another_begins() {
    let stage = Stage::set("cut-off").await;
    let proxy = Proxy::start(stage.plane).await;
    let a = Worker::start(&stage.floor, proxy.client(stage.plane).await, &stage.namespace, "a");
    stage.floor.works("a").await;
    let b = stage.worker("b").await;
    sleep(TERMS.renew_every * 2).await;

    let blocked = Instant::now();
    proxy.block();
    eventually("a stops", async || stage.floor.working().is_none()).await;
    let stopped = blocked.elapsed();
    assert!(stopped < TERMS.renew_deadline + TERMS.stop_grace, "{stopped:?}");
    stage.floor.works("b").await;
    assert!(stage.floor.begun_after(blocked) + TERMS.renew_every * 3 > TERMS.duration);
    // renewals that were under way arrive now, and come to nothing
    proxy.open();
    assert_eq!(a.loses().await, Loss::Expired);
    sleep(TERMS.renew_every * 4).await;
    assert_eq!(stage.holder().await.as_deref(), Some("b"));
    assert_eq!(stage.floor.shifts(), ["a", "b"]);
    assert_eq!(b.stop().await, None);
    stage.floor.assert_one_at_a_time();
}

#[tokio::test]
async fn a_short_cut_is_survived() {
    let stage = Stage::set("short").await;
    let proxy = Proxy::start(stage.plane).await;
    let a = Worker::start(&stage.floor, proxy.client(stage.plane).await, &stage.namespace, "a");
    stage.floor.works("a").await;
    let b = stage.worker("b").await;
    for _ in 0..2 {
        sleep(TERMS.renew_every * 2).await;
        proxy.block();
        sleep(TERMS.renew_deadline / 3).await;
        proxy.open();
    }
    sleep(TERMS.duration).await;
    assert_eq!(stage.floor.shifts(), ["a"]);
    assert_eq!(a.stop().await, None);
    stage.floor.works("b").await;
    b.stop().await;
    stage.floor.assert_one_at_a_time();
}

#[tokio::test]
async fn a_standby_that_was_cut_off_takes_nothing_from_a_holder_that_lives() {
    let stage = Stage::set("blind").await;
    let proxy = Proxy::start(stage.plane).await;
    let a = stage.worker("a").await;
    stage.floor.works("a").await;
    let b = Worker::start(&stage.floor, proxy.client(stage.plane).await, &stage.namespace, "b");
    sleep(TERMS.renew_every * 2).await;
    proxy.block();
    // by its own eyes the lease has expired
    sleep(TERMS.duration * 2).await;
    proxy.open();
    sleep(TERMS.duration).await;
    assert_eq!(stage.floor.shifts(), ["a"]);
    a.stop().await;
    stage.floor.works("b").await;
    b.stop().await;
    stage.floor.assert_one_at_a_time();
}

/// Whether the holder outlasts it depends on how quick the API server is back: one works either way.
#[tokio::test]
async fn the_api_server_restarts() {
    let stage = Stage::on(Box::leak(Box::new(ControlPlane::start().await)), "restart").await;
    let (mut a, mut b) = stage.two().await;
    for _ in 0..2 {
        stage.plane.restart_api_server().await;
        sleep(Duration::from_secs(1)).await;
        // as Kubernetes does
        for (worker, name) in [(&mut a, "a"), (&mut b, "b")] {
            if worker.has_ended() {
                *worker = stage.worker(name).await;
            }
        }
        eventually("one works", async || stage.floor.working().is_some()).await;
    }
    a.stop().await;
    b.stop().await;
    stage.floor.assert_one_at_a_time();
}
