//! The operator is killed at every request that it makes, and started again with nothing remembered.

use kube::{api::DeleteParams, runtime::wait::await_condition};
use kupenstack_api::{
    FINALIZER,
    resources::{Image, Network},
};
use kupenstack_runtime::apply;
use kupenstack_testkit::sim::Entity;
use serde_json::json;

use crate::world::{Tenant, World, disk, gone, is_ready, shared, within};

/// Runs an operator until it has made `requests` requests, then kills it, or until `done`. Whether it was killed.
pub(crate) async fn run_until(world: &World, requests: usize, done: impl Future<Output = ()>) -> bool {
    let mut arrivals = world.sim.arrivals();
    let operator = world.operator();
    let nth = async {
        for _ in 0..requests {
            arrivals.recv().await.unwrap();
        }
    };
    let killed = tokio::select! {
        () = nth => true,
        () = done => false,
    };
    // a process is gone when the next one starts, and the folder for images is the next one's
    operator.kill().await;
    killed
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_every_request_it_makes_one_of_each() {
    let world = World::start().await;
    world.declare_cloud().await;
    let src = world.serve(&disk(4096)).await;
    for requests in 1.. {
        // only this namespace, so that all requests are about it
        let tenant = world.namespace(&[]).await;
        let round = json!({"round": requests.to_string()});
        tenant.label(&round).await;
        world.admit(&json!({"matchLabels": round})).await;
        tenant.create::<Image>("image", json!({"src": src, "format": "raw"})).await;
        let ready = async { drop(tenant.until("image", is_ready).await) };
        let killed = Box::pin(run_until(&world, requests, ready)).await;

        let operator = world.operator();
        tenant.until("image", is_ready).await;
        {
            let cloud = world.sim.cloud();
            assert_eq!(cloud.glance.len(), 1, "images after {requests}");
            let named = |project: &&Entity| project.text("name").starts_with(&tenant.name);
            assert_eq!(cloud.keystone.all("projects").filter(named).count(), 1, "{requests}");
        }
        assert!(tenant.user().is_some(), "{requests}");
        assert_eq!(world.leftovers(), 0, "files after {requests}");
        tenant.delete("image").await;
        operator.stop().await;
        if !killed {
            assert!(requests > 10, "a project and an image take more than {requests} requests");
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_again_and_again_it_deletes_everything_in_the_end() {
    let world = World::start().await;
    world.declare_cloud().await;
    let mut tenants = Vec::new();
    let operator = world.operator();
    for _ in 0..6 {
        let tenant = world.tenant().await;
        tenant.ready_image("image").await;
        tenants.push(tenant);
    }
    operator.stop().await;
    for tenant in &tenants {
        tenant.namespaces().delete(&tenant.name, &DeleteParams::default()).await.unwrap();
    }
    let mut lives = 0;
    // what an operator asks at its start it asks in each life, so that one has to be longer than another
    for requests in 1.. {
        lives += 1;
        if !Box::pin(run_until(&world, requests, all_gone(&tenants))).await {
            break;
        }
    }
    assert!((10..100).contains(&lives), "{lives} lives");
    assert!(world.sim.cloud().glance.is_empty());
    assert!(tenants.iter().all(|tenant| !tenant.is_known_to_keystone()));
}

async fn all_gone(tenants: &[Tenant<'_>]) {
    for tenant in tenants {
        let gone = await_condition(tenant.namespaces(), &tenant.name, |namespace: Option<&_>| namespace.is_none());
        within(gone, "the end of a namespace").await.unwrap();
    }
}

/// A pass begins with what the store says, which may be gone by then: nothing would ever delete what is made for it.
#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_gone_is_not_taken_for_one_that_is_held() {
    let tenant = shared().await.namespace(&[]).await;
    let object = tenant.create::<Network>("net", json!({})).await;
    tenant.api::<Network>().delete("net", &DeleteParams::default()).await.unwrap();
    gone(tenant.api::<Network>(), "net").await;
    assert!(!apply::add_finalizer(&tenant.api(), &object, FINALIZER).await.unwrap());
}
