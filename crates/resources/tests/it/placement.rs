//! VMs that are to be on nodes with certain labels.

use k8s_openapi::api::core::v1::Node;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use kupenstack_api::resources::VirtualMachine;
use kupenstack_core::conditions::{self, UP_TO_DATE};
use kupenstack_testkit::sim::{self, Aggregate, Effect, Rule, SimOptions};
use serde_json::{Value, json};

use crate::{
    common::look::{self, eventually, is_ready, shown, until},
    virtual_machine::{create, edit, only, phase, surroundings},
    world::{Tenant, World},
};

/// A world of its own, for nodes are the whole cluster's. Nova runs servers on two of them, and a third is only a node.
pub(crate) async fn world() -> World {
    let hosts = ["node1", "node2"].map(str::to_owned).to_vec();
    let world = World::start_with(SimOptions { hosts, ..SimOptions::default() }).await;
    for name in ["node1", "node2", "other"] {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
        nodes(&world).await.create(&PostParams::default(), &serde_json::from_value(node).unwrap()).await.unwrap();
    }
    world.declare_cloud().await;
    world
}

pub(crate) async fn nodes(world: &World) -> Api<Node> {
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

/// Nova's databases may be copies that lag behind.
#[tokio::test(flavor = "multi_thread")]
async fn an_old_list_hides_nothing_for_good() {
    let world = world().await;
    let _operator = world.operator();
    let tenant = world.tenant().await;
    surroundings(&tenant).await;
    label(&world, "node1", json!({"disk": "ssd"})).await;
    ssd(&tenant, "web").await;
    on(&tenant, "web", "node1").await;
    let old = Rule::on("compute", "GET", "/v2.1/os-aggregates", Effect::Stale { seconds: 3600.0 });
    world.sim.cloud().faults.add(old.once());
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
    assert!(only(&tenant).await.flavor.name.ends_with("-small"), "any node will do");
}

/// They share what they wish for, and each may use it as long as it wishes for it.
#[tokio::test(flavor = "multi_thread")]
async fn two_namespaces_and_a_foreign_aggregate() {
    let world = world().await;
    let now = world.sim.clock().now();
    let foreign = "kupenstack:not-ours:disk=ssd";
    world.sim.cloud().nova.add_aggregate(now, foreign, &["node1"], &[("disk", "ssd")]);
    let left = aggregates(&world);
    let _operator = world.operator();
    label(&world, "node2", json!({"disk": "ssd"})).await;
    let (one, two) = (world.tenant().await, world.tenant().await);
    surroundings(&one).await;
    ssd(&one, "web").await;
    on(&one, "web", "node2").await;
    surroundings(&two).await;
    let flavor = json!({"nodeSelector": {"disk": "ssd"}, "flavor": format!("{}-small", one.name)});
    create(&two, "web", flavor).await;
    on(&two, "web", "node2").await;
    let [flavor] = derived(&world).try_into().unwrap();
    assert_eq!(flavor.projects, [one.project().await, two.project().await].into());
    assert_eq!(only(&two).await.flavor.id, flavor.id);
    assert_eq!(aggregates(&world).len(), 2, "one is ours");

    look::delete(one.api::<VirtualMachine>(), "web").await;
    let of_two = [two.project().await].into();
    eventually("the first has no access any more", async || derived(&world)[0].projects == of_two).await;
    look::delete(two.api::<VirtualMachine>(), "web").await;
    eventually("ours is gone", async || aggregates(&world) == left && derived(&world).is_empty()).await;
}

/// What others change is set right, and what changed while nobody looked.
#[tokio::test(flavor = "multi_thread")]
async fn what_others_do_is_set_right() {
    let world = world().await;
    let operator = world.operator();
    let tenant = world.tenant().await;
    surroundings(&tenant).await;
    label(&world, "node1", json!({"disk": "ssd"})).await;
    ssd(&tenant, "web").await;
    on(&tenant, "web", "node1").await;
    let (aggregate, flavor) = (aggregates(&world).remove(0), derived(&world).remove(0));
    let now = world.sim.clock().now();
    {
        let mut cloud = world.sim.cloud();
        cloud.nova.edit_aggregate(now, &aggregate.id, |aggregate| {
            aggregate.hosts = vec!["node2".to_owned()];
            aggregate.metadata.clear();
        });
        cloud.nova.edit_flavor(now, &flavor.id, |flavor| flavor.extra_specs.clear());
    }
    let is_right = async || aggregates(&world) == [aggregate.clone()] && derived(&world) == [flavor.clone()];
    eventually("what was there before", is_right).await;
    world.sim.cloud().nova.remove_flavor(now, &flavor.id);
    eventually("the flavor anew", is_right).await;

    // what it is derived from changes
    let flavors = Api::<kupenstack_api::resources::Flavor>::all(tenant.client.clone());
    let patch = Patch::Merge(json!({"spec": {"extraSpecs": {"hw:cpu_policy": "shared"}}}));
    flavors.patch(&format!("{}-small", tenant.name), &PatchParams::default(), &patch).await.unwrap();
    eventually("the extra spec", async || derived(&world)[0].extra_specs.contains_key("hw:cpu_policy")).await;

    operator.stop().await;
    label(&world, "node1", json!({"disk": null})).await;
    label(&world, "node2", json!({"disk": "ssd"})).await;
    let _operator = world.operator();
    eventually("the other host", async || aggregates(&world).iter().all(|aggregate| aggregate.hosts == ["node2"]))
        .await;
    let vm = until(tenant.api(), "web", |vm: &VirtualMachine| misplaced(vm).is_some()).await;
    assert!(is_ready(&vm) && only(&tenant).await.host.as_deref() == Some("node1"));
}

/// The operator ends at any point of its way, and the next one finds what is there.
#[tokio::test(flavor = "multi_thread")]
async fn a_crash_leaves_nothing_behind() {
    let world = world().await;
    let operator = world.operator();
    let tenant = world.tenant().await;
    surroundings(&tenant).await;
    label(&world, "node1", json!({"disk": "ssd"})).await;
    ssd(&tenant, "web").await;
    on(&tenant, "web", "node1").await;
    operator.kill().await;
    tenant.api::<VirtualMachine>().delete("web", &kube::api::DeleteParams::default()).await.unwrap();
    // its finalizer goes with the operator that is to come; then nobody tells of it any more
    let operator = world.operator();
    look::gone(tenant.api::<VirtualMachine>(), "web").await;
    operator.kill().await;
    let _operator = world.operator();
    nothing_is_left(&world).await;
}

/// Of a flavor that not everybody may use, a selector makes none for everybody.
#[tokio::test(flavor = "multi_thread")]
async fn a_private_flavor_stays_private() {
    let world = world().await;
    let _operator = world.operator();
    let tenant = world.tenant().await;
    surroundings(&tenant).await;
    label(&world, "node1", json!({"disk": "ssd"})).await;
    let flavors = Api::<kupenstack_api::resources::Flavor>::all(tenant.client.clone());
    let spec = json!({"vcpus": 1, "ram": "512Mi", "disk": "1Gi", "public": false});
    flavors.create(&PostParams::default(), &look::object("hidden", &spec)).await.unwrap();
    let hidden = until(flavors, "hidden", is_ready).await;
    create(&tenant, "web", json!({"nodeSelector": {"disk": "ssd"}, "flavor": "hidden"})).await;
    let message = tenant.says::<VirtualMachine>("web", "Forbidden").await;
    assert!(message.ends_with("may not use flavor hidden"), "{message}");
    let (now, project) = (world.sim.clock().now(), tenant.project().await);
    world.sim.cloud().nova.edit_flavor(now, &look::id(&hidden), |flavor| flavor.projects = [project].into());
    on(&tenant, "web", "node1").await;
}

/// Where nobody asks for labels, Nova is asked for aggregates once after a start, and for hosts once there is a VM.
#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_wishes_for_costs_nothing() {
    let world = world().await;
    let _operator = world.operator();
    let tenant = world.tenant().await;
    surroundings(&tenant).await;
    label(&world, "node1", json!({"disk": "ssd"})).await;
    create(&tenant, "web", json!({})).await;
    on(&tenant, "web", "node1").await;
    edit(&tenant, "web", json!({"description": "another"})).await;
    let asked = |path| world.sim.cloud().journal.count("GET", path);
    // hosts are looked at when there is a first VM, for one may be dead
    assert_eq!((asked("/v2.1/os-aggregates"), asked("/v2.1/os-services")), (1, 1));
    let flavor = only(&tenant).await.flavor;
    assert!(flavor.is_public && flavor.name.ends_with("-small"));
}
