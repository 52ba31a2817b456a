//! Every kind's life, with everything going wrong that can, at every request that it takes.
//!
//! What a life takes is recorded, and each request of it is met with each fault in a life of its own. Whatever
//! happens, afterwards there is one of everything, nothing is left behind, and the object says so.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail the test")]
#![allow(clippy::print_stdout, reason = "what was covered is part of the result")]

mod check;
mod cluster_image;
#[path = "../common/mod.rs"]
mod common;
mod credential;
mod dead_host;
mod external_network;
mod flavor;
mod floating_ip;
mod image;
mod key_pair;
mod life;
mod network;
mod object;
mod outage;
mod patience;
mod placement;
mod point;
mod port;
mod project;
mod queue;
mod quota;
mod router;
mod run;
mod said;
mod security_group;
mod stage;
mod subnet;
mod suite;
mod trap;
mod undecodable;
mod virtual_machine;

use std::{sync::OnceLock, time::Duration};

use common::{cluster::Cluster, look::disk, operator::runtime};
use credential::CredentialLife;
use dead_host::DeadHostLife;
use kupenstack_api::resources::{
    ClusterImage, ExternalNetwork, Flavor, FloatingIP, Image, KeyPair, Network, Port, Router, SecurityGroup, Subnet,
    VirtualMachine,
};
use life::Life;
use object::{ObjectKind, ObjectLife};
use placement::PlacementLife;
use point::Point;
use project::ProjectLife;
use quota::QuotaLife;
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
                undecodable::store(&cluster).await;
                cluster.plane.define().await;
                cluster.declare_cloud().await;
                cluster
            });
            (cluster, runtime)
        })
    });
    &cluster.await.unwrap().0
}

async fn image<K: ObjectKind<Given = String>>() -> ObjectLife<K> {
    ObjectLife::of(cluster().await.serve(&disk(image::SIZE)).await)
}

/// All points of a life in its usual surroundings.
async fn is_survived<L: Life>(life: L) {
    let (cluster, surroundings) = (cluster().await, Surroundings::default());
    let client = cluster.client().await;
    Suite { cluster, client, life, surroundings, title: "", choose: |_| true }.run().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_point_of_an_images_life_is_survived() {
    is_survived(image::<Image>().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_point_of_a_cluster_images_life_is_survived() {
    is_survived(image::<ClusterImage>().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_point_of_a_flavors_life_is_survived() {
    is_survived(ObjectLife::<Flavor>::of(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_point_of_an_external_networks_life_is_survived() {
    is_survived(ObjectLife::<ExternalNetwork>::of(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_point_of_a_key_pairs_life_is_survived() {
    is_survived(ObjectLife::<KeyPair>::of(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_point_of_a_networks_life_is_survived() {
    is_survived(ObjectLife::<Network>::of(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_point_of_a_security_groups_life_is_survived() {
    is_survived(ObjectLife::<SecurityGroup>::of(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_point_of_a_ports_life_is_survived() {
    is_survived(ObjectLife::<Port>::of(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_point_of_a_floating_ips_life_is_survived() {
    is_survived(ObjectLife::<FloatingIP>::of(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_point_of_a_routers_life_is_survived() {
    is_survived(ObjectLife::<Router>::of(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_point_of_a_subnets_life_is_survived() {
    is_survived(ObjectLife::<Subnet>::of(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_point_of_a_vms_life_is_survived() {
    is_survived(ObjectLife::<VirtualMachine>::of(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_point_of_a_projects_life_is_survived() {
    is_survived(ProjectLife).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_point_of_an_application_credentials_life_is_survived() {
    is_survived(CredentialLife).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_point_of_a_quotas_life_is_survived() {
    is_survived(QuotaLife).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_point_of_a_placements_life_is_survived() {
    is_survived(PlacementLife).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_point_of_a_dead_hosts_life_is_survived() {
    is_survived(DeadHostLife).await;
}

/// Death after each write of a life in certain surroundings.
async fn deaths_are_survived<L: Life>(life: L, surroundings: Surroundings, title: &'static str) {
    let choose = Point::is_death_after_a_write;
    let (cluster, client) = (cluster().await, cluster().await.client().await);
    Suite { cluster, client, life, surroundings, title, choose }.run().await;
}

/// The operator hears late of what it did itself, and of what others did.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stale_cache_is_survived() {
    let (late, title) =
        (Surroundings { lag: Duration::from_secs(1), ..Surroundings::default() }, " with a stale cache");
    tokio::join!(
        deaths_are_survived(image::<Image>().await, late, title),
        deaths_are_survived(image::<ClusterImage>().await, late, title),
        deaths_are_survived(ObjectLife::<Flavor>::of(()), late, title),
        deaths_are_survived(ObjectLife::<ExternalNetwork>::of(()), late, title),
        deaths_are_survived(ObjectLife::<KeyPair>::of(()), late, title),
        deaths_are_survived(ObjectLife::<Network>::of(()), late, title),
        deaths_are_survived(ObjectLife::<SecurityGroup>::of(()), late, title),
        deaths_are_survived(ObjectLife::<Port>::of(()), late, title),
        deaths_are_survived(ObjectLife::<FloatingIP>::of(()), late, title),
        deaths_are_survived(ObjectLife::<Router>::of(()), late, title),
        deaths_are_survived(ObjectLife::<Subnet>::of(()), late, title),
        deaths_are_survived(ObjectLife::<VirtualMachine>::of(()), late, title),
        deaths_are_survived(ProjectLife, late, title),
        deaths_are_survived(CredentialLife, late, title),
        deaths_are_survived(QuotaLife, late, title),
        deaths_are_survived(PlacementLife, late, title),
        deaths_are_survived(DeadHostLife, late, title),
    );
}

/// For a moment a lost lease has two operators take themselves for the only one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_operators_at_once_make_one_of_everything() {
    let (two, title) = (Surroundings { operators: 2, ..Surroundings::default() }, " with two operators");
    tokio::join!(
        deaths_are_survived(image::<Image>().await, two, title),
        deaths_are_survived(image::<ClusterImage>().await, two, title),
        deaths_are_survived(ObjectLife::<Flavor>::of(()), two, title),
        deaths_are_survived(ObjectLife::<ExternalNetwork>::of(()), two, title),
        deaths_are_survived(ObjectLife::<KeyPair>::of(()), two, title),
        deaths_are_survived(ObjectLife::<Network>::of(()), two, title),
        deaths_are_survived(ObjectLife::<SecurityGroup>::of(()), two, title),
        deaths_are_survived(ObjectLife::<Port>::of(()), two, title),
        deaths_are_survived(ObjectLife::<FloatingIP>::of(()), two, title),
        deaths_are_survived(ObjectLife::<Router>::of(()), two, title),
        deaths_are_survived(ObjectLife::<Subnet>::of(()), two, title),
        deaths_are_survived(ObjectLife::<VirtualMachine>::of(()), two, title),
        deaths_are_survived(ProjectLife, two, title),
        deaths_are_survived(CredentialLife, two, title),
        deaths_are_survived(QuotaLife, two, title),
        deaths_are_survived(PlacementLife, two, title),
        deaths_are_survived(DeadHostLife, two, title),
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_undecodable_object_beside_is_survived() {
    undecodable::is_survived(cluster().await, image::<Image>().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_server_that_dies_in_mid_life_is_survived() {
    // it lives as long as the process
    let cluster: &'static Cluster = Box::leak(Box::new(Cluster::start().await));
    cluster.declare_cloud().await;
    let src = cluster.serve(&disk(image::SIZE)).await;
    let lives = outage::Lives::on(cluster);
    let all = async {
        tokio::join!(
            lives.survive(ProjectLife),
            lives.survive(CredentialLife),
            lives.survive(ObjectLife::<Image>::of(src.clone())),
            lives.survive(ObjectLife::<ClusterImage>::of(src)),
            lives.survive(ObjectLife::<Flavor>::of(())),
            lives.survive(ObjectLife::<ExternalNetwork>::of(())),
            lives.survive(ObjectLife::<KeyPair>::of(())),
            lives.survive(ObjectLife::<Network>::of(())),
            lives.survive(ObjectLife::<SecurityGroup>::of(())),
            lives.survive(ObjectLife::<Port>::of(())),
            lives.survive(ObjectLife::<FloatingIP>::of(())),
            lives.survive(ObjectLife::<Router>::of(())),
            lives.survive(ObjectLife::<Subnet>::of(())),
            lives.survive(ObjectLife::<VirtualMachine>::of(())),
        )
    };
    tokio::select! {
        _ = all => {}
        () = lives.deaths() => {}
    }
}
