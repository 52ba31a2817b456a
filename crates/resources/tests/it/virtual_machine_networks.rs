//! VMs whose networks change while they run.

use kube::api::DeleteParams;
use kupenstack_api::resources::{Network, Port, Subnet, VirtualMachine};
use kupenstack_testkit::sim::{Effect, Rule, Server};
use serde_json::{Value, json};

use crate::{
    common::look::{self, eventually, gone, id, is_ready, until, within},
    virtual_machine::{create, edit, only, servers, surroundings},
    world::{self, Tenant, World},
};

const ATTACH: &str = "/v2.1/servers/{server_id}/os-interface";
const DETACH: &str = "/v2.1/servers/{server_id}/os-interface/{port_id}";

/// What a VM is made with, and another network.
async fn two_networks(tenant: &Tenant<'_>) {
    surroundings(tenant).await;
    tenant.create::<Network>("back", json!({})).await;
    tenant.create::<Subnet>("back", json!({"network": "back", "cidr": "10.1.0.0/24"})).await;
    tenant.ready::<Subnet>("back").await;
}

fn both() -> Value {
    json!({"networks": [{"network": "net"}, {"network": "back"}]})
}

/// Ids of the ports of a server.
fn ports_of(tenant: &Tenant<'_>, server: &str) -> Vec<String> {
    let cloud = tenant.world.sim.cloud();
    let own = cloud.neutron.all("ports").filter(|port| port.text("device_id") == server);
    own.map(|port| port.id.clone()).collect()
}

async fn has(tenant: &Tenant<'_>, server: &str, ports: &[&str]) {
    let mut wanted = Vec::new();
    for port in ports {
        wanted.push(id(&tenant.ready::<Port>(port).await));
    }
    wanted.sort();
    eventually(&format!("a server with {ports:?} alone"), async || {
        let mut is = ports_of(tenant, server);
        is.sort();
        is == wanted
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn networks_come_and_go_while_a_vm_runs() {
    let tenant = world::shared().await.tenant().await;
    two_networks(&tenant).await;
    create(&tenant, "vm", json!({})).await;
    let server = id(&tenant.ready::<VirtualMachine>("vm").await);
    has(&tenant, &server, &["vm.net"]).await;
    edit(&tenant, "vm", both()).await;
    let two = |vm: &VirtualMachine| is_ready(vm) && vm.status.as_ref().unwrap().addresses.len() == 2;
    until(tenant.api(), "vm", two).await;
    has(&tenant, &server, &["vm.net", "vm.back"]).await;
    edit(&tenant, "vm", json!({"networks": [{"network": "back"}]})).await;
    gone(tenant.api::<Port>(), "vm.net").await;
    has(&tenant, &server, &["vm.back"]).await;
    let address = tenant.ready::<Port>("vm.back").await.status.unwrap().addresses;
    let last = |vm: &VirtualMachine| is_ready(vm) && vm.status.as_ref().unwrap().addresses == address;
    let vm = until(tenant.api(), "vm", last).await;
    assert_eq!((id(&vm), vm.status.unwrap().restarts, only(&tenant).await.status()), (server, 0, "ACTIVE"));
    let project = tenant.project().await;
    let left = {
        let cloud = tenant.world.sim.cloud();
        let all = cloud.neutron.all("ports").filter(|port| port.project_id == project);
        all.filter(|port| !port.text("device_owner").starts_with("network:")).count()
    };
    assert_eq!(left, 1, "its former port has gone");
    // as declared, nothing is asked for
    let asked =
        tenant.world.asked(&format!("/servers/{}/os-interface", id(&tenant.ready::<VirtualMachine>("vm").await)));
    tenant.nudge::<VirtualMachine>("vm").await;
    edit(&tenant, "vm", json!({"description": "seen"})).await;
    let again =
        tenant.world.asked(&format!("/servers/{}/os-interface", id(&tenant.ready::<VirtualMachine>("vm").await)));
    assert_eq!(asked, again);
    look::delete(tenant.api::<VirtualMachine>(), "vm").await;
    gone(tenant.api::<Port>(), "vm.back").await;
}

/// A port that has a name of its own stays, and can go to another VM.
#[tokio::test(flavor = "multi_thread")]
async fn a_port_moves_from_one_vm_to_another() {
    let tenant = world::shared().await.tenant().await;
    two_networks(&tenant).await;
    tenant.create::<Port>("shared", json!({"network": "back"})).await;
    let with = json!({"networks": [{"network": "net"}, {"port": "shared"}]});
    create(&tenant, "one", with.clone()).await;
    create(&tenant, "two", json!({})).await;
    let one = id(&tenant.ready::<VirtualMachine>("one").await);
    let two = id(&tenant.ready::<VirtualMachine>("two").await);
    has(&tenant, &one, &["one.net", "shared"]).await;
    tenant.patch::<VirtualMachine>("two", json!({"spec": with})).await;
    until(tenant.api(), "two", |vm: &VirtualMachine| look::shown(vm).1.contains("in use")).await;
    edit(&tenant, "one", json!({"networks": [{"network": "net"}]})).await;
    has(&tenant, &one, &["one.net"]).await;
    tenant.nudge::<VirtualMachine>("two").await;
    has(&tenant, &two, &["two.net", "shared"]).await;
    tenant.ready::<VirtualMachine>("two").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_connect_and_disconnect_is_put_right() {
    let tenant = world::shared().await.tenant().await;
    two_networks(&tenant).await;
    create(&tenant, "vm", both()).await;
    let server = id(&tenant.ready::<VirtualMachine>("vm").await);
    let lost = id(&tenant.ready::<Port>("vm.back").await);
    tenant.create::<Port>("foreign", json!({"network": "back"})).await;
    let foreign = id(&tenant.ready::<Port>("foreign").await);
    let now = tenant.world.sim.clock().now();
    let set = |port: &str, device: &str, owner: &str| {
        let edit = |port: &mut kupenstack_testkit::sim::Item| {
            port.body.insert("device_id".to_owned(), json!(device));
            port.body.insert("device_owner".to_owned(), json!(owner));
        };
        assert!(tenant.world.sim.cloud().neutron.edit(now, "ports", port, edit));
    };
    set(&lost, "", "");
    has(&tenant, &server, &["vm.net", "vm.back"]).await;
    set(&foreign, &server, "compute:nova");
    has(&tenant, &server, &["vm.net", "vm.back"]).await;
    tenant.ready::<VirtualMachine>("vm").await;
    eventually("the event", async || tenant.events("vm").await.contains(&"DriftRepaired".to_owned())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_vm_says_that_it_has_to_wait() {
    let tenant = world::shared().await.tenant().await;
    two_networks(&tenant).await;
    create(&tenant, "vm", json!({"powerState": "Suspended"})).await;
    let server = id(&tenant.ready::<VirtualMachine>("vm").await);
    tenant.patch::<VirtualMachine>("vm", json!({"spec": both()})).await;
    tenant.says::<VirtualMachine>("vm", "NetworksDiffer").await;
    has(&tenant, &server, &["vm.net"]).await;
    edit(&tenant, "vm", json!({"powerState": "Stopped"})).await;
    has(&tenant, &server, &["vm.net", "vm.back"]).await;
}

/// It waits for a network that is not there, and does what it did.
#[tokio::test(flavor = "multi_thread")]
async fn a_network_that_does_not_exist_is_waited_for() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    create(&tenant, "vm", json!({})).await;
    let server = id(&tenant.ready::<VirtualMachine>("vm").await);
    tenant.patch::<VirtualMachine>("vm", json!({"spec": both()})).await;
    until(tenant.api(), "vm", |vm: &VirtualMachine| look::shown(vm).1 == "Port vm.back is not ready").await;
    tenant.create::<Network>("back", json!({})).await;
    let message = until(tenant.api(), "vm", |vm: &VirtualMachine| look::shown(vm).1.contains("no address")).await;
    assert_eq!(look::shown(&message).1, "Port vm.back has no address yet");
    assert_eq!(ports_of(&tenant, &server).len(), 1);
    tenant.create::<Subnet>("back", json!({"network": "back", "cidr": "10.1.0.0/24"})).await;
    tenant.ready::<Subnet>("back").await;
    tenant.nudge::<Port>("vm.back").await;
    has(&tenant, &server, &["vm.net", "vm.back"]).await;
    tenant.ready::<VirtualMachine>("vm").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nova_may_refuse_for_a_while() {
    let tenant = world::shared().await.tenant().await;
    two_networks(&tenant).await;
    create(&tenant, "vm", json!({})).await;
    let server = id(&tenant.ready::<VirtualMachine>("vm").await);
    for (method, path, networks, ports) in [
        ("POST", ATTACH, both(), &["vm.net", "vm.back"][..]),
        ("DELETE", DETACH, json!({"networks": [{"network": "back"}]}), &["vm.back"][..]),
    ] {
        tenant
            .world
            .fail_next(Rule::on("compute", method, path, Effect::refusal(409)).in_project(&tenant.project().await));
        edit(&tenant, "vm", networks).await;
        has(&tenant, &server, ports).await;
    }
    gone(tenant.api::<Port>(), "vm.net").await;
}

/// The operator dies while a port is connected or disconnected, before or after Nova has done it.
#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_is_killed_connects_what_is_declared() {
    let world = World::start().await;
    world.declare_cloud().await;
    let mut operator = world.operator();
    let tenant = world.tenant().await;
    two_networks(&tenant).await;
    create(&tenant, "vm", json!({})).await;
    let server = id(&tenant.ready::<VirtualMachine>("vm").await);
    for commit in [false, true] {
        for (method, path, networks, ports) in [
            ("POST", ATTACH, both(), &["vm.net", "vm.back"][..]),
            ("DELETE", DETACH, json!({"networks": [{"network": "net"}]}), &["vm.net"][..]),
        ] {
            let mut hung = world.sim.hung();
            world.fail_next(Rule::on("compute", method, path, Effect::Hang { commit }));
            tenant.patch::<VirtualMachine>("vm", json!({"spec": networks})).await;
            within(hung.changed(), "the request").await.unwrap();
            operator.kill().await;
            operator = world.operator();
            has(&tenant, &server, ports).await;
        }
        gone(tenant.api::<Port>(), "vm.back").await;
    }
    tenant.ready::<VirtualMachine>("vm").await;
    let all: Vec<Server> = servers(&world, &tenant.project().await);
    assert_eq!(all.len(), 1);
    tenant.api::<VirtualMachine>().delete("vm", &DeleteParams::default()).await.unwrap();
    gone(tenant.api::<VirtualMachine>(), "vm").await;
    operator.stop().await;
}
