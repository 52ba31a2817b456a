//! What is found out by one list for the whole cloud.

use std::time::Duration;

use kube::api::{DeleteParams, Patch, PatchParams};
use kupenstack_api::resources::Image;
use kupenstack_testkit::sim::{Effect, Rule};
use serde_json::{Value, json};

use crate::{
    common::look::{disk, eventually, id, is_ready, shown},
    world::{Tenant, World},
};

/// A world with an operator at work.
macro_rules! world {
    ($world:ident, $operator:ident) => {
        let $world = World::start().await;
        $world.declare_cloud().await;
        let $operator = $world.operator();
    };
}

/// Waits for so many complete lists, each of which takes two requests here: images that are shown, and hidden ones.
async fn lists(world: &World, number: usize) {
    let asked = || world.sim.cloud().journal.count("GET", "/v2/images");
    let before = asked();
    // one may be under way, and the last answer is taken in when another one has begun
    eventually("lists", async || asked() > before + 2 * (number + 1)).await;
}

async fn annotate(tenant: &Tenant<'_>, name: &str, annotations: Value) {
    let patch = json!({"metadata": {"annotations": annotations}});
    tenant.images().patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
}

/// The rule that makes all lists for the whole cloud go wrong.
fn on_lists(effect: Effect) -> Rule {
    Rule::on("image", "GET", "/v2/images", effect)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_settled_object_costs_no_request_however_often_it_is_looked_at() {
    world!(world, operator);
    let tenant = world.tenant().await;
    for name in ["one", "two", "three"] {
        tenant.ready_image(name).await;
    }
    lists(&world, 2).await;
    let asked = || world.asked("/v2/images/");
    let (before, passes) = (asked(), operator.passes("image"));
    for name in ["one", "two", "three"] {
        tenant.nudge::<Image>(name).await;
    }
    eventually("passes", async || operator.passes("image") >= passes + 3).await;
    lists(&world, 1).await;
    assert_eq!(asked(), before);
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn external_deletion_and_drift_are_seen_by_the_next_list_and_concern_nobody_else() {
    world!(world, operator);
    let tenant = world.tenant().await;
    let gone = id(&tenant.ready_image("gone").await);
    let renamed = id(&tenant.ready_image("renamed").await);
    let other = id(&tenant.ready_image("other").await);
    lists(&world, 2).await;
    let looks = world.asked(&other);
    world.delete_image(&gone);
    world.meddle(&renamed, |image| image.name = Some("another".to_owned()));
    tenant.until("gone", |image| is_ready(image) && id(image) != gone).await;
    eventually("the repair", async || !world.named("renamed").is_empty()).await;
    assert!(tenant.events("gone").await.contains(&"Vanished".to_owned()));
    assert_eq!(world.asked(&other), looks);
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_is_cut_off_or_old_makes_nothing_anew() {
    world!(world, operator);
    let tenant = world.tenant().await;
    let before = id(&tenant.ready_image("steady").await);
    lists(&world, 2).await;
    let admin = world.sim.cloud().keystone.find("projects", "admin").unwrap().id.clone();
    for effect in [Effect::Malformed, Effect::Stale { seconds: 30.0 }, Effect::refusal(500)] {
        world.sim.cloud().faults.clear();
        world.sim.cloud().faults.add(on_lists(effect).in_project(&admin));
        // made while lists do not show it
        let name = format!("new-{}", crate::common::cluster::number());
        tenant.ready_image(&name).await;
        lists(&world, 1).await;
        assert_eq!(world.named(&name).len(), 1);
    }
    world.sim.cloud().faults.clear();
    lists(&world, 1).await;
    assert_eq!(id(&tenant.images().get("steady").await.unwrap()), before);
    assert_eq!(world.count("POST", "/v2/images"), 4);
    assert!(!tenant.events("steady").await.contains(&"Vanished".to_owned()));
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_can_be_listed_each_object_is_looked_at() {
    world!(world, operator);
    let admin = world.sim.cloud().keystone.find("projects", "admin").unwrap().id.clone();
    world.sim.cloud().faults.add(on_lists(Effect::refusal(403)).in_project(&admin));
    let tenant = world.tenant().await;
    let first = id(&tenant.ready_image("image").await);
    world.meddle(&first, |image| image.name = Some("another".to_owned()));
    eventually("the repair", async || !world.named("image").is_empty()).await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_listed_before_lists_were_refused_does_not_count_any_more() {
    world!(world, operator);
    let admin = world.sim.cloud().keystone.find("projects", "admin").unwrap().id.clone();
    let tenant = world.tenant().await;
    let first = id(&tenant.ready_image("image").await);
    lists(&world, 2).await;
    world.sim.cloud().faults.add(on_lists(Effect::refusal(403)).in_project(&admin));
    world.meddle(&first, |image| image.name = Some("another".to_owned()));
    eventually("the repair", async || !world.named("image").is_empty()).await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_left_alone_where_that_is_asked_for() {
    world!(world, operator);
    let tenant = world.tenant().await;
    let first = id(&tenant.ready_image("mine").await);
    annotate(&tenant, "mine", json!({"kupenstack.io/drift": "ignore"})).await;
    lists(&world, 2).await;
    world.meddle(&first, |image| image.name = Some("renamed".to_owned()));
    lists(&world, 2).await;
    assert_eq!(world.count("PATCH", &first), 0);
    assert!(is_ready(&tenant.images().get("mine").await.unwrap()));

    // what is declared anew counts, and nothing but that is undone
    tenant.edit("mine", json!({"minDisk": 3})).await;
    tenant.until("mine", |image| image.metadata.generation == Some(2) && is_ready(image)).await;
    assert_eq!(world.named("mine")[0].min_disk, 3);

    lists(&world, 2).await;
    world.delete_image(&first);
    let image = tenant.until("mine", |image| shown(image).0 == "Vanished").await;
    assert!(shown(&image).1.contains("kupenstack.io/drift"), "{}", shown(&image).1);
    tenant.nudge::<Image>("mine").await;
    lists(&world, 1).await;
    assert!(world.named("mine").is_empty());
    annotate(&tenant, "mine", json!({"kupenstack.io/drift": null})).await;
    tenant.until("mine", |image| is_ready(image) && id(image) != first).await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_left_in_a_project_that_was_deleted_is_made_in_the_new_one_and_removed() {
    world!(world, operator);
    let tenant = world.tenant().await;
    let old_project = tenant.project().await;
    let first = id(&tenant.ready_image("kept").await);
    let second = id(&tenant.ready_image("leaving").await);
    lists(&world, 1).await;
    let now = world.sim.clock().now();
    let in_use = Effect::refusal_saying(409, "Image is in use");
    world.sim.cloud().faults.add(Rule::on("image", "DELETE", &format!("/v2/images/{second}"), in_use));
    assert!(world.sim.cloud().keystone.remove(now, "projects", &old_project));
    tenant.annotate(json!({"test/look": "now"})).await;
    let namespace = tenant
        .until_namespace(|n| n.metadata.annotations.as_ref().unwrap()["kupenstack.io/project-id"] != old_project)
        .await;
    let new_project = &namespace.metadata.annotations.as_ref().unwrap()["kupenstack.io/project-id"];

    let image = tenant.until("kept", |image| is_ready(image) && id(image) != first).await;
    eventually("the end of the old one", async || world.sim.cloud().glance.image(&first).is_none()).await;
    assert_eq!(&world.sim.cloud().glance.image(&id(&image)).unwrap().owner, new_project);
    let new = async || world.named("leaving").iter().any(|image| image.id != second && image.status == "active");
    eventually("the new one", new).await;
    tenant.images().delete("leaving", &DeleteParams::default()).await.unwrap();
    // the old one can't be deleted yet, and is not forgotten when the new one is gone
    eventually("the end of the new one", async || world.named("leaving").len() == 1).await;
    assert!(world.sim.cloud().glance.image(&second).is_some());
    world.sim.cloud().faults.clear();
    tenant.delete("leaving").await;
    assert!(world.sim.cloud().glance.image(&second).is_none());
    assert!(world.named("leaving").is_empty());
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_nobody_any_more_is_told_and_left_alone() {
    world!(world, operator);
    let tenant = world.tenant().await;
    let first = id(&tenant.ready_image("orphan").await);
    tenant.ready_image("other").await;
    lists(&world, 1).await;
    let unowned = || operator.metric("kupenstack_unowned_resources", "Glance image");
    assert_eq!(unowned(), 0);
    operator.stop().await;

    // deleted by force while nobody looked
    let none = json!({"metadata": {"finalizers": null}});
    tenant.images().patch("orphan", &PatchParams::default(), &Patch::Merge(&none)).await.unwrap();
    tenant.images().delete("orphan", &DeleteParams::default()).await.unwrap();
    let operator = world.operator();
    eventually("the metric", async || operator.metric("kupenstack_unowned_resources", "Glance image") == 1).await;
    assert!(world.sim.cloud().glance.image(&first).is_some());
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_for_a_service_is_woken_when_it_is_back() {
    let world = World::start().await;
    world.declare_cloud().await;
    let operator = world.operator();
    let tenant = world.tenant().await;
    operator.stop().await;
    let operator = world.patient_operator();
    let src = world.serve(&disk(4096)).await;
    world.set_down(true);
    let failed = || operator.metric("kupenstack_reconciles_total", "result=\"failed\"");
    for number in 0..20 {
        tenant.create::<Image>(&format!("new-{number}"), json!({"src": src, "format": "raw"})).await;
    }
    let waiting = world.namespace(&[]).await;
    eventually("all fail", async || failed() >= 21).await;
    // what fails for less is no outage
    tokio::time::sleep(Duration::from_secs(4)).await;
    world.set_down(false);
    for number in 0..20 {
        tenant.until(&format!("new-{number}"), is_ready).await;
    }
    waiting.project().await;
    operator.stop().await;
}
