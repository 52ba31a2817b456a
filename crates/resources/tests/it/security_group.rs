//! Security groups in Neutron, and their rules.

use kube::{
    ResourceExt,
    api::{DeleteParams, PostParams},
};
use kupenstack_api::{FINALIZER, resources::SecurityGroup};
use kupenstack_testkit::sim::{Effect, Item, Rule};
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    common::look::{self, eventually, gone, id, is_ready, mark, object, until},
    world::{self, Tenant, World},
};

/// The groups of this name in Neutron, of whoever.
fn named(world: &World, name: &str) -> Vec<Item> {
    let cloud = world.sim.cloud();
    cloud.neutron.all("security-groups").filter(|group| group.text("name") == name).cloned().collect()
}

fn only(world: &World, name: &str) -> Item {
    let [one] = named(world, name).try_into().unwrap();
    one
}

/// The rules of a group: direction, family, protocol, first port.
fn rules(world: &World, group: &str) -> Vec<String> {
    let cloud = world.sim.cloud();
    let of_group = cloud.neutron.all("security-group-rules").filter(|rule| rule.text("security_group_id") == group);
    let mut found: Vec<String> = of_group
        .map(|rule| {
            let port = rule.body["port_range_min"].as_u64().map(|port| format!(" {port}")).unwrap_or_default();
            let words = ["direction", "ethertype", "protocol"].map(|part| rule.text(part));
            format!("{}{port}", words.join(" ").trim_end())
        })
        .collect();
    found.sort();
    found
}

/// The methods of the requests about rules that were made for a namespace.
fn asked_of_rules(tenant: &Tenant<'_>) -> Vec<String> {
    let cloud = tenant.world.sim.cloud();
    let project = cloud.keystone.find("projects", &tenant.name).map(|project| project.id.clone());
    let of_rules = cloud.journal.entries().filter(|entry| entry.path.starts_with("/v2.0/security-group-rules"));
    of_rules.filter(|entry| entry.project_id == project).map(|entry| entry.method.clone()).collect()
}

const OUT: [&str; 2] = ["egress IPv4", "egress IPv6"];

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_187_create_minimal_makes_a_group_that_lets_nothing_in() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<SecurityGroup>("minimal", json!({})).await;
    let group = tenant.ready::<SecurityGroup>("minimal").await;
    assert_eq!(group.finalizers(), [FINALIZER]);
    let stored = only(tenant.world, "minimal");
    assert_eq!((stored.id.clone(), stored.project_id.clone()), (id(&group), tenant.project().await));
    assert_eq!(stored.text("description"), mark(&group));
    assert_eq!(rules(tenant.world, &stored.id), OUT);
    assert_eq!(group.status.unwrap().rules, Some(2));
    eventually("the event", async || tenant.events("minimal").await.contains(&"Ready".to_owned())).await;
    let mut told = tenant.events("minimal").await;
    told.sort();
    assert_eq!(told, ["Created", "Ready"]);
    assert!(asked_of_rules(&tenant).is_empty(), "a new one has what is declared");
    look::delete(tenant.api::<SecurityGroup>(), "minimal").await;
    assert!(named(tenant.world, "minimal").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn create_full_declares_everything() {
    let tenant = world::shared().await.tenant().await;
    let spec = json!({"description": "web servers", "stateful": false,
        "ingress": [{"protocol": "TCP", "port": 80, "endPort": 81, "cidr": "10.0.0.0/8"}, {"group": "full"},
            {"protocol": "ICMP", "icmpType": 8, "icmpCode": 0, "ipFamily": "IPv4"}],
        "egress": [{"protocol": "UDP", "port": 53, "ipFamily": "IPv6"}]});
    tenant.create::<SecurityGroup>("full", spec).await;
    let group = tenant.ready::<SecurityGroup>("full").await;
    let stored = only(tenant.world, "full");
    assert_eq!(stored.text("description"), format!("web servers {}", mark(&group)));
    assert!(!stored.is("stateful"));
    let wanted = ["egress IPv6 udp 53", "ingress IPv4", "ingress IPv4 icmp 8", "ingress IPv4 tcp 80", "ingress IPv6"];
    assert_eq!(rules(tenant.world, &stored.id), wanted);
    assert_eq!(group.status.unwrap().rules, Some(5));
    let cloud = tenant.world.sim.cloud();
    let of_group = cloud.neutron.all("security-group-rules").filter(|rule| rule.text("security_group_id") == stored.id);
    let of_group: Vec<&Item> = of_group.collect();
    let web = of_group.iter().find(|rule| rule.text("protocol") == "tcp").unwrap();
    assert_eq!((&web.body["port_range_max"], web.text("remote_ip_prefix")), (&json!(81), "10.0.0.0/8"));
    assert_eq!(of_group.iter().filter(|rule| rule.text("remote_group_id") == stored.id).count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn update_changes_each_field_and_back() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<SecurityGroup>("edited", json!({})).await;
    let group = tenant.ready::<SecurityGroup>("edited").await;
    let texts = (format!("new {}", mark(&group)), mark(&group));
    for (field, attribute, there, back) in [
        ("description", "description", (json!("new"), json!(texts.0)), (json!(null), json!(texts.1))),
        ("stateful", "stateful", (json!(false), json!(false)), (json!(null), json!(true))),
    ] {
        for (declared, stored) in [there, back] {
            let before = only(tenant.world, "edited").revision;
            tenant.patch::<SecurityGroup>("edited", json!({"spec": {field: declared}})).await;
            tenant.ready::<SecurityGroup>("edited").await;
            let now = only(tenant.world, "edited");
            assert_eq!((&now.body[attribute], now.revision), (&stored, before + 1), "{field}");
        }
    }
    let web = json!([{"protocol": "TCP", "port": 80, "ipFamily": "IPv4"}]);
    for (field, there, wanted) in [
        ("ingress", web.clone(), vec!["egress IPv4", "egress IPv6", "ingress IPv4 tcp 80"]),
        ("ingress", json!(null), OUT.to_vec()),
        ("egress", web, vec!["egress IPv4 tcp 80"]),
        ("egress", json!([]), vec![]),
        ("egress", json!(null), OUT.to_vec()),
    ] {
        tenant.patch::<SecurityGroup>("edited", json!({"spec": {field: there}})).await;
        tenant.ready::<SecurityGroup>("edited").await;
        assert_eq!(rules(tenant.world, &id(&group)), wanted, "{field}");
    }
    assert_eq!(id(&tenant.ready::<SecurityGroup>("edited").await), id(&group));
}

/// What both the old and the new rules let through is never cut off, and what stays is not made again.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_new_comes_before_what_is_old_goes() {
    let tenant = world::shared().await.tenant().await;
    let rule = |port: u16| json!({"protocol": "TCP", "port": port, "ipFamily": "IPv4"});
    tenant.create::<SecurityGroup>("ordered", json!({"ingress": [rule(1), rule(2)]})).await;
    tenant.ready::<SecurityGroup>("ordered").await;
    assert_eq!(asked_of_rules(&tenant), ["POST", "POST"]);
    tenant.patch::<SecurityGroup>("ordered", json!({"spec": {"ingress": [rule(3), rule(2)]}})).await;
    tenant.ready::<SecurityGroup>("ordered").await;
    assert_eq!(asked_of_rules(&tenant), ["POST", "POST", "POST", "DELETE"]);
}

#[rstest]
#[case::port_alone(json!({"port": 80}), "a port needs protocol")]
#[case::ports_of_ping(json!({"protocol": "ICMP", "port": 80}), "a port needs protocol")]
#[case::port_out_of_range(json!({"protocol": "TCP", "port": 65536}), "ingress[0].port")]
#[case::ports_the_wrong_way_round(json!({"protocol": "TCP", "port": 80, "endPort": 79}), "endPort needs a port")]
#[case::end_alone(json!({"protocol": "TCP", "endPort": 79}), "endPort needs a port")]
#[case::type_of_tcp(json!({"protocol": "TCP", "icmpType": 8}), "icmpType needs protocol ICMP")]
#[case::code_alone(json!({"protocol": "ICMP", "icmpCode": 0}), "icmpCode needs an icmpType")]
#[case::no_addresses(json!({"cidr": "10.0.0.0/33"}), "not an address and the length of a prefix")]
#[case::loose_bits(json!({"cidr": "10.0.0.1/8"}), "bits beyond its prefix")]
#[case::k_orc_120_mixed_families(json!({"cidr": "10.0.0.0/8", "ipFamily": "IPv6"}), "another family than ipFamily")]
#[case::two_sides(json!({"cidr": "10.0.0.0/8", "group": "wrong"}), "cidr and group can't be given together")]
#[case::no_protocol(json!({"protocol": "tcp"}), "ingress[0].protocol")]
#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_can_never_be_is_refused_by_the_definition(#[case] rule: Value, #[case] words: &str) {
    let tenant = world::shared().await.namespace(&[]).await;
    let group = object("wrong", &json!({"ingress": [rule]}));
    let error = tenant.api::<SecurityGroup>().create(&PostParams::default(), &group).await.unwrap_err();
    assert!(error.to_string().contains(words), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_default_group_can_only_be_adopted() {
    let tenant = world::shared().await.tenant().await;
    let error =
        tenant.api::<SecurityGroup>().create(&PostParams::default(), &object("default", &json!({}))).await.unwrap_err();
    assert!(error.to_string().contains("adopt it by its name"), "{error}");
    // Neutron makes it with the first group
    tenant.create::<SecurityGroup>("first", json!({})).await;
    tenant.ready::<SecurityGroup>("first").await;
    tenant.create::<SecurityGroup>("default", json!({"adopt": {"name": "default"}, "ingress": []})).await;
    let adopted = tenant.ready::<SecurityGroup>("default").await;
    assert_eq!(rules(tenant.world, &id(&adopted)), OUT);
    look::delete(tenant.api::<SecurityGroup>(), "default").await;
    let cloud = tenant.world.sim.cloud();
    assert!(cloud.neutron.get("security-groups", &id(&adopted)).is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_of_rules_is_repaired_and_told() {
    let tenant = world::shared().await.tenant().await;
    tenant
        .create::<SecurityGroup>("drift", json!({"ingress": [{"protocol": "TCP", "port": 80, "ipFamily": "IPv4"}]}))
        .await;
    let group = id(&tenant.ready::<SecurityGroup>("drift").await);
    let now = tenant.world.sim.clock().now();
    {
        let mut cloud = tenant.world.sim.cloud();
        let gone = cloud
            .neutron
            .all("security-group-rules")
            .find(|rule| rule.text("security_group_id") == group && rule.text("direction") == "ingress");
        let gone = gone.unwrap().id.clone();
        assert!(cloud.neutron.remove(now, "security-group-rules", &gone));
        let project = cloud.keystone.find("projects", &tenant.name).unwrap().id.clone();
        let open = json!({"security_group_id": group, "direction": "ingress", "ethertype": "IPv4"});
        cloud.neutron.add(now, "security-group-rules", "theirs", &project, open);
    }
    let wanted = ["egress IPv4", "egress IPv6", "ingress IPv4 tcp 80"];
    eventually("the repair", async || rules(tenant.world, &group) == wanted).await;
    eventually("the event", async || tenant.events("drift").await.contains(&"DriftRepaired".to_owned())).await;
}

/// What an administrator adds belongs to his project, as Neutron has it.
#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_the_project_can_not_delete_is_told_and_not_tried_again_and_again() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<SecurityGroup>("foreign", json!({})).await;
    let group = id(&tenant.ready::<SecurityGroup>("foreign").await);
    let now = tenant.world.sim.clock().now();
    {
        let mut cloud = tenant.world.sim.cloud();
        let admin = cloud.keystone.find("projects", "admin").unwrap().id.clone();
        let open = json!({"security_group_id": group, "direction": "ingress", "ethertype": "IPv4"});
        cloud.neutron.add(now, "security-group-rules", "foreign-rule", &admin, open);
        let project = cloud.keystone.find("projects", &tenant.name).unwrap().id.clone();
        let own = json!({"security_group_id": group, "direction": "ingress", "ethertype": "IPv6"});
        cloud.neutron.add(now, "security-group-rules", "own-rule", &project, own);
    }
    let message = tenant.says::<SecurityGroup>("foreign", "ForeignRule").await;
    assert!(message.contains("foreign-rule") && message.contains("an administrator has to delete it"), "{message}");
    assert_eq!(asked_of_rules(&tenant), ["DELETE", "DELETE"]);
    let left = ["egress IPv4", "egress IPv6", "ingress IPv4"];
    assert_eq!(rules(tenant.world, &group), left, "what the project can delete is gone");
    assert!(!tenant.events("foreign").await.contains(&"DriftRepaired".to_owned()));
    let now = tenant.world.sim.clock().now();
    assert!(tenant.world.sim.cloud().neutron.remove(now, "security-group-rules", "foreign-rule"));
    tenant.ready::<SecurityGroup>("foreign").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn external_deletion_is_made_good_with_all_rules() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<SecurityGroup>("lost", json!({"ingress": [{"group": "lost", "ipFamily": "IPv4"}]})).await;
    let first = id(&tenant.ready::<SecurityGroup>("lost").await);
    let now = tenant.world.sim.clock().now();
    assert!(tenant.world.sim.cloud().neutron.remove(now, "security-groups", &first));
    let again = until(tenant.api::<SecurityGroup>(), "lost", |group| is_ready(group) && id(group) != first).await;
    assert_eq!(rules(tenant.world, &id(&again)), ["egress IPv4", "egress IPv6", "ingress IPv4"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_667_a_quota_of_rules_is_waited_for_and_nothing_is_cut_off_meanwhile() {
    let tenant = world::shared().await.tenant().await;
    let project = tenant.project().await;
    tenant
        .create::<SecurityGroup>(
            "over-quota",
            json!({"ingress": [{"protocol": "TCP", "port": 80, "ipFamily": "IPv4"}]}),
        )
        .await;
    let group = id(&tenant.ready::<SecurityGroup>("over-quota").await);
    tenant.world.sim.cloud().quotas.set(&project, "security_group_rule", 0);
    tenant
        .patch::<SecurityGroup>(
            "over-quota",
            json!({"spec": {"ingress": [{"protocol": "TCP", "port": 81, "ipFamily": "IPv4"}]}}),
        )
        .await;
    tenant.says::<SecurityGroup>("over-quota", "QuotaExceeded").await;
    assert_eq!(rules(tenant.world, &group), ["egress IPv4", "egress IPv6", "ingress IPv4 tcp 80"]);
    tenant.world.sim.cloud().quotas.set(&project, "security_group_rule", 100);
    tenant.nudge::<SecurityGroup>("over-quota").await;
    tenant.ready::<SecurityGroup>("over-quota").await;
    assert_eq!(rules(tenant.world, &group), ["egress IPv4", "egress IPv6", "ingress IPv4 tcp 81"]);
}

/// Many rules at once, one of which Neutron has already when it is asked for it.
#[tokio::test(flavor = "multi_thread")]
async fn tf_952_300_rules_at_once_and_one_that_is_there_already() {
    let tenant = world::shared().await.tenant().await;
    let project = tenant.project().await;
    tenant.world.sim.cloud().quotas.set(&project, "security_group_rule", 400);
    let exists = Effect::Answer { status: 409, body: None, retry_after: None, commit: true };
    tenant.world.fail_next(Rule::on("network", "POST", "/v2.0/security-group-rules", exists).in_project(&project));
    let rules: Vec<Value> =
        (1..=300).map(|port| json!({"protocol": "TCP", "port": port, "ipFamily": "IPv4"})).collect();
    tenant.create::<SecurityGroup>("many", json!({"ingress": rules})).await;
    let group = tenant.ready::<SecurityGroup>("many").await;
    assert_eq!(group.status.unwrap().rules, Some(302));
    assert_eq!(asked_of_rules(&tenant).len(), 300);
}

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_378_delete_waits_while_a_port_carries_the_group() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<SecurityGroup>("in-use", json!({})).await;
    let group = id(&tenant.ready::<SecurityGroup>("in-use").await);
    let refusal = Effect::refusal_saying(409, "Security Group in use.");
    tenant.world.fail_next(Rule::on("network", "DELETE", &format!("/v2.0/security-groups/{group}"), refusal));
    tenant.api::<SecurityGroup>().delete("in-use", &DeleteParams::default()).await.unwrap();
    let message = tenant.says::<SecurityGroup>("in-use", "InUse").await;
    assert!(message.contains("Security Group in use"), "{message}");
    tenant.nudge::<SecurityGroup>("in-use").await;
    gone(tenant.api::<SecurityGroup>(), "in-use").await;
    assert!(named(tenant.world, "in-use").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_goes_with_its_groups() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<SecurityGroup>("leaving", json!({"ingress": [{"group": "leaving"}]})).await;
    tenant.ready::<SecurityGroup>("leaving").await;
    let project = tenant.project().await;
    tenant.end().await;
    let cloud = tenant.world.sim.cloud();
    assert_eq!(cloud.neutron.all("security-groups").filter(|group| group.project_id == project).count(), 0);
    assert_eq!(cloud.neutron.all("security-group-rules").filter(|rule| rule.project_id == project).count(), 0);
}
