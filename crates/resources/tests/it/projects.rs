//! Namespaces and their projects.

use kube::{
    ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use kupenstack_api::{
    FINALIZER,
    resources::{PROJECT_ID, PROJECT_NAME},
};
use kupenstack_openstack::CloudConfig;
use kupenstack_testkit::sim::{Effect, Entity, Rule};
use secrecy::ExposeSecret;
use serde_json::{Map, json};

use crate::world::{self, CLOUD, Tenant, eventually, until};

/// The password that Keystone has.
fn password_in_keystone(tenant: &Tenant<'_>) -> String {
    tenant.user().and_then(|user| user.secret).unwrap_or_default()
}

/// The credentials in the namespace's Secret.
async fn credentials(tenant: &Tenant<'_>) -> (String, String) {
    let secret = tenant.secrets().get(&tenant.secret_name()).await.unwrap();
    let text = String::from_utf8(secret.data.unwrap()["clouds.yaml"].0.clone()).unwrap();
    let config = CloudConfig::from_clouds_yaml(&text, &tenant.name).unwrap();
    (config.credentials.username, config.credentials.password.expose_secret().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_becomes_a_project_with_a_user_and_goes_with_it() {
    let tenant = world::shared().await.tenant().await;
    let namespace = tenant.until_namespace(|n| n.finalizers().contains(&FINALIZER.to_owned())).await;
    let (user, password) = credentials(&tenant).await;
    assert!(user.contains(&namespace.uid().unwrap()) && password.len() >= 32);
    {
        let cloud = tenant.world.sim.cloud();
        let project = cloud.keystone.find("projects", &tenant.name).expect("a project named like the namespace");
        assert_eq!(namespace.annotations()[PROJECT_ID], project.id);
        assert_eq!(namespace.annotations()[PROJECT_NAME], tenant.name);
        let grants = cloud.keystone.grants().filter(|grant| grant.0 == project.id);
        let mut roles: Vec<_> = grants.map(|(_, _, role)| role).collect();
        roles.sort_unstable();
        assert_eq!(roles, ["member", "reader"], "and never admin");
    }
    assert_eq!(password_in_keystone(&tenant), password);
    let secret = tenant.secrets().get(&tenant.secret_name()).await.unwrap();
    assert_eq!(secret.labels()["kupenstack.io/clouds-yaml"], "true");

    tenant.end().await;
    assert!(!tenant.is_known_to_keystone());
    assert!(tenant.secrets().get_opt(&tenant.secret_name()).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_adoption_by_name_a_foreign_project_is_left_alone() {
    let world = world::shared().await;
    let foreign = "0123456789abcdef0123456789abcdef";
    let now = world.sim.clock().now();
    world.sim.cloud().keystone.add_project(now, foreign, "taken");
    let tenant = world.namespace_named("taken", &[]).await;
    let project = tenant.project().await;
    assert_ne!(project, foreign);
    let namespace = tenant.namespaces().get("taken").await.unwrap();
    let beside = format!("taken-{}", &namespace.uid().unwrap()[..8]);
    assert_eq!(namespace.annotations()[PROJECT_NAME], beside);
    assert!(world.sim.cloud().keystone.grants().all(|grant| grant.0 != foreign));
    tenant.end().await;
    let cloud = world.sim.cloud();
    let project = |name| cloud.keystone.find("projects", name);
    assert!(project("taken").is_some() && project(&beside).is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn garm_79_a_project_whose_answer_was_lost_is_found_again() {
    let world = world::shared().await;
    let lost = |name: &str, kind| Rule::on("identity", "POST", kind, Effect::lost_answer()).with_body(name);
    world.fail_next(lost(r#""name":"lost-answers""#, "/v3/projects"));
    world.fail_next(lost(r#""name":"lost-answers-"#, "/v3/users"));
    let tenant = world.namespace_named("lost-answers", &[]).await;
    tenant.project().await;
    let named = |project: &&Entity| project.text("name").starts_with("lost-answers");
    assert_eq!(world.sim.cloud().keystone.all("projects").filter(named).count(), 1);
    assert!(tenant.user().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_that_keystone_refuses_is_set_again() {
    let tenant = world::shared().await.tenant().await;
    tenant.ready_image("before").await;
    let (_, password) = credentials(&tenant).await;
    let (user, now) = (tenant.user().unwrap().id, tenant.world.sim.clock().now());
    let other = Map::from_iter([("password".to_owned(), json!("changed by somebody"))]);
    assert!(tenant.world.sim.cloud().keystone.edit(now, "users", &user, other));
    tenant.ready_image("after").await;
    assert_eq!(password_in_keystone(&tenant), password);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_secret_is_made_anew() {
    let tenant = world::shared().await.tenant().await;
    // a first pass that is still under way would write the Secret again that it has just made
    tenant.ready_image("before").await;
    let (_, lost) = credentials(&tenant).await;
    tenant.secrets().delete(&tenant.secret_name(), &DeleteParams::default()).await.unwrap();
    tenant.annotate(json!({"test/look": "now"})).await;
    until(tenant.secrets(), &tenant.secret_name(), |_| true).await;
    tenant.ready_image("after").await;
    let (_, password) = credentials(&tenant).await;
    assert_ne!(password, lost);
    assert_eq!(password_in_keystone(&tenant), password);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_annotation_gives_no_rights() {
    let tenant = world::shared().await.tenant().await;
    let own = tenant.project().await;
    let admins = tenant.world.sim.cloud().keystone.find("projects", "admin").unwrap().id.clone();
    tenant.annotate(json!({PROJECT_ID: admins})).await;
    tenant.until_namespace(|n| n.annotations().get(PROJECT_ID) == Some(&own)).await;
    let user = tenant.user().unwrap().id;
    assert!(!tenant.world.sim.cloud().keystone.grants().any(|(project, of, _)| project == admins && of == user));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_opts_out_is_never_touched() {
    let world = world::shared().await;
    let tenant = world.namespace(&[("kupenstack.io/project", "ignore")]).await;
    world.tenant().await;
    let namespace = tenant.namespaces().get(&tenant.name).await.unwrap();
    assert!(namespace.finalizers().is_empty());
    for reserved in ["kube-system", CLOUD, "operator"] {
        assert!(tenant.namespaces().get(reserved).await.unwrap().finalizers().is_empty(), "{reserved}");
    }
    tenant.end().await;
    assert!(!tenant.is_known_to_keystone());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_with_an_image_ends_clean() {
    let tenant = world::shared().await.tenant().await;
    tenant.ready_image("leftover").await;
    tenant.end().await;
    assert!(tenant.world.named("leftover").is_empty());
    assert!(!tenant.is_known_to_keystone());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_ends_clean_though_its_user_is_gone() {
    let tenant = world::shared().await.tenant().await;
    tenant.ready_image("orphan").await;
    let (user, now) = (tenant.user().unwrap().id, tenant.world.sim.clock().now());
    assert!(tenant.world.sim.cloud().keystone.remove(now, "users", &user));
    tenant.end().await;
    assert!(tenant.world.named("orphan").is_empty());
}

/// The administrator gives a namespace's user another password, where the passwords are.
#[tokio::test(flavor = "multi_thread")]
async fn k_orc_723_a_changed_password_secret_is_applied() {
    let tenant = world::shared().await.tenant().await;
    tenant.ready_image("before").await;
    let (_, old) = credentials(&tenant).await;
    let secret = tenant.secrets().get(&tenant.secret_name()).await.unwrap();
    let text = String::from_utf8(secret.data.unwrap()["clouds.yaml"].0.clone()).unwrap();
    let new = "a-new-password-of-the-administrators-choice";
    let patch = json!({"stringData": {"clouds.yaml": text.replace(&old, new)}});
    tenant.secrets().patch(&tenant.secret_name(), &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    tenant.annotate(json!({"test/look": "now"})).await;
    eventually("applied", async || password_in_keystone(&tenant) == new).await;
    tenant.ready_image("after").await;
    let namespace = serde_json::to_string(&tenant.namespaces().get(&tenant.name).await.unwrap()).unwrap();
    let hash = kupenstack_core::hash::of_bytes(new.as_bytes());
    assert!(!namespace.contains(new) && !namespace.contains(&hash[..12]), "{namespace}");
}
