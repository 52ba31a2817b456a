//! Flavors of the whole cloud.

use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use kupenstack_api::{FINALIZER, HasConditions, resources::Flavor};
use kupenstack_core::conditions::{self, RECONCILING, STALLED};
use kupenstack_testkit::sim::{self, Effect, Rule};
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    common::look::{self, eventually, is_ready, mark, object, own_id, shown, until},
    world::{self, World},
};

async fn api(world: &World) -> Api<Flavor> {
    Api::all(world.client().await)
}

async fn try_create(world: &World, name: &str, spec: Value) -> kube::Result<Flavor> {
    api(world).await.create(&PostParams::default(), &object(name, &spec)).await
}

async fn create(world: &World, name: &str, spec: Value) -> Flavor {
    try_create(world, name, spec).await.unwrap()
}

async fn try_edit(world: &World, name: &str, spec: Value) -> kube::Result<Flavor> {
    let patch = json!({"spec": spec});
    api(world).await.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await
}

/// Changes the spec and waits until that is true.
async fn edit(world: &World, name: &str, spec: Value) -> sim::Flavor {
    let edited = try_edit(world, name, spec).await.unwrap();
    let generation = edited.metadata.generation;
    until(api(world).await, name, |f: &Flavor| f.metadata.generation == generation && is_ready(f)).await;
    stored(world, &edited).unwrap()
}

async fn ready(world: &World, name: &str) -> Flavor {
    until(api(world).await, name, is_ready).await
}

async fn delete(world: &World, name: &str) {
    look::delete(api(world).await, name).await;
}

/// The flavor of an object as Nova has it.
fn stored(world: &World, flavor: &Flavor) -> Option<sim::Flavor> {
    world.sim.cloud().nova.flavor(&own_id(flavor)).cloned()
}

/// Changes a flavor behind our back.
fn meddle(world: &World, flavor: &Flavor, change: impl FnOnce(&mut sim::Flavor)) {
    let now = world.sim.clock().now();
    assert!(world.sim.cloud().nova.edit_flavor(now, &own_id(flavor), change));
}

fn specs(specs: &[(&str, &str)]) -> std::collections::BTreeMap<String, String> {
    specs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_187_create_minimal_makes_a_flavor() {
    let world = world::shared().await;
    create(world, "minimal", json!({"vcpus": 1, "ram": "64Mi"})).await;
    let flavor = ready(world, "minimal").await;
    assert_eq!(flavor.finalizers(), [FINALIZER]);
    assert_eq!(flavor.status.as_ref().unwrap().id, Some(own_id(&flavor)));
    let (description, id) = (Some(mark(&flavor)), own_id(&flavor));
    let wanted = sim::Flavor { vcpus: 1, ram: 64, disk: 0, description, ..sim::Flavor::new(&id, "minimal") };
    assert_eq!(stored(world, &flavor), Some(wanted));
    delete(world, "minimal").await;
    assert_eq!(stored(world, &flavor), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn create_full() {
    let world = world::shared().await;
    let spec = json!({
        "vcpus": 4, "ram": "2Gi", "disk": "20Gi", "ephemeral": "1Ti", "swap": "512Mi", "public": false,
        "description": "for databases", "extraSpecs": {"hw:cpu_policy": "dedicated", "a b": ""},
    });
    create(world, "full", spec).await;
    let flavor = ready(world, "full").await;
    let wanted = sim::Flavor {
        id: own_id(&flavor),
        name: "full".to_owned(),
        vcpus: 4,
        ram: 2048,
        disk: 20,
        ephemeral: 1024,
        swap: 512,
        is_public: false,
        projects: [].into(),
        description: Some(format!("for databases {}", mark(&flavor))),
        extra_specs: specs(&[("hw:cpu_policy", "dedicated"), ("a b", "")]),
    };
    assert_eq!(stored(world, &flavor), Some(wanted));
    delete(world, "full").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn update_of_what_nova_can_change_and_back() {
    let world = world::shared().await;
    let first = json!({"vcpus": 1, "ram": "1Gi", "description": "first", "extraSpecs": {"a": "1", "b": "2"}});
    let flavor = create(world, "changing", first.clone()).await;
    let made = ready(world, "changing").await;
    let before = stored(world, &made).unwrap();

    let changed =
        edit(world, "changing", json!({"description": "second", "extraSpecs": {"a": null, "b": "3", "c": "4"}})).await;
    assert_eq!(changed.extra_specs, specs(&[("b", "3"), ("c", "4")]));
    assert_eq!(changed.description, Some(format!("second {}", mark(&flavor))));
    let bare = edit(world, "changing", json!({"description": null, "extraSpecs": null})).await;
    assert_eq!((bare.extra_specs, bare.description), (specs(&[]), Some(mark(&flavor))));
    assert_eq!(edit(world, "changing", first).await, before);
    delete(world, "changing").await;
}

/// The same size in other words is no change, and no request.
#[tokio::test(flavor = "multi_thread")]
async fn what_nova_can_not_change_is_refused_by_the_api_server() {
    let world = world::shared().await;
    create(world, "fixed", json!({"vcpus": 2, "ram": "2Gi", "disk": "20Gi"})).await;
    let flavor = ready(world, "fixed").await;
    for (field, value) in [
        ("vcpus", json!(4)),
        ("ram", json!("4Gi")),
        ("disk", json!("30Gi")),
        ("disk", json!(null)),
        ("ephemeral", json!("1Gi")),
        ("swap", json!("1Mi")),
        ("public", json!(false)),
    ] {
        let refusal = try_edit(world, "fixed", json!({field: value})).await.unwrap_err().to_string();
        assert!(refusal.contains(&format!("{field} can't be changed, create another Flavor instead")), "{refusal}");
    }
    edit(world, "fixed", json!({"ram": "2048Mi", "public": true})).await;
    assert_eq!(world.count("PUT", &own_id(&flavor)), 0);
    delete(world, "fixed").await;
}

#[rstest]
#[case::no_processor(json!({"vcpus": 0}), "spec.vcpus")]
#[case::memory_in_other_units(json!({"ram": "1G"}), "spec.ram")]
#[case::memory_as_a_number(json!({"ram": "512"}), "spec.ram")]
#[case::too_much_memory(json!({"ram": "1000Ti"}), "spec.ram")]
#[case::half_a_disk(json!({"disk": "512Mi"}), "spec.disk")]
#[case::two_lines(json!({"description": "a\nb"}), "spec.description")]
#[case::name_of_a_spec(json!({"extraSpecs": {"a/b": "1"}}), "spec.extraSpecs")]
#[case::long_value(json!({"extraSpecs": {"a": "v".repeat(256)}}), "spec.extraSpecs")]
#[tokio::test(flavor = "multi_thread")]
async fn what_can_never_be_a_flavor_is_refused_by_its_field(#[case] odd: Value, #[case] field: &str) {
    let world = world::shared().await;
    let mut spec = json!({"vcpus": 1, "ram": "1Gi"});
    spec.as_object_mut().unwrap().extend(odd.as_object().unwrap().clone());
    let refusal = try_create(world, "odd", spec).await.unwrap_err().to_string();
    assert!(refusal.contains(field), "{refusal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_and_external_deletion_are_repaired() {
    let world = world::shared().await;
    create(world, "drifting", json!({"vcpus": 1, "ram": "1Gi", "description": "d", "extraSpecs": {"a": "1"}})).await;
    let flavor = ready(world, "drifting").await;
    let before = stored(world, &flavor).unwrap();
    meddle(world, &flavor, |flavor| {
        flavor.extra_specs = specs(&[("a", "2"), ("theirs", "3")]);
        flavor.description = Some("theirs".to_owned());
    });
    eventually("the repair", async || stored(world, &flavor).as_ref() == Some(&before)).await;

    let now = world.sim.clock().now();
    assert!(world.sim.cloud().nova.remove_flavor(now, &before.id));
    eventually("another one", async || stored(world, &flavor).as_ref() == Some(&before)).await;
    delete(world, "drifting").await;
}

/// Somebody deleted it, and made another of its identifier.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_put_in_its_place_is_told_until_it_is_deleted() {
    let world = world::shared().await;
    create(world, "replaced", json!({"vcpus": 2, "ram": "1Gi"})).await;
    let flavor = ready(world, "replaced").await;
    meddle(world, &flavor, |flavor| flavor.vcpus = 1);
    let told = until(api(world).await, "replaced", |flavor: &Flavor| shown(flavor).0 == "Replaced").await;
    assert!(shown(&told).1.starts_with("vcpus is 1 in Nova and not 2"), "{}", shown(&told).1);
    assert!(conditions::is_true(told.conditions(), STALLED));
    let now = world.sim.clock().now();
    world.sim.cloud().nova.remove_flavor(now, &own_id(&flavor));
    ready(world, "replaced").await;
    assert_eq!(stored(world, &flavor).unwrap().vcpus, 2);
    delete(world, "replaced").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_adoption_by_name_a_foreign_flavor_is_left_alone_and_told() {
    let world = world::shared().await;
    let (now, theirs) = (world.sim.clock().now(), sim::Flavor::new("1", "m1.tiny"));
    world.sim.cloud().nova.put_flavor(now, theirs.clone());
    create(world, "m1.tiny", json!({"vcpus": 8, "ram": "1Gi"})).await;
    let waiting = until(api(world).await, "m1.tiny", |flavor: &Flavor| shown(flavor).0 == "NameClash").await;
    assert!(shown(&waiting).1.contains("(id 1)"), "{}", shown(&waiting).1);
    assert_eq!(world.sim.cloud().nova.flavor("1"), Some(&theirs));
    // deleting the object leaves it too
    delete(world, "m1.tiny").await;
    assert_eq!(world.sim.cloud().nova.flavor("1"), Some(&theirs));

    let flavor = create(world, "m1.tiny", json!({"vcpus": 8, "ram": "1Gi"})).await;
    until(api(world).await, "m1.tiny", |flavor: &Flavor| shown(flavor).0 == "NameClash").await;
    world.sim.cloud().nova.remove_flavor(now, "1");
    ready(world, "m1.tiny").await;
    assert_eq!(stored(world, &flavor).unwrap().vcpus, 8);
    delete(world, "m1.tiny").await;
}

/// A description with our mark is easily copied: it makes no other flavor ours.
#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_the_mark_is_not_deleted() {
    let world = world::shared().await;
    create(world, "marked", json!({"vcpus": 1, "ram": "1Gi"})).await;
    let flavor = ready(world, "marked").await;
    let copy = sim::Flavor { description: Some(mark(&flavor)), ..sim::Flavor::new("copy", "copy") };
    let now = world.sim.clock().now();
    world.sim.cloud().nova.put_flavor(now, copy.clone());
    delete(world, "marked").await;
    assert_eq!(world.sim.cloud().nova.flavor("copy"), Some(&copy));
    world.sim.cloud().nova.remove_flavor(now, "copy");
}

#[tokio::test(flavor = "multi_thread")]
async fn retain_leaves_the_flavor() {
    let world = world::shared().await;
    create(world, "kept", json!({"vcpus": 1, "ram": "1Gi", "deletionPolicy": "Retain"})).await;
    let flavor = ready(world, "kept").await;
    delete(world, "kept").await;
    assert!(stored(world, &flavor).is_some());
    let now = world.sim.clock().now();
    world.sim.cloud().nova.remove_flavor(now, &own_id(&flavor));
}

/// garm 79: the service fails after it has done what it was asked for.
#[tokio::test(flavor = "multi_thread")]
async fn garm_79_a_create_that_is_answered_by_an_error_makes_one() {
    let world = world::shared().await;
    let lost = Rule::on("compute", "POST", "/v2.1/flavors", Effect::lost_answer()).with_body("answerless");
    world.sim.cloud().faults.add(lost.once());
    create(world, "answerless", json!({"vcpus": 1, "ram": "1Gi"})).await;
    let flavor = ready(world, "answerless").await;
    assert_eq!(stored(world, &flavor).unwrap().name, "answerless");
    delete(world, "answerless").await;
}

/// As any cloud is today: nothing is asked of a service that is not there.
#[tokio::test(flavor = "multi_thread")]
async fn without_nova_a_flavor_waits_and_says_so() {
    let world = World::start().await;
    world.declare_cloud().await;
    world.set_ready().await;
    world.set_services(&[("Keystone", true), ("Glance", true)]).await;
    let operator = world.operator();
    create(&world, "small", json!({"vcpus": 1, "ram": "1Gi"})).await;
    let waiting = until(api(&world).await, "small", |flavor: &Flavor| shown(flavor).0 == "CloudUnavailable").await;
    assert!(shown(&waiting).1.starts_with("Nova is not part of the cloud"), "{}", shown(&waiting).1);
    assert!(conditions::is_true(waiting.conditions(), RECONCILING));
    assert_eq!(world.asked("/v2.1/"), 0);
    // it holds up nobody
    create(&world, "gone", json!({"vcpus": 1, "ram": "1Gi"})).await;
    delete(&world, "gone").await;

    world.set_services(&[("Keystone", true), ("Glance", true), ("Nova", true)]).await;
    until(api(&world).await, "small", is_ready).await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_settled_flavor_costs_no_request() {
    let world = World::start().await;
    world.declare_cloud().await;
    let operator = world.operator();
    create(&world, "settled", json!({"vcpus": 1, "ram": "1Gi", "extraSpecs": {"a": "1"}})).await;
    let flavor = ready(&world, "settled").await;
    world.lists("/v2.1/flavors/detail").await;
    let (asked, passes) = (world.asked(&own_id(&flavor)), operator.passes("flavor"));
    look::nudge(api(&world).await, "settled").await;
    eventually("a pass", async || operator.passes("flavor") > passes).await;
    assert_eq!(world.asked(&own_id(&flavor)), asked);
    operator.stop().await;
}
