//! Namespaces and their projects.

use std::time::Duration;

use kube::{ResourceExt, api::DeleteParams};
use kupenstack_api::{
    FINALIZER,
    resources::{PROJECT_ID, PROJECT_NAME},
};
use kupenstack_openstack::CloudConfig;
use secrecy::ExposeSecret;
use serde_json::json;

use crate::{
    fake::Fault,
    world::{self, CLOUD, Tenant, until, within},
};

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
        let state = tenant.world.fake.state();
        let project = state.keystone.project(&tenant.name).expect("a project named like the namespace");
        assert_eq!(namespace.annotations()[PROJECT_ID], project.id);
        assert_eq!(namespace.annotations()[PROJECT_NAME], tenant.name);
        assert_eq!(state.keystone.user(&tenant.name).unwrap().password, password);
        let mut roles: Vec<_> =
            state.keystone.grants.iter().filter(|grant| grant.0 == project.id).map(|grant| grant.2.as_str()).collect();
        roles.sort_unstable();
        assert_eq!(roles, ["role-member", "role-reader"], "and never admin");
    }
    let secret = tenant.secrets().get(&tenant.secret_name()).await.unwrap();
    assert_eq!(secret.labels()["kupenstack.io/clouds-yaml"], "true");

    tenant.end().await;
    assert!(!tenant.is_known_to_keystone());
    assert!(tenant.secrets().get_opt(&tenant.secret_name()).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_adoption_by_name_a_foreign_project_is_left_alone() {
    let world = world::shared().await;
    let foreign = world.fake.state().keystone.add_project("taken", &["of-somebody-else"]);
    let tenant = world.namespace_named("taken", &[]).await;
    let project = tenant.project().await;
    assert_ne!(project, foreign.id);
    let namespace = tenant.namespaces().get("taken").await.unwrap();
    let beside = format!("taken-{}", &namespace.uid().unwrap()[..8]);
    assert_eq!(namespace.annotations()[PROJECT_NAME], beside);
    assert!(world.fake.state().keystone.grants.iter().all(|grant| grant.0 != foreign.id));
    tenant.end().await;
    let state = world.fake.state();
    assert!(state.keystone.project("taken").is_some() && state.keystone.project(&beside).is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn garm_79_a_project_whose_answer_was_lost_is_found_again() {
    let world = world::shared().await;
    world.fake.fail_next("POST", r#""name":"lost-answers""#, Fault::AnswerLost);
    world.fake.fail_next("POST", r#""name":"lost-answers-"#, Fault::AnswerLost);
    let tenant = world.namespace_named("lost-answers", &[]).await;
    tenant.project().await;
    let state = world.fake.state();
    let named = |name: &str| state.keystone.projects.iter().filter(|project| project.name.starts_with(name)).count();
    assert_eq!(named("lost-answers"), 1);
    assert!(state.keystone.user("lost-answers").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_passes_write_nothing_and_keep_the_password() {
    let tenant = world::shared().await.tenant().await;
    let before = credentials(&tenant).await;
    let fake = &tenant.world.fake;
    let secret = tenant.secrets().get(&tenant.secret_name()).await.unwrap();
    for round in ["a", "b", "c"] {
        let looks = fake.count("GET", "/users");
        tenant.annotate(json!({"test/round": round})).await;
        let namespace = tenant.namespaces().get(&tenant.name).await.unwrap();
        let pass = async {
            while fake.count("GET", "/users") == looks {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        within(pass, "a pass").await;
        let now = tenant.namespaces().get(&tenant.name).await.unwrap();
        assert_eq!(now.resource_version(), namespace.resource_version());
    }
    assert_eq!(credentials(&tenant).await, before);
    let now = tenant.secrets().get(&tenant.secret_name()).await.unwrap();
    assert_eq!(now.resource_version(), secret.resource_version());
    let user = fake.state().keystone.user(&tenant.name).unwrap();
    assert_eq!(fake.count("PATCH", &user.id), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_that_keystone_refuses_is_set_again() {
    let tenant = world::shared().await.tenant().await;
    tenant.ready_image("before").await;
    let (user, password) = credentials(&tenant).await;
    {
        let mut state = tenant.world.fake.state();
        state.keystone.set_password(&user, "changed by somebody");
        let project = state.keystone.project(&tenant.name).unwrap().id;
        state.keystone.revoke(&project);
    }
    tenant.ready_image("after").await;
    assert_eq!(tenant.world.fake.state().keystone.user(&tenant.name).unwrap().password, password);
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
    assert_eq!(tenant.world.fake.state().keystone.user(&tenant.name).unwrap().password, password);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_annotation_gives_no_rights() {
    let tenant = world::shared().await.tenant().await;
    let own = tenant.project().await;
    tenant.annotate(json!({PROJECT_ID: "project-admin"})).await;
    tenant.until_namespace(|n| n.annotations().get(PROJECT_ID) == Some(&own)).await;
    let user = tenant.world.fake.state().keystone.user(&tenant.name).unwrap();
    let foreign = tenant.world.fake.state().keystone.grants.iter().any(|g| g.0 == "project-admin" && g.1 == user.id);
    assert!(!foreign);
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
    assert!(world.fake.state().keystone.project(&tenant.name).is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_with_an_image_ends_clean() {
    let tenant = world::shared().await.tenant().await;
    tenant.ready_image("leftover").await;
    tenant.end().await;
    assert!(tenant.world.fake.state().glance.named("leftover").is_empty());
    assert!(!tenant.is_known_to_keystone());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_ends_clean_though_its_user_is_gone() {
    let tenant = world::shared().await.tenant().await;
    tenant.ready_image("orphan").await;
    {
        let mut state = tenant.world.fake.state();
        let project = state.keystone.project(&tenant.name).unwrap().id;
        let name = tenant.name.clone();
        state.keystone.users.retain(|user| !user.name.starts_with(&name));
        state.keystone.revoke(&project);
    }
    tenant.end().await;
    assert!(tenant.world.fake.state().glance.named("orphan").is_empty());
}
