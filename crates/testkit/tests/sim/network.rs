//! The simulated Neutron, by our client.

mod ports;
mod routers;
mod subnets;

use std::time::Duration;

use futures::TryStreamExt;
use kupenstack_openstack::{
    Client, ErrorKind, Network, NetworkAttributes, NetworkFilter, SecurityGroup, SecurityGroupAttributes,
    SecurityGroupRuleAttributes,
};
use kupenstack_testkit::sim::{Effect, Rule, Sim};
use serde_json::json;

use crate::support::{admin, member, start};

fn named(name: &str) -> NetworkAttributes {
    NetworkAttributes { name: Some(name.to_owned()), ..NetworkAttributes::default() }
}

async fn names(client: &Client, filter: &NetworkFilter) -> Vec<String> {
    let found: Vec<Network> = client.network().networks().list(filter).try_collect().await.unwrap();
    found.into_iter().map(|network| network.name).collect()
}

fn shop() -> (Sim, Client, Client) {
    let sim = start();
    let admin = admin(&sim);
    let shop = member(&sim, &admin, "shop");
    (sim, admin, shop)
}

#[tokio::test]
async fn a_network_lives_and_dies() {
    let (sim, _, shop) = shop();
    let networks = shop.network().networks();
    let made = networks.create(&named("front")).await.unwrap();
    assert_eq!((made.status.as_str(), made.mtu, made.revision_number), ("ACTIVE", Some(1442), 1));
    assert_eq!((made.project_id.as_str(), made.port_security_enabled), ("project-shop", Some(true)));
    assert_eq!(networks.get(&made.id).await.unwrap(), Some(made.clone()));
    let changes =
        NetworkAttributes { mtu: Some(1400), description: Some("d".to_owned()), ..NetworkAttributes::default() };
    let updated = networks.update(&made, &changes).await.unwrap();
    assert_eq!((updated.mtu, updated.description.as_deref(), updated.revision_number), (Some(1400), Some("d"), 2));
    let again = networks.update(&updated, &changes).await.unwrap();
    assert_eq!(again.revision_number, 2, "what is as it was is no change");
    let most = NetworkAttributes { mtu: Some(0), ..NetworkAttributes::default() };
    assert_eq!(networks.update(&again, &most).await.unwrap().mtu, Some(1442));
    assert!(networks.delete(&made.id).await.unwrap());
    assert!(!networks.delete(&made.id).await.unwrap());
    assert_eq!(sim.cloud().neutron.all("networks").count(), 0);
}

#[tokio::test]
async fn a_change_for_an_earlier_revision_is_refused() {
    let (sim, _, shop) = shop();
    let networks = shop.network().networks();
    let seen = networks.create(&named("front")).await.unwrap();
    let now = sim.clock().now();
    assert!(sim.cloud().neutron.edit(now, "networks", &seen.id, |network| {
        network.body.insert("shared".to_owned(), json!(true));
    }));
    let error = networks.update(&seen, &named("back")).await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Outdated, Some(412)));
    assert_eq!(sim.cloud().neutron.get("networks", &seen.id).unwrap().text("name"), "front");
}

#[tokio::test]
async fn a_list_comes_in_pages() {
    let (sim, admin, shop) = shop();
    let now = sim.clock().now();
    // a page of our client's is one of a thousand
    for number in 0..1500 {
        let (id, body) = (format!("{number:05}"), json!({"name": format!("n{number}")}));
        sim.cloud().neutron.add(now, "networks", &id, "project-shop", body);
    }
    let found: Vec<Network> = admin.network().networks().survey().try_collect().await.unwrap();
    assert_eq!(found.len(), 1500);
    assert_eq!(sim.cloud().journal.count("GET", "/v2.0/networks"), 2);
    assert!(found.is_sorted_by_key(|network| network.id.clone()));
    let one = NetworkFilter { name: Some("n3".to_owned()), ..NetworkFilter::default() };
    assert_eq!(names(&shop, &one).await, ["n3"]);
}

#[tokio::test]
async fn a_project_has_what_is_its_own() {
    let (sim, admin, shop) = shop();
    let other = member(&sim, &admin, "other");
    let (theirs, now) = (other.network().networks().create(&named("front")).await.unwrap(), sim.clock().now());
    assert_eq!(shop.network().networks().get(&theirs.id).await.unwrap(), None);
    assert!(!shop.network().networks().delete(&theirs.id).await.unwrap());
    assert!(names(&shop, &NetworkFilter::default()).await.is_empty());
    assert_eq!(names(&admin, &NetworkFilter::default()).await, ["front"]);
    assert!(sim.cloud().neutron.edit(now, "networks", &theirs.id, |network| {
        network.body.insert("shared".to_owned(), json!(true));
    }));
    assert_eq!(names(&shop, &NetworkFilter::default()).await, ["front"]);
    let own = NetworkFilter { project_id: Some("project-shop".to_owned()), ..NetworkFilter::default() };
    assert!(names(&shop, &own).await.is_empty());
    assert_eq!(shop.network().networks().delete(&theirs.id).await.unwrap_err().kind(), ErrorKind::Forbidden);
}

#[tokio::test]
async fn what_can_not_be_is_refused() {
    let (sim, _, shop) = shop();
    sim.cloud().quotas.set("project-shop", "network", 1);
    let networks = shop.network().networks();
    let refused = async |attributes: &NetworkAttributes| networks.create(attributes).await.unwrap_err();
    let long = refused(&named(&"x".repeat(256))).await;
    assert_eq!(long.kind(), ErrorKind::BadRequest);
    assert!(long.to_string().contains("Invalid input for name."), "{long}");
    let large = refused(&NetworkAttributes { mtu: Some(9000), ..NetworkAttributes::default() }).await;
    assert!(large.to_string().contains("Requested MTU is too big, maximum is 1442"), "{large}");
    let domain = NetworkAttributes { dns_domain: Some("no-dot".to_owned()), ..NetworkAttributes::default() };
    assert_eq!(refused(&domain).await.kind(), ErrorKind::BadRequest);
    networks.create(&named("one")).await.unwrap();
    let full = refused(&named("two")).await;
    assert_eq!((full.kind(), full.status()), (ErrorKind::Quota, Some(409)));
}

fn rule(group: &str, direction: &str) -> SecurityGroupRuleAttributes {
    SecurityGroupRuleAttributes {
        security_group_id: Some(group.to_owned()),
        direction: Some(direction.to_owned()),
        ..SecurityGroupRuleAttributes::default()
    }
}

#[tokio::test]
async fn a_project_gets_its_default_group_with_the_first_network() {
    let (sim, admin, shop) = shop();
    shop.network().networks().create(&named("front")).await.unwrap();
    let filter = NetworkFilter { project_id: Some("project-shop".to_owned()), ..NetworkFilter::default() };
    let groups: Vec<SecurityGroup> = admin.network().security_groups().list(&filter).try_collect().await.unwrap();
    let [group] = groups.try_into().unwrap();
    assert_eq!((group.name.as_str(), group.rules.len()), ("default", 4));
    let taken = SecurityGroupAttributes { name: Some("default".to_owned()), ..SecurityGroupAttributes::default() };
    assert_eq!(shop.network().security_groups().create(&taken).await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(shop.network().security_groups().delete(&group.id).await.unwrap_err().kind(), ErrorKind::Conflict);
    assert!(admin.network().security_groups().delete(&group.id).await.unwrap());
    let rules = sim.cloud().neutron.all("security-group-rules").filter(|it| it.project_id == "project-shop").count();
    assert_eq!(rules, 0, "they go with their group");
}

#[tokio::test]
async fn a_group_changes_with_its_rules() {
    let (_sim, _, shop) = shop();
    let (groups, rules) = (shop.network().security_groups(), shop.network().security_group_rules());
    let new = SecurityGroupAttributes { name: Some("web".to_owned()), ..SecurityGroupAttributes::default() };
    let group = groups.create(&new).await.unwrap();
    assert_eq!(group.rules.iter().map(|rule| rule.direction.as_str()).collect::<Vec<_>>(), ["egress", "egress"]);
    let https = SecurityGroupRuleAttributes {
        protocol: Some("tcp".to_owned()),
        port_range_min: Some(443),
        port_range_max: Some(443),
        ..rule(&group.id, "ingress")
    };
    let made = rules.create(&https).await.unwrap();
    assert_eq!((made.ethertype.as_deref(), made.port_range_max), (Some("IPv4"), Some(443)));
    assert_eq!(rules.create(&https).await.unwrap_err().kind(), ErrorKind::Conflict, "it is there already");
    let grown = groups.get(&group.id).await.unwrap().unwrap();
    assert_eq!((grown.rules.len(), grown.revision_number), (3, group.revision_number + 1));
    assert!(rules.delete(&made.id).await.unwrap());
    assert_eq!(groups.get(&group.id).await.unwrap().unwrap().revision_number, group.revision_number + 2);
    assert!(groups.delete(&group.id).await.unwrap());
    assert!(rules.get(&group.rules[0].id).await.unwrap().is_none());
}

/// What was read a while ago has nothing of what came later.
#[tokio::test]
async fn an_old_look_at_a_group_shows_the_rules_of_then() {
    let (sim, _, shop) = shop();
    let groups = shop.network().security_groups();
    let group = groups.create(&SecurityGroupAttributes::default()).await.unwrap();
    sim.clock().advance(Duration::from_secs(40));
    shop.network().security_group_rules().create(&rule(&group.id, "ingress")).await.unwrap();
    let old = Effect::Stale { seconds: 20.0 };
    sim.cloud().faults.add(Rule::on("network", "GET", "/v2.0/security-groups/*", old).once());
    assert_eq!(groups.get(&group.id).await.unwrap().unwrap(), group);
    assert_eq!(groups.get(&group.id).await.unwrap().unwrap().rules.len(), 3);
}

#[tokio::test]
async fn parts_of_a_rule_that_do_not_go_together_are_refused() {
    let (_sim, admin, shop) = shop();
    let group = shop.network().security_groups().create(&SecurityGroupAttributes::default()).await.unwrap();
    let base = rule(&group.id, "ingress");
    let (some, tcp) = (|text: &str| Some(text.to_owned()), Some("tcp".to_owned()));
    for wrong in [
        rule(&group.id, "sideways"),
        SecurityGroupRuleAttributes { remote_ip_prefix: some("::/0"), ..base.clone() },
        SecurityGroupRuleAttributes { port_range_min: Some(1), port_range_max: Some(2), ..base.clone() },
        SecurityGroupRuleAttributes { protocol: tcp, port_range_min: Some(2), port_range_max: Some(1), ..base.clone() },
        SecurityGroupRuleAttributes {
            remote_ip_prefix: some("10.0.0.0/8"),
            remote_group_id: Some(group.id.clone()),
            ..base.clone()
        },
    ] {
        let error = shop.network().security_group_rules().create(&wrong).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadRequest, "{wrong:?}: {error}");
    }
    let other = admin.network().security_groups().create(&SecurityGroupAttributes::default()).await.unwrap();
    let foreign = shop.network().security_group_rules().create(&rule(&other.id, "ingress")).await.unwrap_err();
    assert_eq!(foreign.kind(), ErrorKind::Forbidden);
}
