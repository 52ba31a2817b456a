//! Images that were in Glance before their objects.

use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use kupenstack_api::resources::{ClusterImage, Image};
use kupenstack_testkit::sim;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    common::look::{self, disk, id, is_ready, shown, until},
    world::{self, Tenant},
};

/// A number as an identifier.
fn number(tenant: &Tenant<'_>, index: u8) -> String {
    format!(
        "00000000-0000-4000-8000-{:010x}{index:02x}",
        tenant.name.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)))
    )
}

/// What somebody else has put into Glance.
fn foreign(image: &mut sim::Image, name: &str) {
    image.name = Some(name.to_owned());
    image.status = "active";
    (image.disk_format, image.container_format) = (Some("qcow2".to_owned()), Some("bare".to_owned()));
    (image.size, image.data) = (Some(512), Some(disk(512).into()));
    image.properties.insert("os_distro".to_owned(), "debian".to_owned());
    image.tags.insert("golden".to_owned());
}

async fn put(tenant: &Tenant<'_>, index: u8, name: &str) -> String {
    let id = number(tenant, index);
    tenant.put_image(id.clone(), |image| foreign(image, name)).await;
    id
}

#[rstest]
#[case::by_name(json!({"name": "theirs"}))]
#[case::by_filter(json!({"filter": {"tags": ["golden"], "properties": {"os_distro": "debian"}}}))]
#[tokio::test(flavor = "multi_thread")]
async fn adopt_takes_the_only_one_that_fits_and_changes_nothing(#[case] adopt: Value) {
    let tenant = world::shared().await.tenant().await;
    let theirs = put(&tenant, 1, "theirs").await;
    tenant.create::<Image>("ours", json!({"adopt": adopt})).await;
    let image = tenant.until("ours", is_ready).await;
    assert_eq!(id(&image), theirs);
    assert_eq!(image.status.unwrap().size, Some(512));
    assert_eq!(tenant.world.count("PATCH", &theirs), 0);

    tenant.edit("ours", json!({"minDisk": 7, "properties": {"hw_disk_bus": "virtio"}})).await;
    tenant.until("ours", |image| image.metadata.generation == Some(2) && is_ready(image)).await;
    let stored = tenant.world.sim.cloud().glance.image(&theirs).cloned().unwrap();
    assert_eq!((stored.name.as_deref(), stored.min_disk, stored.min_ram), (Some("theirs"), 7, 0));
    assert_eq!(stored.properties["hw_disk_bus"], "virtio");
    assert!(!stored.properties.keys().any(|name| name.starts_with("kupenstack_")), "{:?}", stored.properties);

    tenant.delete("ours").await;
    assert!(tenant.world.sim.cloud().glance.image(&theirs).is_some(), "what was adopted is retained");
}

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_869_an_identifier_is_any_text() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<Image>("odd", json!({"adopt": {"id": "m1.tiny/../1"}})).await;
    tenant.until("odd", |image| shown(image).0 == "NothingToAdopt").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn adopt_by_id_deletes_when_told_to() {
    let tenant = world::shared().await.tenant().await;
    let theirs = put(&tenant, 1, "by-id").await;
    tenant.create::<Image>("ours", json!({"adopt": {"id": theirs}, "deletionPolicy": "Delete"})).await;
    tenant.until("ours", is_ready).await;
    tenant.delete("ours").await;
    assert!(tenant.world.sim.cloud().glance.image(&theirs).is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn adopt_error_several_or_none_are_waited_for() {
    let tenant = world::shared().await.tenant().await;
    let (first, second) = (put(&tenant, 1, "twin").await, put(&tenant, 2, "twin").await);
    tenant.create::<Image>("ours", json!({"adopt": {"name": "twin"}})).await;
    let image = tenant.until("ours", |image| shown(image).0 == "AmbiguousAdoption").await;
    let message = shown(&image).1;
    assert!(message.contains("2 of the images") && message.contains(&first) && message.contains(&second), "{message}");
    tenant.world.delete_image(&second);
    tenant.nudge::<Image>("ours").await;
    assert_eq!(id(&tenant.until("ours", is_ready).await), first);

    tenant.create::<Image>("later", json!({"adopt": {"name": "late"}})).await;
    tenant.until("later", |image| shown(image).0 == "NothingToAdopt").await;
    let late = put(&tenant, 3, "late").await;
    tenant.nudge::<Image>("later").await;
    assert_eq!(id(&tenant.until("later", is_ready).await), late);
}

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_adoption_what_is_anothers_is_neither_adopted_nor_deleted() {
    let world = world::shared().await;
    let (owner, taker) = (world.tenant().await, world.tenant().await);
    let theirs = number(&owner, 1);
    let shown_to_all = |image: &mut sim::Image| {
        foreign(image, "prey");
        "community".clone_into(&mut image.visibility);
    };
    owner.put_image(theirs.clone(), shown_to_all).await;
    taker.create::<Image>("ours", json!({"adopt": {"id": theirs}, "deletionPolicy": "Delete"})).await;
    taker.until("ours", |image| shown(image).0 == "NothingToAdopt").await;
    taker.delete("ours").await;
    assert!(world.sim.cloud().glance.image(&theirs).is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_adopted_image_that_vanishes_is_not_made_anew() {
    let tenant = world::shared().await.tenant().await;
    let theirs = put(&tenant, 1, "vanishing").await;
    tenant.create::<Image>("ours", json!({"adopt": {"name": "vanishing"}})).await;
    tenant.until("ours", is_ready).await;
    tenant.world.delete_image(&theirs);
    tenant.nudge::<Image>("ours").await;
    tenant.until("ours", |image| shown(image).0 == "NothingToAdopt").await;
    assert!(tenant.world.named("vanishing").is_empty() && tenant.world.named("ours").is_empty());
    tenant.delete("ours").await;
}

#[rstest]
#[case::neither(json!({}), "exactly one of src and adopt")]
#[case::both(json!({"src": "http://h/x", "format": "raw", "adopt": {"id": "1"}}), "exactly one of src and adopt")]
#[case::no_format(json!({"src": "http://h/x"}), "format has to be given")]
#[case::format_of_adopted(json!({"adopt": {"id": "1"}, "format": "raw"}), "format has to be given")]
#[case::two_ways(json!({"adopt": {"id": "1", "name": "x"}}), "exactly one of id, name and filter")]
#[case::no_way(json!({"adopt": {}}), "exactly one of id, name and filter")]
#[case::all_of_them(json!({"adopt": {"filter": {}}}), "a filter has to ask for something")]
#[tokio::test(flavor = "multi_thread")]
async fn what_can_never_be_adopted_is_refused_at_once(#[case] spec: Value, #[case] words: &str) {
    let tenant = world::shared().await.tenant().await;
    let object =
        |kind| json!({"apiVersion": "kupenstack.io/v1", "kind": kind, "metadata": {"name": "refused"}, "spec": spec});
    let image: Image = serde_json::from_value(object("Image")).unwrap();
    let error = tenant.images().create(&PostParams::default(), &image).await.unwrap_err().to_string();
    assert!(error.contains(words), "{error}");
    let image: ClusterImage = serde_json::from_value(object("ClusterImage")).unwrap();
    let api: Api<ClusterImage> = Api::all(tenant.client.clone());
    let error = api.create(&PostParams::default(), &image).await.unwrap_err().to_string();
    assert!(error.contains(words), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_made_image_can_not_become_an_adopted_one() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<Image>("fixed", json!({"src": "http://127.0.0.1:1/x", "format": "raw"})).await;
    let spec = json!({"spec": {"src": null, "format": null, "adopt": {"id": "1"}}});
    let patch = Patch::Merge(&spec);
    let error = tenant.images().patch("fixed", &PatchParams::default(), &patch).await.unwrap_err().to_string();
    assert!(error.contains("can't become a made one"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_image_adopts_only_what_is_public() {
    let tenant = world::shared().await.tenant().await;
    let theirs = put(&tenant, 1, "half-public").await;
    let api: Api<ClusterImage> = Api::all(tenant.client.clone());
    let image = json!({
        "apiVersion": "kupenstack.io/v1", "kind": "ClusterImage", "metadata": {"name": "adopted"},
        "spec": {"adopt": {"id": theirs}},
    });
    api.create(&PostParams::default(), &serde_json::from_value(image).unwrap()).await.unwrap();
    until(api.clone(), "adopted", |image: &ClusterImage| shown(image).0 == "NothingToAdopt").await;
    tenant.world.meddle(&theirs, |image| "public".clone_into(&mut image.visibility));
    look::nudge(api.clone(), "adopted").await;
    let image = until(api.clone(), "adopted", |image: &ClusterImage| shown(image).0 == "Ready").await;
    assert_eq!(id(&image), theirs);
    look::delete(api, "adopted").await;
    assert!(tenant.world.sim.cloud().glance.image(&theirs).is_some());
}
