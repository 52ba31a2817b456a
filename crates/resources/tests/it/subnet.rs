//! Subnets in Neutron, on the networks of other objects.

use kube::{
    ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use kupenstack_api::{
    FINALIZER,
    resources::{Network, Port, Subnet},
};
use kupenstack_testkit::sim::Item;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    common::look::{self, eventually, gone, id, is_ready, mark, object, shown, until},
    network,
    world::{self, Tenant, World},
};

/// On network `net`, which may come later.
async fn create(tenant: &Tenant<'_>, name: &str, range: &str, but: Value) -> Subnet {
    let mut spec = json!({"network": "net", "cidr": range});
    spec.as_object_mut().unwrap().extend(but.as_object().unwrap().clone());
    tenant.create(name, spec).await
}

/// The one subnet of a name in Neutron.
fn only(world: &World, name: &str) -> Item {
    let cloud = world.sim.cloud();
    let named: Vec<Item> = cloud.neutron.all("subnets").filter(|subnet| subnet.text("name") == name).cloned().collect();
    let [one] = named.try_into().unwrap();
    one
}

/// How many creations were asked for in a namespace.
fn posts(tenant: &Tenant<'_>) -> usize {
    let cloud = tenant.world.sim.cloud();
    let project = cloud.keystone.find("projects", &tenant.name).map(|project| project.id.clone());
    let posts = cloud.journal.entries().filter(|entry| entry.path == "/v2.0/subnets" && entry.method == "POST");
    posts.filter(|entry| entry.project_id == project).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_187_create_minimal_in_any_order() {
    let tenant = world::shared().await.tenant().await;
    create(&tenant, "minimal", "10.0.0.0/24", json!({})).await;
    assert_eq!(tenant.says::<Subnet>("minimal", "DependencyNotReady").await, "Network net does not exist");
    assert_eq!(posts(&tenant), 0);
    tenant.create::<Network>("net", json!({})).await;
    let subnet = tenant.ready::<Subnet>("minimal").await;
    assert_eq!(subnet.finalizers(), [FINALIZER]);
    let stored = only(tenant.world, "minimal");
    assert_eq!((stored.id.clone(), stored.project_id.clone()), (id(&subnet), tenant.project().await));
    assert_eq!(stored.text("network_id"), id(&tenant.ready::<Network>("net").await));
    assert_eq!(stored.text("description"), mark(&subnet));
    let status = subnet.status.unwrap();
    assert_eq!((status.cidr.as_deref(), status.gateway.as_deref()), (Some("10.0.0.0/24"), Some("10.0.0.1")));
    assert_eq!(posts(&tenant), 1);
    look::delete(tenant.api::<Subnet>(), "minimal").await;
    network::delete(&tenant, "net").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn create_full_declares_everything() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<Network>("net", json!({})).await;
    let but = json!({"description": "front", "gateway": "10.1.0.9", "dhcp": false, "dnsServers": ["10.9.9.9", "10.8.8.8"],
        "allocationPools": [{"start": "10.1.0.50", "end": "10.1.0.60"}],
        "hostRoutes": [{"destination": "10.2.0.0/16", "nextHop": "10.1.0.7"}]});
    let subnet = create(&tenant, "full-4", "10.1.0.0/24", but).await;
    create(&tenant, "full-6", "fd00:1::/64", json!({"ipv6Mode": "SLAAC", "gateway": "None"})).await;
    tenant.ready::<Subnet>("full-4").await;
    let stored = only(tenant.world, "full-4");
    let of = |name: &str| stored.body[name].clone();
    assert_eq!(of("description"), json!(format!("front {}", mark(&subnet))));
    assert_eq!((of("gateway_ip"), of("enable_dhcp")), (json!("10.1.0.9"), json!(false)));
    assert_eq!(of("dns_nameservers"), json!(["10.9.9.9", "10.8.8.8"]));
    assert_eq!(of("allocation_pools"), json!([{"start": "10.1.0.50", "end": "10.1.0.60"}]));
    assert_eq!(of("host_routes"), json!([{"destination": "10.2.0.0/16", "nexthop": "10.1.0.7"}]));
    let second = tenant.ready::<Subnet>("full-6").await;
    assert_eq!(second.status.unwrap().gateway, None);
    let stored = only(tenant.world, "full-6");
    let of = |name: &str| stored.body[name].clone();
    assert_eq!(
        [of("ip_version"), of("ipv6_address_mode"), of("ipv6_ra_mode")],
        [json!(6), json!("slaac"), json!("slaac")]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn update_changes_each_field_and_back() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<Network>("net", json!({})).await;
    let pools = |start: &str| json!([{"start": start, "end": "10.0.0.99"}]);
    let but = json!({"gateway": "10.0.0.1", "allocationPools": pools("10.0.0.10")});
    let subnet = create(&tenant, "edited", "10.0.0.0/24", but).await;
    tenant.ready::<Subnet>("edited").await;
    let path = format!("/v2.0/subnets/{}", only(tenant.world, "edited").id);
    let texts = (format!("new {}", mark(&subnet)), mark(&subnet));
    let route = (
        json!([{"destination": "10.2.0.0/16", "nextHop": "10.0.0.7"}]),
        json!([{"destination": "10.2.0.0/16", "nexthop": "10.0.0.7"}]),
    );
    for (field, attribute, there, back) in [
        ("description", "description", (json!("new"), json!(texts.0)), (json!(null), json!(texts.1))),
        ("gateway", "gateway_ip", (json!("None"), json!(null)), (json!("10.0.0.1"), json!("10.0.0.1"))),
        ("dhcp", "enable_dhcp", (json!(false), json!(false)), (json!(null), json!(true))),
        ("dnsServers", "dns_nameservers", (json!(["10.9.9.9"]), json!(["10.9.9.9"])), (json!(null), json!([]))),
        ("hostRoutes", "host_routes", route, (json!(null), json!([]))),
        (
            "allocationPools",
            "allocation_pools",
            (pools("10.0.0.20"), pools("10.0.0.20")),
            (pools("10.0.0.10"), pools("10.0.0.10")),
        ),
    ] {
        for (declared, stored) in [there, back] {
            // of servers, routes and pools Neutron makes no revision, so the requests are counted
            let before = tenant.world.count("PUT", &path);
            tenant.patch::<Subnet>("edited", json!({"spec": {field: declared}})).await;
            tenant.ready::<Subnet>("edited").await;
            let now = only(tenant.world, "edited");
            assert_eq!((&now.body[attribute], tenant.world.count("PUT", &path)), (&stored, before + 1), "{field}");
        }
    }
    assert_eq!(posts(&tenant), 1);
}

#[rstest]
#[case::no_range(json!({"network": "net"}), "cidr has to be given")]
#[case::no_network(json!({"cidr": "10.0.0.0/24"}), "network has to be given")]
#[case::range_of_an_adopted_one(json!({"adopt": {"name": "x"}, "cidr": "10.0.0.0/24"}), "that has one already")]
#[case::malformed(json!({"network": "net", "cidr": "10.0.0.0/33"}), "not an address and the length")]
#[case::loose_bits(json!({"network": "net", "cidr": "10.0.0.1/24"}), "bits beyond its prefix")]
#[case::gateway_outside(json!({"network": "net", "cidr": "10.0.0.0/24", "gateway": "10.0.1.1"}), "gateway is not in cidr")]
#[case::no_gateway(json!({"network": "net", "cidr": "10.0.0.0/24", "gateway": "none"}), "neither an address nor None")]
#[case::pool_outside(json!({"network": "net", "cidr": "10.0.0.0/24",
    "allocationPools": [{"start": "10.0.0.2", "end": "10.0.1.9"}]}), "a pool begins or ends outside cidr")]
#[case::mode_of_version_4(json!({"network": "net", "cidr": "10.0.0.0/24", "ipv6Mode": "SLAAC"}), "for subnets of IPv6")]
#[case::too_small_for_slaac(json!({"network": "net", "cidr": "fd00::/80", "ipv6Mode": "SLAAC"}), "64 bits of prefix")]
#[case::route_of_another_family(json!({"network": "net", "cidr": "10.0.0.0/24",
    "hostRoutes": [{"destination": "fd00::/64", "nextHop": "10.0.0.1"}]}), "of another family than cidr")]
#[case::no_server(json!({"network": "net", "cidr": "10.0.0.0/24", "dnsServers": ["dns.example"]}), "no address")]
#[tokio::test(flavor = "multi_thread")]
async fn what_can_never_be_is_refused_by_the_definition(#[case] spec: Value, #[case] words: &str) {
    let tenant = world::shared().await.namespace(&[]).await;
    let error = tenant.api::<Subnet>().create(&PostParams::default(), &object("wrong", &spec)).await.unwrap_err();
    assert!(error.to_string().contains(words), "{error}");
}

#[rstest]
#[case::range(json!({"cidr": "10.9.0.0/24"}), "cidr can't be changed")]
#[case::network(json!({"network": "other"}), "network can't be changed")]
#[case::gateway(json!({"gateway": null}), "gateway can be changed but not taken back")]
#[tokio::test(flavor = "multi_thread")]
async fn what_neutron_can_not_change_is_refused(#[case] change: Value, #[case] words: &str) {
    let tenant = world::shared().await.namespace(&[]).await;
    create(&tenant, "fixed", "10.0.0.0/24", json!({"gateway": "10.0.0.1"})).await;
    let change = Patch::Merge(json!({"spec": change}));
    let error = tenant.api::<Subnet>().patch("fixed", &PatchParams::default(), &change).await.unwrap_err();
    assert!(error.to_string().contains(words), "{error}");
}

/// What becomes right goes on by itself, what only Neutron can see is told.
#[tokio::test(flavor = "multi_thread")]
async fn ranges_that_overlap_are_told_and_go_on_when_the_other_is_gone() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<Network>("net", json!({})).await;
    create(&tenant, "first", "10.0.0.0/16", json!({})).await;
    tenant.ready::<Subnet>("first").await;
    create(&tenant, "second", "10.0.1.0/24", json!({})).await;
    let message = tenant.says::<Subnet>("second", "InvalidSpec").await;
    assert!(message.contains("overlaps with another subnet"), "{message}");
    look::delete(tenant.api::<Subnet>(), "first").await;
    tenant.nudge::<Subnet>("second").await;
    tenant.ready::<Subnet>("second").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_repaired_and_told() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<Network>("net", json!({})).await;
    create(&tenant, "drift", "10.0.0.0/24", json!({"gateway": "10.0.0.1"})).await;
    let subnet = id(&tenant.ready::<Subnet>("drift").await);
    let now = tenant.world.sim.clock().now();
    let theirs = json!({"gateway_ip": null, "dns_nameservers": ["10.6.6.6"], "enable_dhcp": false});
    let Value::Object(theirs) = theirs else { panic!() };
    assert!(tenant.world.sim.cloud().neutron.edit(now, "subnets", &subnet, |subnet| subnet.body.extend(theirs)));
    eventually("the repair", async || {
        let stored = only(tenant.world, "drift");
        stored.text("gateway_ip") == "10.0.0.1"
            && stored.is("enable_dhcp")
            && stored.body["dns_nameservers"] == json!([])
    })
    .await;
    eventually("the event", async || tenant.events("drift").await.contains(&"DriftRepaired".to_owned())).await;
}

/// A network that others delete takes its subnets with it.
#[tokio::test(flavor = "multi_thread")]
async fn external_deletion_of_the_network_is_made_good_on_the_new_one() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<Network>("net", json!({})).await;
    create(&tenant, "lost", "10.0.0.0/24", json!({})).await;
    let (before, first) = (id(&tenant.ready::<Network>("net").await), id(&tenant.ready::<Subnet>("lost").await));
    let now = tenant.world.sim.clock().now();
    {
        let mut cloud = tenant.world.sim.cloud();
        assert!(cloud.neutron.remove(now, "subnets", &first) && cloud.neutron.remove(now, "networks", &before));
    }
    let again = until(tenant.api::<Network>(), "net", |network| is_ready(network) && id(network) != before).await;
    until(tenant.api::<Subnet>(), "lost", |subnet| is_ready(subnet) && id(subnet) != first).await;
    eventually("the subnet on the new network", async || only(tenant.world, "lost").text("network_id") == id(&again))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_is_kept_as_long_as_it_has_subnets() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<Network>("net", json!({})).await;
    create(&tenant, "kept", "10.0.0.0/24", json!({})).await;
    tenant.ready::<Subnet>("kept").await;
    tenant.api::<Network>().delete("net", &DeleteParams::default()).await.unwrap();
    assert_eq!(tenant.says::<Network>("net", "InUse").await, "used by Subnet kept");
    // one that comes now has to wait
    create(&tenant, "late", "10.1.0.0/24", json!({})).await;
    assert_eq!(tenant.says::<Subnet>("late", "DependencyNotReady").await, "Network net is being deleted");
    tenant.api::<Subnet>().delete("kept", &DeleteParams::default()).await.unwrap();
    gone(tenant.api::<Network>(), "net").await;
    until(tenant.api::<Subnet>(), "late", |subnet| shown(subnet).1 == "Network net does not exist").await;
    assert_eq!(posts(&tenant), 1);
}

/// Of a port that only names the network, Neutron alone knows which subnet it has its address of.
#[tokio::test(flavor = "multi_thread")]
async fn k_orc_378_delete_waits_while_a_port_has_an_address_of_it() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<Network>("net", json!({})).await;
    create(&tenant, "in-use", "10.0.0.0/24", json!({})).await;
    let subnet = id(&tenant.ready::<Subnet>("in-use").await);
    tenant.create::<Port>("user", json!({"network": "net"})).await;
    tenant.ready::<Port>("user").await;
    tenant.api::<Subnet>().delete("in-use", &DeleteParams::default()).await.unwrap();
    let message = tenant.says::<Subnet>("in-use", "InUse").await;
    assert!(message.contains("One or more ports have an IP allocation from this subnet"), "{message}");
    look::delete(tenant.api::<Port>(), "user").await;
    tenant.nudge::<Subnet>("in-use").await;
    gone(tenant.api::<Subnet>(), "in-use").await;
    assert!(tenant.world.sim.cloud().neutron.get("subnets", &subnet).is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_there_is_adopted_and_stays() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<Network>("net", json!({})).await;
    let network = id(&tenant.ready::<Network>("net").await);
    let project = tenant.project().await;
    let now = tenant.world.sim.clock().now();
    let theirs = json!({"name": "old", "network_id": network, "cidr": "10.3.0.0/24", "ip_version": 4,
        "gateway_ip": "10.3.0.1", "allocation_pools": [{"start": "10.3.0.2", "end": "10.3.0.254"}]});
    tenant.world.sim.cloud().neutron.add(now, "subnets", &format!("old-{project}"), &project, theirs);
    let spec = json!({"adopt": {"name": "old"}, "dnsServers": ["10.9.9.9"]});
    tenant.create::<Subnet>("taken", spec).await;
    let subnet = tenant.ready::<Subnet>("taken").await;
    assert_eq!(subnet.status.unwrap().cidr.as_deref(), Some("10.3.0.0/24"));
    assert_eq!(only(tenant.world, "old").body["dns_nameservers"], json!(["10.9.9.9"]));
    look::delete(tenant.api::<Subnet>(), "taken").await;
    assert_eq!(only(tenant.world, "old").text("gateway_ip"), "10.3.0.1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_goes_with_its_subnets_in_one_go() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<Network>("net", json!({})).await;
    for number in 0..3 {
        create(&tenant, &format!("leaving-{number}"), &format!("10.{number}.0.0/24"), json!({})).await;
    }
    for number in 0..3 {
        tenant.ready::<Subnet>(&format!("leaving-{number}")).await;
    }
    let project = tenant.project().await;
    tenant.end().await;
    let cloud = tenant.world.sim.cloud();
    assert_eq!(cloud.neutron.all("subnets").filter(|subnet| subnet.project_id == project).count(), 0);
    let deletions =
        cloud.journal.entries().filter(|entry| entry.method == "DELETE" && entry.project_id.as_ref() == Some(&project));
    let refused: Vec<_> = deletions.filter(|entry| entry.status == Some(409)).map(|entry| entry.path.clone()).collect();
    assert!(refused.is_empty(), "nothing is asked that has to be refused: {refused:?}");
}
