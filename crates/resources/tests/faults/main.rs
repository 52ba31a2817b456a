//! Every kind's life, with everything going wrong that can, at every request that it takes.
//!
//! What a life takes is recorded, and each request of it is met with each fault in a life of its own. Whatever
//! happens, afterwards there is one of everything, nothing is left behind, and the object says so.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail the test")]
#![allow(clippy::print_stdout, reason = "what was covered is part of the result")]

mod check;
#[path = "../common/mod.rs"]
mod common;
mod image;
mod life;
mod patience;
mod point;
mod project;
mod queue;
mod run;
mod stage;
mod suite;
mod trap;

use std::{sync::OnceLock, time::Duration};

use common::{cluster::Cluster, look::disk, operator::runtime};
use image::ImageLife;
use point::Point;
use project::ProjectLife;
use stage::Surroundings;
use suite::Suite;
use tokio::runtime::Runtime;

/// The cluster that all lives take place in. It lives in a runtime of its own: a test's ends with the test.
async fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<(Cluster, Runtime)> = OnceLock::new();
    let cluster = tokio::task::spawn_blocking(|| {
        CLUSTER.get_or_init(|| {
            let runtime = runtime();
            let cluster = runtime.block_on(async {
                let cluster = Cluster::start().await;
                cluster.declare_cloud().await;
                cluster
            });
            (cluster, runtime)
        })
    });
    &cluster.await.unwrap().0
}

async fn image() -> ImageLife {
    ImageLife { src: cluster().await.serve(&disk(4096)).await }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_point_of_an_images_life_is_survived() {
    let (cluster, life) = (cluster().await, image().await);
    Suite { cluster, life, surroundings: Surroundings::default(), title: "", choose: |_| true }.is_survived().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_point_of_a_projects_life_is_survived() {
    let (cluster, life) = (cluster().await, ProjectLife);
    Suite { cluster, life, surroundings: Surroundings::default(), title: "", choose: |_| true }.is_survived().await;
}

fn is_killed_after_a_write(point: &Point) -> bool {
    point.fault.name == "killed after" && point.request.is_write()
}

/// The operator hears late of what it did itself, and of what others did.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stale_cache_is_survived() {
    let surroundings = Surroundings { lag: Duration::from_secs(1), ..Surroundings::default() };
    let (cluster, choose, title) =
        (cluster().await, is_killed_after_a_write as fn(&Point) -> bool, " with a stale cache");
    let images = Suite { cluster, life: image().await, surroundings, title, choose }.is_survived();
    let projects = Suite { cluster, life: ProjectLife, surroundings, title, choose }.is_survived();
    tokio::join!(images, projects);
}

/// For a moment a lost lease has two operators take themselves for the only one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_operators_at_once_make_one_of_everything() {
    let surroundings = Surroundings { operators: 2, ..Surroundings::default() };
    let (cluster, choose, title) =
        (cluster().await, is_killed_after_a_write as fn(&Point) -> bool, " with two operators");
    let images = Suite { cluster, life: image().await, surroundings, title, choose }.is_survived();
    let projects = Suite { cluster, life: ProjectLife, surroundings, title, choose }.is_survived();
    tokio::join!(images, projects);
}
