//! VMs that are to be on nodes with certain labels.

use k8s_openapi::api::core::v1::Node;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use kupenstack_api::resources::VirtualMachine;
use kupenstack_core::conditions::{self, UP_TO_DATE};
use kupenstack_testkit::sim::{self, Aggregate, SimOptions};
use serde_json::{Value, json};

use crate::{
    common::look::{self, eventually, is_ready, shown, until},
    virtual_machine::{create, edit, only, phase, surroundings},
    world::{Tenant, World},
};

/// A world of its own, for nodes are the whole cluster's. Nova runs servers on two of them, and a third is only a node.
async fn world() -> World {
    let hosts = ["node1", "node2"].map(str::to_owned).to_vec();
    let world = World::start_with(SimOptions { hosts, ..SimOptions::default() }).await;
    for name in ["node1", "node2", "other"] {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
        nodes(&world).await.create(&PostParams::default(), &serde_json::from_value(node).unwrap()).await.unwrap();
    }
    world.declare_cloud().await;
    world
}

async fn nodes(world: &World) -> Api<Node> {
    Api::all(world.client().await)
}

async fn label(world: &World, node: &str, labels: Value) {
    let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
    nodes(world).await.patch(node, &PatchParams::default(), &patch).await.unwrap();
}

fn aggregates(world: &World) -> Vec<Aggregate> {
    world.sim.cloud().nova.aggregates().cloned().collect()
}

/// The flavors that are derived from others.
fn derived(world: &World) -> Vec<sim::Flavor> {
    world.sim.cloud().nova.flavors().filter(|flavor| !flavor.is_public).cloned().collect()
}

async fn nothing_is_left(world: &World) {
    eventually("the end of what was made for VMs", async || aggregates(world).is_empty() && derived(world).is_empty())
        .await;
}

/// Whether a VM says that it is not where it is to be, and why.
fn misplaced(vm: &VirtualMachine) -> Option<&str> {
    let condition = conditions::find(&vm.status.as_ref()?.conditions, UP_TO_DATE)?;
    assert_eq!(condition.status, "False");
    Some(&condition.message)
}

async fn ssd(tenant: &Tenant<'_>, name: &str) -> VirtualMachine {
    create(tenant, name, json!({"nodeSelector": {"disk": "ssd"}})).await
}

async fn on(tenant: &Tenant<'_>, name: &str, node: &str) -> VirtualMachine {
    until(tenant.api(), name, |vm: &VirtualMachine| {
        is_ready(vm) && vm.status.as_ref().unwrap().node.as_deref() == Some(node)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_makes_room_and_its_end_moves_nothing() {
    let world = world().await;
    let _operator = world.operator();
    let tenant = world.tenant().await;
    surroundings(&tenant).await;
    label(&world, "other", json!({"disk": "ssd"})).await;
    ssd(&tenant, "web").await;
    let message = tenant.says::<VirtualMachine>("web", "NoNode").await;
    assert!(message.starts_with("no node that runs VMs has the label disk=ssd;"), "{message}");
    phase(&tenant, "web", "Pending").await;
    assert!(aggregates(&world).is_empty() && derived(&world).is_empty(), "nobody could use them");
    assert_eq!(world.sim.cloud().nova.servers().count(), 0);

    label(&world, "node2", json!({"disk": "ssd"})).await;
    let vm = on(&tenant, "web", "node2").await;
    assert_eq!((shown(&vm).0, misplaced(&vm)), ("Running", None));
    let [aggregate] = aggregates(&world).try_into().unwrap();
    assert_eq!(aggregate.hosts, ["node2"]);
    assert_eq!(aggregate.name, format!("kupenstack:{}:disk=ssd", crate::common::cluster::CLUSTER));
    let [flavor] = derived(&world).try_into().unwrap();
    assert_eq!(flavor.projects, [tenant.project().await].into());
    assert_eq!(only(&tenant).await.flavor.id, flavor.id);

    label(&world, "node2", json!({"disk": null})).await;
    let vm = until(tenant.api(), "web", |vm: &VirtualMachine| misplaced(vm).is_some()).await;
    let told = misplaced(&vm).unwrap();
    assert!(told.starts_with("it is on node node2, which does not have disk=ssd now"), "{told}");
    assert!(is_ready(&vm), "it runs");
    nothing_is_left(&world).await;
    assert_eq!(only(&tenant).await.host.as_deref(), Some("node2"));

    label(&world, "node2", json!({"disk": "ssd"})).await;
    let vm = until(tenant.api(), "web", |vm: &VirtualMachine| misplaced(vm).is_none()).await;
    assert!(is_ready(&vm));
    look::delete(tenant.api::<VirtualMachine>(), "web").await;
    nothing_is_left(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_selector_moves_the_vm() {
    let world = world().await;
    let _operator = world.operator();
    let tenant = world.tenant().await;
    surroundings(&tenant).await;
    for (node, labels) in
        [("node1", json!({"disk": "ssd"})), ("node2", json!({"disk": "hdd", "example.com/West_1": ""}))]
    {
        label(&world, node, labels).await;
    }
    ssd(&tenant, "web").await;
    on(&tenant, "web", "node1").await;
    let first = only(&tenant).await;
    edit(&tenant, "web", json!({"nodeSelector": {"disk": "hdd", "example.com/West_1": ""}})).await;
    let moved = on(&tenant, "web", "node2").await;
    assert_eq!((look::id(&moved), misplaced(&moved)), (first.id, None));
    eventually("one aggregate for each label", async || {
        let names: Vec<_> =
            aggregates(&world).into_iter().map(|aggregate| (aggregate.hosts, aggregate.metadata)).collect();
        names.len() == 2 && names.iter().all(|(hosts, metadata)| hosts == &["node2"] && metadata.len() == 1)
    })
    .await;
    eventually("the end of the first flavor", async || derived(&world).len() == 1).await;

    // it stays where it is while nobody fulfils what is asked for now
    tenant
        .patch::<VirtualMachine>("web", json!({"spec": {"nodeSelector": {"disk": "tape", "example.com/West_1": null}}}))
        .await;
    let message = tenant.says::<VirtualMachine>("web", "NoNode").await;
    assert!(message.contains("disk=tape"), "{message}");
    assert_eq!(only(&tenant).await.status(), "ACTIVE");
    edit(&tenant, "web", json!({"nodeSelector": null})).await;
    nothing_is_left(&world).await;
    assert!(!only(&tenant).await.flavor.name.contains("small."), "any node will do");
}
