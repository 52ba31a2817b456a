//! `ResourceQuota`s and the limits that they become.

use k8s_openapi::api::{core::v1::ResourceQuota, events::v1::Event};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use kupenstack_api::resources::Image;
use kupenstack_core::conditions::{self, STALLED};
use kupenstack_testkit::sim::{Effect, Entry, Rule};
use serde_json::{Map, Value, json};

use crate::{
    common::look::eventually,
    world::{self, Tenant, World, disk, is_ready, shown},
};

const COUNT: &str = "image_count_total";
const SIZE: &str = "image_size_total";

/// Registers the limits that Glance asks for, all of them without limit.
fn register(world: &World) {
    let now = world.sim.clock().now();
    let mut cloud = world.sim.cloud();
    if cloud.keystone.all("registered_limits").next().is_none() {
        for resource in [COUNT, SIZE] {
            cloud.keystone.register_limit(now, "image", resource, -1);
        }
    }
}

/// A namespace with its project, in a cloud with limits.
async fn tenant() -> Tenant<'static> {
    let world = world::shared().await;
    register(world);
    world.tenant().await
}

async fn declare(tenant: &Tenant<'_>, name: &str, hard: &Value) {
    let quotas: Api<ResourceQuota> = Api::namespaced(tenant.client.clone(), &tenant.name);
    let quota =
        json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": {"hard": hard}});
    quotas.patch(name, &PatchParams::apply("test").force(), &Patch::Apply(&quota)).await.unwrap();
}

async fn withdraw(tenant: &Tenant<'_>, name: &str) {
    let quotas: Api<ResourceQuota> = Api::namespaced(tenant.client.clone(), &tenant.name);
    quotas.delete(name, &DeleteParams::default()).await.unwrap();
}

/// The limits of a project: id, resource, amount, description.
fn limits(world: &World, project: &str) -> Vec<(String, String, i64, String)> {
    let cloud = world.sim.cloud();
    let of_project = cloud.keystone.all("limits").filter(|limit| limit.text("project_id") == project);
    let shown = |limit: &kupenstack_testkit::sim::Entity| {
        let text = |key: &str| limit.text(key).to_owned();
        (limit.id.clone(), text("resource_name"), limit.body["resource_limit"].as_i64().unwrap(), text("description"))
    };
    of_project.map(shown).collect()
}

/// Waits until a project has exactly these limits.
async fn until_limited(tenant: &Tenant<'_>, expected: &[(&str, i64)]) {
    let project = tenant.project().await;
    eventually(&format!("limits {expected:?}"), async || {
        let mut limits: Vec<_> = limits(tenant.world, &project).into_iter().map(|limit| (limit.1, limit.2)).collect();
        limits.sort();
        limits.iter().map(|(resource, limit)| (resource.as_str(), *limit)).eq(expected.iter().copied())
    })
    .await;
}

/// The events about a quota: type, reason, note.
async fn told(tenant: &Tenant<'_>, quota: &str) -> Vec<(String, String, String)> {
    let events: Api<Event> = Api::namespaced(tenant.client.clone(), &tenant.name);
    let about = ListParams::default().fields(&format!("regarding.name={quota}"));
    let text = |text: Option<String>| text.unwrap_or_default();
    let shown = |event: Event| (text(event.type_), text(event.reason), text(event.note));
    events.list(&about).await.unwrap().into_iter().map(shown).collect()
}

async fn until_told(tenant: &Tenant<'_>, quota: &str, reason: &str, words: &str) {
    eventually(&format!("event {reason} about {quota}: {words}"), async || {
        let told = told(tenant, quota).await;
        told.iter().any(|(type_, r, note)| type_ == "Warning" && r == reason && note.contains(words))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tf_973_1430_an_image_over_a_quota_of_0_waits_and_goes_on_when_it_is_raised() {
    let tenant = tenant().await;
    declare(&tenant, "images", &json!({"kupenstack.io/images": "0"})).await;
    until_limited(&tenant, &[(COUNT, 0)]).await;
    let src = tenant.world.serve(&disk(4096)).await;
    tenant.create::<Image>("over-limit", json!({"src": src, "format": "raw"})).await;
    let image = tenant.until("over-limit", |image| shown(image).0 == "QuotaExceeded").await;
    assert!(shown(&image).1.contains("Resource image_count_total is over limit of 0"), "{}", shown(&image).1);
    assert!(conditions::find(&image.status.unwrap().conditions, STALLED).is_none());

    declare(&tenant, "images", &json!({"kupenstack.io/images": "1"})).await;
    tenant.until("over-limit", is_ready).await;
    until_limited(&tenant, &[(COUNT, 1)]).await;
    let is_good = |(type_, reason, _): &(String, String, String)| type_ == "Normal" && reason == "QuotaApplied";
    eventually("the event", async || told(&tenant, "images").await.iter().any(is_good)).await;
    assert!(told(&tenant, "images").await.iter().all(is_good));

    // Keystone does not change a limit to 0
    declare(&tenant, "images", &json!({"kupenstack.io/images": "0"})).await;
    until_limited(&tenant, &[(COUNT, 0)]).await;
    withdraw(&tenant, "images").await;
    until_limited(&tenant, &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_smallest_of_several_quotas_counts_and_what_goes_is_lifted() {
    let tenant = tenant().await;
    declare(&tenant, "first", &json!({"kupenstack.io/images": "5", "kupenstack.io/image-storage": "10Gi"})).await;
    declare(&tenant, "second", &json!({"kupenstack.io/images": "3", "pods": "7"})).await;
    until_limited(&tenant, &[(COUNT, 3), (SIZE, 10240)]).await;
    withdraw(&tenant, "second").await;
    until_limited(&tenant, &[(COUNT, 5), (SIZE, 10240)]).await;
    declare(&tenant, "first", &json!({"kupenstack.io/image-storage": "10Gi"})).await;
    until_limited(&tenant, &[(SIZE, 10240)]).await;
    let project = tenant.project().await;
    tenant.end().await;
    assert_eq!(limits(tenant.world, &project), [], "they go with the project");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_do_to_a_limit_is_undone_and_what_is_theirs_is_left_alone() {
    let tenant = tenant().await;
    let (world, project) = (tenant.world, tenant.project().await);
    declare(&tenant, "images", &json!({"kupenstack.io/images": "5"})).await;
    until_limited(&tenant, &[(COUNT, 5)]).await;
    let [(id, ..)] = &limits(world, &project)[..] else { panic!("one limit") };
    let now = world.sim.clock().now();
    let change = Map::from_iter([("resource_limit".to_owned(), json!(99))]);
    assert!(world.sim.cloud().keystone.edit(now, "limits", id, change));
    until_limited(&tenant, &[(COUNT, 5)]).await;
    assert!(world.sim.cloud().keystone.remove(now, "limits", id));
    until_limited(&tenant, &[(COUNT, 5)]).await;

    let [(id, ..)] = &limits(world, &project)[..] else { panic!("one limit") };
    let theirs =
        Map::from_iter([("resource_limit".to_owned(), json!(7)), ("description".to_owned(), json!("by hand"))]);
    assert!(world.sim.cloud().keystone.edit(now, "limits", id, theirs));
    until_told(&tenant, "images", "NameClash", "limit image_count_total is 7 and not ours").await;
    withdraw(&tenant, "images").await;
    declare(&tenant, "storage", &json!({"kupenstack.io/image-storage": "1Gi"})).await;
    until_limited(&tenant, &[(COUNT, 7), (SIZE, 1024)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_be_understood_is_told_once_and_lifts_nothing() {
    let tenant = tenant().await;
    declare(&tenant, "images", &json!({"kupenstack.io/images": "5"})).await;
    until_limited(&tenant, &[(COUNT, 5)]).await;
    declare(&tenant, "images", &json!({"kupenstack.io/images": "1e400", "kupenstack.io/imagse": "1"})).await;
    until_told(&tenant, "images", "QuotaInvalid", "spec.hard[kupenstack.io/images]: 10e399 is more than").await;
    until_told(&tenant, "images", "QuotaUnknown", "did you mean kupenstack.io/images?").await;
    until_limited(&tenant, &[(COUNT, 5)]).await;
    for value in ["10Gi", "3Ti"] {
        declare(&tenant, "images", &json!({"kupenstack.io/images": value})).await;
        until_told(&tenant, "images", "QuotaInvalid", &format!("{value} is more than OpenStack can keep")).await;
    }
    // what Kubernetes itself refuses
    let quotas: Api<ResourceQuota> = Api::namespaced(tenant.client.clone(), &tenant.name);
    for value in ["-1", "1.5", "five"] {
        let patch = json!({"spec": {"hard": {"kupenstack.io/images": value}}});
        assert!(quotas.patch("images", &PatchParams::default(), &Patch::Merge(&patch)).await.is_err(), "{value}");
    }
    let scoped = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "scoped"},
        "spec": {"hard": {"kupenstack.io/images": "1"}, "scopes": ["BestEffort"]},
    });
    quotas.patch("scoped", &PatchParams::apply("test"), &Patch::Apply(&scoped)).await.unwrap();
    until_told(&tenant, "scoped", "QuotaScoped", "without spec.scopes").await;
    until_limited(&tenant, &[(COUNT, 5)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_set_limits_is_told_and_the_limit_comes_when_that_is_cured() {
    let tenant = tenant().await;
    let project = tenant.project().await;
    let words = "You are not authorized to perform the requested action: identity:create_limits.";
    let refusal = Rule::on("identity", "POST", "/v3/limits", Effect::refusal_saying(403, words)).with_body(&project);
    tenant.world.sim.cloud().faults.add(refusal.times(2));
    declare(&tenant, "images", &json!({"kupenstack.io/images": "5"})).await;
    until_told(&tenant, "images", "Forbidden", words).await;
    until_limited(&tenant, &[(COUNT, 5)]).await;
    let told = told(&tenant, "images").await;
    assert_eq!(told.iter().filter(|(_, reason, _)| reason == "Forbidden").count(), 1, "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_annotation_that_names_another_project_limits_nothing_there() {
    let (tenant, victim) = (tenant().await, tenant().await);
    let (own, other) = (tenant.project().await, victim.project().await);
    tenant.annotate(json!({"kupenstack.io/project-id": other})).await;
    declare(&tenant, "images", &json!({"kupenstack.io/images": "0"})).await;
    // whoever sees to projects puts the annotation right
    tenant.until_namespace(|namespace| namespace.annotations()["kupenstack.io/project-id"] == own).await;
    until_limited(&tenant, &[(COUNT, 0)]).await;
    assert_eq!(limits(tenant.world, &other), []);
}

/// A service asks for the limits of its own region only.
#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_another_region_is_none_whosever_it_is() {
    let world = World::start().await;
    world.declare_cloud().await;
    register(&world);
    let operator = world.operator();
    let (ours, theirs) = (world.tenant().await, world.tenant().await);
    for (tenant, description) in [(&ours, None), (&theirs, Some("by hand"))] {
        declare(tenant, "images", &json!({"kupenstack.io/images": "5"})).await;
        until_limited(tenant, &[(COUNT, 5)]).await;
        let [(id, _, _, mark)] = &limits(&world, &tenant.project().await)[..] else { panic!("one limit") };
        let description = description.unwrap_or(mark);
        let moved = json!({"region_id": "Elsewhere", "description": description});
        let Value::Object(moved) = moved else { panic!() };
        assert!(world.sim.cloud().keystone.edit(world.sim.clock().now(), "limits", id, moved));
        until_limited(tenant, &[(COUNT, 5), (COUNT, 5)]).await;
        withdraw(tenant, "images").await;
        until_limited(tenant, &[(COUNT, 5)]).await;
        let [(left, ..)] = &limits(&world, &tenant.project().await)[..] else { panic!("one limit") };
        assert_eq!(left, id, "the one of the other region");
    }
    // and what is withdrawn is settled, though a limit with our mark is left elsewhere
    let looks = || world.count("GET", "/v3/registered_limits");
    let (passes, looked) = (operator.passes("quotas"), looks());
    for tenant in [&ours, &theirs] {
        tenant.annotate(json!({"test/look": "1"})).await;
    }
    eventually("passes", async || operator.passes("quotas") >= passes + 2).await;
    assert_eq!(looks(), looked);
    operator.stop().await;
}

/// A server behind the others shows no limit yet when the quota is removed that it was made for.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_before_leaves_no_limit_behind() {
    let world = World::start().await;
    world.declare_cloud().await;
    register(&world);
    let operator = world.operator();
    let tenant = world.tenant().await;
    declare(&tenant, "images", &json!({"kupenstack.io/images": "5"})).await;
    until_limited(&tenant, &[(COUNT, 5)]).await;
    world.sim.cloud().faults.add(Rule::on("identity", "GET", "/v3/limits", Effect::Stale { seconds: 3600.0 }).times(1));
    withdraw(&tenant, "images").await;
    until_limited(&tenant, &[]).await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_is_lifted_as_soon_as_keystone_takes_the_token_again() {
    let world = World::start().await;
    world.declare_cloud().await;
    register(&world);
    let operator = world.operator();
    let tenant = world.tenant().await;
    declare(&tenant, "images", &json!({"kupenstack.io/images": "5"})).await;
    until_limited(&tenant, &[(COUNT, 5)]).await;
    let refused = Rule::on("identity", "GET", "/v3/limits", Effect::refusal_saying(401, "not now"));
    world.sim.cloud().faults.add(refused.times(6));
    withdraw(&tenant, "images").await;
    until_limited(&tenant, &[]).await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn quotas_that_are_refused_share_one_list_of_all_limits() {
    let world = World::start().await;
    world.declare_cloud().await;
    let operator = world.operator();
    let tenants = [world.tenant().await, world.tenant().await, world.tenant().await, world.tenant().await];
    for tenant in &tenants {
        declare(tenant, "images", &json!({"kupenstack.io/images": "5"})).await;
        until_told(tenant, "images", "QuotaUnsupported", "no registered limit image_count_total").await;
    }
    let asked = |filter: fn(&Entry) -> bool| {
        let cloud = world.sim.cloud();
        cloud.journal.entries().filter(|entry| entry.template == "/v3/limits" && filter(entry)).count()
    };
    let lists = || asked(|entry| !entry.query.contains("project_id="));
    let looks = || asked(|entry| entry.query.contains("project_id="));
    let (listed, looked) = (lists(), looks());
    eventually("three rounds", async || looks() >= looked + 3 * tenants.len()).await;
    // a fourth round may have begun
    assert!(lists() <= listed + 4, "{} lists for {} looks", lists() - listed, looks() - looked);
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cloud_without_limits_is_told_and_a_crash_between_any_two_requests_is_survived() {
    let world = World::start().await;
    world.declare_cloud().await;
    let operator = world.operator();
    let tenant = world.tenant().await;
    declare(&tenant, "images", &json!({"kupenstack.io/images": "5", "kupenstack.io/image-storage": "1Gi"})).await;
    until_told(&tenant, "images", "QuotaUnsupported", "openstack registered limit create --service image").await;
    register(&world);
    until_limited(&tenant, &[(COUNT, 5), (SIZE, 1024)]).await;

    // the limit is made, and nobody hears of it; the operator dies
    withdraw(&tenant, "images").await;
    until_limited(&tenant, &[]).await;
    world.fail_next(Rule::on("identity", "POST", "/v3/limits", Effect::Hang { commit: true }));
    declare(&tenant, "images", &json!({"kupenstack.io/images": "4"})).await;
    until_limited(&tenant, &[(COUNT, 4)]).await;
    operator.kill().await;
    // between the end of the limit before and the limit of 0 that Keystone does not change it to
    let operator = world.operator();
    world.fail_next(Rule::on("identity", "POST", "/v3/limits", Effect::Hang { commit: false }));
    declare(&tenant, "images", &json!({"kupenstack.io/images": "0"})).await;
    until_limited(&tenant, &[]).await;
    operator.kill().await;
    let operator = world.operator();
    until_limited(&tenant, &[(COUNT, 0)]).await;
    operator.kill().await;
    // what is withdrawn while nobody looks
    withdraw(&tenant, "images").await;
    let operator = world.operator();
    until_limited(&tenant, &[]).await;

    // what is settled costs nothing, however often it is looked at
    declare(&tenant, "images", &json!({"kupenstack.io/images": "5"})).await;
    until_limited(&tenant, &[(COUNT, 5)]).await;
    // it is told after it was done, for the second time
    let of_five = async || told(&tenant, "images").await.iter().filter(|(.., note)| note.ends_with("is 5 now")).count();
    eventually("the event", async || of_five().await == 2).await;
    let passes = operator.passes("quotas");
    let looks = || (world.count("GET", "/v3/projects/"), world.count("GET", "/v3/registered_limits"));
    let (lists, looked, writes) = (world.count("GET", "/v3/limits"), looks(), world.sim.cloud().journal.writes());
    let events = told(&tenant, "images").await;
    eventually("two looks", async || world.count("GET", "/v3/limits") >= lists + 2).await;
    eventually("a pass", async || operator.passes("quotas") > passes).await;
    assert_eq!(looks(), looked, "one list tells that all is as declared");
    assert_eq!(world.sim.cloud().journal.writes(), writes, "no write without a change");
    assert_eq!(told(&tenant, "images").await, events);
    operator.stop().await;
}
