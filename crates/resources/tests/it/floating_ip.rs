//! Floating IPs in Neutron, of an external network, for the ports of other objects.

use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use kupenstack_api::resources::{ExternalNetwork, FloatingIP, Network, Port, Subnet};
use kupenstack_testkit::sim::{Effect, Item, Rule};
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    common::look::{self, eventually, gone, id, is_ready, is_stalled, mark, object, shown, until},
    world::{self, Tenant, World},
};

/// An external network of a namespace's name, which is in Neutron.
pub(crate) async fn outside(tenant: &Tenant<'_>) -> Api<ExternalNetwork> {
    outside_of(tenant, "203.0.113").await
}

/// As [`outside`], of the network with these first three bytes.
pub(crate) async fn outside_of(tenant: &Tenant<'_>, net: &str) -> Api<ExternalNetwork> {
    let (now, network) = (tenant.world.sim.clock().now(), outside_id(tenant));
    {
        let mut cloud = tenant.world.sim.cloud();
        let admin = cloud.keystone.find("projects", "admin").unwrap().id.clone();
        let neutron = &mut cloud.neutron;
        neutron.add(now, "networks", &network, &admin, json!({"name": tenant.name, "router:external": true}));
        let pools = json!([{"start": format!("{net}.10"), "end": format!("{net}.99")}]);
        let subnet = json!({"network_id": network, "ip_version": 4, "cidr": format!("{net}.0/24"), "enable_dhcp": false,
            "gateway_ip": format!("{net}.1"), "allocation_pools": pools});
        neutron.add(now, "subnets", &format!("{network}-subnet"), &admin, subnet);
    }
    let networks = Api::<ExternalNetwork>::all(tenant.client.clone());
    let adopting = object(&tenant.name, &json!({"adopt": {"id": network}}));
    networks.create(&PostParams::default(), &adopting).await.unwrap();
    networks
}

pub(crate) fn outside_id(tenant: &Tenant<'_>) -> String {
    format!("outside-of-{}", tenant.name)
}

/// On the network outside.
async fn create(tenant: &Tenant<'_>, name: &str, but: Value) -> FloatingIP {
    let mut spec = json!({"externalNetwork": tenant.name});
    spec.as_object_mut().unwrap().extend(but.as_object().unwrap().clone());
    tenant.create(name, spec).await
}

/// Two ports inside, `web` with two addresses and `db` with one, and a way out from there if there is to be one.
async fn inside(tenant: &Tenant<'_>, is_led_out: bool) {
    tenant.create::<Network>("net", json!({})).await;
    tenant.create::<Subnet>("sub", json!({"network": "net", "cidr": "10.0.0.0/24"})).await;
    tenant
        .create::<Port>("web", json!({"network": "net", "addresses": [{"ip": "10.0.0.7"}, {"ip": "10.0.0.8"}]}))
        .await;
    tenant.create::<Port>("db", json!({"network": "net", "addresses": [{"ip": "10.0.0.9"}]})).await;
    for port in ["web", "db"] {
        tenant.ready::<Port>(port).await;
    }
    if is_led_out {
        lead_out(tenant).await;
    }
}

/// A router between the network outside and the one inside, as somebody else may make it.
pub(crate) async fn lead_out(tenant: &Tenant<'_>) {
    let (network, subnet) = (tenant.ready::<Network>("net").await, tenant.ready::<Subnet>("sub").await);
    let (now, project) = (tenant.world.sim.clock().now(), tenant.project().await);
    let (outside, router) = (outside_id(tenant), format!("router-of-{}", tenant.name));
    let neutron = &mut tenant.world.sim.cloud().neutron;
    neutron.add(now, "routers", &router, &project, json!({"name": "r"}));
    let interface = json!({"network_id": id(&network), "device_id": router, "device_owner": "network:router_interface",
        "fixed_ips": [{"subnet_id": id(&subnet), "ip_address": "10.0.0.1"}]});
    neutron.add(now, "ports", &format!("{router}-in"), &project, interface);
    let gateway = json!({"network_id": outside, "device_id": router, "device_owner": "network:router_gateway",
        "fixed_ips": [{"subnet_id": format!("{outside}-subnet"), "ip_address": "203.0.113.10"}]});
    neutron.add(now, "ports", &format!("{router}-out"), "", gateway);
}

/// All floating IPs of a namespace in Neutron.
pub(crate) fn all(tenant: &Tenant<'_>) -> Vec<Item> {
    let (cloud, network) = (tenant.world.sim.cloud(), outside_id(tenant));
    cloud.neutron.all("floatingips").filter(|it| it.text("floating_network_id") == network).cloned().collect()
}

/// The one that there is.
pub(crate) fn only(tenant: &Tenant<'_>) -> Item {
    let [one] = all(tenant).try_into().unwrap();
    one
}

pub(crate) fn meddle(world: &World, id: &str, attributes: Value) {
    let now = world.sim.clock().now();
    let Value::Object(attributes) = attributes else { panic!() };
    assert!(world.sim.cloud().neutron.edit(now, "floatingips", id, |floating| floating.body.extend(attributes)));
}

fn is_at(floating: &FloatingIP, port_address: &str) -> bool {
    let status = floating.status.as_ref();
    is_ready(floating) && status.and_then(|status| status.port_address.as_deref()) == Some(port_address)
}

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_187_create_minimal_in_any_order() {
    let tenant = world::shared().await.tenant().await;
    create(&tenant, "minimal-ip", json!({})).await;
    let lacking = format!("ExternalNetwork {} does not exist", tenant.name);
    assert_eq!(tenant.says::<FloatingIP>("minimal-ip", "DependencyNotReady").await, lacking);
    outside(&tenant).await;
    let floating = tenant.ready::<FloatingIP>("minimal-ip").await;
    let stored = only(&tenant);
    assert_eq!((stored.id.clone(), stored.project_id.clone()), (id(&floating), tenant.project().await));
    assert_eq!((stored.text("description"), stored.text("port_id")), (mark(&floating).as_str(), ""));
    let status = floating.status.unwrap();
    assert_eq!(status.address.as_deref(), Some(stored.text("floating_ip_address")));
    assert_eq!((status.state.as_deref(), status.port_address), (Some("DOWN"), None));
    look::delete(tenant.api::<FloatingIP>(), "minimal-ip").await;
    assert!(all(&tenant).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn create_full_declares_everything() {
    let tenant = world::shared().await.tenant().await;
    outside(&tenant).await;
    inside(&tenant, true).await;
    let but = json!({"description": "front", "port": "web", "fixedAddress": "10.0.0.8", "deletionPolicy": "Delete"});
    create(&tenant, "full-ip", but).await;
    let floating = until(tenant.api::<FloatingIP>(), "full-ip", |floating| is_at(floating, "10.0.0.8")).await;
    let stored = only(&tenant);
    assert_eq!(stored.text("description"), format!("front {}", mark(&floating)));
    let port = id(&tenant.ready::<Port>("web").await);
    assert_eq!((stored.text("port_id"), stored.text("fixed_ip_address")), (port.as_str(), "10.0.0.8"));
    // Neutron tells of it after its answer
    let is_active = |floating: &FloatingIP| floating.status.as_ref().unwrap().state.as_deref() == Some("ACTIVE");
    until(tenant.api::<FloatingIP>(), "full-ip", is_active).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn update_changes_each_field_and_back() {
    let tenant = world::shared().await.tenant().await;
    outside(&tenant).await;
    inside(&tenant, true).await;
    let floating = create(&tenant, "edited-ip", json!({"port": "web", "fixedAddress": "10.0.0.7"})).await;
    tenant.ready::<FloatingIP>("edited-ip").await;
    let before = only(&tenant);
    let texts = (format!("new {}", mark(&floating)), mark(&floating));
    let [web, db] = [id(&tenant.ready::<Port>("web").await), id(&tenant.ready::<Port>("db").await)];
    for (declared, attribute, is) in [
        (json!({"description": "new"}), "description", json!(texts.0)),
        (json!({"description": null}), "description", json!(texts.1)),
        (json!({"fixedAddress": "10.0.0.8"}), "fixed_ip_address", json!("10.0.0.8")),
        (json!({"fixedAddress": "10.0.0.7"}), "fixed_ip_address", json!("10.0.0.7")),
        (json!({"port": "db", "fixedAddress": null}), "port_id", json!(db)),
        (json!({"port": null}), "port_id", json!(null)),
        (json!({"port": "web", "fixedAddress": "10.0.0.7"}), "port_id", json!(web)),
    ] {
        tenant.patch::<FloatingIP>("edited-ip", json!({"spec": declared})).await;
        tenant.ready::<FloatingIP>("edited-ip").await;
        assert_eq!(only(&tenant).body[attribute], is, "{declared}");
    }
    let after = only(&tenant);
    assert_eq!((&after.id, &after.body["fixed_ip_address"]), (&before.id, &json!("10.0.0.7")));
    assert_eq!(after.text("floating_ip_address"), before.text("floating_ip_address"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_is_there_before_its_port_and_stays_when_another_comes() {
    let tenant = world::shared().await.tenant().await;
    outside(&tenant).await;
    create(&tenant, "early-ip", json!({"port": "db"})).await;
    let early = until(tenant.api::<FloatingIP>(), "early-ip", |floating| {
        shown(floating).0 == "DependencyNotReady" && floating.status.as_ref().is_some_and(|it| it.address.is_some())
    })
    .await;
    assert_eq!(shown(&early).1, "Port db does not exist");
    inside(&tenant, true).await;
    let there = until(tenant.api::<FloatingIP>(), "early-ip", |floating| is_at(floating, "10.0.0.9")).await;
    assert_eq!((id(&there), there.status.unwrap().address), (id(&early), early.status.unwrap().address));
}

/// One of them, however often it is tried, and it goes on by itself.
#[tokio::test(flavor = "multi_thread")]
async fn capo_1632_1159_without_a_router_there_is_one_floating_ip_and_it_waits() {
    let tenant = world::shared().await.tenant().await;
    outside(&tenant).await;
    inside(&tenant, false).await;
    create(&tenant, "remote-ip", json!({"port": "db"})).await;
    let message = tenant.says::<FloatingIP>("remote-ip", "NoRoute").await;
    let wanted = format!("Port db can't be reached from ExternalNetwork {}: there is no router", tenant.name);
    assert!(message.starts_with(&wanted), "{message}");
    let waiting = tenant.api::<FloatingIP>().get("remote-ip").await.unwrap();
    assert!(!is_stalled(&waiting) && waiting.status.as_ref().unwrap().address.is_some(), "{waiting:?}");
    // what has nothing to do with the way there is changed meanwhile
    tenant.patch::<FloatingIP>("remote-ip", json!({"spec": {"description": "new"}})).await;
    eventually("the description", async || only(&tenant).text("description").starts_with("new ")).await;
    let first = id(&waiting);
    for _ in 0..3 {
        let tried = tenant.world.count("PUT", &format!("/v2.0/floatingips/{first}"));
        tenant.nudge::<FloatingIP>("remote-ip").await;
        eventually("another try", async || tenant.world.count("PUT", &format!("/v2.0/floatingips/{first}")) > tried)
            .await;
        assert_eq!(only(&tenant).id, first);
    }
    lead_out(&tenant).await;
    let there = until(tenant.api::<FloatingIP>(), "remote-ip", |floating| is_at(floating, "10.0.0.9")).await;
    assert_eq!(id(&there), first);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_only_an_administrator_may_choose_is_told() {
    let tenant = world::shared().await.tenant().await;
    outside(&tenant).await;
    create(&tenant, "chosen-ip", json!({"address": "203.0.113.77"})).await;
    let message = tenant.says::<FloatingIP>("chosen-ip", "Forbidden").await;
    assert!(
        message.starts_with("spec.address: Neutron's policy does not let a project choose 203.0.113.77"),
        "{message}"
    );
    assert!(all(&tenant).is_empty());
    look::delete(tenant.api::<FloatingIP>(), "chosen-ip").await;
}

#[rstest]
#[case::no_network(json!({}), "externalNetwork has to be given")]
#[case::two_origins(json!({"externalNetwork": "public", "adopt": {"id": "x"}}), "externalNetwork has to be given")]
#[case::no_address(json!({"externalNetwork": "public", "address": "203.0.113"}), "not an IPv4 address")]
#[case::of_six(json!({"externalNetwork": "public", "address": "2001:db8::1"}), "not an IPv4 address")]
#[case::address_of_no_port(json!({"externalNetwork": "public", "fixedAddress": "10.0.0.7"}), "say which port")]
#[case::adopts_nothing(json!({"adopt": {}}), "exactly one of id and address")]
#[case::adopts_twice(json!({"adopt": {"id": "x", "address": "203.0.113.7"}}), "exactly one of id and address")]
#[tokio::test(flavor = "multi_thread")]
async fn what_can_never_be_is_refused_by_the_definition(#[case] spec: Value, #[case] words: &str) {
    let tenant = world::shared().await.namespace(&[]).await;
    let error = tenant.api::<FloatingIP>().create(&PostParams::default(), &object("wrong", &spec)).await.unwrap_err();
    assert!(error.to_string().contains(words), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_repaired_and_told() {
    let tenant = world::shared().await.tenant().await;
    outside(&tenant).await;
    inside(&tenant, true).await;
    create(&tenant, "drift-ip", json!({"port": "db"})).await;
    let floating = until(tenant.api::<FloatingIP>(), "drift-ip", |floating| is_at(floating, "10.0.0.9")).await;
    let port = id(&tenant.ready::<Port>("db").await);
    meddle(tenant.world, &id(&floating), json!({"description": "theirs", "port_id": null, "fixed_ip_address": null}));
    eventually("the repair", async || {
        let now = only(&tenant);
        (now.text("port_id"), now.text("description")) == (port.as_str(), mark(&floating).as_str())
    })
    .await;
    eventually("the event", async || tenant.events("drift-ip").await.contains(&"DriftRepaired".to_owned())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn external_deletion_is_made_good() {
    let tenant = world::shared().await.tenant().await;
    outside(&tenant).await;
    inside(&tenant, true).await;
    create(&tenant, "lost-ip", json!({"port": "db"})).await;
    let first = id(&tenant.ready::<FloatingIP>("lost-ip").await);
    let now = tenant.world.sim.clock().now();
    assert!(tenant.world.sim.cloud().neutron.remove(now, "floatingips", &first));
    let again = |floating: &FloatingIP| is_at(floating, "10.0.0.9") && id(floating) != first;
    until(tenant.api::<FloatingIP>(), "lost-ip", again).await;
    eventually("the event", async || tenant.events("lost-ip").await.contains(&"Vanished".to_owned())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_with_our_mark_one_is_left() {
    let tenant = world::shared().await.tenant().await;
    outside(&tenant).await;
    create(&tenant, "twice-ip", json!({})).await;
    let floating = tenant.ready::<FloatingIP>("twice-ip").await;
    let (now, project) = (tenant.world.sim.clock().now(), tenant.project().await);
    let twin = json!({"floating_network_id": outside_id(&tenant), "description": mark(&floating),
        "floating_ip_address": "203.0.113.98"});
    tenant.world.sim.cloud().neutron.add(now, "floatingips", "00000000-twin-ip", &project, twin);
    eventually("the end of the other", async || all(&tenant).len() == 1).await;
    assert_eq!(only(&tenant).id, id(&floating));
}

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_667_a_quota_is_waited_for() {
    let tenant = world::shared().await.tenant().await;
    outside(&tenant).await;
    let project = tenant.project().await;
    tenant.world.sim.cloud().quotas.set(&project, "floatingip", 0);
    create(&tenant, "over-quota-ip", json!({})).await;
    let message = tenant.says::<FloatingIP>("over-quota-ip", "QuotaExceeded").await;
    assert!(message.contains("Quota exceeded for resources: ['floatingip']"), "{message}");
    tenant.world.sim.cloud().quotas.set(&project, "floatingip", 1);
    tenant.ready::<FloatingIP>("over-quota-ip").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_another_stands_for_is_told_and_goes_over() {
    let tenant = world::shared().await.tenant().await;
    outside(&tenant).await;
    inside(&tenant, true).await;
    create(&tenant, "first-ip", json!({"port": "db"})).await;
    until(tenant.api::<FloatingIP>(), "first-ip", |floating| is_at(floating, "10.0.0.9")).await;
    create(&tenant, "second-ip", json!({"port": "db"})).await;
    let message = tenant.says::<FloatingIP>("second-ip", "Conflict").await;
    assert!(message.contains("already has a floating IP"), "{message}");
    tenant.patch::<FloatingIP>("first-ip", json!({"spec": {"port": null}})).await;
    until(tenant.api::<FloatingIP>(), "second-ip", |floating| is_at(floating, "10.0.0.9")).await;
}

/// As when Neutron tells of a port that is reached now, between our look and our change.
#[tokio::test(flavor = "multi_thread")]
async fn gophercloud_509_a_change_meanwhile_is_looked_at_again() {
    let tenant = world::shared().await.tenant().await;
    outside(&tenant).await;
    inside(&tenant, true).await;
    create(&tenant, "raced-ip", json!({})).await;
    let path = format!("/v2.0/floatingips/{}", id(&tenant.ready::<FloatingIP>("raced-ip").await));
    tenant.world.fail_next(Rule::on("network", "PUT", &path, Effect::refusal(412)));
    tenant.patch::<FloatingIP>("raced-ip", json!({"spec": {"port": "db"}})).await;
    let floating = until(tenant.api::<FloatingIP>(), "raced-ip", |it| is_ready(it) || is_stalled(it)).await;
    assert!(is_at(&floating, "10.0.0.9"), "{:?}", shown(&floating));
    assert_eq!(tenant.world.count("PUT", &path), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_852_a_settled_floating_ip_is_not_updated_again() {
    let world = World::start().await;
    world.declare_cloud().await;
    let operator = world.operator();
    let tenant = world.tenant().await;
    outside(&tenant).await;
    inside(&tenant, true).await;
    create(&tenant, "settled-ip", json!({"description": "front", "port": "web", "fixedAddress": "10.0.0.8"})).await;
    let path = format!("/v2.0/floatingips/{}", id(&tenant.ready::<FloatingIP>("settled-ip").await));
    for _ in 0..3 {
        let (passes, lists) = (operator.passes("floatingip"), world.count("GET", "/v2.0/floatingips"));
        tenant.nudge::<FloatingIP>("settled-ip").await;
        eventually("a pass", async || operator.passes("floatingip") > passes).await;
        eventually("a list", async || world.count("GET", "/v2.0/floatingips") > lists).await;
    }
    assert_eq!((world.count("PUT", &path), world.count("POST", "/v2.0/floatingips")), (1, 1));
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn capo_2073_magnum_371_a_deletion_that_policy_forbids_is_told() {
    let tenant = world::shared().await.tenant().await;
    outside(&tenant).await;
    create(&tenant, "kept-ip", json!({})).await;
    let path = format!("/v2.0/floatingips/{}", id(&tenant.ready::<FloatingIP>("kept-ip").await));
    tenant.world.fail_next(Rule::on("network", "DELETE", &path, Effect::refusal(403)));
    tenant.api::<FloatingIP>().delete("kept-ip", &DeleteParams::default()).await.unwrap();
    tenant.says::<FloatingIP>("kept-ip", "Forbidden").await;
    tenant.patch::<FloatingIP>("kept-ip", json!({"spec": {"deletionPolicy": "Retain"}})).await;
    gone(tenant.api::<FloatingIP>(), "kept-ip").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_226_316_deleted_in_the_wrong_order_all_of_it_goes() {
    let tenant = world::shared().await.tenant().await;
    let networks = outside(&tenant).await;
    inside(&tenant, true).await;
    create(&tenant, "last-ip", json!({"port": "db"})).await;
    until(tenant.api::<FloatingIP>(), "last-ip", |floating| is_at(floating, "10.0.0.9")).await;
    let (delete, params) = (DeleteParams::default(), PatchParams::default());
    let policy = |policy: &str| Patch::Merge(json!({"spec": {"deletionPolicy": policy}}));
    networks.patch(&tenant.name, &params, &policy("Delete")).await.unwrap();
    networks.delete(&tenant.name, &delete).await.unwrap();
    let kept = until(networks.clone(), &tenant.name, |network| shown(network).0 == "InUse").await;
    assert_eq!(shown(&kept).1, format!("used by FloatingIP last-ip in namespace {}", tenant.name));
    tenant.api::<Port>().delete("db", &delete).await.unwrap();
    assert_eq!(tenant.says::<Port>("db", "InUse").await, "used by FloatingIP last-ip");
    tenant.api::<FloatingIP>().delete("last-ip", &delete).await.unwrap();
    gone(tenant.api::<FloatingIP>(), "last-ip").await;
    gone(tenant.api::<Port>(), "db").await;
    // its router is not ours
    networks.patch(&tenant.name, &params, &policy("Retain")).await.unwrap();
    gone(networks, &tenant.name).await;
    assert!(all(&tenant).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_goes_with_its_floating_ips_and_what_is_retained_stays() {
    let tenant = world::shared().await.tenant().await;
    outside(&tenant).await;
    create(&tenant, "leaving-ip", json!({})).await;
    create(&tenant, "public-ip", json!({"deletionPolicy": "Retain"})).await;
    tenant.ready::<FloatingIP>("leaving-ip").await;
    let public = id(&tenant.ready::<FloatingIP>("public-ip").await);
    look::delete(tenant.api::<FloatingIP>(), "public-ip").await;
    tenant.end().await;
    assert_eq!(all(&tenant).into_iter().map(|floating| floating.id).collect::<Vec<_>>(), [public]);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_may_be_deleted_before_its_network_is_there() {
    let tenant = world::shared().await.tenant().await;
    create(&tenant, "hopeless-ip", json!({"port": "db"})).await;
    tenant.says::<FloatingIP>("hopeless-ip", "DependencyNotReady").await;
    look::delete(tenant.api::<FloatingIP>(), "hopeless-ip").await;
    assert!(all(&tenant).is_empty());
}
