//! Networks outside of the cloud, and their subnets.

use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use kupenstack_api::{
    FINALIZER,
    resources::{ExternalNetwork, Network},
};
use kupenstack_testkit::sim::Item;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    common::look::{self, eventually, gone, id, is_ready, mark, object, shown, until},
    network::{named, put},
    world::{self, World},
};

async fn api(world: &World) -> Api<ExternalNetwork> {
    Api::all(world.client().await)
}

async fn create(world: &World, name: &str, spec: Value) -> ExternalNetwork {
    api(world).await.create(&PostParams::default(), &object(name, &spec)).await.unwrap()
}

async fn patch(world: &World, name: &str, patch: Value) -> kube::Result<ExternalNetwork> {
    api(world).await.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await
}

/// Changes the spec and waits until that is true.
async fn edit(world: &World, name: &str, spec: Value) -> ExternalNetwork {
    patch(world, name, json!({"spec": spec})).await.unwrap();
    ready(world, name).await
}

/// Has a network looked at, unless it has just gone.
async fn nudge(world: &World, name: &str) {
    look::nudge(api(world).await, name).await;
}

async fn ready(world: &World, name: &str) -> ExternalNetwork {
    until(api(world).await, name, is_ready).await
}

async fn says(world: &World, name: &str, reason: &str) -> String {
    let object = until(api(world).await, name, |object| shown(object).0 == reason).await;
    shown(&object).1.to_owned()
}

fn only(world: &World, name: &str) -> Item {
    let [one] = named(world, name).try_into().unwrap();
    one
}

/// What of a network's subnets: by range, its gateway, its first pool's first address, and whether it answers DHCP.
fn subnets(world: &World, network: &str) -> Value {
    let cloud = world.sim.cloud();
    let of = cloud.neutron.all("subnets").filter(|subnet| subnet.text("network_id") == network);
    let mut of: Vec<_> = of
        .map(|subnet| {
            let [gateway, pools] = ["gateway_ip", "allocation_pools"].map(|part| subnet.body[part].clone());
            json!([subnet.text("cidr"), gateway, pools[0]["start"], subnet.is("enable_dhcp")])
        })
        .collect();
    of.sort_by_key(Value::to_string);
    json!(of)
}

/// A subnet that somebody made.
fn put_subnet(world: &World, id: &str, network: &str, range: &str) {
    let now = world.sim.clock().now();
    let theirs = json!({"name": "theirs", "network_id": network, "cidr": range, "ip_version": 4, "gateway_ip": null,
        "enable_dhcp": false, "allocation_pools": []});
    world.sim.cloud().neutron.add(now, "subnets", id, "elsewhere", theirs);
}

/// A name that no other test has.
fn fresh(name: &str) -> String {
    format!("{name}-{}", crate::common::cluster::number())
}

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_187_create_minimal_makes_a_flat_network_of_the_administrators() {
    let world = world::shared().await;
    let name = fresh("minimal");
    create(world, &name, json!({"physicalNetwork": name})).await;
    let network = ready(world, &name).await;
    assert_eq!(network.finalizers(), [FINALIZER]);
    let stored = only(world, &name);
    let admin = world.sim.cloud().keystone.find("projects", "admin").unwrap().id.clone();
    assert_eq!((stored.id.clone(), stored.project_id.clone()), (id(&network), admin));
    assert_eq!((stored.text("description"), stored.is("router:external")), (mark(&network).as_str(), true));
    assert_eq!(stored.text("provider:network_type"), "flat");
    let status = network.status.unwrap();
    assert_eq!((status.mtu, status.physical_network.as_deref()), (Some(1500), Some(name.as_str())));
    assert_eq!(subnets(world, &stored.id), json!([]));
    look::delete(api(world).await, &name).await;
    assert!(named(world, &name).is_empty());
}

/// However many passes there are over it, one list has all that is to be known, its subnets among it.
#[tokio::test(flavor = "multi_thread")]
async fn k_orc_852_a_settled_one_costs_no_request() {
    let world = World::start().await;
    world.declare_cloud().await;
    let operator = world.operator();
    create(&world, "settled", json!({"physicalNetwork": "wire", "subnets": [{"cidr": "203.0.113.0/24"}]})).await;
    let path = format!("/v2.0/networks/{}", id(&ready(&world, "settled").await));
    world.lists("/v2.0/networks").await;
    let asked = || (world.asked(&path), world.sim.cloud().journal.writes());
    let before = asked();
    for _ in 0..3 {
        let passes = operator.passes("externalnetwork");
        nudge(&world, "settled").await;
        eventually("a pass", async || operator.passes("externalnetwork") > passes).await;
    }
    assert_eq!(asked(), before);
    assert_eq!(operator.metric("kupenstack_unowned_resources", "Neutron network"), 0);
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn create_full_declares_everything_in_one_object() {
    let world = world::shared().await;
    let name = fresh("full");
    let spec = json!({"description": "ours", "physicalNetwork": name, "networkType": "VLAN", "segmentationId": 7,
    "mtu": 1400, "adminStateUp": false, "subnets": [
        {"cidr": "203.0.113.0/24", "gateway": "203.0.113.254", "dhcp": true,
            "allocationPools": [{"start": "203.0.113.10", "end": "203.0.113.20"}]},
        {"cidr": "2001:db8::/64", "gateway": "None", "allocationPools": [{"start": "2001:db8::8", "end": "2001:db8::9"}]},
    ]});
    create(world, &name, spec).await;
    let network = ready(world, &name).await;
    let stored = only(world, &name);
    let of = |name: &str| stored.body[name].clone();
    assert_eq!(stored.text("description"), format!("ours {}", mark(&network)));
    assert_eq!(
        ["provider:network_type", "provider:physical_network", "provider:segmentation_id", "mtu", "admin_state_up"]
            .map(of),
        [json!("vlan"), json!(name), json!(7), json!(1400), json!(false)]
    );
    let all = json!([
        ["2001:db8::/64", null, "2001:db8::8", false],
        ["203.0.113.0/24", "203.0.113.254", "203.0.113.10", true]
    ]);
    assert_eq!(subnets(world, &stored.id), all);
    let status = network.status.unwrap();
    assert_eq!(status.subnets, ["2001:db8::/64", "203.0.113.0/24"]);
    assert_eq!(status.segmentation_id, Some(7));
}

#[tokio::test(flavor = "multi_thread")]
async fn update_changes_each_field_and_back() {
    let world = world::shared().await;
    let name = fresh("edited");
    create(world, &name, json!({"physicalNetwork": name, "mtu": 1400})).await;
    let network = ready(world, &name).await;
    let texts = (format!("new {}", mark(&network)), mark(&network));
    for (field, attribute, there, back) in [
        ("description", "description", (json!("new"), json!(texts.0)), (json!(null), json!(texts.1))),
        ("adminStateUp", "admin_state_up", (json!(false), json!(false)), (json!(null), json!(true))),
        ("mtu", "mtu", (json!(1300), json!(1300)), (json!(1400), json!(1400))),
    ] {
        for (declared, stored) in [there, back] {
            let before = only(world, &name).revision;
            edit(world, &name, json!({field: declared})).await;
            let now = only(world, &name);
            assert_eq!((&now.body[attribute], now.revision), (&stored, before + 1), "{field}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn subnets_come_change_and_go() {
    let world = world::shared().await;
    let name = fresh("ranges");
    create(world, &name, json!({"physicalNetwork": name})).await;
    let network = id(&ready(world, &name).await);
    put_subnet(world, &format!("theirs-{name}"), &network, "192.0.2.0/24");
    nudge(world, &name).await;
    let theirs = json!(["192.0.2.0/24", null, null, false]);
    let first = |gateway: Value, start: &str, dhcp: bool| json!(["203.0.113.0/24", gateway, start, dhcp]);
    let declared = |gateway: &str, start: &str| json!({"cidr": "203.0.113.0/24", "gateway": gateway, "allocationPools": [{"start": start, "end": "203.0.113.99"}]});
    edit(world, &name, json!({"description": "they are left to others"})).await;
    assert_eq!(subnets(world, &network), json!([theirs]));
    edit(world, &name, json!({"subnets": [declared("203.0.113.1", "203.0.113.8")]})).await;
    assert_eq!(subnets(world, &network), json!([first(json!("203.0.113.1"), "203.0.113.8", false)]));
    for (gateway, there, start) in
        [("None", json!(null), "203.0.113.9"), ("203.0.113.1", json!("203.0.113.1"), "203.0.113.8")]
    {
        let mut with = declared(gateway, start);
        with["dhcp"] = json!(true);
        edit(world, &name, json!({"subnets": [with]})).await;
        assert_eq!(subnets(world, &network), json!([first(there.clone(), start, true)]));
        edit(world, &name, json!({"subnets": [declared(gateway, start)]})).await;
        assert_eq!(subnets(world, &network), json!([first(there, start, false)]));
    }
    // a range gives way to one that overlaps with it
    edit(world, &name, json!({"subnets": [{"cidr": "203.0.113.0/25"}, {"cidr": "203.0.113.128/25"}]})).await;
    let halves = json!([
        ["203.0.113.0/25", "203.0.113.1", "203.0.113.2", false],
        ["203.0.113.128/25", "203.0.113.129", "203.0.113.130", false]
    ]);
    assert_eq!(subnets(world, &network), halves);
    let none = edit(world, &name, json!({"subnets": []})).await;
    assert_eq!((subnets(world, &network), none.status.unwrap().subnets.len()), (json!([]), 0));
}

fn with_subnets(subnets: &Value) -> Value {
    json!({"physicalNetwork": "w", "subnets": subnets})
}

#[rstest]
#[case::no_wire(json!({}), "physicalNetwork has to be given")]
#[case::wire_of_an_adopted_one(json!({"adopt": {"name": "x"}, "physicalNetwork": "w"}), "that is on one already")]
#[case::type_of_an_adopted_one(json!({"adopt": {"name": "x"}, "networkType": "VLAN"}), "has its networkType already")]
#[case::vlan_of_a_flat_one(json!({"physicalNetwork": "w", "segmentationId": 7}), "is for networkType VLAN")]
#[case::no_vlan(json!({"physicalNetwork": "w", "networkType": "VLAN", "segmentationId": 4095}), "spec.segmentationId")]
#[case::malformed(with_subnets(&json!([{"cidr": "203.0.113.0/33"}])), "not an address and the length")]
#[case::loose_bits(with_subnets(&json!([{"cidr": "203.0.113.7/24"}])), "bits beyond its prefix")]
#[case::twice(with_subnets(&json!([{"cidr": "203.0.113.0/24"}, {"cidr": "203.0.113.0/24"}])), "Duplicate value")]
#[case::overlap(with_subnets(&json!([{"cidr": "203.0.113.0/25"}, {"cidr": "203.0.113.0/24"}])), "two of the subnets overlap")]
#[case::gateway_outside(with_subnets(&json!([{"cidr": "203.0.113.0/24", "gateway": "203.0.112.1"}])), "gateway is not in cidr")]
#[case::no_gateway(with_subnets(&json!([{"cidr": "203.0.113.0/24", "gateway": "none"}])), "neither an address nor None")]
#[case::pool_outside(with_subnets(&json!([{"cidr": "203.0.113.0/24",
    "allocationPools": [{"start": "203.0.113.2", "end": "203.0.114.9"}]}])), "a pool begins or ends outside cidr")]
#[tokio::test(flavor = "multi_thread")]
async fn what_can_never_be_is_refused_by_the_definition(#[case] spec: Value, #[case] words: &str) {
    let world = world::shared().await;
    let wrong = object("wrong", &spec);
    let error = api(world).await.create(&PostParams::default(), &wrong).await.unwrap_err();
    assert!(error.to_string().contains(words), "{error}");
}

#[rstest]
#[case::wire(json!({"physicalNetwork": "other"}), "physicalNetwork can't be changed")]
#[case::network_type(json!({"networkType": "Flat"}), "networkType can't be changed")]
#[case::vlan(json!({"segmentationId": 8}), "segmentationId can't be changed")]
#[case::mtu(json!({"mtu": null}), "mtu can be changed but not taken back")]
#[case::subnets(json!({"subnets": null}), "give an empty list for none")]
#[case::gateway(json!({"subnets": [{"cidr": "203.0.113.0/24"}]}), "gateway can be changed but not taken back")]
#[tokio::test(flavor = "multi_thread")]
async fn what_neutron_can_not_change_is_refused(#[case] change: Value, #[case] words: &str) {
    let world = world::shared().await;
    let name = fresh("fixed");
    let spec = json!({"physicalNetwork": name, "networkType": "VLAN", "segmentationId": 7, "mtu": 1400,
        "subnets": [{"cidr": "203.0.113.0/24", "gateway": "203.0.113.1"}]});
    create(world, &name, spec).await;
    let error = patch(world, &name, json!({"spec": change})).await.unwrap_err();
    assert!(error.to_string().contains(words), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn adopt_takes_over_of_any_project_and_leaves_what_is_not_declared() {
    let world = world::shared().await;
    for by in ["id", "name"] {
        let network = fresh("theirs");
        let before = json!({"name": network, "description": "theirs", "router:external": true, "mtu": 1200,
            "provider:network_type": "flat", "provider:physical_network": network});
        put(world, &network, "elsewhere", before);
        put_subnet(world, &format!("in-{network}"), &network, "192.0.2.0/24");
        let name = fresh("adopted");
        create(world, &name, json!({"adopt": {by: network}})).await;
        let object = ready(world, &name).await;
        assert_eq!(id(&object), network);
        let status = object.status.unwrap();
        assert_eq!((status.subnets, status.physical_network), (vec!["192.0.2.0/24".to_owned()], Some(network.clone())));
        world.lists("/v2.0/networks").await;
        nudge(world, &name).await;
        world.lists("/v2.0/networks").await;
        let status = ready(world, &name).await.status.unwrap();
        assert_eq!(status.subnets, ["192.0.2.0/24"], "lists show them too");
        assert_eq!(only(world, &network).revision, 1);
        edit(world, &name, json!({"subnets": [{"cidr": "203.0.113.0/24"}], "mtu": 1300})).await;
        let theirs = json!(["192.0.2.0/24", null, null, false]);
        let ours = json!(["203.0.113.0/24", "203.0.113.1", "203.0.113.2", false]);
        assert_eq!(subnets(world, &network), json!([theirs, ours]));
        let stored = only(world, &network);
        assert_eq!((stored.text("description"), &stored.body["mtu"]), ("theirs", &json!(1300)));
        look::delete(api(world).await, &name).await;
        assert_eq!(named(world, &network).len(), 1, "what was adopted is retained");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn adopt_waits_until_exactly_one_external_network_fits() {
    let world = world::shared().await;
    let (wanted, twofold) = (fresh("wanted"), fresh("twofold"));
    put(world, &wanted, "elsewhere", json!({"name": wanted}));
    let picky = fresh("picky");
    create(world, &picky, json!({"adopt": {"id": wanted}})).await;
    let message = says(world, &picky, "NothingToAdopt").await;
    assert!(message.contains("none of the cloud's external Neutron networks fits"), "{message}");
    let ids = [1, 2].map(|number| format!("{twofold}-{number}"));
    for network in &ids {
        put(world, network, "elsewhere", json!({"name": twofold, "router:external": true}));
    }
    let torn = fresh("torn");
    create(world, &torn, json!({"adopt": {"name": twofold}})).await;
    says(world, &torn, "AmbiguousAdoption").await;
    let now = world.sim.clock().now();
    let external = |network: &mut Item| drop(network.body.insert("router:external".to_owned(), json!(true)));
    assert!(world.sim.cloud().neutron.edit(now, "networks", &wanted, external));
    nudge(world, &picky).await;
    assert_eq!(id(&ready(world, &picky).await), wanted);
    look::delete(api(world).await, &torn).await;
    assert_eq!(named(world, &twofold).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn isolation_a_namespace_takes_over_no_external_network() {
    let tenant = world::shared().await.tenant().await;
    let network = fresh("outside");
    put(tenant.world, &network, "elsewhere", json!({"name": network, "router:external": true}));
    tenant.create::<Network>("grab", json!({"adopt": {"id": network}})).await;
    tenant.says::<Network>("grab", "NothingToAdopt").await;
    look::delete(tenant.api::<Network>(), "grab").await;
    assert_eq!(only(tenant.world, &network).revision, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_adoption_by_name_a_foreign_network_of_the_name_is_left_alone() {
    let world = world::shared().await;
    let (name, foreign) = (fresh("clash"), fresh("foreign"));
    let admin = world.sim.cloud().keystone.find("projects", "admin").unwrap().id.clone();
    put(world, &foreign, &admin, json!({"name": name, "router:external": true}));
    create(world, &name, json!({"physicalNetwork": name})).await;
    assert_ne!(id(&ready(world, &name).await), foreign);
    look::delete(api(world).await, &name).await;
    let left: Vec<_> = named(world, &name).into_iter().map(|network| (network.id, network.revision)).collect();
    assert_eq!(left, [(foreign, 1)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_of_the_network_and_of_its_subnets_is_repaired() {
    let world = world::shared().await;
    let name = fresh("drift");
    let subnet = |range: &str, gateway: &str| json!({"cidr": range, "gateway": gateway});
    let all = [subnet("203.0.113.0/24", "203.0.113.1"), subnet("198.51.100.0/24", "None")];
    create(world, &name, json!({"physicalNetwork": name, "subnets": all})).await;
    let network = id(&ready(world, &name).await);
    let declared = subnets(world, &network);
    let now = world.sim.clock().now();
    {
        let mut cloud = world.sim.cloud();
        let of = |range: &str| {
            let mut all = cloud.neutron.all("subnets");
            all.find(|subnet| subnet.text("network_id") == network && subnet.text("cidr") == range).unwrap().id.clone()
        };
        let (first, second) = (of("203.0.113.0/24"), of("198.51.100.0/24"));
        let no_gateway = |subnet: &mut Item| drop(subnet.body.insert("gateway_ip".to_owned(), json!(null)));
        assert!(cloud.neutron.edit(now, "subnets", &first, no_gateway));
        assert!(cloud.neutron.remove(now, "subnets", &second));
    }
    put_subnet(world, &format!("added-{name}"), &network, "192.0.2.0/24");
    eventually("the repair of the subnets", async || subnets(world, &network) == declared).await;
    let inside = |network: &mut Item| drop(network.body.insert("router:external".to_owned(), json!(false)));
    assert!(world.sim.cloud().neutron.edit(now, "networks", &network, inside));
    eventually("the repair of the network", async || only(world, &name).is("router:external")).await;
    assert_eq!(subnets(world, &network), declared);
}

#[tokio::test(flavor = "multi_thread")]
async fn external_deletion_is_made_good_with_the_subnets() {
    let world = world::shared().await;
    let name = fresh("lost");
    create(world, &name, json!({"physicalNetwork": name, "subnets": [{"cidr": "203.0.113.0/24"}]})).await;
    let before = id(&ready(world, &name).await);
    let now = world.sim.clock().now();
    assert!(world.sim.cloud().neutron.remove(now, "networks", &before));
    let again = until(api(world).await, &name, |network| is_ready(network) && id(network) != before).await;
    assert_eq!(again.status.as_ref().unwrap().subnets, ["203.0.113.0/24"]);
    assert_eq!(subnets(world, &id(&again)).as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wire_that_is_taken_is_told_and_goes_on_when_it_is_free() {
    let world = world::shared().await;
    let (first, second) = (fresh("first"), fresh("second"));
    create(world, &first, json!({"physicalNetwork": first})).await;
    ready(world, &first).await;
    create(world, &second, json!({"physicalNetwork": first})).await;
    let message = says(world, &second, "Conflict").await;
    assert!(message.contains(&format!("Physical network {first} is in use")), "{message}");
    look::delete(api(world).await, &first).await;
    ready(world, &second).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_378_delete_waits_while_somebody_is_on_it() {
    let world = world::shared().await;
    let name = fresh("in-use");
    create(world, &name, json!({"physicalNetwork": name})).await;
    let network = id(&ready(world, &name).await);
    let (now, port) = (world.sim.clock().now(), fresh("port"));
    let theirs = json!({"network_id": network, "device_owner": "network:router_gateway", "fixed_ips": []});
    world.sim.cloud().neutron.add(now, "ports", &port, "", theirs);
    api(world).await.delete(&name, &DeleteParams::default()).await.unwrap();
    let message = says(world, &name, "InUse").await;
    assert!(message.contains("ports still in use on the network"), "{message}");
    assert!(world.sim.cloud().neutron.remove(now, "ports", &port));
    nudge(world, &name).await;
    gone(api(world).await, &name).await;
    assert!(named(world, &name).is_empty());
}
