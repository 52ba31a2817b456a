//! Ports in Neutron, on the networks, subnets and with the security groups of other objects.

use kube::api::{DeleteParams, PostParams};
use kupenstack_api::resources::{Network, Port, SecurityGroup, Subnet};
use kupenstack_testkit::sim::{Effect, Item, Rule};
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    common::look::{self, eventually, gone, id, is_ready, is_stalled, mark, object, shown, until},
    world::{self, Tenant, World},
};

/// On network `net`.
async fn create(tenant: &Tenant<'_>, name: &str, but: Value) -> Port {
    let mut spec = json!({"network": "net"});
    spec.as_object_mut().unwrap().extend(but.as_object().unwrap().clone());
    tenant.create(name, spec).await
}

/// A network with two subnets, `a` and `b`, and a group.
async fn surroundings(tenant: &Tenant<'_>) {
    tenant.create::<Network>("net", json!({})).await;
    for (name, cidr) in [("a", "10.0.0.0/24"), ("b", "10.1.0.0/24")] {
        tenant.create::<Subnet>(name, json!({"network": "net", "cidr": cidr})).await;
        tenant.ready::<Subnet>(name).await;
    }
    tenant.create::<SecurityGroup>("web", json!({})).await;
}

/// The one port of a name in Neutron.
fn only(world: &World, name: &str) -> Item {
    let cloud = world.sim.cloud();
    let named: Vec<Item> = cloud.neutron.all("ports").filter(|port| port.text("name") == name).cloned().collect();
    let [one] = named.try_into().unwrap();
    one
}

fn meddle(world: &World, id: &str, attributes: Value) {
    let now = world.sim.clock().now();
    let Value::Object(attributes) = attributes else { panic!() };
    assert!(world.sim.cloud().neutron.edit(now, "ports", id, |port| port.body.extend(attributes)));
}

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_187_create_minimal_in_any_order() {
    let tenant = world::shared().await.tenant().await;
    create(&tenant, "minimal-port", json!({})).await;
    assert_eq!(tenant.says::<Port>("minimal-port", "DependencyNotReady").await, "Network net does not exist");
    tenant.create::<Network>("net", json!({})).await;
    let message = tenant.says::<Port>("minimal-port", "NoAddress").await;
    assert!(message.starts_with("its network has no subnet yet"), "{message}");
    tenant.create::<Subnet>("late", json!({"network": "net", "cidr": "10.0.0.0/24"})).await;
    let port = tenant.ready::<Port>("minimal-port").await;
    let stored = only(tenant.world, "minimal-port");
    assert_eq!((stored.id.clone(), stored.project_id.clone()), (id(&port), tenant.project().await));
    assert_eq!(stored.text("description"), mark(&port));
    let status = port.status.unwrap();
    let mac = status.mac_address.unwrap();
    assert_eq!(stored.text("mac_address"), mac);
    assert!(status.addresses.len() == 1 && status.addresses[0].starts_with("10.0.0."), "{:?}", status.addresses);
    let first = u8::from_str_radix(&mac[..2], 16).unwrap();
    assert_eq!(first & 3, 2, "{mac} is one that nobody has registered, of one card");
    look::delete(tenant.api::<Port>(), "minimal-port").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn create_full_declares_everything() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    let but = json!({"description": "front", "macAddress": "02:00:00:00:AB:01", "securityGroups": ["web"],
        "addresses": [{"subnet": "a", "ip": "10.0.0.77"}, {"subnet": "b"}], "adminStateUp": false,
        "allowedAddresses": [{"ip": "10.9.0.0/16"}, {"ip": "10.8.0.1", "macAddress": "02:00:00:00:00:07"}]});
    create(&tenant, "full-port", but).await;
    let port = tenant.ready::<Port>("full-port").await;
    let stored = only(tenant.world, "full-port");
    assert_eq!(stored.text("description"), format!("front {}", mark(&port)));
    assert_eq!((stored.text("mac_address"), stored.is("admin_state_up")), ("02:00:00:00:ab:01", false));
    let group = id(&tenant.ready::<SecurityGroup>("web").await);
    assert_eq!(stored.body["security_groups"], json!([group]));
    let addresses = port.status.unwrap().addresses;
    assert!(
        addresses.len() == 2 && addresses[0] == "10.0.0.77" && addresses[1].starts_with("10.1.0."),
        "{addresses:?}"
    );
    assert_eq!(stored.body["allowed_address_pairs"].as_array().unwrap().len(), 2);
    assert_eq!(stored.revision, 1, "all of it with the creation");
}

#[tokio::test(flavor = "multi_thread")]
async fn update_changes_each_field_and_back() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    let but = json!({"addresses": [{"subnet": "a", "ip": "10.0.0.9"}], "securityGroups": []});
    let port = create(&tenant, "edited-port", but).await;
    tenant.ready::<Port>("edited-port").await;
    let group = id(&tenant.ready::<SecurityGroup>("web").await);
    let texts = (format!("new {}", mark(&port)), mark(&port));
    let mac = only(tenant.world, "edited-port").text("mac_address").to_owned();
    let subnet = only(tenant.world, "edited-port").body["fixed_ips"][0]["subnet_id"].clone();
    let ip = |address: &str| json!([{"subnet_id": subnet, "ip_address": address}]);
    let pair = json!([{"ip_address": "10.9.0.0/16", "mac_address": mac}]);
    for (field, attribute, there, back) in [
        ("description", "description", (json!("new"), json!(texts.0)), (json!(null), json!(texts.1))),
        ("adminStateUp", "admin_state_up", (json!(false), json!(false)), (json!(null), json!(true))),
        ("securityGroups", "security_groups", (json!(["web"]), json!([group])), (json!([]), json!([]))),
        ("portSecurity", "port_security_enabled", (json!(false), json!(false)), (json!(true), json!(true))),
        ("allowedAddresses", "allowed_address_pairs", (json!([{"ip": "10.9.0.0/16"}]), pair), (json!(null), json!([]))),
        (
            "addresses",
            "fixed_ips",
            (json!([{"subnet": "a", "ip": "10.0.0.8"}]), ip("10.0.0.8")),
            (json!([{"ip": "10.0.0.9"}]), ip("10.0.0.9")),
        ),
    ] {
        for (declared, stored) in [there, back] {
            let before = only(tenant.world, "edited-port").revision;
            tenant.patch::<Port>("edited-port", json!({"spec": {field: declared}})).await;
            tenant.ready::<Port>("edited-port").await;
            let now = only(tenant.world, "edited-port");
            assert_eq!((&now.body[attribute], now.revision), (&stored, before + 1), "{field}");
        }
    }
    assert_eq!(only(tenant.world, "edited-port").text("mac_address"), mac);
}

/// An address that Neutron chose stays as long as it fits.
#[tokio::test(flavor = "multi_thread")]
async fn an_address_of_any_kind_stays_when_another_comes() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    create(&tenant, "grown-port", json!({"addresses": [{"subnet": "a"}]})).await;
    let first = tenant.ready::<Port>("grown-port").await.status.unwrap().addresses;
    tenant.patch::<Port>("grown-port", json!({"spec": {"addresses": [{"subnet": "b"}, {"subnet": "a"}]}})).await;
    let both = tenant.ready::<Port>("grown-port").await.status.unwrap().addresses;
    assert!(both.len() == 2 && both.contains(&first[0]), "{first:?}, then {both:?}");
}

#[rstest]
#[case::no_network(json!({}), "network has to be given")]
#[case::empty_address(json!({"network": "net", "addresses": [{}]}), "subnet or ip has to be given")]
#[case::no_address(json!({"network": "net", "addresses": [{"ip": "10.0.0"}]}), "not an address")]
#[case::mac_of_many(json!({"network": "net", "macAddress": "01:00:00:00:00:01"}), "spec.macAddress")]
#[case::groups_of_an_open_one(json!({"network": "net", "portSecurity": false, "securityGroups": ["web"]}),
    "without portSecurity has no security groups")]
#[case::pairs_of_an_open_one(json!({"network": "net", "portSecurity": false, "allowedAddresses": [{"ip": "10.0.0.1"}]}),
    "may send from any address")]
#[case::loose_bits(json!({"network": "net", "allowedAddresses": [{"ip": "10.0.0.1/8"}]}), "bits beyond its prefix")]
#[tokio::test(flavor = "multi_thread")]
async fn what_can_never_be_is_refused_by_the_definition(#[case] spec: Value, #[case] words: &str) {
    let tenant = world::shared().await.namespace(&[]).await;
    let error = tenant.api::<Port>().create(&PostParams::default(), &object("wrong", &spec)).await.unwrap_err();
    assert!(error.to_string().contains(words), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_repaired_and_told() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    create(&tenant, "drift-port", json!({"securityGroups": ["web"], "addresses": [{"ip": "10.0.0.9"}]})).await;
    let port = tenant.ready::<Port>("drift-port").await;
    let (before, declared) = (only(tenant.world, "drift-port").body, mark(&port));
    meddle(tenant.world, &id(&port), json!({"description": "theirs", "security_groups": [], "fixed_ips": []}));
    eventually("the repair", async || {
        let now = only(tenant.world, "drift-port").body;
        now["security_groups"] == before["security_groups"]
            && now["fixed_ips"] == before["fixed_ips"]
            && now["description"] == json!(declared)
    })
    .await;
    eventually("the event", async || tenant.events("drift-port").await.contains(&"DriftRepaired".to_owned())).await;
}

/// It comes back with the MAC that it had.
#[tokio::test(flavor = "multi_thread")]
async fn external_deletion_is_made_good_with_the_same_mac() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    create(&tenant, "lost-port", json!({"addresses": [{"ip": "10.0.0.9"}]})).await;
    let first = tenant.ready::<Port>("lost-port").await;
    let now = tenant.world.sim.clock().now();
    assert!(tenant.world.sim.cloud().neutron.remove(now, "ports", &id(&first)));
    let again = until(tenant.api::<Port>(), "lost-port", |port| is_ready(port) && id(port) != id(&first)).await;
    let (before, after) = (first.status.unwrap(), again.status.unwrap());
    assert_eq!((before.mac_address, before.addresses), (after.mac_address, after.addresses));
}

/// It is not looked for before: Neutron refuses to make another.
#[tokio::test(flavor = "multi_thread")]
async fn one_whose_answer_was_lost_is_found_when_it_is_made_again() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    let project = tenant.project().await;
    let path = "/v2.0/ports";
    let of_it = |method: &str| {
        let cloud = tenant.world.sim.cloud();
        let entries = cloud.journal.entries().filter(|entry| entry.method == method && entry.path == path);
        entries.filter(|entry| entry.project_id.as_ref() == Some(&project)).filter_map(|entry| entry.status).collect()
    };
    tenant
        .world
        .sim
        .cloud()
        .faults
        .add(Rule::on("network", "POST", path, Effect::lost_answer()).in_project(&project).once());
    create(&tenant, "lost-answer-port", json!({})).await;
    let port = tenant.ready::<Port>("lost-answer-port").await;
    assert_eq!(only(tenant.world, "lost-answer-port").id, id(&port));
    let (posts, looks): (Vec<u16>, Vec<u16>) = (of_it("POST"), of_it("GET"));
    assert!(posts.ends_with(&[409]) && looks == [200], "made again {posts:?}, looked for {looks:?}");
    create(&tenant, "not-lost-port", json!({})).await;
    tenant.ready::<Port>("not-lost-port").await;
    assert_eq!(of_it("GET"), [200], "one whose answer came is never looked for");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_whose_answer_was_lost_is_found_though_it_was_the_last_that_the_quota_allows() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    let project = tenant.project().await;
    {
        let mut cloud = tenant.world.sim.cloud();
        // the network has its own
        let others = cloud.neutron.all("ports").filter(|port| port.project_id == project).count();
        cloud.quotas.set(&project, "port", i64::try_from(others + 1).unwrap());
        cloud.faults.add(Rule::on("network", "POST", "/v2.0/ports", Effect::lost_answer()).in_project(&project).once());
    }
    create(&tenant, "last-port", json!({})).await;
    let port = tenant.ready::<Port>("last-port").await;
    assert_eq!(only(tenant.world, "last-port").id, id(&port));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mac_that_another_one_has_is_told_and_comes_when_it_is_free() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    let mac = "fa:16:3e:00:00:07";
    create(&tenant, "first", json!({"macAddress": mac})).await;
    tenant.ready::<Port>("first").await;
    create(&tenant, "second", json!({"macAddress": mac})).await;
    let message = tenant.says::<Port>("second", "Conflict").await;
    assert!(message.contains(mac), "{message}");
    look::delete(tenant.api::<Port>(), "first").await;
    tenant.nudge::<Port>("second").await;
    tenant.ready::<Port>("second").await;
}

/// Neutron itself would take it away from under a VM.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_a_vm_is_connected_to_stays() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<Network>("net", json!({})).await;
    create(&tenant, "used-port", json!({"addresses": []})).await;
    let port = id(&tenant.ready::<Port>("used-port").await);
    meddle(tenant.world, &port, json!({"device_id": "vm-1", "device_owner": "compute:nova"}));
    tenant.api::<Port>().delete("used-port", &DeleteParams::default()).await.unwrap();
    assert!(tenant.says::<Port>("used-port", "InUse").await.contains("compute:nova vm-1"));
    assert_eq!(only(tenant.world, "used-port").text("device_id"), "vm-1");
    meddle(tenant.world, &port, json!({"device_id": "", "device_owner": ""}));
    tenant.nudge::<Port>("used-port").await;
    gone(tenant.api::<Port>(), "used-port").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_needs_is_kept_and_says_so() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    create(&tenant, "needing-port", json!({"securityGroups": ["web"], "addresses": [{"subnet": "a"}]})).await;
    tenant.ready::<Port>("needing-port").await;
    tenant.api::<SecurityGroup>().delete("web", &DeleteParams::default()).await.unwrap();
    let kept = until(tenant.api::<SecurityGroup>(), "web", |group| shown(group).0 == "InUse").await;
    assert_eq!(shown(&kept).1, "used by Port needing-port");
    look::delete(tenant.api::<Port>(), "needing-port").await;
    gone(tenant.api::<SecurityGroup>(), "web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_others_have_is_told_and_comes_when_it_is_free() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    create(&tenant, "first-port", json!({"addresses": [{"ip": "10.0.0.9"}]})).await;
    tenant.ready::<Port>("first-port").await;
    create(&tenant, "second-port", json!({"addresses": [{"ip": "10.0.0.9"}]})).await;
    let message = tenant.says::<Port>("second-port", "Conflict").await;
    assert!(message.contains("10.0.0.9"), "{message}");
    look::delete(tenant.api::<Port>(), "first-port").await;
    tenant.nudge::<Port>("second-port").await;
    tenant.ready::<Port>("second-port").await;
}

/// Somebody else changes the port between our look and our change.
#[tokio::test(flavor = "multi_thread")]
async fn tf_1979_gophercloud_509_a_change_meanwhile_is_looked_at_again() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    create(&tenant, "raced-port", json!({"securityGroups": []})).await;
    let path = format!("/v2.0/ports/{}", id(&tenant.ready::<Port>("raced-port").await));
    tenant.world.fail_next(Rule::on("network", "PUT", &path, Effect::refusal(412)));
    tenant.patch::<Port>("raced-port", json!({"spec": {"securityGroups": ["web"]}})).await;
    let port = until(tenant.api::<Port>(), "raced-port", |port| is_ready(port) || is_stalled(port)).await;
    assert!(!is_stalled(&port), "{:?}", shown(&port));
    assert_eq!(only(tenant.world, "raced-port").body["security_groups"].as_array().unwrap().len(), 1);
    assert_eq!(tenant.world.count("PUT", &path), 2);
}

/// What Neutron fills in is no difference.
#[tokio::test(flavor = "multi_thread")]
async fn k_orc_852_a_settled_port_is_not_updated_again() {
    let world = World::start().await;
    world.declare_cloud().await;
    let operator = world.operator();
    let tenant = world.tenant().await;
    surroundings(&tenant).await;
    let but =
        json!({"allowedAddresses": [{"ip": "10.9.0.0/16"}], "addresses": [{"subnet": "a"}], "securityGroups": ["web"]});
    create(&tenant, "settled-port", but).await;
    let path = format!("/v2.0/ports/{}", id(&tenant.ready::<Port>("settled-port").await));
    for _ in 0..3 {
        let (passes, lists) = (operator.passes("port"), world.count("GET", "/v2.0/ports"));
        tenant.nudge::<Port>("settled-port").await;
        eventually("a pass", async || operator.passes("port") > passes).await;
        eventually("a list", async || world.count("GET", "/v2.0/ports") > lists).await;
    }
    assert_eq!((world.count("PUT", &path), world.count("POST", "/v2.0/ports")), (0, 1));
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_226_316_deleted_in_the_wrong_order_all_of_it_goes() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    create(&tenant, "last-port", json!({"securityGroups": ["web"], "addresses": [{"subnet": "a"}]})).await;
    tenant.ready::<Port>("last-port").await;
    let (delete, subnets) = (DeleteParams::default(), tenant.api::<Subnet>());
    tenant.api::<Network>().delete("net", &delete).await.unwrap();
    subnets.delete("a", &delete).await.unwrap();
    tenant.api::<SecurityGroup>().delete("web", &delete).await.unwrap();
    let message = tenant.says::<Network>("net", "InUse").await;
    assert!(message.starts_with("used by Port last-port, Subnet a"), "{message}");
    subnets.delete("b", &delete).await.unwrap();
    tenant.api::<Port>().delete("last-port", &delete).await.unwrap();
    gone(tenant.api::<Port>(), "last-port").await;
    gone(tenant.api::<SecurityGroup>(), "web").await;
    gone(subnets.clone(), "a").await;
    gone(subnets, "b").await;
    gone(tenant.api::<Network>(), "net").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_goes_with_all_that_is_connected() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    for number in 0..3 {
        create(&tenant, &format!("leaving-port-{number}"), json!({"securityGroups": ["web"]})).await;
    }
    for number in 0..3 {
        tenant.ready::<Port>(&format!("leaving-port-{number}")).await;
    }
    let project = tenant.project().await;
    tenant.end().await;
    let cloud = tenant.world.sim.cloud();
    for collection in ["ports", "subnets", "networks", "security-groups"] {
        assert_eq!(cloud.neutron.all(collection).filter(|item| item.project_id == project).count(), 0, "{collection}");
    }
}
