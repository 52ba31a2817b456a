//! Routers in Neutron, between the subnets of other objects and networks outside.

use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use kupenstack_api::{
    FINALIZER,
    resources::{ExternalNetwork, Network, Router, Subnet},
};
use kupenstack_testkit::sim::Item;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    common::look::{self, eventually, gone, id, is_ready, mark, object, shown, until},
    world::{self, Tenant, World},
};

/// A network outside that is ready, by its name.
async fn outside(world: &World, range: &str) -> String {
    let name = format!("public-{}", crate::common::cluster::number());
    let api: Api<ExternalNetwork> = Api::all(world.client().await);
    let spec = json!({"physicalNetwork": name, "subnets": [{"cidr": range}]});
    api.create(&PostParams::default(), &object(&name, &spec)).await.unwrap();
    until(api, &name, is_ready).await;
    name
}

/// Declares network `net` with subnets `a` (10.0.0.0/24) and `b` (10.1.0.0/24).
async fn declare_inside(tenant: &Tenant<'_>) {
    tenant.create::<Network>("net", json!({})).await;
    for (name, range) in [("a", "10.0.0.0/24"), ("b", "10.1.0.0/24")] {
        tenant.create::<Subnet>(name, json!({"network": "net", "cidr": range})).await;
    }
}

async fn inside(tenant: &Tenant<'_>) {
    declare_inside(tenant).await;
    for name in ["a", "b"] {
        tenant.ready::<Subnet>(name).await;
    }
}

fn on(subnets: &[&str]) -> Value {
    json!(subnets.iter().map(|subnet| json!({"subnet": subnet})).collect::<Vec<_>>())
}

fn stored(world: &World, id: &str) -> Item {
    world.sim.cloud().neutron.get("routers", id).unwrap().clone()
}

/// The addresses that a router has on subnets inside.
fn interfaces(world: &World, router: &str) -> Vec<String> {
    let cloud = world.sim.cloud();
    let ports = cloud.neutron.all("ports").filter(|port| port.text("device_id") == router);
    let ports = ports.filter(|port| port.text("device_owner") == "network:router_interface");
    let addresses = ports.flat_map(|port| port.body["fixed_ips"].as_array().unwrap());
    let mut all: Vec<_> = addresses.map(|ip| ip["ip_address"].as_str().unwrap().to_owned()).collect();
    all.sort();
    all
}

/// The network outside that a router leads to.
fn leads_to(world: &World, router: &str) -> Value {
    stored(world, router).body["external_gateway_info"]["network_id"].clone()
}

async fn id_of(world: &World, outside: &str) -> String {
    id(&until(Api::<ExternalNetwork>::all(world.client().await), outside, is_ready).await)
}

/// What of the project was asked and refused since it is in use.
fn refused(tenant: &Tenant<'_>, project: &str) -> Vec<String> {
    let cloud = tenant.world.sim.cloud();
    let asked = cloud.journal.entries().filter(|entry| entry.project_id.as_deref() == Some(project));
    asked.filter(|entry| entry.status == Some(409)).map(|entry| format!("{} {}", entry.method, entry.path)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_187_create_minimal_makes_a_router_of_the_project() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<Router>("minimal", json!({})).await;
    let router = tenant.ready::<Router>("minimal").await;
    assert_eq!(router.finalizers(), [FINALIZER]);
    let stored = stored(tenant.world, &id(&router));
    assert_eq!((stored.text("name"), stored.project_id.clone()), ("minimal", tenant.project().await));
    assert_eq!(stored.text("description"), mark(&router));
    assert_eq!(stored.body["external_gateway_info"], json!(null));
    let status = router.status.unwrap();
    assert_eq!(
        (status.state.as_deref(), status.external_addresses, status.interfaces),
        (Some("ACTIVE"), vec![], vec![])
    );
    look::delete(tenant.api::<Router>(), "minimal").await;
    assert!(tenant.world.sim.cloud().neutron.get("routers", &stored.id).is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn create_full_declares_everything_in_any_order() {
    let tenant = world::shared().await.tenant().await;
    let public = format!("late-{}", crate::common::cluster::number());
    let spec = json!({"description": "edge", "externalNetwork": public, "interfaces": on(&["a", "b"]),
        "routes": [{"destination": "10.9.0.0/16", "nextHop": "10.1.0.7"}], "adminStateUp": false});
    tenant.create::<Router>("full", spec).await;
    let message = tenant.says::<Router>("full", "DependencyNotReady").await;
    assert_eq!(
        message,
        format!("ExternalNetwork {public} does not exist, Subnet a does not exist, Subnet b does not exist")
    );
    declare_inside(&tenant).await;
    let networks: Api<ExternalNetwork> = Api::all(tenant.client.clone());
    let spec = json!({"physicalNetwork": public, "subnets": [{"cidr": "203.0.113.0/24"}]});
    networks.create(&PostParams::default(), &object(&public, &spec)).await.unwrap();
    let router = tenant.ready::<Router>("full").await;
    let stored = stored(tenant.world, &id(&router));
    assert_eq!((stored.text("description"), stored.is("admin_state_up")), (&*format!("edge {}", mark(&router)), false));
    assert_eq!(stored.body["routes"], json!([{"destination": "10.9.0.0/16", "nexthop": "10.1.0.7"}]));
    assert_eq!(leads_to(tenant.world, &stored.id), json!(id_of(tenant.world, &public).await));
    assert_eq!(interfaces(tenant.world, &stored.id), ["10.0.0.1", "10.1.0.1"]);
    let status = router.status.unwrap();
    assert_eq!(status.external_addresses, ["203.0.113.2"]);
    let mut shown: Vec<_> = status.interfaces.into_iter().map(|one| one.ip).collect();
    shown.sort();
    assert_eq!(shown, ["10.0.0.1", "10.1.0.1"]);
    assert!(refused(&tenant, &tenant.project().await).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn update_changes_each_field_and_back() {
    let tenant = world::shared().await.tenant().await;
    let (public, other) = (outside(tenant.world, "203.0.113.0/24").await, outside(tenant.world, "192.0.2.0/24").await);
    let outside_ids = [json!(id_of(tenant.world, &public).await), json!(id_of(tenant.world, &other).await)];
    inside(&tenant).await;
    tenant.create::<Router>("edited", json!({"interfaces": on(&["a"])})).await;
    let router = tenant.ready::<Router>("edited").await;
    let id = id(&router);
    let edit = async |spec: Value| {
        tenant.patch::<Router>("edited", json!({"spec": spec})).await;
        tenant.ready::<Router>("edited").await.status.unwrap()
    };
    for (declared, text) in [(json!("new"), format!("new {}", mark(&router))), (json!(null), mark(&router))] {
        edit(json!({"description": declared})).await;
        assert_eq!(stored(tenant.world, &id).text("description"), text);
    }
    for (declared, up) in [(json!(false), false), (json!(null), true)] {
        edit(json!({"adminStateUp": declared})).await;
        assert_eq!(stored(tenant.world, &id).is("admin_state_up"), up);
    }
    for (declared, leads, addresses) in [
        (json!(public), &outside_ids[0], vec!["203.0.113.2"]),
        (json!(other), &outside_ids[1], vec!["192.0.2.2"]),
        (json!(null), &json!(null), vec![]),
    ] {
        let status = edit(json!({"externalNetwork": declared})).await;
        assert_eq!(
            (&leads_to(tenant.world, &id), status.external_addresses),
            (leads, addresses.iter().map(ToString::to_string).collect())
        );
    }
    let route = |hop: &str| json!([{"destination": "10.9.0.0/16", "nextHop": hop}]);
    // routes need the interface that they lead over, and go before it
    edit(json!({"interfaces": on(&["b"]), "routes": route("10.1.0.7")})).await;
    assert_eq!(interfaces(tenant.world, &id), ["10.1.0.1"]);
    edit(json!({"interfaces": on(&["a"]), "routes": route("10.0.0.7")})).await;
    assert_eq!(interfaces(tenant.world, &id), ["10.0.0.1"]);
    assert_eq!(
        stored(tenant.world, &id).body["routes"],
        json!([{"destination": "10.9.0.0/16", "nexthop": "10.0.0.7"}])
    );
    edit(json!({"interfaces": null, "routes": null})).await;
    assert_eq!(stored(tenant.world, &id).body["routes"], json!([]));
    assert!(interfaces(tenant.world, &id).is_empty());
    assert!(refused(&tenant, &tenant.project().await).is_empty());
}

#[rstest]
#[case::two_on_one_subnet(json!({"interfaces": [{"subnet": "a"}, {"subnet": "a"}]}), "Duplicate value")]
#[case::malformed(json!({"routes": [{"destination": "10.0.0.0/33", "nextHop": "10.0.0.1"}]}), "not an address and the length")]
#[case::loose_bits(json!({"routes": [{"destination": "10.0.0.7/24", "nextHop": "10.0.0.1"}]}), "bits beyond its prefix")]
#[case::families(json!({"routes": [{"destination": "fd00::/64", "nextHop": "10.0.0.1"}]}), "of another family")]
#[case::adopt_nothing(json!({"adopt": {}}), "exactly one of id and name")]
#[tokio::test(flavor = "multi_thread")]
async fn what_can_never_be_is_refused_by_the_definition(#[case] spec: Value, #[case] words: &str) {
    let tenant = world::shared().await.namespace(&[]).await;
    let error = tenant.api::<Router>().create(&PostParams::default(), &object("wrong", &spec)).await.unwrap_err();
    assert!(error.to_string().contains(words), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_made_one_becomes_no_adopted_one() {
    let tenant = world::shared().await.namespace(&[]).await;
    tenant.create::<Router>("made", json!({})).await;
    let change = Patch::Merge(json!({"spec": {"adopt": {"name": "x"}}}));
    let error = tenant.api::<Router>().patch("made", &PatchParams::default(), &change).await.unwrap_err();
    assert!(error.to_string().contains("can't become a made one, or the other way round"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn adopt_takes_over_and_leaves_what_is_not_declared() {
    let tenant = world::shared().await.tenant().await;
    inside(&tenant).await;
    let project = tenant.project().await;
    let (network, subnet) = (id(&tenant.ready::<Network>("net").await), id(&tenant.ready::<Subnet>("a").await));
    let now = tenant.world.sim.clock().now();
    let router = format!("old-{project}");
    {
        let mut cloud = tenant.world.sim.cloud();
        let theirs = json!({"name": "old", "description": "theirs", "admin_state_up": false});
        cloud.neutron.add(now, "routers", &router, &project, theirs);
        let port = json!({"network_id": network, "device_id": router, "device_owner": "network:router_interface",
            "mac_address": "fa:16:3e:00:00:01", "fixed_ips": [{"subnet_id": subnet, "ip_address": "10.0.0.1"}]});
        cloud.neutron.add(now, "ports", &format!("port-{router}"), &project, port);
    }
    tenant.create::<Router>("taken", json!({"adopt": {"name": "old"}})).await;
    let taken = tenant.ready::<Router>("taken").await;
    assert_eq!((id(&taken), taken.status.unwrap().interfaces.len()), (router.clone(), 1));
    let seen = stored(tenant.world, &router);
    assert_eq!((seen.text("description"), seen.is("admin_state_up"), seen.revision), ("theirs", false, 1));
    tenant.patch::<Router>("taken", json!({"spec": {"interfaces": on(&["b"])}})).await;
    tenant.ready::<Router>("taken").await;
    assert_eq!(interfaces(tenant.world, &router), ["10.1.0.1"]);
    look::delete(tenant.api::<Router>(), "taken").await;
    assert_eq!(interfaces(tenant.world, &router), ["10.1.0.1"], "what was adopted is retained");
}

#[tokio::test(flavor = "multi_thread")]
async fn isolation_neither_routers_nor_subnets_of_other_namespaces_are_used() {
    let world = world::shared().await;
    let (tenant, other) = (world.tenant().await, world.tenant().await);
    inside(&other).await;
    other.create::<Router>("theirs", json!({})).await;
    let theirs = id(&other.ready::<Router>("theirs").await);
    tenant.create::<Router>("grab", json!({"adopt": {"id": theirs}})).await;
    tenant.says::<Router>("grab", "NothingToAdopt").await;
    tenant.create::<Router>("reach", json!({"interfaces": on(&["a"])})).await;
    assert_eq!(tenant.says::<Router>("reach", "DependencyNotReady").await, "Subnet a does not exist");
    // of the same names, each namespace has its own
    tenant.create::<Router>("theirs", json!({})).await;
    assert_ne!(id(&tenant.ready::<Router>("theirs").await), theirs);
    for name in ["grab", "reach", "theirs"] {
        look::delete(tenant.api::<Router>(), name).await;
    }
    assert_eq!(stored(world, &theirs).revision, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn adopt_waits_until_exactly_one_fits() {
    let tenant = world::shared().await.tenant().await;
    let project = tenant.project().await;
    let put = |id: String| {
        let now = tenant.world.sim.clock().now();
        tenant.world.sim.cloud().neutron.add(now, "routers", &id, &project, json!({"name": "twofold"}));
    };
    tenant.create::<Router>("torn", json!({"adopt": {"name": "twofold"}})).await;
    let message = tenant.says::<Router>("torn", "NothingToAdopt").await;
    assert!(message.contains("none of the project's Neutron routers fits"), "{message}");
    for number in [1, 2] {
        put(format!("twofold-{project}-{number}"));
    }
    tenant.nudge::<Router>("torn").await;
    tenant.says::<Router>("torn", "AmbiguousAdoption").await;
    let (now, second) = (tenant.world.sim.clock().now(), format!("twofold-{project}-2"));
    assert!(tenant.world.sim.cloud().neutron.remove(now, "routers", &second));
    tenant.nudge::<Router>("torn").await;
    tenant.ready::<Router>("torn").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_of_the_router_and_of_its_interfaces_is_repaired_and_told() {
    let tenant = world::shared().await.tenant().await;
    let public = outside(tenant.world, "203.0.113.0/24").await;
    inside(&tenant).await;
    let spec = json!({"externalNetwork": public, "interfaces": on(&["a"]),
        "routes": [{"destination": "10.9.0.0/16", "nextHop": "10.0.0.7"}]});
    tenant.create::<Router>("drift", spec).await;
    let router = id(&tenant.ready::<Router>("drift").await);
    let second = id(&tenant.ready::<Subnet>("b").await);
    let network = id(&tenant.ready::<Network>("net").await);
    let now = tenant.world.sim.clock().now();
    {
        let mut cloud = tenant.world.sim.cloud();
        let of_router = |port: &&Item| port.text("device_id") == router;
        let ports: Vec<_> = cloud.neutron.all("ports").filter(of_router).map(|port| port.id.clone()).collect();
        assert_eq!(ports.len(), 2);
        for port in ports {
            cloud.neutron.remove(now, "ports", &port);
        }
        let bare = json!({"external_gateway_info": null, "routes": [], "admin_state_up": false});
        let Value::Object(bare) = bare else { panic!() };
        assert!(cloud.neutron.edit(now, "routers", &router, |router| router.body.extend(bare)));
        let theirs = json!({"network_id": network, "device_id": router, "device_owner": "network:router_interface",
            "mac_address": "fa:16:3e:00:00:02", "fixed_ips": [{"subnet_id": second, "ip_address": "10.1.0.1"}]});
        cloud.neutron.add(now, "ports", &format!("theirs-{router}"), &tenant.name, theirs);
    }
    eventually("the repair", async || {
        let stored = stored(tenant.world, &router);
        interfaces(tenant.world, &router) == ["10.0.0.1"]
            && !stored.body["external_gateway_info"].is_null()
            && stored.body["routes"][0]["nexthop"] == "10.0.0.7"
            && stored.is("admin_state_up")
    })
    .await;
    eventually("the event", async || tenant.events("drift").await.contains(&"DriftRepaired".to_owned())).await;
}

/// Nothing of the router itself tells that one of its interfaces is gone: that is seen by the list of ports.
#[tokio::test(flavor = "multi_thread")]
async fn an_interface_that_others_remove_is_made_again() {
    let tenant = world::shared().await.tenant().await;
    inside(&tenant).await;
    tenant.create::<Router>("unplugged", json!({"interfaces": on(&["a", "b"])})).await;
    let router = id(&tenant.ready::<Router>("unplugged").await);
    let now = tenant.world.sim.clock().now();
    {
        let mut cloud = tenant.world.sim.cloud();
        let mut ports = cloud.neutron.all("ports");
        let first = ports.find(|port| port.text("device_id") == router).map(|port| port.id.clone()).unwrap();
        drop(ports);
        assert!(cloud.neutron.remove(now, "ports", &first));
    }
    assert_eq!(interfaces(tenant.world, &router).len(), 1);
    eventually("the repair", async || interfaces(tenant.world, &router) == ["10.0.0.1", "10.1.0.1"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn external_deletion_is_made_good_with_the_interfaces() {
    let tenant = world::shared().await.tenant().await;
    inside(&tenant).await;
    tenant.create::<Router>("lost", json!({"interfaces": on(&["a", "b"])})).await;
    let before = id(&tenant.ready::<Router>("lost").await);
    let now = tenant.world.sim.clock().now();
    {
        let mut cloud = tenant.world.sim.cloud();
        let of_router = |port: &&Item| port.text("device_id") == before;
        let ports: Vec<_> = cloud.neutron.all("ports").filter(of_router).map(|port| port.id.clone()).collect();
        for port in &ports {
            assert!(cloud.neutron.remove(now, "ports", port));
        }
        assert!(cloud.neutron.remove(now, "routers", &before));
    }
    let again = until(tenant.api::<Router>(), "lost", |router| is_ready(router) && id(router) != before).await;
    assert_eq!(interfaces(tenant.world, &id(&again)), ["10.0.0.1", "10.1.0.1"]);
}

/// However many passes there are over it, two lists have all that is to be known, its interfaces among it.
#[tokio::test(flavor = "multi_thread")]
async fn k_orc_852_a_settled_one_costs_no_request() {
    let world = World::start().await;
    world.declare_cloud().await;
    let operator = world.operator();
    let tenant = world.tenant().await;
    inside(&tenant).await;
    let spec = json!({"externalNetwork": outside(&world, "203.0.113.0/24").await, "interfaces": on(&["a", "b"]),
        "routes": [{"destination": "10.9.0.0/16", "nextHop": "10.0.0.7"}]});
    tenant.create::<Router>("settled", spec).await;
    let path = format!("/v2.0/routers/{}", id(&tenant.ready::<Router>("settled").await));
    world.lists("/v2.0/routers").await;
    let asked = || (world.asked(&path), world.sim.cloud().journal.writes());
    let before = asked();
    for _ in 0..3 {
        let passes = operator.passes("router");
        tenant.nudge::<Router>("settled").await;
        eventually("a pass", async || operator.passes("router") > passes).await;
    }
    assert_eq!(asked(), before);
    assert_eq!(world.count("POST", "/v2.0/routers"), 1);
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_226_316_deleted_in_the_wrong_order_all_of_it_goes() {
    let tenant = world::shared().await.tenant().await;
    let public = outside(tenant.world, "203.0.113.0/24").await;
    inside(&tenant).await;
    let spec = json!({"externalNetwork": public, "interfaces": on(&["a", "b"]),
        "routes": [{"destination": "10.9.0.0/16", "nextHop": "10.0.0.7"}]});
    tenant.create::<Router>("between", spec).await;
    let router = id(&tenant.ready::<Router>("between").await);
    let networks: Api<ExternalNetwork> = Api::all(tenant.client.clone());
    networks.delete(&public, &DeleteParams::default()).await.unwrap();
    tenant.api::<Network>().delete("net", &DeleteParams::default()).await.unwrap();
    for subnet in ["a", "b"] {
        tenant.api::<Subnet>().delete(subnet, &DeleteParams::default()).await.unwrap();
        assert_eq!(tenant.says::<Subnet>(subnet, "InUse").await, "used by Router between");
    }
    let leaving = until(networks.clone(), &public, |network| shown(network).0 == "InUse").await;
    assert_eq!(shown(&leaving).1, format!("used by Router between in namespace {}", tenant.name));
    assert_eq!(interfaces(tenant.world, &router).len(), 2, "nothing is taken from what uses it");
    tenant.api::<Router>().delete("between", &DeleteParams::default()).await.unwrap();
    gone(tenant.api::<Router>(), "between").await;
    for subnet in ["a", "b"] {
        gone(tenant.api::<Subnet>(), subnet).await;
    }
    gone(tenant.api::<Network>(), "net").await;
    gone(networks, &public).await;
    assert!(refused(&tenant, &tenant.project().await).is_empty(), "nothing is asked that has to be refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_378_delete_waits_while_a_floating_ip_leads_through_it() {
    let tenant = world::shared().await.tenant().await;
    inside(&tenant).await;
    tenant.create::<Router>("in-use", json!({"interfaces": on(&["a", "b"])})).await;
    let router = id(&tenant.ready::<Router>("in-use").await);
    let (now, floating) = (tenant.world.sim.clock().now(), format!("floating-{router}"));
    let theirs = json!({"router_id": router, "fixed_ip_address": "10.0.0.9"});
    tenant.world.sim.cloud().neutron.add(now, "floatingips", &floating, &tenant.project().await, theirs);
    tenant.api::<Router>().delete("in-use", &DeleteParams::default()).await.unwrap();
    let message = tenant.says::<Router>("in-use", "InUse").await;
    assert!(message.contains("required by one or more floating IPs"), "{message}");
    assert!(tenant.world.sim.cloud().neutron.remove(now, "floatingips", &floating));
    tenant.nudge::<Router>("in-use").await;
    gone(tenant.api::<Router>(), "in-use").await;
    assert!(tenant.world.sim.cloud().neutron.get("routers", &router).is_none());
    assert!(interfaces(tenant.world, &router).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subnet_without_a_gateway_is_told_and_connected_when_it_has_one() {
    let tenant = world::shared().await.tenant().await;
    inside(&tenant).await;
    tenant.patch::<Subnet>("a", json!({"spec": {"gateway": "None"}})).await;
    tenant.ready::<Subnet>("a").await;
    tenant.create::<Router>("blind", json!({"interfaces": on(&["a", "b"])})).await;
    let message = tenant.says::<Router>("blind", "InvalidSpec").await;
    assert!(message.contains("Subnet for router interface must have a gateway IP"), "{message}");
    let router = id(&until(tenant.api::<Router>(), "blind", |router| !id(router).is_empty()).await);
    assert_eq!(interfaces(tenant.world, &router), ["10.1.0.1"], "the other is connected nevertheless");
    tenant.patch::<Subnet>("a", json!({"spec": {"gateway": "10.0.0.1"}})).await;
    tenant.ready::<Subnet>("a").await;
    tenant.nudge::<Router>("blind").await;
    tenant.ready::<Router>("blind").await;
    assert_eq!(interfaces(tenant.world, &router), ["10.0.0.1", "10.1.0.1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_goes_with_its_routers_in_one_go() {
    let tenant = world::shared().await.tenant().await;
    inside(&tenant).await;
    tenant.create::<Router>("leaving", json!({"interfaces": on(&["a", "b"])})).await;
    tenant.ready::<Router>("leaving").await;
    let project = tenant.project().await;
    tenant.end().await;
    let cloud = tenant.world.sim.cloud();
    for collection in ["routers", "subnets", "networks", "ports"] {
        assert_eq!(cloud.neutron.all(collection).filter(|one| one.project_id == project).count(), 0, "{collection}");
    }
    drop(cloud);
    assert!(refused(&tenant, &project).is_empty(), "nothing is asked that has to be refused");
}
