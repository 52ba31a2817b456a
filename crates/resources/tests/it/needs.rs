//! Objects that need others: security groups whose rules name groups.

use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use kupenstack_api::resources::SecurityGroup;
use serde_json::{Value, json};

use crate::{
    common::look::{self, eventually, gone, id, is_ready, object, shown, until},
    world::{self, Tenant},
};

fn api(tenant: &Tenant<'_>) -> Api<SecurityGroup> {
    Api::namespaced(tenant.client.clone(), &tenant.name)
}

/// A group that lets in those of others.
async fn create(tenant: &Tenant<'_>, name: &str, groups: &[&str]) {
    api(tenant).create(&PostParams::default(), &object(name, &letting_in(groups))).await.unwrap();
}

fn letting_in(groups: &[&str]) -> Value {
    let rules: Vec<Value> = groups.iter().map(|group| json!({"group": group, "ipFamily": "IPv4"})).collect();
    json!({"ingress": rules})
}

async fn ready(tenant: &Tenant<'_>, name: &str) -> SecurityGroup {
    until(api(tenant), name, is_ready).await
}

async fn says(tenant: &Tenant<'_>, name: &str, word: &str) -> String {
    let group = until(api(tenant), name, |group| shown(group).0 == word).await;
    shown(&group).1.to_owned()
}

/// Identifiers of the groups that a group lets in.
fn let_in(tenant: &Tenant<'_>, group: &str) -> Vec<String> {
    let cloud = tenant.world.sim.cloud();
    let of_group = cloud
        .neutron
        .all("security-group-rules")
        .filter(|rule| rule.text("security_group_id") == group && rule.text("direction") == "ingress");
    of_group.map(|rule| rule.text("remote_group_id").to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn those_that_need_each_other_converge_in_any_order() {
    let tenant = world::shared().await.tenant().await;
    for name in ["a", "b", "c"] {
        let others: Vec<_> = ["a", "b", "c"].into_iter().filter(|other| *other != name).collect();
        create(&tenant, name, &others).await;
    }
    let mut ids = Vec::new();
    for name in ["a", "b", "c"] {
        ids.push(id(&ready(&tenant, name).await));
    }
    for group in &ids {
        let mut others = let_in(&tenant, group);
        others.push(group.clone());
        others.sort();
        let mut all = ids.clone();
        all.sort();
        assert_eq!(others, all);
    }
    // and they go in any order
    for name in ["b", "a", "c"] {
        api(&tenant).delete(name, &DeleteParams::default()).await.unwrap();
    }
    for name in ["a", "b", "c"] {
        gone(api(&tenant), name).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_named_and_the_rest_is_done() {
    let tenant = world::shared().await.tenant().await;
    create(&tenant, "web", &["web", "db", "cache"]).await;
    let message = says(&tenant, "web", "DependencyNotReady").await;
    assert_eq!(message, "SecurityGroup cache does not exist, SecurityGroup db does not exist");
    let web = until(api(&tenant), "web", |group| group.status.as_ref().is_some_and(|status| status.id.is_some())).await;
    eventually("the rule that needs nobody", async || let_in(&tenant, &id(&web)) == [id(&web)]).await;
    create(&tenant, "db", &[]).await;
    let db = ready(&tenant, "db").await;
    until(api(&tenant), "web", |group| shown(group).1 == "SecurityGroup cache does not exist").await;
    eventually("the rule for it", async || let_in(&tenant, &id(&web)).contains(&id(&db))).await;
    create(&tenant, "cache", &[]).await;
    ready(&tenant, "web").await;
    assert_eq!(let_in(&tenant, &id(&web)).len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_used_stays_and_the_message_names_who_uses_it() {
    let tenant = world::shared().await.tenant().await;
    create(&tenant, "db", &["db"]).await;
    create(&tenant, "web", &["db"]).await;
    ready(&tenant, "web").await;
    let db = id(&ready(&tenant, "db").await);
    api(&tenant).delete("db", &DeleteParams::default()).await.unwrap();
    let message = says(&tenant, "db", "InUse").await;
    assert_eq!(message, "used by SecurityGroup web");
    assert!(tenant.world.sim.cloud().neutron.get("security-groups", &db).is_some());
    assert!(is_ready(&api(&tenant).get("web").await.unwrap()), "who uses it has lost nothing");
    api(&tenant).patch("web", &PatchParams::default(), &Patch::Merge(&json!({"spec": letting_in(&[])}))).await.unwrap();
    gone(api(&tenant), "db").await;
    assert!(tenant.world.sim.cloud().neutron.get("security-groups", &db).is_none());
    ready(&tenant, "web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_made_anew_is_followed() {
    let tenant = world::shared().await.tenant().await;
    create(&tenant, "db", &[]).await;
    create(&tenant, "web", &["db"]).await;
    let (web, db) = (id(&ready(&tenant, "web").await), id(&ready(&tenant, "db").await));
    let now = tenant.world.sim.clock().now();
    assert!(tenant.world.sim.cloud().neutron.remove(now, "security-groups", &db));
    let again = until(api(&tenant), "db", |group| is_ready(group) && id(group) != db).await;
    eventually("a rule for the new one", async || let_in(&tenant, &web) == [id(&again)]).await;
    ready(&tenant, "web").await;
}

/// Nothing of another namespace can be named.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_one_of_the_own_namespace() {
    let world = world::shared().await;
    let (here, there) = (world.tenant().await, world.tenant().await);
    create(&there, "db", &[]).await;
    ready(&there, "db").await;
    create(&here, "web", &["db"]).await;
    assert_eq!(says(&here, "web", "DependencyNotReady").await, "SecurityGroup db does not exist");
    look::delete(api(&here), "web").await;
    assert!(ready(&there, "db").await.name_any() == "db");
}
