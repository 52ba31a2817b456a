//! Networks in Neutron.

use kube::{
    ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use kupenstack_api::{FINALIZER, resources::Network};
use kupenstack_core::ownership::ClusterId;
use kupenstack_testkit::sim::{Effect, Item, Rule, SimOptions};
use serde_json::{Value, json};

use crate::{
    common::look::{self, eventually, gone, id, is_ready, is_stalled, mark, object, shown, until},
    world::{self, Tenant, World},
};

pub(crate) async fn delete(tenant: &Tenant<'_>, name: &str) {
    look::delete(tenant.api::<Network>(), name).await;
}

/// The networks of this name in Neutron, of whoever.
pub(crate) fn named(world: &World, name: &str) -> Vec<Item> {
    let cloud = world.sim.cloud();
    cloud.neutron.all("networks").filter(|network| network.text("name") == name).cloned().collect()
}

fn only(world: &World, name: &str) -> Item {
    let [one] = named(world, name).try_into().unwrap();
    one
}

fn meddle(world: &World, id: &str, attributes: Value) {
    let now = world.sim.clock().now();
    let Value::Object(attributes) = attributes else { panic!() };
    assert!(world.sim.cloud().neutron.edit(now, "networks", id, |network| network.body.extend(attributes)));
}

/// A network that somebody else made.
pub(crate) fn put(world: &World, id: &str, project: &str, attributes: Value) {
    let now = world.sim.clock().now();
    world.sim.cloud().neutron.add(now, "networks", id, project, attributes);
}

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_187_create_minimal_makes_a_network_of_the_project() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<Network>("minimal", json!({})).await;
    let network = tenant.ready::<Network>("minimal").await;
    assert_eq!(network.finalizers(), [FINALIZER]);
    let stored = only(tenant.world, "minimal");
    assert_eq!((stored.id.clone(), stored.project_id.clone()), (id(&network), tenant.project().await));
    assert_eq!(stored.text("description"), mark(&network));
    assert_eq!(network.status.unwrap().mtu, Some(1442));
    eventually("the event", async || tenant.events("minimal").await.contains(&"Ready".to_owned())).await;
    let mut told = tenant.events("minimal").await;
    told.sort();
    assert_eq!(told, ["Created", "Ready"]);
    delete(&tenant, "minimal").await;
    assert!(named(tenant.world, "minimal").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn create_full_declares_everything() {
    let tenant = world::shared().await.tenant().await;
    let spec = json!({"description": "front", "adminStateUp": false, "mtu": 1280, "dnsDomain": "a.example.",
        "portSecurity": false});
    tenant.create::<Network>("full", spec).await;
    let network = tenant.ready::<Network>("full").await;
    let stored = only(tenant.world, "full");
    assert_eq!(stored.text("description"), format!("front {}", mark(&network)));
    let of = |name: &str| stored.body[name].clone();
    assert_eq!(
        [of("admin_state_up"), of("mtu"), of("dns_domain"), of("port_security_enabled")],
        [json!(false), json!(1280), json!("a.example."), json!(false)]
    );
    assert_eq!(stored.revision, 1, "all of it with the creation");
}

#[tokio::test(flavor = "multi_thread")]
async fn update_changes_each_field_and_back() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<Network>("edited", json!({"mtu": 1400})).await;
    let network = tenant.ready::<Network>("edited").await;
    let texts = (format!("new {}", mark(&network)), mark(&network));
    for (field, attribute, there, back) in [
        ("description", "description", (json!("new"), json!(texts.0)), (json!(null), json!(texts.1))),
        ("adminStateUp", "admin_state_up", (json!(false), json!(false)), (json!(null), json!(true))),
        ("mtu", "mtu", (json!(1300), json!(1300)), (json!(1400), json!(1400))),
        ("dnsDomain", "dns_domain", (json!("a.example."), json!("a.example.")), (json!(null), json!(""))),
        ("portSecurity", "port_security_enabled", (json!(false), json!(false)), (json!(null), json!(true))),
    ] {
        for (declared, stored) in [there, back] {
            let before = only(tenant.world, "edited").revision;
            tenant.patch::<Network>("edited", json!({"spec": {field: declared}})).await;
            tenant.ready::<Network>("edited").await;
            let now = only(tenant.world, "edited");
            assert_eq!((&now.body[attribute], now.revision), (&stored, before + 1), "{field}");
        }
    }
    assert_eq!(id(&tenant.ready::<Network>("edited").await), id(&network));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_never_be_is_refused_by_the_definition() {
    let tenant = world::shared().await.tenant().await;
    for (spec, field) in [
        (json!({"mtu": 67}), "spec.mtu"),
        (json!({"dnsDomain": "no-dot"}), "spec.dnsDomain"),
        (json!({"description": "x".repeat(161)}), "spec.description"),
        (json!({"adopt": {}}), "spec.adopt"),
        (json!({"adopt": {"id": "i", "name": "n"}}), "spec.adopt"),
    ] {
        let error = tenant.api::<Network>().create(&PostParams::default(), &object("x", &spec)).await.unwrap_err();
        assert!(error.to_string().contains(field), "{error}");
    }
    tenant.create::<Network>("sized", json!({"mtu": 1400})).await;
    let taken_back = Patch::Merge(json!({"spec": {"mtu": null}}));
    let error = tenant.api::<Network>().patch("sized", &PatchParams::default(), &taken_back).await.unwrap_err();
    assert!(error.to_string().contains("mtu can be changed but not taken back"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_repaired_and_told() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<Network>("drift", json!({})).await;
    let network = tenant.ready::<Network>("drift").await;
    meddle(tenant.world, &id(&network), json!({"name": "theirs", "description": "theirs", "admin_state_up": false}));
    eventually("the repair", async || {
        let cloud = tenant.world.sim.cloud();
        let stored = cloud.neutron.get("networks", &id(&network)).unwrap();
        stored.is("admin_state_up") && stored.text("name") == "drift" && stored.text("description") == mark(&network)
    })
    .await;
    eventually("the event", async || tenant.events("drift").await.contains(&"DriftRepaired".to_owned())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn external_deletion_is_made_good() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<Network>("lost", json!({})).await;
    let first = id(&tenant.ready::<Network>("lost").await);
    let now = tenant.world.sim.clock().now();
    assert!(tenant.world.sim.cloud().neutron.remove(now, "networks", &first));
    let again = until(tenant.api::<Network>(), "lost", |network| is_ready(network) && id(network) != first).await;
    assert_eq!(only(tenant.world, "lost").id, id(&again));
}

/// What a lost request made as well has the same mark.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_with_our_mark_one_is_left() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<Network>("twice", json!({})).await;
    let network = tenant.ready::<Network>("twice").await;
    let attributes = json!({"name": "twice", "description": mark(&network)});
    put(tenant.world, "00000000-twin", &tenant.project().await, attributes);
    eventually("the end of the other", async || named(tenant.world, "twice").len() == 1).await;
    assert_eq!(only(tenant.world, "twice").id, id(&network));
}

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_667_a_quota_is_waited_for() {
    let tenant = world::shared().await.tenant().await;
    let project = tenant.project().await;
    tenant.world.sim.cloud().quotas.set(&project, "network", 0);
    tenant.create::<Network>("over-quota", json!({})).await;
    let message = tenant.says::<Network>("over-quota", "QuotaExceeded").await;
    assert!(message.contains("Quota exceeded for resources: ['network']"), "{message}");
    tenant.world.sim.cloud().quotas.set(&project, "network", 1);
    tenant.nudge::<Network>("over-quota").await;
    tenant.ready::<Network>("over-quota").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_size_that_the_cloud_has_no_room_for_is_told_and_can_be_put_right() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<Network>("large", json!({"mtu": 9000})).await;
    let message = tenant.says::<Network>("large", "InvalidSpec").await;
    assert!(message.contains("maximum is 1442"), "{message}");
    tenant.patch::<Network>("large", json!({"spec": {"mtu": 1400}})).await;
    tenant.ready::<Network>("large").await;
}

/// Somebody else changes the network between our look and our change.
#[tokio::test(flavor = "multi_thread")]
async fn gophercloud_509_a_change_meanwhile_is_looked_at_again() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<Network>("raced", json!({"mtu": 1400})).await;
    let network = tenant.ready::<Network>("raced").await;
    let path = format!("/v2.0/networks/{}", id(&network));
    tenant.world.fail_next(Rule::on("network", "PUT", &path, Effect::refusal(412)));
    tenant.patch::<Network>("raced", json!({"spec": {"mtu": 1300}})).await;
    let network = until(tenant.api::<Network>(), "raced", |network| is_ready(network) || is_stalled(network)).await;
    assert!(!is_stalled(&network), "{:?}", shown(&network));
    assert_eq!(only(tenant.world, "raced").body["mtu"], json!(1300));
    assert_eq!(tenant.world.count("PUT", &path), 2);
}

/// A change is sent once, however often the network is looked at after it.
#[tokio::test(flavor = "multi_thread")]
async fn k_orc_852_a_settled_network_is_not_updated_again() {
    let world = World::start().await;
    world.declare_cloud().await;
    let operator = world.operator();
    let tenant = world.tenant().await;
    let spec = json!({"description": "front", "adminStateUp": false, "mtu": 1400, "dnsDomain": "a.example.",
        "portSecurity": false});
    tenant.create::<Network>("settled", spec).await;
    let path = format!("/v2.0/networks/{}", id(&tenant.ready::<Network>("settled").await));
    tenant.patch::<Network>("settled", json!({"spec": {"mtu": 1300, "dnsDomain": null}})).await;
    tenant.ready::<Network>("settled").await;
    assert_eq!(world.count("PUT", &path), 1);
    for _ in 0..3 {
        let (passes, lists) = (operator.passes("network"), world.count("GET", "/v2.0/networks"));
        tenant.nudge::<Network>("settled").await;
        eventually("a pass", async || operator.passes("network") > passes).await;
        eventually("a list", async || world.count("GET", "/v2.0/networks") > lists).await;
    }
    assert_eq!((world.count("PUT", &path), only(&world, "settled").revision), (1, 2));
    assert_eq!(world.count("POST", "/v2.0/networks"), 1);
    operator.stop().await;
}

/// Two clusters share a project: their objects have the same names, and even the same UIDs after a restored backup.
#[tokio::test(flavor = "multi_thread")]
async fn cpo_3102_a_network_of_another_cluster_is_left_alone() {
    let tenant = world::shared().await.tenant().await;
    let project = tenant.project().await;
    tenant.world.sim.cloud().quotas.set(&project, "network", 0);
    let network = tenant.create::<Network>("of-two-clusters", json!({})).await;
    tenant.says::<Network>("of-two-clusters", "QuotaExceeded").await;
    let other: ClusterId = "0f2b6a2e-1f0a-4a55-9c58-0d4f3ad0f7a2".parse().unwrap();
    let theirs = json!({"name": "of-two-clusters", "description": other.mark(&network.uid().unwrap()), "mtu": 1200});
    put(tenant.world, "of-the-other", &project, theirs);
    tenant.world.sim.cloud().quotas.set(&project, "network", 2);
    tenant.nudge::<Network>("of-two-clusters").await;
    assert_ne!(id(&tenant.ready::<Network>("of-two-clusters").await), "of-the-other");
    assert_eq!(named(tenant.world, "of-two-clusters").len(), 2);
    delete(&tenant, "of-two-clusters").await;
    let left = only(tenant.world, "of-two-clusters");
    assert_eq!((left.id.as_str(), left.revision), ("of-the-other", 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_378_delete_waits_while_a_port_is_on_the_network() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<Network>("in-use", json!({})).await;
    let network = tenant.ready::<Network>("in-use").await;
    let refusal = Effect::refusal_saying(409, "There are one or more ports still in use on the network.");
    tenant.world.fail_next(Rule::on("network", "DELETE", &format!("/v2.0/networks/{}", id(&network)), refusal));
    tenant.api::<Network>().delete("in-use", &DeleteParams::default()).await.unwrap();
    let message = tenant.says::<Network>("in-use", "InUse").await;
    assert!(message.contains("ports still in use"), "{message}");
    tenant.nudge::<Network>("in-use").await;
    gone(tenant.api::<Network>(), "in-use").await;
    assert!(named(tenant.world, "in-use").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_goes_with_its_networks() {
    let tenant = world::shared().await.tenant().await;
    for name in ["leaving-1", "leaving-2"] {
        tenant.create::<Network>(name, json!({})).await;
    }
    for name in ["leaving-1", "leaving-2"] {
        tenant.ready::<Network>(name).await;
    }
    let project = tenant.project().await;
    let groups = || {
        let cloud = tenant.world.sim.cloud();
        cloud.neutron.all("security-groups").filter(|group| group.project_id == project).count()
    };
    assert_eq!(groups(), 1, "Neutron makes one with the first network");
    tenant.end().await;
    assert_eq!(groups(), 0);
    assert!(["leaving-1", "leaving-2"].iter().all(|name| named(tenant.world, name).is_empty()));
    assert!(!tenant.is_known_to_keystone());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cloud_without_neutron_is_not_asked() {
    let world = World::start().await;
    world.declare_cloud().await;
    world.set_services(&[("Keystone", true), ("Glance", true)]).await;
    world.set_ready().await;
    let _operator = world.operator();
    let tenant = world.tenant().await;
    for name in ["early", "unwanted"] {
        tenant.create::<Network>(name, json!({})).await;
        let message = tenant.says::<Network>(name, "CloudUnavailable").await;
        assert!(message.starts_with("Neutron is not part of the cloud"), "{message}");
    }
    delete(&tenant, "unwanted").await;
    assert_eq!(world.asked("/v2.0/"), 0);
    world.set_services(&[("Keystone", true), ("Glance", true), ("Neutron", true)]).await;
    tenant.ready::<Network>("early").await;
    assert!(named(&world, "unwanted").is_empty());
}

/// As our own chart configures it: a domain is taken, forgotten and not shown.
#[tokio::test(flavor = "multi_thread")]
async fn a_neutron_that_keeps_no_dns_names_is_not_told_a_domain_again_and_again() {
    let world = World::start_with(SimOptions { network_dns: false, ..SimOptions::default() }).await;
    world.declare_cloud().await;
    let _operator = world.operator();
    let tenant = world.tenant().await;
    tenant.create::<Network>("named", json!({"dnsDomain": "a.example."})).await;
    let message = tenant.says::<Network>("named", "DnsNotKept").await;
    assert!(message.contains("remove dnsDomain"), "{message}");
    tenant.patch::<Network>("named", json!({"spec": {"dnsDomain": null}})).await;
    tenant.ready::<Network>("named").await;
    assert_eq!(world.count("PUT", "/v2.0/networks"), 0);
}
