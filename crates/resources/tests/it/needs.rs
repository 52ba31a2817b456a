//! Objects that need others: security groups whose rules name groups.

use kube::{
    ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use kupenstack_api::resources::SecurityGroup;
use serde_json::{Value, json};

use crate::{
    common::look::{self, eventually, gone, id, is_ready, shown, until},
    world::{self, Tenant},
};

/// A group that lets in those of others.
async fn create(tenant: &Tenant<'_>, name: &str, groups: &[&str]) {
    tenant.create::<SecurityGroup>(name, letting_in(groups)).await;
}

fn letting_in(groups: &[&str]) -> Value {
    let rules: Vec<Value> = groups.iter().map(|group| json!({"group": group, "ipFamily": "IPv4"})).collect();
    json!({"ingress": rules})
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
        ids.push(id(&tenant.ready::<SecurityGroup>(name).await));
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
        tenant.api::<SecurityGroup>().delete(name, &DeleteParams::default()).await.unwrap();
    }
    for name in ["a", "b", "c"] {
        gone(tenant.api::<SecurityGroup>(), name).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_named_and_the_rest_is_done() {
    let tenant = world::shared().await.tenant().await;
    create(&tenant, "web", &["web", "db", "cache"]).await;
    let message = tenant.says::<SecurityGroup>("web", "DependencyNotReady").await;
    assert_eq!(message, "SecurityGroup cache does not exist, SecurityGroup db does not exist");
    let web = until(tenant.api::<SecurityGroup>(), "web", |group| {
        group.status.as_ref().is_some_and(|status| status.id.is_some())
    })
    .await;
    eventually("the rule that needs nobody", async || let_in(&tenant, &id(&web)) == [id(&web)]).await;
    create(&tenant, "db", &[]).await;
    let db = tenant.ready::<SecurityGroup>("db").await;
    until(tenant.api::<SecurityGroup>(), "web", |group| shown(group).1 == "SecurityGroup cache does not exist").await;
    eventually("the rule for it", async || let_in(&tenant, &id(&web)).contains(&id(&db))).await;
    create(&tenant, "cache", &[]).await;
    tenant.ready::<SecurityGroup>("web").await;
    assert_eq!(let_in(&tenant, &id(&web)).len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_used_stays_and_the_message_names_who_uses_it() {
    let tenant = world::shared().await.tenant().await;
    create(&tenant, "db", &["db"]).await;
    create(&tenant, "web", &["db"]).await;
    tenant.ready::<SecurityGroup>("web").await;
    let db = id(&tenant.ready::<SecurityGroup>("db").await);
    tenant.api::<SecurityGroup>().delete("db", &DeleteParams::default()).await.unwrap();
    let message = tenant.says::<SecurityGroup>("db", "InUse").await;
    assert_eq!(message, "used by SecurityGroup web");
    assert!(tenant.world.sim.cloud().neutron.get("security-groups", &db).is_some());
    assert!(is_ready(&tenant.api::<SecurityGroup>().get("web").await.unwrap()), "who uses it has lost nothing");
    tenant
        .api::<SecurityGroup>()
        .patch("web", &PatchParams::default(), &Patch::Merge(&json!({"spec": letting_in(&[])})))
        .await
        .unwrap();
    gone(tenant.api::<SecurityGroup>(), "db").await;
    assert!(tenant.world.sim.cloud().neutron.get("security-groups", &db).is_none());
    tenant.ready::<SecurityGroup>("web").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_made_anew_is_followed() {
    let tenant = world::shared().await.tenant().await;
    create(&tenant, "db", &[]).await;
    create(&tenant, "web", &["db"]).await;
    let (web, db) = (id(&tenant.ready::<SecurityGroup>("web").await), id(&tenant.ready::<SecurityGroup>("db").await));
    let now = tenant.world.sim.clock().now();
    assert!(tenant.world.sim.cloud().neutron.remove(now, "security-groups", &db));
    let again = until(tenant.api::<SecurityGroup>(), "db", |group| is_ready(group) && id(group) != db).await;
    eventually("a rule for the new one", async || let_in(&tenant, &web) == [id(&again)]).await;
    tenant.ready::<SecurityGroup>("web").await;
}

/// Nothing of another namespace can be named.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_one_of_the_own_namespace() {
    let world = world::shared().await;
    let (here, there) = (world.tenant().await, world.tenant().await);
    create(&there, "db", &[]).await;
    there.ready::<SecurityGroup>("db").await;
    create(&here, "web", &["db"]).await;
    assert_eq!(here.says::<SecurityGroup>("web", "DependencyNotReady").await, "SecurityGroup db does not exist");
    look::delete(here.api::<SecurityGroup>(), "web").await;
    assert!(there.ready::<SecurityGroup>("db").await.name_any() == "db");
}
