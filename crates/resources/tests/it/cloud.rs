//! The cloud comes, fails and goes.

use kube::{Api, ResourceExt, api::DeleteParams};
use kupenstack_api::{
    FINALIZER,
    cluster::OpenStack,
    resources::{Image, PROJECT_ID},
};
use serde_json::json;

use crate::world::{World, disk, eventually, id, is_ready, shown};

#[tokio::test(flavor = "multi_thread")]
async fn objects_wait_for_the_cloud_and_are_let_go_with_it() {
    let world = World::start().await;
    let operator = world.operator();
    let tenant = world.namespace(&[]).await;
    let src = world.serve(&disk(4096)).await;
    tenant.create::<Image>("image", json!({"src": src, "format": "raw"})).await;
    let image = tenant.until("image", |image| shown(image).0 == "CloudUnavailable").await;
    assert!(shown(&image).1.contains("no OpenStack"), "{}", shown(&image).1);
    assert!(tenant.namespaces().get(&tenant.name).await.unwrap().finalizers().is_empty());

    world.declare_cloud().await;
    let first = id(&tenant.until("image", is_ready).await);

    // deleted by us, which takes its time
    let clouds: Api<OpenStack> = Api::all(world.client().await);
    let patch = json!({"metadata": {"finalizers": ["test/going"]}});
    clouds.patch("default", &kube::api::PatchParams::default(), &kube::api::Patch::Merge(&patch)).await.unwrap();
    clouds.delete("default", &DeleteParams::default()).await.unwrap();
    let image = tenant.until("image", |image| image.finalizers().is_empty() && !is_ready(image)).await;
    assert!(shown(&image).1.contains("being deleted") && id(&image).is_empty(), "{}", shown(&image).1);
    let namespace = tenant.until_namespace(|n| !n.finalizers().contains(&FINALIZER.to_owned())).await;
    assert!(!namespace.annotations().contains_key(PROJECT_ID));
    assert!(tenant.secrets().get_opt(&tenant.secret_name()).await.unwrap().is_none());
    let patch = json!({"metadata": {"finalizers": null}});
    clouds.patch("default", &kube::api::PatchParams::default(), &kube::api::Patch::Merge(&patch)).await.unwrap();

    // back with its data: what is ours is found again, with a password that nobody knows any more
    world.declare_cloud().await;
    let image = tenant.until("image", is_ready).await;
    assert_eq!(id(&image), first);
    assert_eq!(world.sim.cloud().journal.count("POST", "/v2/images"), 1);
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keystone_operator_370_namespace_and_cloud_are_deleted_together() {
    let world = World::start().await;
    world.declare_cloud().await;
    let operator = world.operator();
    let tenant = world.tenant().await;
    tenant.ready_image("image").await;
    world.set_down(true);
    let clouds: Api<OpenStack> = Api::all(world.client().await);
    clouds.delete("default", &DeleteParams::default()).await.unwrap();
    tenant.end().await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_879_an_outage_is_waited_out() {
    let world = World::start().await;
    world.declare_cloud().await;
    let operator = world.operator();
    let tenant = world.tenant().await;
    let settled = tenant.ready_image("settled").await;
    tenant.ready_image("leaving").await;

    world.set_down(true);
    let src = world.serve(&disk(4096)).await;
    tenant.create::<Image>("new", json!({"src": src, "format": "raw"})).await;
    let image = tenant.until("new", |image| shown(image).0 == "CloudUnavailable").await;
    assert!(shown(&image).1.contains("503"), "{}", shown(&image).1);
    tenant.nudge::<Image>("settled").await;
    let nudged = tenant.images().get("settled").await.unwrap();
    tenant.images().delete("leaving", &DeleteParams::default()).await.unwrap();
    let leaving = tenant.until("leaving", |image| shown(image).0 == "CloudUnavailable").await;
    assert_eq!(leaving.finalizers(), [FINALIZER], "an unreachable cloud keeps what may still be there");

    world.set_down(false);
    tenant.until("new", is_ready).await;
    tenant.delete("leaving").await;
    assert!(world.named("leaving").is_empty());
    let now = tenant.images().get("settled").await.unwrap();
    assert_eq!(now.resource_version(), nudged.resource_version(), "an outage is not told by every object");
    assert_eq!(id(&now), id(&settled));
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keystone_that_forgot_everything_is_filled_again() {
    let world = World::start().await;
    world.declare_cloud().await;
    let operator = world.operator();
    let tenant = world.tenant().await;
    world.sim.cloud().replace_keystone();
    assert!(!tenant.is_known_to_keystone());
    tenant.annotate(json!({"test/look": "now"})).await;
    // the user and its password come back too
    tenant.ready_image("image").await;
    assert!(tenant.is_known_to_keystone());
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_services_that_are_needed_are_waited_for() {
    let world = World::start().await;
    world.declare_cloud().await;
    world.set_services(&[("Keystone", true), ("Glance", false), ("Nova", false)]).await;
    let operator = world.operator();
    let tenant = world.tenant().await;
    let src = world.serve(&disk(4096)).await;
    tenant.create::<Image>("image", json!({"src": src, "format": "raw"})).await;
    let image = tenant.until("image", |image| shown(image).0 == "CloudUnavailable").await;
    assert_eq!(shown(&image).1, "Glance is not ready: 1/2 pods");
    assert!(world.sim.cloud().journal.entries().all(|entry| entry.service != "image"), "nothing was asked of Glance");
    world.set_services(&[("Keystone", true), ("Glance", true), ("Nova", false)]).await;
    tenant.until("image", is_ready).await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_writes_nothing_and_asks_for_few_tokens() {
    let world = World::start().await;
    world.declare_cloud().await;
    let operator = world.operator();
    let tenant = world.tenant().await;
    for name in ["one", "two", "three"] {
        tenant.ready_image(name).await;
    }
    operator.stop().await;

    let versions = async || {
        let images = tenant.images().list(&kube::api::ListParams::default()).await.unwrap();
        let mut all: Vec<_> = images.iter().map(ResourceExt::resource_version).collect();
        all.push(tenant.namespaces().get(&tenant.name).await.unwrap().resource_version());
        all.push(tenant.secrets().get(&tenant.secret_name()).await.unwrap().resource_version());
        all
    };
    let writes = || world.sim.cloud().journal.writes();
    let (before, written, tokens) = (versions().await, writes(), world.count("POST", "/auth/tokens"));
    let looked = world.count("GET", "/v2/images/");
    let users = world.count("GET", "/users");
    let operator = world.operator();
    let all_seen = async || operator.passes("image") >= 3 && world.count("GET", "/users") > users;
    eventually("a pass over everything", all_seen).await;
    operator.stop().await;
    assert_eq!(versions().await, before);
    assert_eq!(writes(), written);
    assert_eq!(world.count("GET", "/v2/images/"), looked, "one list tells of all images");
    // capo 1647: one for the administrator, two for each user (of this namespace and of `default`), of which one is
    // the proof that the password works
    let asked = world.count("POST", "/auth/tokens") - tokens;
    assert!(asked <= 5, "{asked} tokens");
}

#[tokio::test(flavor = "multi_thread")]
async fn capo_1647_the_tokens_for_67_images_are_those_for_one() {
    let world = World::start().await;
    world.declare_cloud().await;
    let operator = world.operator();
    let tenant = world.tenant().await;
    tenant.ready_image("first").await;
    let tokens = world.count("POST", "/auth/tokens");
    let src = world.serve(&disk(512)).await;
    let names: Vec<_> = (0..67).map(|index| format!("image-{index}")).collect();
    for name in &names {
        tenant.create::<Image>(name, json!({"src": src, "format": "raw"})).await;
    }
    for name in &names {
        tenant.until(name, is_ready).await;
    }
    assert_eq!(world.count("POST", "/auth/tokens"), tokens);
    assert_eq!(world.sim.cloud().journal.count("POST", "/v2/images"), 68);
    operator.stop().await;
}
