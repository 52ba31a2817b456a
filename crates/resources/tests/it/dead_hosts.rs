//! VMs whose host has died: made anew elsewhere by a fact, and by nothing less.

use std::time::Duration;

use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kupenstack_api::resources::{Port, VirtualMachine};
use kupenstack_testkit::sim::{ComputeService, HostLife};
use serde_json::{Value, json};

use crate::{
    common::look::{self, eventually, id, is_ready, shown, until},
    placement::{self, nodes},
    virtual_machine::{create, edit, only, phase, servers, surroundings},
    world::{Tenant, World},
};

const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

async fn taint(world: &World, node: &str, taints: Value) {
    let patch = Patch::Merge(json!({"spec": {"taints": taints}}));
    nodes(world).await.patch(node, &PatchParams::default(), &patch).await.unwrap();
}

async fn put_out_of_service(world: &World, node: &str) {
    let taint = json!([{"key": OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"}]);
    self::taint(world, node, taint).await;
}

/// The host does nothing any more, as one without power, and Nova has noticed.
fn die(world: &World, host: &str) {
    world.sim.cloud().nova.edit_service(host, |service| service.life = HostLife::Missed);
}

fn service(world: &World, host: &str) -> ComputeService {
    world.sim.cloud().nova.service(host)
}

/// A VM that runs on the first of two hosts.
async fn running(tenant: &Tenant<'_>, spec: Value) -> VirtualMachine {
    create(tenant, "web", spec).await;
    let vm = tenant.ready::<VirtualMachine>("web").await;
    assert_eq!(only(tenant).await.host.as_deref(), Some("node1"));
    vm
}

async fn elsewhere(tenant: &Tenant<'_>, before: &VirtualMachine) -> VirtualMachine {
    let before = id(before);
    let is_anew = |vm: &VirtualMachine| is_ready(vm) && id(vm) != before;
    let vm = until(tenant.api(), "web", is_anew).await;
    assert_eq!(only(tenant).await.host.as_deref(), Some("node2"));
    vm
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_out_of_service_loses_its_vms_and_is_used_again_when_it_is_back() {
    let world = placement::world().await;
    let _operator = world.operator();
    let tenant = world.tenant().await;
    surroundings(&tenant).await;
    let first = running(&tenant, json!({})).await;
    let port = id(&tenant.ready::<Port>("web.net").await);
    die(&world, "node1");
    put_out_of_service(&world, "node1").await;

    let again = elsewhere(&tenant, &first).await;
    let (before, after) = (first.status.unwrap(), again.status.as_ref().unwrap());
    assert_eq!((&before.addresses, after.restarts), (&after.addresses, 1));
    assert_eq!(id(&tenant.ready::<Port>("web.net").await), port);
    let fenced = service(&world, "node1");
    assert!(fenced.forced_down && fenced.is_disabled, "{fenced:?}");

    world.sim.cloud().nova.edit_service("node1", |service| service.life = HostLife::Alive);
    taint(&world, "node1", json!(null)).await;
    eventually("its use", async || service(&world, "node1") == ComputeService::default()).await;
    assert_eq!(id(&tenant.ready::<VirtualMachine>("web").await), id(&again), "nothing moves back");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_does_not_answer_keeps_its_vms() {
    let world = placement::world().await;
    let _operator = world.operator();
    let tenant = world.tenant().await;
    surroundings(&tenant).await;
    let first = running(&tenant, json!({})).await;
    world.sim.cloud().nova.edit_service("node1", |service| service.life = HostLife::Dead);
    let not_ready = json!([{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]);
    taint(&world, "node1", not_ready).await;
    // Nova notices later, so that nobody carries this out
    tenant.api::<VirtualMachine>().delete("web", &DeleteParams::default()).await.unwrap();
    eventually("the request", async || {
        servers(&world, &tenant.project().await).iter().any(|server| server.task_state == Some("deleting"))
    })
    .await;
    die(&world, "node1");
    // something else that is taken in after that
    create(&tenant, "other", json!({})).await;
    tenant.ready::<VirtualMachine>("other").await;
    assert!(!service(&world, "node1").forced_down);
    let still_there = servers(&world, &tenant.project().await).iter().any(|server| server.id == id(&first));
    assert!(still_there);

    put_out_of_service(&world, "node1").await;
    look::gone(tenant.api::<VirtualMachine>(), "web").await;
    only(&tenant).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_deleted_is_believed_to_live_as_long_as_it_speaks() {
    let world = placement::world().await;
    let _operator = world.operator();
    let tenant = world.tenant().await;
    surroundings(&tenant).await;
    let first = running(&tenant, json!({})).await;
    nodes(&world).await.delete("node1", &DeleteParams::default()).await.unwrap();
    create(&tenant, "other", json!({})).await;
    tenant.ready::<VirtualMachine>("other").await;
    assert!(!service(&world, "node1").forced_down);

    die(&world, "node1");
    // it is looked at again soon, or at once with other news of nodes
    nodes(&world).await.delete("other", &DeleteParams::default()).await.unwrap();
    let is_anew = |vm: &VirtualMachine| is_ready(vm) && id(vm) != id(&first);
    until(tenant.api(), "web", is_anew).await;
    assert!(service(&world, "node1").forced_down);
}

/// What is left of it would be counted, and asked, for ever; and routers would be expected to go out there.
#[tokio::test(flavor = "multi_thread")]
async fn nova_operator_620_atmosphere_567_a_node_that_was_deleted_is_forgotten_when_its_servers_are_elsewhere() {
    let world = placement::world().await;
    world.sim.cloud().neutron.set_agents(&["node1", "node2"]);
    let _operator = world.operator();
    let tenant = world.tenant().await;
    surroundings(&tenant).await;
    running(&tenant, json!({"restartPolicy": "Never"})).await;
    die(&world, "node1");
    nodes(&world).await.delete("node1", &DeleteParams::default()).await.unwrap();
    eventually("its end", async || service(&world, "node1").forced_down).await;
    phase(&tenant, "web", "Failed").await;
    looked_at_twice(&world, "/v2.1/servers").await;
    assert!(!service(&world, "node1").is_forgotten, "there is a server on it");

    look::delete(tenant.api::<VirtualMachine>(), "web").await;
    looked_at_twice(&world, "/v2.0/agents").await;
    assert!(!service(&world, "node1").is_forgotten, "its agents are alive");
    world.sim.cloud().neutron.end_agents("node1");
    news(&world).await;
    eventually("its retirement", async || service(&world, "node1").is_forgotten).await;
    let cloud = world.sim.cloud();
    let left: Vec<_> = cloud.neutron.agents().iter().map(|agent| agent.host.as_str()).collect();
    assert_eq!(left, ["node2", "node2"]);
    assert_eq!(cloud.nova.service("node2"), ComputeService::default());
}

/// A reason to look at hosts.
async fn news(world: &World) {
    let node = serde_json::from_value(json!({"metadata": {"generateName": "news-"}})).unwrap();
    nodes(world).await.create(&PostParams::default(), &node).await.unwrap();
}

/// Hosts are looked at, with a question, and once more, which proves that the first look is over.
async fn looked_at_twice(world: &World, question: &str) {
    let asked = || world.sim.cloud().journal.count("GET", question);
    for _ in 0..2 {
        let before = asked();
        news(world).await;
        eventually("a look", async || asked() > before).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_to_run_or_not_to_be_made_anew_stays_with_its_disk() {
    let world = placement::world().await;
    let _operator = world.operator();
    let tenant = world.tenant().await;
    surroundings(&tenant).await;
    let first = running(&tenant, json!({"restartPolicy": "Never"})).await;
    die(&world, "node1");
    put_out_of_service(&world, "node1").await;
    let failed = phase(&tenant, "web", "Failed").await;
    let message = shown(&failed).1;
    assert!(message.starts_with("node node1, which server ") && message.contains("is out of service"), "{message}");
    assert!(message.ends_with("restartPolicy leaves it so"), "{message}");

    edit(&tenant, "web", json!({"powerState": "Stopped"})).await;
    phase(&tenant, "web", "Stopped").await;
    assert_eq!(only(&tenant).await.id, id(&first));
    edit(&tenant, "web", json!({"powerState": "Running", "restartPolicy": "OnFailure"})).await;
    elsewhere(&tenant, &first).await;
}

/// The operator that has told Nova may be gone when the node is back.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_administrator_said_of_a_host_comes_back() {
    let world = placement::world().await;
    let operator = world.operator();
    let tenant = world.tenant().await;
    surroundings(&tenant).await;
    running(&tenant, json!({})).await;
    let edit = |service: &mut ComputeService| {
        (service.is_disabled, service.disabled_reason) = (true, Some("new disks".to_owned()));
    };
    world.sim.cloud().nova.edit_service("node1", edit);
    let before = service(&world, "node1");
    put_out_of_service(&world, "node1").await;
    eventually("its end", async || service(&world, "node1").forced_down).await;
    operator.stop().await;
    taint(&world, "node1", json!(null)).await;
    world.sim.clock().advance(Duration::from_mins(1));
    let _operator = world.operator();
    eventually("its use", async || service(&world, "node1") == before).await;
}
