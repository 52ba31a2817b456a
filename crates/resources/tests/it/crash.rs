//! The operator is killed at every request that it makes, and started again with nothing remembered.

use kube::api::DeleteParams;
use serde_json::json;

use crate::world::{World, disk, is_ready, within};

/// Runs an operator until it has made `requests` requests, or until `done`; then kills it. Whether it was killed.
async fn run_until(world: &World, requests: usize, done: impl Future<Output = ()>) -> bool {
    let mut arrivals = world.fake.arrivals();
    let operator = world.operator().await;
    let nth = async {
        for _ in 0..requests {
            arrivals.recv().await.unwrap();
        }
    };
    let killed = tokio::select! {
        () = nth => true,
        () = done => false,
    };
    operator.crash().await;
    killed
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_every_request_it_makes_one_of_each_and_leaves_nothing() {
    let world = World::start().await;
    world.declare_cloud().await;
    let src = world.serve(&disk(4096)).await;
    for requests in 1.. {
        let tenant = world.namespace(&[]).await;
        tenant.create("image", json!({"src": src, "format": "raw"})).await;
        let ready = async { drop(tenant.until("image", is_ready).await) };
        let killed = Box::pin(run_until(&world, requests, ready)).await;
        let operator = world.operator().await;
        tenant.until("image", is_ready).await;
        operator.stop().await;
        {
            let state = world.fake.state();
            let project = format!("project-{}", tenant.name);
            assert_eq!(state.glance.images.values().filter(|image| image.owner == project).count(), 1, "{requests}");
            assert_eq!(state.keystone.projects.iter().filter(|p| p.id == project).count(), 1, "{requests}");
            assert!(state.keystone.user(&tenant.name).is_some(), "{requests}");
        }
        assert_eq!(world.leftovers(), 0, "files after {requests}");

        tenant.namespaces().delete(&tenant.name, &DeleteParams::default()).await.unwrap();
        let gone = async {
            let namespaces = tenant.namespaces();
            let condition = kube::runtime::wait::await_condition(namespaces, &tenant.name, |n: Option<&_>| n.is_none());
            within(condition, "the namespace's end").await.unwrap();
        };
        let killed_at_end = Box::pin(run_until(&world, requests, gone)).await;
        let operator = world.operator().await;
        let gone = kube::runtime::wait::await_condition(tenant.namespaces(), &tenant.name, |n: Option<&_>| n.is_none());
        within(gone, "the namespace's end").await.unwrap();
        operator.stop().await;
        {
            let state = world.fake.state();
            assert!(state.glance.images.is_empty(), "{requests}");
            assert!(state.keystone.project(&tenant.name).is_none(), "{requests}");
            assert!(state.keystone.user(&tenant.name).is_none(), "{requests}");
        }
        if !killed && !killed_at_end {
            assert!(requests > 10, "the controllers ask more than {requests} questions");
            return;
        }
    }
}
