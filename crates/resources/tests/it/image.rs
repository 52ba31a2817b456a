//! Images in a namespace that has its project.

use std::process::Command;

use futures::TryStreamExt;
use kube::{
    ResourceExt,
    api::{ListParams, WatchEvent, WatchParams},
};
use kupenstack_api::{FINALIZER, resources::Image};
use kupenstack_core::{
    conditions::{self, RECONCILING},
    ownership::ClusterId,
};
use kupenstack_testkit::sim::{self, Effect, Rule};
use rstest::rstest;
use serde_json::json;
use wiremock::{Mock, ResponseTemplate, matchers::path};

use crate::{
    common::look::{cluster, disk, eventually, id, is_ready, mark, own_id, shown, within},
    slow::Slow,
    world::{self, Tenant, World},
};

/// The one image of this name in Glance.
pub(crate) fn only(tenant: &Tenant<'_>, name: &str) -> sim::Image {
    let mut all = tenant.world.named(name);
    assert_eq!(all.len(), 1, "{all:#?}");
    all.remove(0)
}

fn data(image: &sim::Image) -> &[u8] {
    image.data.as_deref().unwrap_or_default()
}

/// What an earlier attempt of ours made of an image, or a part of one.
fn made(image: &mut sim::Image, name: &str, uid: &str, status: &'static str, bytes: usize, announced: &str) {
    image.name = Some(name.to_owned());
    image.status = status;
    "private".clone_into(&mut image.visibility);
    image.disk_format = Some("raw".to_owned());
    image.container_format = Some("bare".to_owned());
    image.properties.insert("kupenstack_mark".to_owned(), cluster().mark(uid));
    image.properties.insert("kupenstack_size".to_owned(), announced.to_owned());
    if bytes > 0 {
        image.size = Some(bytes.try_into().unwrap());
        image.data = Some(disk(bytes).into());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn create_full_uploads_the_file_as_the_namespaces_user() {
    let tenant = world::shared().await.tenant().await;
    let content = disk(8192);
    let src = tenant.world.serve(&content).await;
    let spec = json!({
        "src": src, "format": "raw", "minDisk": 2, "minRam": 64, "properties": {"hw_disk_bus": "virtio"},
        "checksum": format!("sha256:{}", kupenstack_core::hash::of_bytes(&content)),
    });
    tenant.create::<Image>("full", spec).await;
    let image = tenant.until("full", is_ready).await;

    let status = image.status.clone().unwrap();
    assert_eq!(status.id.as_deref(), Some(own_id(&image).as_str()));
    assert_eq!((status.size, status.virtual_size), (Some(8192), Some(8192)));
    assert_eq!(image.finalizers(), [FINALIZER]);
    let stored = only(&tenant, "full");
    let digest = stored.sha512.as_ref().map(|digest| format!("sha512:{digest}"));
    assert_eq!((status.digest, status.source_format.as_deref()), (digest, Some("raw")));
    assert_eq!(data(&stored), content);
    assert_eq!(stored.owner, tenant.project().await);
    assert_eq!((stored.visibility.as_str(), stored.disk_format.as_deref()), ("private", Some("raw")));
    assert_eq!((stored.min_disk, stored.min_ram), (2, 64));
    assert_eq!(stored.properties["hw_disk_bus"], "virtio");
    assert_eq!(stored.properties["kupenstack_mark"], mark(&image));
}

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_187_create_minimal_costs_few_writes_and_two_events() {
    let tenant = world::shared().await.tenant().await;
    let src = tenant.world.serve(&disk(4096)).await;
    let params = WatchParams::default().fields("metadata.name=minimal");
    let images = tenant.images();
    let mut watch = Box::pin(images.watch(&params, "0").await.unwrap());
    tenant.create::<Image>("minimal", json!({"src": src, "format": "raw"})).await;
    let mut writes = 0;
    while let Some(event) = within(watch.try_next(), "the image").await.unwrap() {
        let WatchEvent::Modified(image) = event else { continue };
        writes += 1;
        if is_ready(&image) {
            break;
        }
    }
    assert!(writes <= 4, "finalizer, id, ready, and one about progress at most: {writes}");
    eventually("the event", async || tenant.events("minimal").await.contains(&"Ready".to_owned())).await;
    let mut events = tenant.events("minimal").await;
    events.sort();
    assert_eq!(events, ["Created", "Ready"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_in_another_format_is_converted() {
    let tenant = world::shared().await.tenant().await;
    let folder = tempfile::tempdir().unwrap();
    let (raw, qcow2) = (folder.path().join("raw"), folder.path().join("qcow2"));
    std::fs::write(&raw, disk(65536)).unwrap();
    let convert = Command::new("qemu-img").args(["convert", "-f", "raw", "-O", "qcow2"]).args([&raw, &qcow2]).status();
    assert!(convert.unwrap().success());
    let src = tenant.world.serve(&std::fs::read(&qcow2).unwrap()).await;
    tenant.create::<Image>("converted", json!({"src": src, "format": "raw"})).await;
    let image = tenant.until("converted", is_ready).await;
    assert_eq!(image.status.unwrap().source_format.as_deref(), Some("qcow2"));
    assert_eq!(data(&only(&tenant, "converted")), disk(65536));
}

#[tokio::test(flavor = "multi_thread")]
async fn garm_79_create_answered_503_makes_one() {
    let tenant = world::shared().await.tenant().await;
    let creation = Rule::on("image", "POST", "/v2/images", Effect::lost_answer());
    tenant.world.fail_next(creation.in_project(&tenant.project().await));
    tenant.ready_image("answer-lost").await;
    assert_eq!(data(&only(&tenant, "answer-lost")), disk(4096));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_answered_503_makes_one() {
    let tenant = world::shared().await.tenant().await;
    let upload = Rule::on("image", "PUT", "/v2/images/*/file", Effect::lost_answer());
    tenant.world.fail_next(upload.in_project(&tenant.project().await));
    tenant.ready_image("upload-lost").await;
    assert_eq!(data(&only(&tenant, "upload-lost")), disk(4096));
}

/// An image that found no source, and the address where it looks for one.
async fn stranded(tenant: &Tenant<'_>, name: &str) -> (kupenstack_api::resources::Image, String) {
    let src = format!("{}/{}-{name}.img", tenant.world.web.uri(), tenant.name);
    tenant.create::<Image>(name, json!({"src": src, "format": "raw"})).await;
    let image = tenant.until(name, |image| shown(image).0 == "SourceNotFound").await;
    (image, format!("/{}-{name}.img", tenant.name))
}

async fn appears(tenant: &Tenant<'_>, name: &str, file: &str) -> kupenstack_api::resources::Image {
    let answer = ResponseTemplate::new(200).set_body_bytes(disk(4096));
    Mock::given(path(file)).respond_with(answer).mount(&tenant.world.web).await;
    tenant.nudge::<Image>(name).await;
    tenant.until(name, is_ready).await
}

#[tokio::test(flavor = "multi_thread")]
async fn capo_2181_restart_between_create_and_status_write_makes_one() {
    let tenant = world::shared().await.tenant().await;
    let (image, file) = stranded(&tenant, "crashed").await;
    let uid = image.uid().unwrap();
    let own_id = cluster().resource_id(&uid);
    tenant.put_image(own_id, |image| made(image, "crashed", &uid, "active", 4096, "4096")).await;
    let image = appears(&tenant, "crashed", &file).await;
    assert_eq!(id(&image), cluster().resource_id(&uid));
    only(&tenant, "crashed");
    assert_eq!(tenant.world.count("PUT", &id(&image)), 0, "it was uploaded already");
}

#[rstest]
#[case::upload_broke_off("killed", 0, "4096")]
#[case::record_of_other_data("queued", 0, "9999")]
#[case::part_taken_for_the_whole("active", 100, "4096")]
#[tokio::test(flavor = "multi_thread")]
async fn the_rest_of_a_failed_attempt_is_replaced(
    #[case] status: &'static str,
    #[case] bytes: usize,
    #[case] size: &str,
) {
    let tenant = world::shared().await.tenant().await;
    let name = format!("half-{status}");
    let (image, file) = stranded(&tenant, &name).await;
    let uid = image.uid().unwrap();
    let first = cluster().resource_id(&uid);
    tenant.put_image(first.clone(), |image| made(image, &name, &uid, status, bytes, size)).await;
    let image = appears(&tenant, &name, &file).await;
    assert_eq!(id(&image), cluster().resource_id(&first), "a deleted identifier is not given again");
    assert_eq!(data(&only(&tenant, &name)), disk(4096));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_record_is_filled() {
    let tenant = world::shared().await.tenant().await;
    let (image, file) = stranded(&tenant, "open").await;
    let uid = image.uid().unwrap();
    let own_id = cluster().resource_id(&uid);
    tenant.put_image(own_id, |image| made(image, "open", &uid, "queued", 0, "4096")).await;
    let image = appears(&tenant, "open", &file).await;
    assert_eq!(id(&image), cluster().resource_id(&uid));
    assert_eq!(data(&only(&tenant, "open")), disk(4096));
}

/// The spec changes while the operator is dead: what it had begun for the earlier one is not what is declared now.
#[tokio::test(flavor = "multi_thread")]
async fn an_open_record_of_an_earlier_spec_is_brought_up_to_date() {
    let tenant = world::shared().await.tenant().await;
    let (image, file) = stranded(&tenant, "earlier").await;
    let uid = image.uid().unwrap();
    let own_id = cluster().resource_id(&uid);
    tenant.put_image(own_id, |image| made(image, "earlier", &uid, "queued", 0, "4096")).await;
    tenant.edit("earlier", json!({"minDisk": 7, "properties": {"a": "1"}})).await;
    appears(&tenant, "earlier", &file).await;
    let stored = only(&tenant, "earlier");
    assert_eq!((stored.min_disk, stored.properties.get("a").map(String::as_str)), (7, Some("1")));
    assert!(!tenant.events("earlier").await.contains(&"DriftRepaired".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_adoption_by_name_a_foreign_image_is_left_alone() {
    let tenant = world::shared().await.tenant().await;
    let foreign = "4f1ab1a4-0000-5000-8000-000000000001";
    let web = |image: &mut sim::Image| {
        image.name = Some("web".to_owned());
        image.status = "active";
        image.size = Some(512);
    };
    tenant.put_image(foreign.to_owned(), web).await;
    let image = tenant.ready_image("web").await;
    assert_ne!(id(&image), foreign);
    tenant.delete("web").await;
    assert_eq!(only(&tenant, "web").id, foreign);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_appears_later_is_taken() {
    let tenant = world::shared().await.tenant().await;
    let (_, file) = stranded(&tenant, "later").await;
    appears(&tenant, "later", &file).await;
    assert_eq!(data(&only(&tenant, "later")), disk(4096));
}

#[tokio::test(flavor = "multi_thread")]
async fn external_deletion_is_repaired() {
    let tenant = world::shared().await.tenant().await;
    let first = id(&tenant.ready_image("vanishing").await);
    tenant.world.delete_image(&first);
    tenant.nudge::<Image>("vanishing").await;
    let image = tenant.until("vanishing", |image| is_ready(image) && id(image) != first).await;
    assert_eq!(id(&image), cluster().resource_id(&first));
    assert_eq!(data(&only(&tenant, "vanishing")), disk(4096));
    assert!(tenant.events("vanishing").await.contains(&"Vanished".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn update_changes_in_place_and_sends_only_what_differs() {
    let tenant = world::shared().await.tenant().await;
    let src = tenant.world.serve(&disk(4096)).await;
    tenant.create::<Image>("edited", json!({"src": src, "format": "raw", "properties": {"a": "1", "b": "2"}})).await;
    let first = id(&tenant.until("edited", is_ready).await);
    // another's hand, which is not ours to undo
    tenant.world.meddle(&first, |image| drop(image.properties.insert("foreign".to_owned(), "stays".to_owned())));
    tenant.edit("edited", json!({"minDisk": 7, "properties": {"a": "9", "b": null}})).await;
    let image = tenant.until("edited", |image| image.metadata.generation == Some(2) && is_ready(image)).await;
    assert_eq!(id(&image), first);
    let stored = only(&tenant, "edited");
    assert_eq!((stored.properties["a"].as_str(), stored.properties["foreign"].as_str()), ("9", "stays"));
    assert!(!stored.properties.contains_key("b"));
    assert_eq!(stored.min_disk, 7);
    assert_eq!(tenant.world.count("PATCH", &first), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_update_step_is_run_even_when_one_fails() {
    let tenant = world::shared().await.tenant().await;
    let first = id(&tenant.ready_image("steps").await);
    let refusal = Effect::refusal_saying(400, "no such disk");
    tenant.world.fail_next(Rule::on("image", "PATCH", &format!("/v2/images/{first}"), refusal).with_body("min_disk"));
    tenant.edit("steps", json!({"minDisk": 3, "properties": {"a": "1"}})).await;
    let image = tenant.until("steps", |image| shown(image).0 == "InvalidSpec").await;
    assert!(shown(&image).1.contains("no such disk"), "{}", shown(&image).1);
    let stored = only(&tenant, "steps");
    assert_eq!((stored.properties["a"].as_str(), stored.min_disk), ("1", 0));
    tenant.nudge::<Image>("steps").await;
    tenant.until("steps", is_ready).await;
    let stored = only(&tenant, "steps");
    assert_eq!((stored.id, stored.min_disk), (first, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_set_right() {
    let tenant = world::shared().await.tenant().await;
    let first = id(&tenant.ready_image("drifting").await);
    tenant.world.meddle(&first, |image| image.name = Some("renamed".to_owned()));
    tenant.nudge::<Image>("drifting").await;
    let repaired = async || tenant.events("drifting").await.contains(&"DriftRepaired".to_owned());
    eventually("the repair", repaired).await;
    assert_eq!(only(&tenant, "drifting").id, first);
}

#[tokio::test(flavor = "multi_thread")]
async fn delete_removes_the_image_and_retain_keeps_it() {
    let tenant = world::shared().await.tenant().await;
    tenant.ready_image("deleted").await;
    tenant.delete("deleted").await;
    assert!(tenant.world.named("deleted").is_empty());

    tenant.ready_image("retained").await;
    tenant.edit("retained", json!({"deletionPolicy": "Retain"})).await;
    tenant.delete("retained").await;
    only(&tenant, "retained");
}

#[tokio::test(flavor = "multi_thread")]
async fn delete_ends_when_the_image_is_gone_already() {
    let tenant = world::shared().await.tenant().await;
    let first = id(&tenant.ready_image("gone").await);
    tenant.world.delete_image(&first);
    tenant.delete("gone").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_download_is_told_of() {
    let tenant = world::shared().await.tenant().await;
    let slow = Slow::serve(disk(1 << 20)).await;
    tenant.create::<Image>("slow", json!({"src": slow.url, "format": "raw"})).await;
    let image = tenant.until("slow", |image| shown(image).0 == "Downloading").await;
    assert!(shown(&image).1.ends_with("slow.img: 50 % (512 KiB of 1 MiB)"), "{}", shown(&image).1);
    assert!(conditions::find(&image.status.unwrap().conditions, RECONCILING).is_some());
    slow.proceed();
    tenant.until("slow", is_ready).await;
    assert_eq!(data(&only(&tenant, "slow")), disk(1 << 20));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_is_given_up_when_the_image_is_deleted() {
    let tenant = world::shared().await.tenant().await;
    let slow = Slow::serve(disk(1 << 20)).await;
    tenant.create::<Image>("unwanted", json!({"src": slow.url, "format": "raw"})).await;
    tenant.until("unwanted", |image| shown(image).0 == "Downloading").await;
    tenant.delete("unwanted").await;
    assert!(tenant.world.named("unwanted").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn downloads_keep_nothing_else_waiting() {
    let world = World::start().await;
    world.declare_cloud().await;
    let operator = world.operator();
    let tenant = world.tenant().await;
    tenant.ready_image("settled").await;
    let slow = Slow::serve(disk(1 << 20)).await;
    let names: Vec<_> = (0..20).map(|index| format!("slow-{index}")).collect();
    for name in &names {
        tenant.create::<Image>(name, json!({"src": slow.url, "format": "raw"})).await;
    }
    for name in &names {
        tenant.until(name, |image| ["Downloading", "Queued"].contains(&shown(image).0)).await;
    }
    let images = tenant.images().list(&ListParams::default()).await.unwrap();
    let downloading = images.iter().filter(|image| shown(*image).0 == "Downloading").count();
    assert!((1..=12).contains(&downloading), "{downloading} at once");
    tenant.delete("settled").await;
    tenant.delete(&names[19]).await;
    slow.proceed();
    // those that waited are called: by themselves they would look again later than is waited for here
    for name in &names[..19] {
        tenant.until(name, is_ready).await;
    }
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn small_images_do_not_wait_for_large_ones() {
    let world = World::start().await;
    world.declare_cloud().await;
    let operator = world.operator();
    let tenant = world.tenant().await;
    let slow = Slow::serve(disk(65 << 20)).await;
    let says = |word: &'static str| move |image: &Image| shown(image).0 == word;
    let names: Vec<_> = (0..4).map(|index| format!("large-{index}")).collect();
    for name in &names {
        tenant.create::<Image>(name, json!({"src": slow.url, "format": "raw"})).await;
    }
    for name in &names {
        tenant.until(name, says("Downloading")).await;
    }
    tenant.create::<Image>("late", json!({"src": slow.url, "format": "raw"})).await;
    tenant.until("late", says("Queued")).await;
    tenant.ready_image("small").await;
    tenant.delete(&names[0]).await;
    tenant.until("late", says("Downloading")).await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_needs_a_project() {
    let tenant = world::shared().await.namespace(&[("kupenstack.io/project", "ignore")]).await;
    let src = tenant.world.serve(&disk(4096)).await;
    tenant.create::<Image>("waiting", json!({"src": src, "format": "raw"})).await;
    let image = tenant.until("waiting", |image| shown(image).0 == "ProjectNotReady").await;
    assert!(shown(&image).1.contains("says ignore"), "{}", shown(&image).1);
    assert!(image.finalizers().is_empty());
    tenant.annotate(json!({"kupenstack.io/project": null})).await;
    tenant.until("waiting", is_ready).await;
}

/// A dot in a name is a dot.
#[tokio::test(flavor = "multi_thread")]
async fn k_orc_adoption_by_name_a_name_is_no_pattern() {
    let tenant = world::shared().await.tenant().await;
    let webx1 = "4f1ab1a4-0000-5000-8000-000000000002";
    tenant.put_image(webx1.to_owned(), |image| image.name = Some("webx1".to_owned())).await;
    let image = tenant.ready_image("web.1").await;
    assert_ne!(id(&image), webx1);
    tenant.delete("web.1").await;
    assert_eq!(only(&tenant, "webx1").id, webx1);
}

/// Two clusters share a project: their objects have the same names, and even the same UIDs after a restored backup.
#[tokio::test(flavor = "multi_thread")]
async fn cpo_3102_an_image_of_another_cluster_is_left_alone() {
    let tenant = world::shared().await.tenant().await;
    let (image, file) = stranded(&tenant, "of-two-clusters").await;
    let other: ClusterId = "0f2b6a2e-1f0a-4a55-9c58-0d4f3ad0f7a2".parse().unwrap();
    let uid = image.uid().unwrap();
    let foreign = other.resource_id(&uid);
    let theirs = |image: &mut sim::Image| {
        made(image, "of-two-clusters", &uid, "active", 4096, "4096");
        image.properties.insert("kupenstack_mark".to_owned(), other.mark(&uid));
    };
    tenant.put_image(foreign.clone(), theirs).await;
    let image = appears(&tenant, "of-two-clusters", &file).await;
    assert_eq!(id(&image), cluster().resource_id(&uid));
    tenant.delete("of-two-clusters").await;
    assert_eq!(only(&tenant, "of-two-clusters").id, foreign);
}
