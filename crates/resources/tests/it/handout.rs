//! Application credentials that namespaces ask for.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ObjectMeta, PostParams},
};
use kupenstack_api::resources::{
    APPLICATION_CREDENTIAL as REQUEST, APPLICATION_CREDENTIAL_SECRET as WHERE, CREDENTIAL_SECRET,
};
use kupenstack_testkit::sim::{Effect, Entity, Rule};
use serde_json::{Value, json};

use crate::{
    crash::run_until,
    world::{self, Tenant, World, eventually, until},
};

const POST: &str = "/v3/users/*/application_credentials";

fn secrets(tenant: &Tenant<'_>) -> Api<Secret> {
    Api::namespaced(tenant.client.clone(), &tenant.name)
}

fn text(secret: &Secret, key: &str) -> String {
    let value = secret.data.as_ref().and_then(|data| data.get(key)).map(|value| value.0.clone());
    String::from_utf8(value.unwrap_or_default()).unwrap()
}

fn credential_id(secret: &Secret) -> String {
    text(secret, "OS_APPLICATION_CREDENTIAL_ID")
}

/// The Secret with a credential other than this one, and nothing that is being made.
async fn handed_out(tenant: &Tenant<'_>, but: &str) -> Secret {
    let fits = |secret: &Secret| {
        let id = credential_id(secret);
        !id.is_empty() && id != but && !secret.data.as_ref().unwrap().contains_key("next")
    };
    until(secrets(tenant), CREDENTIAL_SECRET, fits).await
}

/// The credentials of the namespace's user in Keystone.
fn in_keystone(tenant: &Tenant<'_>) -> Vec<Entity> {
    let Some(user) = tenant.user() else { return Vec::new() };
    let cloud = tenant.world.sim.cloud();
    let all = cloud.keystone.all("application_credentials");
    all.filter(|credential| credential.text("user_id") == user.id).cloned().collect()
}

/// Makes a credential look as old as this.
fn age(tenant: &Tenant<'_>, id: &str, hours: i64) {
    let expires_at = Timestamp::now() + SignedDuration::from_hours(37 * 24 - hours);
    let Value::Object(attributes) = json!({"expires_at": expires_at.to_string()}) else { unreachable!() };
    let now = tenant.world.sim.clock().now();
    assert!(tenant.world.sim.cloud().keystone.edit(now, "application_credentials", id, attributes));
}

async fn nudge(tenant: &Tenant<'_>) {
    tenant.annotate(json!({"test/look": crate::common::cluster::number().to_string()})).await;
}

/// Waits until Keystone has so many credentials of the user.
async fn until_there_are(tenant: &Tenant<'_>, number: usize) {
    eventually(&format!("{number} credentials"), async || in_keystone(tenant).len() == number).await;
}

async fn asking(world: &World) -> Tenant<'_> {
    let tenant = world.namespace(&[(REQUEST, "requested")]).await;
    tenant.project().await;
    tenant
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_gets_a_credential_of_its_own_user() {
    let tenant = asking(world::shared().await).await;
    let secret = handed_out(&tenant, "").await;
    let [credential] = in_keystone(&tenant).try_into().unwrap();
    assert_eq!(credential.id, credential_id(&secret));
    assert_eq!(credential.secret.as_deref(), Some(text(&secret, "OS_APPLICATION_CREDENTIAL_SECRET").as_str()));
    assert_eq!(credential.text("project_id"), tenant.project().await);
    assert_eq!(credential.body["unrestricted"], json!(false));
    let roles = credential.body["roles"].as_array().unwrap();
    let mut roles: Vec<_> = roles.iter().map(|role| role["name"].as_str().unwrap()).collect();
    roles.sort_unstable();
    assert_eq!(roles, ["member", "reader"]);
    let uid = tenant.namespaces().get(&tenant.name).await.unwrap().uid().unwrap();
    assert!(credential.text("name").contains(&uid), "{}", credential.text("name"));

    let yaml = text(&secret, "clouds.yaml");
    for words in ["openstack:", "v3applicationcredential", &credential.id, "RegionOne"] {
        assert!(yaml.contains(words), "{words}");
    }
    assert!(!yaml.contains("username") && !yaml.contains("password"), "only the credential");
    let namespace = tenant.until_namespace(|namespace| namespace.annotations().contains_key(WHERE)).await;
    assert_eq!(namespace.annotations()[WHERE], CREDENTIAL_SECRET);
    tenant.end().await;
    assert!(tenant.world.sim.cloud().keystone.get("application_credentials", &credential.id).is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_withdrawn_when_nobody_asks_any_more() {
    let tenant = asking(world::shared().await).await;
    handed_out(&tenant, "").await;
    tenant.annotate(json!({REQUEST: null})).await;
    tenant.until_namespace(|namespace| !namespace.annotations().contains_key(WHERE)).await;
    assert!(in_keystone(&tenant).is_empty());
    assert!(secrets(&tenant).get_opt(CREDENTIAL_SECRET).await.unwrap().is_none());
    tenant.annotate(json!({REQUEST: "requested"})).await;
    handed_out(&tenant, "").await;
}

/// As somebody does who writes the whole namespace anew.
#[tokio::test(flavor = "multi_thread")]
async fn it_is_withdrawn_when_every_annotation_is_removed_at_once() {
    let tenant = asking(world::shared().await).await;
    handed_out(&tenant, "").await;
    tenant.annotate(json!({REQUEST: null, WHERE: null})).await;
    until_there_are(&tenant, 0).await;
    eventually("no Secret", async || secrets(&tenant).get_opt(CREDENTIAL_SECRET).await.unwrap().is_none()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_before_neither_replaces_a_credential_nor_leaves_one_behind() {
    let world = world::shared().await;
    let tenant = asking(world).await;
    let first = credential_id(&handed_out(&tenant, "").await);
    let of_before = || Rule::on("identity", "GET", POST, Effect::Stale { seconds: 3600.0 });
    let project = tenant.project().await;
    world.fail_next(of_before().in_project(&project));
    let asked = world.asked(&first);
    nudge(&tenant).await;
    eventually("a look at the one in use", async || world.asked(&first) > asked).await;
    tenant.annotate(json!({"test/label": "1"})).await;
    assert_eq!(credential_id(&handed_out(&tenant, "").await), first);
    assert_eq!(in_keystone(&tenant).len(), 1);

    world.fail_next(of_before().in_project(&project));
    tenant.annotate(json!({REQUEST: null})).await;
    tenant.until_namespace(|namespace| !namespace.annotations().contains_key(WHERE)).await;
    assert!(in_keystone(&tenant).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_secret_is_a_request_for_another_one() {
    let tenant = asking(world::shared().await).await;
    let first = credential_id(&handed_out(&tenant, "").await);
    secrets(&tenant).delete(CREDENTIAL_SECRET, &DeleteParams::default()).await.unwrap();
    // nobody but the watch tells
    let second = credential_id(&handed_out(&tenant, &first).await);
    let mut ids: Vec<_> = in_keystone(&tenant).into_iter().map(|credential| credential.id).collect();
    ids.sort_unstable();
    let mut both = vec![first.clone(), second.clone()];
    both.sort_unstable();
    assert_eq!(ids, both, "the former one works for a while");
    age(&tenant, &second, 25);
    nudge(&tenant).await;
    until_there_are(&tenant, 1).await;
    assert_eq!(in_keystone(&tenant)[0].id, second);
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_replaced_before_it_ends() {
    let tenant = asking(world::shared().await).await;
    let first = credential_id(&handed_out(&tenant, "").await);
    age(&tenant, &first, 31 * 24);
    nudge(&tenant).await;
    let second = handed_out(&tenant, &first).await;
    assert_eq!(in_keystone(&tenant).len(), 2);
    assert!(text(&second, "clouds.yaml").contains(&credential_id(&second)));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_vanished_in_keystone_is_replaced() {
    let tenant = asking(world::shared().await).await;
    let first = credential_id(&handed_out(&tenant, "").await);
    let now = tenant.world.sim.clock().now();
    assert!(tenant.world.sim.cloud().keystone.remove(now, "application_credentials", &first));
    nudge(&tenant).await;
    handed_out(&tenant, &first).await;
    assert_eq!(in_keystone(&tenant).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn garm_79_a_lost_answer_leaves_one_credential() {
    let world = world::shared().await;
    let tenant = world.tenant().await;
    let project = tenant.project().await;
    world.fail_next(Rule::on("identity", "POST", POST, Effect::lost_answer()).in_project(&project));
    tenant.annotate(json!({REQUEST: "requested"})).await;
    let secret = handed_out(&tenant, "").await;
    let [credential] = in_keystone(&tenant).try_into().unwrap();
    assert_eq!(credential.secret.as_deref(), Some(text(&secret, "OS_APPLICATION_CREDENTIAL_SECRET").as_str()));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_secret_of_that_name_is_left_alone() {
    let tenant = world::shared().await.tenant().await;
    let theirs = Secret {
        metadata: ObjectMeta { name: Some(CREDENTIAL_SECRET.to_owned()), ..ObjectMeta::default() },
        data: Some([("key".to_owned(), ByteString(b"theirs".to_vec()))].into()),
        ..Secret::default()
    };
    secrets(&tenant).create(&PostParams::default(), &theirs).await.unwrap();
    tenant.annotate(json!({REQUEST: "requested"})).await;
    tenant.told("NameClash").await;
    assert_eq!(text(&secrets(&tenant).get(CREDENTIAL_SECRET).await.unwrap(), "key"), "theirs");
    assert!(in_keystone(&tenant).is_empty());
    secrets(&tenant).delete(CREDENTIAL_SECRET, &DeleteParams::default()).await.unwrap();
    handed_out(&tenant, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_every_request_it_hands_out_one() {
    let world = World::start().await;
    world.declare_cloud().await;
    for requests in 1.. {
        let tenant = world.namespace(&[(REQUEST, "requested")]).await;
        let round = json!({"round": requests.to_string()});
        tenant.label(&round).await;
        world.admit(&json!({"matchLabels": round})).await;
        let done = async { drop(handed_out(&tenant, "").await) };
        let killed = Box::pin(run_until(&world, requests, done)).await;
        let operator = world.operator();
        let secret = handed_out(&tenant, "").await;
        let [credential] = in_keystone(&tenant).try_into().unwrap();
        assert_eq!(credential.id, credential_id(&secret), "{requests}");
        assert_eq!(credential.secret.as_deref(), Some(text(&secret, "OS_APPLICATION_CREDENTIAL_SECRET").as_str()));
        operator.stop().await;
        if !killed {
            assert!(requests > 10, "{requests} requests only");
            return;
        }
    }
}
