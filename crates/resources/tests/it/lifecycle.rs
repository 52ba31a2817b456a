//! Namespaces whose project is meddled with, and their end in the middle of something.

use kube::ResourceExt;
use kupenstack_api::resources::{Image, PROJECT_ID, PROJECT_NAME};
use kupenstack_testkit::sim::{Effect, Rule};
use serde_json::{Value, json};

use crate::world::{self, Tenant, disk, id, shown};

fn edit_project(tenant: &Tenant<'_>, project: &str, attributes: Value) {
    let Value::Object(attributes) = attributes else { unreachable!() };
    let now = tenant.world.sim.clock().now();
    assert!(tenant.world.sim.cloud().keystone.edit(now, "projects", project, attributes));
}

async fn look(tenant: &Tenant<'_>) {
    tenant.annotate(json!({"test/look": crate::common::cluster::number().to_string()})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_renamed_behind_our_back_is_still_the_namespaces() {
    let tenant = world::shared().await.tenant().await;
    let project = tenant.project().await;
    edit_project(&tenant, &project, json!({"name": format!("{}-renamed", tenant.name)}));
    look(&tenant).await;
    let renamed = format!("{}-renamed", tenant.name);
    let namespace = tenant.until_namespace(|n| n.annotations().get(PROJECT_NAME) == Some(&renamed)).await;
    assert_eq!(namespace.annotations()[PROJECT_ID], project);
    tenant.end().await;
    assert!(tenant.world.sim.cloud().keystone.get("projects", &project).is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_deleted_behind_our_back_is_made_anew() {
    let tenant = world::shared().await.tenant().await;
    let project = tenant.project().await;
    let now = tenant.world.sim.clock().now();
    assert!(tenant.world.sim.cloud().keystone.remove(now, "projects", &project));
    look(&tenant).await;
    tenant.until_namespace(|n| n.annotations().get(PROJECT_ID).is_some_and(|now| *now != project)).await;
    let image = tenant.ready_image("after").await;
    let owner = tenant.world.sim.cloud().glance.image(&id(&image)).unwrap().owner.clone();
    assert_eq!(owner, tenant.project().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_project_is_told_of_and_left_disabled() {
    let tenant = world::shared().await.tenant().await;
    let project = tenant.project().await;
    tenant.ready_image("before").await;
    edit_project(&tenant, &project, json!({"enabled": false}));
    look(&tenant).await;
    tenant.told("ProjectDisabled").await;
    let user = tenant.user().unwrap();
    assert_eq!(tenant.world.count("PATCH", &user.id), 0, "its password is as good as before");
    assert_eq!(tenant.world.sim.cloud().keystone.get("projects", &project).unwrap().body["enabled"], json!(false));
    edit_project(&tenant, &project, json!({"enabled": true}));
    look(&tenant).await;
    tenant.ready_image("after").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_images_of_one_name_in_two_namespaces_are_two() {
    let world = world::shared().await;
    let (one, two) = (world.tenant().await, world.tenant().await);
    let (first, second) = (one.ready_image("same-name").await, two.ready_image("same-name").await);
    assert_ne!(id(&first), id(&second));
    one.delete("same-name").await;
    let left = world.named("same-name");
    assert_eq!((left.len(), left[0].id.as_str()), (1, id(&second).as_str()));
    two.delete("same-name").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_ends_while_an_upload_runs() {
    let world = world::shared().await;
    let tenant = world.tenant().await;
    let project = tenant.project().await;
    let hang = Effect::Hang { commit: false };
    world.fail_next(Rule::on("image", "PUT", "/v2/images/*/file", hang).in_project(&project));
    let src = world.serve(&disk(4096)).await;
    tenant.create::<Image>("hanging", json!({"src": src, "format": "raw"})).await;
    tenant.until("hanging", |image| shown(image).0 == "Uploading").await;
    tenant.end().await;
    assert!(world.named("hanging").is_empty());
    assert!(!tenant.is_known_to_keystone());
}
