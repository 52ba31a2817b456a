//! Flavors that were in Nova before their objects.

use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use kupenstack_api::resources::{Flavor, VirtualMachine};
use kupenstack_testkit::sim;
use serde_json::{Value, json};

use crate::{
    common::look::{self, eventually, id, is_ready, object, shown, until},
    virtual_machine::{create, edit, only, surroundings},
    world::{self, World},
};

async fn api(world: &World) -> Api<Flavor> {
    Api::all(world.client().await)
}

/// One of 2 processors, 2 GiB and no disk, as somebody made it in Nova.
fn put(world: &World, id: &str, name: &str, specs: &[(&str, &str)]) -> sim::Flavor {
    let mut flavor = sim::Flavor { vcpus: 2, ram: 2048, disk: 1, ..sim::Flavor::new(id, name) };
    flavor.description = Some("theirs".to_owned());
    flavor.extra_specs = specs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    world.sim.cloud().nova.put_flavor(world.sim.clock().now(), flavor.clone());
    flavor
}

fn stored(world: &World, id: &str) -> Option<sim::Flavor> {
    world.sim.cloud().nova.flavor(id).cloned()
}

/// Declares one of those sizes.
async fn adopt(world: &World, name: &str, but: Value) {
    let mut spec = json!({"vcpus": 2, "ram": "2Gi", "disk": "1Gi"});
    spec.as_object_mut().unwrap().extend(but.as_object().unwrap().clone());
    api(world).await.create(&PostParams::default(), &object(name, &spec)).await.unwrap();
}

async fn change(world: &World, name: &str, spec: Value) -> kube::Result<Flavor> {
    let patch = Patch::Merge(json!({"spec": spec}));
    api(world).await.patch(name, &PatchParams::default(), &patch).await
}

async fn says(world: &World, name: &str, reason: &str) -> String {
    let told = until(api(world).await, name, |flavor: &Flavor| shown(flavor).0 == reason).await;
    shown(&told).1.to_owned()
}

async fn delete(world: &World, name: &str) {
    look::delete(api(world).await, name).await;
}

/// Has an object looked at: of what was adopted nothing is listed, so that its turn is all that tells.
async fn nudge(world: &World, name: &str) {
    look::nudge(api(world).await, name).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn adopt_takes_over_by_id_and_by_name_and_leaves_what_is_not_declared() {
    let world = world::shared().await;
    for (adoption, value) in [("id", "own-1"), ("name", "Own 2")] {
        let id_in_nova = if adoption == "id" { value } else { "own-2" };
        let before = put(world, id_in_nova, if adoption == "id" { "Own 1" } else { value }, &[("a", "1")]);
        adopt(world, "adopted", json!({"adopt": {adoption: value}, "extraSpecs": {"a": "1", "b": "2"}})).await;
        let flavor = until(api(world).await, "adopted", is_ready::<Flavor>).await;
        assert_eq!((id(&flavor), flavor.status.unwrap().name), (id_in_nova.to_owned(), Some(before.name.clone())));
        let now = stored(world, id_in_nova).unwrap();
        assert_eq!((now.description.as_deref(), now.extra_specs.len()), (Some("theirs"), 2));

        change(world, "adopted", json!({"extraSpecs": {"b": null}, "description": "ours"})).await.unwrap();
        let wanted = sim::Flavor { description: Some("ours".to_owned()), ..before };
        eventually("the change", async || stored(world, id_in_nova).as_ref() == Some(&wanted)).await;
        delete(world, "adopted").await;
        assert_eq!(stored(world, id_in_nova), Some(wanted), "what was adopted is retained");
        world.sim.cloud().nova.remove_flavor(world.sim.clock().now(), id_in_nova);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn adopt_waits_for_a_flavor_that_is_as_declared() {
    let world = world::shared().await;
    adopt(world, "picky", json!({"adopt": {"name": "Wanted"}})).await;
    let message = says(world, "picky", "NothingToAdopt").await;
    assert_eq!(message, "spec.adopt: none of the cloud's flavors fits");
    let mut flavor = put(world, "wanted", "Wanted", &[("hw:cpu_policy", "dedicated")]);
    flavor.vcpus = 4;
    world.sim.cloud().nova.put_flavor(world.sim.clock().now(), flavor.clone());
    nudge(world, "picky").await;
    let message = says(world, "picky", "NotAdopted").await;
    assert_eq!(message, "flavor Wanted (id wanted) is left alone: vcpus is 4 in Nova and not 2");
    flavor.vcpus = 2;
    world.sim.cloud().nova.put_flavor(world.sim.clock().now(), flavor.clone());
    nudge(world, "picky").await;
    let undeclared = |flavor: &Flavor| shown(flavor).1.contains("the extra spec hw:cpu_policy");
    until(api(world).await, "picky", undeclared).await;
    assert_eq!(stored(world, "wanted"), Some(flavor.clone()), "nothing of it is lost");
    let refusal = change(world, "picky", json!({"adopt": null})).await.unwrap_err().to_string();
    assert!(refusal.contains("an adopted flavor can't become a made one"), "{refusal}");

    change(world, "picky", json!({"extraSpecs": {"hw:cpu_policy": "dedicated"}})).await.unwrap();
    until(api(world).await, "picky", is_ready::<Flavor>).await;
    world.sim.cloud().nova.remove_flavor(world.sim.clock().now(), "wanted");
    nudge(world, "picky").await;
    says(world, "picky", "NothingToAdopt").await;
    delete(world, "picky").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_adopted_flavor_goes_when_that_is_asked_for() {
    let world = world::shared().await;
    put(world, "to-go", "To go", &[]);
    adopt(world, "to-go", json!({"adopt": {"id": "to-go"}, "deletionPolicy": "Delete"})).await;
    until(api(world).await, "to-go", is_ready::<Flavor>).await;
    delete(world, "to-go").await;
    assert_eq!(stored(world, "to-go"), None);
}

/// Servers tell their flavor's name in Nova only, which is not the object's.
#[tokio::test(flavor = "multi_thread")]
async fn vms_of_an_adopted_flavor_are_of_it() {
    let world = world::shared().await;
    let tenant = world.tenant().await;
    surroundings(&tenant).await;
    let (name, in_nova) = (format!("{}-adopted", tenant.name), format!("{} Adopted", tenant.name));
    put(world, &name, &in_nova, &[]);
    adopt(world, &name, json!({"adopt": {"name": in_nova}})).await;
    create(&tenant, "web", json!({"flavor": name})).await;
    let vm = tenant.ready::<VirtualMachine>("web").await;
    assert_eq!((id(&vm), only(&tenant).await.flavor.name), (only(&tenant).await.id, in_nova.clone()));
    // another, and back
    edit(&tenant, "web", json!({"flavor": format!("{}-small", tenant.name)})).await;
    eventually("the other flavor", async || only(&tenant).await.flavor.name != in_nova).await;
    tenant.ready::<VirtualMachine>("web").await;
    edit(&tenant, "web", json!({"flavor": name})).await;
    eventually("the flavor", async || only(&tenant).await.flavor.name == in_nova).await;
    let vm = tenant.ready::<VirtualMachine>("web").await;
    assert_eq!(shown(&vm).0, "Running");
    assert_eq!(world.count("POST", &format!("{}/action", id(&vm))), 4, "two resizes, and that each is kept");
}
