//! Images for every namespace.

use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PostParams},
};
use kupenstack_api::{FINALIZER, resources::ClusterImage};
use kupenstack_core::ownership::ClusterId;
use kupenstack_testkit::sim::{self, Effect, Rule};
use serde_json::{Value, json};
use wiremock::{Mock, ResponseTemplate, matchers::path};

use crate::{
    common::look::{self, cluster, disk, eventually, id, is_ready, mark, object, own_id, shown, until},
    world::{self, World},
};

/// The administrator's project.
fn admin_project(world: &World) -> String {
    world.sim.cloud().keystone.find("projects", "admin").unwrap().id.clone()
}

async fn api(world: &World) -> Api<ClusterImage> {
    Api::all(world.client().await)
}

async fn create(world: &World, name: &str, spec: Value) -> ClusterImage {
    api(world).await.create(&PostParams::default(), &object(name, &spec)).await.unwrap()
}

async fn ready(world: &World, name: &str) -> ClusterImage {
    until(api(world).await, name, is_ready).await
}

async fn delete(world: &World, name: &str) {
    look::delete(api(world).await, name).await;
}

async fn nudge(world: &World, name: &str) {
    look::nudge(api(world).await, name).await;
}

/// What somebody made of an image.
fn active(image: &mut sim::Image, name: &str, visibility: &str, mark: String) {
    image.name = Some(name.to_owned());
    image.status = "active";
    visibility.clone_into(&mut image.visibility);
    (image.disk_format, image.container_format) = (Some("raw".to_owned()), Some("bare".to_owned()));
    image.properties.insert("kupenstack_mark".to_owned(), mark);
    (image.size, image.data) = (Some(512), Some(disk(512).into()));
}

/// An image whose file is not there yet, and what lets it appear.
async fn stranded(world: &World, name: &str) -> (ClusterImage, String) {
    let file = format!("/{name}.img");
    create(world, name, json!({"src": format!("{}{file}", world.web.uri()), "format": "raw"})).await;
    (until(api(world).await, name, |image| shown(image).0 == "SourceNotFound").await, file)
}

async fn appears(world: &World, name: &str, file: &str) -> ClusterImage {
    let answer = ResponseTemplate::new(200).set_body_bytes(disk(4096));
    Mock::given(path(file)).respond_with(answer).mount(&world.web).await;
    nudge(world, name).await;
    ready(world, name).await
}

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_187_create_minimal_makes_a_public_image_of_the_administrator() {
    let world = world::shared().await;
    let src = world.serve(&disk(4096)).await;
    create(world, "debian", json!({"src": src, "format": "raw"})).await;
    let image = ready(world, "debian").await;
    assert_eq!(image.finalizers(), [FINALIZER]);
    let [stored] = world.named("debian").try_into().unwrap();
    assert_eq!((stored.id.as_str(), stored.visibility.as_str()), (id(&image).as_str(), "public"));
    assert_eq!((stored.owner, stored.data.as_deref()), (admin_project(world), Some(&disk(4096)[..])));
    assert_eq!(stored.properties["kupenstack_mark"], mark(&image));

    delete(world, "debian").await;
    assert!(world.named("debian").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_of_visibility_is_set_right() {
    let world = world::shared().await;
    let src = world.serve(&disk(4096)).await;
    create(world, "hidden", json!({"src": src, "format": "raw"})).await;
    let first = id(&ready(world, "hidden").await);
    world.meddle(&first, |image| "private".clone_into(&mut image.visibility));
    nudge(world, "hidden").await;
    eventually("the repair", async || world.named("hidden")[0].visibility == "public").await;
    assert_eq!(id(&ready(world, "hidden").await), first);
}

#[tokio::test(flavor = "multi_thread")]
async fn cpo_3102_two_clusters_with_one_cloud_have_images_of_one_name() {
    let world = world::shared().await;
    let other: ClusterId = "00000000-0000-4000-8000-000000000001".parse().unwrap();
    let now = world.sim.clock().now();
    let mut theirs = sim::Image::new(other.resource_id("u"), &admin_project(world), now);
    active(&mut theirs, "shared-name", "public", other.mark("u"));
    world.sim.cloud().glance.put(now, theirs);
    let src = world.serve(&disk(4096)).await;
    create(world, "shared-name", json!({"src": src, "format": "raw"})).await;
    let image = ready(world, "shared-name").await;
    assert_ne!(id(&image), other.resource_id("u"));
    assert_eq!(world.named("shared-name").len(), 2);
    delete(world, "shared-name").await;
    let left = world.named("shared-name");
    assert_eq!((left.len(), left[0].id.as_str()), (1, other.resource_id("u").as_str()));
}

/// Identifier and mark of a public image are seen by all, and whoever makes an image chooses its identifier.
#[tokio::test(flavor = "multi_thread")]
async fn an_impostor_in_another_project_is_never_taken_for_ours() {
    let world = world::shared().await;
    let tenant = world.tenant().await;
    let (image, file) = stranded(world, "impostor").await;
    let (own, mark) = (own_id(&image), mark(&image));
    tenant.put_image(own.clone(), |image| active(image, "impostor", "community", mark)).await;
    let image = appears(world, "impostor", &file).await;
    assert_eq!(id(&image), cluster().resource_id(&own), "the identifier is taken, the next one is ours");
    delete(world, "impostor").await;
    let left = world.named("impostor");
    assert_eq!((left.len(), left[0].id.as_str()), (1, own.as_str()));
}

#[tokio::test(flavor = "multi_thread")]
async fn garm_79_an_answer_that_was_lost_leaves_one_image() {
    let world = world::shared().await;
    let create_it = Rule::on("image", "POST", "/v2/images", Effect::lost_answer());
    world.fail_next(create_it.with_body(r#""name":"lost-cluster-image""#));
    let src = world.serve(&disk(4096)).await;
    create(world, "lost-cluster-image", json!({"src": src, "format": "raw"})).await;
    ready(world, "lost-cluster-image").await;
    assert_eq!(world.named("lost-cluster-image").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_image_refuses_a_cluster_image_refuses() {
    let world = world::shared().await;
    for (spec, field) in [
        (json!({"src": "ftp://host/x", "format": "raw"}), "spec.src"),
        (json!({"src": "http://host/x", "format": "raw", "properties": {"visibility": "x"}}), "spec.properties"),
    ] {
        let image = json!({
            "apiVersion": "kupenstack.io/v1", "kind": "ClusterImage", "metadata": {"name": "refused"}, "spec": spec,
        });
        let image = serde_json::from_value(image).unwrap();
        let error = api(world).await.create(&PostParams::default(), &image).await.unwrap_err();
        assert!(error.to_string().contains(field), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_let_go_with_the_cloud() {
    let world = World::start().await;
    world.declare_cloud().await;
    let operator = world.operator();
    let src = world.serve(&disk(4096)).await;
    create(&world, "going", json!({"src": src, "format": "raw"})).await;
    ready(&world, "going").await;
    let clouds: Api<kupenstack_api::cluster::OpenStack> = Api::all(world.client().await);
    clouds.delete("default", &DeleteParams::default()).await.unwrap();
    let image = until(api(&world).await, "going", |image| image.finalizers().is_empty()).await;
    assert!(image.metadata.deletion_timestamp.is_none());
    operator.stop().await;
}
