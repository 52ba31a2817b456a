//! Key pairs in Nova, of the namespace's user.

use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, PostParams},
};
use kupenstack_api::resources::KeyPair;
use kupenstack_testkit::sim::{self, Effect, Rule};
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    common::look::{self, eventually, gone, id, object},
    world::{self, Tenant, World},
};

const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIM5VUfJYhPwFhni7yWYee4vCC3W5DEUA804o6s0VRzzo";
const ANOTHER: &str = "sk-ssh-ed25519@openssh.com AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4fAAAABHNzaDo=";

/// What Nova has of the namespace's user by this name.
fn stored(tenant: &Tenant<'_>, name: &str) -> Option<sim::KeyPair> {
    let user = tenant.user().unwrap().id;
    tenant.world.sim.cloud().nova.key_pair(&user, name).cloned()
}

fn put(tenant: &Tenant<'_>, name: &str, key: &str) {
    let (now, user) = (tenant.world.sim.clock().now(), tenant.user().unwrap().id);
    tenant.world.sim.cloud().nova.put_key_pair(now, sim::KeyPair::new(&user, name, key));
}

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_187_create_makes_a_key_pair_of_the_namespaces_user() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<KeyPair>("ann", json!({"publicKey": format!("{KEY} ann@laptop\n")})).await;
    let key_pair = tenant.ready::<KeyPair>("ann").await;
    assert_eq!(id(&key_pair), "ann");
    let status = key_pair.status.unwrap();
    assert_eq!(status.type_.as_deref(), Some("ssh-ed25519"));
    assert_eq!(status.fingerprint.as_deref(), Some("SHA256:lXOWz+zTz8N1uzeof+/K1o7gOtSnXiAGJ3ZlcdjRPGw"));
    assert_eq!(stored(&tenant, "ann").unwrap().public_key, format!("{KEY} ann@laptop"));
    look::delete(tenant.api::<KeyPair>(), "ann").await;
    assert_eq!(stored(&tenant, "ann"), None);
}

/// Two namespaces have two users, and so the same name twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_a_namespaces_own() {
    let world = world::shared().await;
    let (one, other) = (world.tenant().await, world.tenant().await);
    for (tenant, key) in [(&one, KEY), (&other, ANOTHER)] {
        tenant.create::<KeyPair>("shared-name", json!({"publicKey": key})).await;
        tenant.ready::<KeyPair>("shared-name").await;
    }
    look::delete(one.api::<KeyPair>(), "shared-name").await;
    assert_eq!(stored(&one, "shared-name"), None);
    assert_eq!(stored(&other, "shared-name").unwrap().public_key, ANOTHER);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_key_of_the_name_is_left_alone_and_told() {
    let tenant = world::shared().await.tenant().await;
    put(&tenant, "clash", ANOTHER);
    tenant.create::<KeyPair>("clash", json!({"publicKey": KEY})).await;
    let message = tenant.says::<KeyPair>("clash", "NameClash").await;
    assert!(message.contains("has a key pair named clash in Nova with another key"), "{message}");
    look::delete(tenant.api::<KeyPair>(), "clash").await;
    assert_eq!(stored(&tenant, "clash").unwrap().public_key, ANOTHER);
    tenant.create::<KeyPair>("clash", json!({"publicKey": KEY})).await;
    tenant.says::<KeyPair>("clash", "NameClash").await;
    let (now, user) = (tenant.world.sim.clock().now(), tenant.user().unwrap().id);
    tenant.world.sim.cloud().nova.remove_key_pair(now, &user, "clash");
    tenant.nudge::<KeyPair>("clash").await;
    tenant.ready::<KeyPair>("clash").await;
}

/// Whoever put it there: there is nothing of it to be told apart by.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_of_the_name_is_taken_over() {
    let tenant = world::shared().await.tenant().await;
    put(&tenant, "known", &format!("{KEY} somebody@elsewhere"));
    tenant
        .create::<KeyPair>("known", json!({"publicKey": format!("{KEY} ann@laptop"), "deletionPolicy": "Retain"}))
        .await;
    tenant.ready::<KeyPair>("known").await;
    look::delete(tenant.api::<KeyPair>(), "known").await;
    assert_eq!(stored(&tenant, "known").unwrap().public_key, format!("{KEY} somebody@elsewhere"));
}

#[tokio::test(flavor = "multi_thread")]
async fn garm_79_a_creation_whose_answer_is_lost_is_not_made_again() {
    let tenant = world::shared().await.tenant().await;
    let lost = Effect::Drop { commit: true };
    tenant.world.fail_next(Rule::on("compute", "POST", "/v2.1/os-keypairs", lost));
    tenant.create::<KeyPair>("lost-answer", json!({"publicKey": KEY})).await;
    tenant.ready::<KeyPair>("lost-answer").await;
    assert!(stored(&tenant, "lost-answer").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_667_a_quota_is_waited_for() {
    let tenant = world::shared().await.tenant().await;
    let project = tenant.project().await;
    tenant.world.sim.cloud().quotas.set(&project, "key_pairs", 0);
    tenant.create::<KeyPair>("over-quota", json!({"publicKey": KEY})).await;
    let message = tenant.says::<KeyPair>("over-quota", "QuotaExceeded").await;
    assert!(message.contains("too many key pairs"), "{message}");
    tenant.world.sim.cloud().quotas.set(&project, "key_pairs", 1);
    tenant.nudge::<KeyPair>("over-quota").await;
    tenant.ready::<KeyPair>("over-quota").await;
}

#[rstest]
#[case::no_key(json!({"publicKey": "no key"}), "spec.publicKey")]
#[case::dsa(json!({"publicKey": "ssh-dss AAAA"}), "spec.publicKey")]
#[case::two_lines(json!({"publicKey": format!("{KEY}\n{KEY}")}), "spec.publicKey")]
#[case::nothing(json!({}), "either publicKey has to be given")]
#[case::both(json!({"publicKey": KEY, "privateKeySecret": "x"}), "either publicKey has to be given")]
#[tokio::test(flavor = "multi_thread")]
async fn what_can_never_be_is_refused_by_the_definition(#[case] spec: Value, #[case] words: &str) {
    let tenant = world::shared().await.namespace(&[]).await;
    let wrong =
        json!({"apiVersion": "kupenstack.io/v1", "kind": "KeyPair", "metadata": {"name": "wrong"}, "spec": spec});
    let resource = ApiResource::erase::<KeyPair>(&());
    let api = Api::<DynamicObject>::namespaced_with(tenant.client.clone(), &tenant.name, &resource);
    let error = api.create(&PostParams::default(), &serde_json::from_value(wrong).unwrap()).await.unwrap_err();
    assert!(error.to_string().contains(words), "{error}");
}

/// What the definition can't tell: the controller can, and says so without the key.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_none_is_told_by_its_field() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<KeyPair>("broken", json!({"publicKey": "ssh-ed25519 AAAA ann@laptop"})).await;
    let message = tenant.says::<KeyPair>("broken", "InvalidSpec").await;
    assert!(message.starts_with("spec.publicKey: not a public key"), "{message}");
    look::delete(tenant.api::<KeyPair>(), "broken").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_can_not_be_changed() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<KeyPair>("fixed", json!({"publicKey": KEY})).await;
    let api = tenant.api::<KeyPair>();
    let mut key_pair: KeyPair = object("fixed", &json!({"publicKey": ANOTHER}));
    key_pair.metadata.resource_version = tenant.ready::<KeyPair>("fixed").await.metadata.resource_version;
    let error = api.replace("fixed", &PostParams::default(), &key_pair).await.unwrap_err();
    assert!(error.to_string().contains("publicKey can't be changed"), "{error}");
}

/// The Secret of a key that was made.
async fn made(tenant: &Tenant<'_>, name: &str) -> Secret {
    Api::<Secret>::namespaced(tenant.client.clone(), &tenant.name).get(name).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_made_into_a_secret_that_belongs_to_the_object() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<KeyPair>("made", json!({"privateKeySecret": "made-key"})).await;
    let key_pair = tenant.ready::<KeyPair>("made").await;
    let secret = made(&tenant, "made-key").await;
    let [owner] = secret.owner_references() else { panic!("{secret:?}") };
    assert_eq!((Some(&owner.uid), secret.immutable), (key_pair.uid().as_ref(), Some(true)));
    let data = secret.data.unwrap();
    let text = |key: &str| String::from_utf8(data[key].0.clone()).unwrap();
    assert!(text("ssh-privatekey").starts_with("-----BEGIN OPENSSH PRIVATE KEY-----"));
    assert!(text("ssh-publickey").starts_with("ssh-ed25519 "));
    assert_eq!(stored(&tenant, "made").unwrap().public_key, text("ssh-publickey"));
    let shown = serde_json::to_string(&key_pair).unwrap();
    assert!(!shown.contains("PRIVATE KEY") && key_pair.status.unwrap().public_key == Some(text("ssh-publickey")));
    // the key stays when Nova loses it
    let (now, user) = (tenant.world.sim.clock().now(), tenant.user().unwrap().id);
    tenant.world.sim.cloud().nova.remove_key_pair(now, &user, "made");
    look::delete(tenant.api::<KeyPair>(), "made").await;
    assert_eq!(stored(&tenant, "made"), None);
}

/// Whatever is lost on the way, there is one key, in Nova and in the Secret.
#[rstest]
#[case::refused(Effect::refusal(503))]
#[case::lost(Effect::Drop { commit: true })]
#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_made_once(#[case] effect: Effect) {
    let tenant = world::shared().await.tenant().await;
    tenant.world.fail_next(Rule::on("compute", "POST", "/v2.1/os-keypairs", effect));
    tenant.create::<KeyPair>("once", json!({"privateKeySecret": "once-key"})).await;
    tenant.ready::<KeyPair>("once").await;
    let public = made(&tenant, "once-key").await.data.unwrap()["ssh-publickey"].0.clone();
    assert_eq!(stored(&tenant, "once").unwrap().public_key.as_bytes(), public);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_of_others_is_left_alone() {
    let tenant = world::shared().await.tenant().await;
    let theirs: Secret =
        serde_json::from_value(json!({"metadata": {"name": "theirs"}, "stringData": {"a": "b"}})).unwrap();
    let secrets = Api::<Secret>::namespaced(tenant.client.clone(), &tenant.name);
    secrets.create(&PostParams::default(), &theirs).await.unwrap();
    tenant.create::<KeyPair>("clashing", json!({"privateKeySecret": "theirs"})).await;
    let message = tenant.says::<KeyPair>("clashing", "NameClash").await;
    assert!(message.starts_with("spec.privateKeySecret: Secret theirs is there"), "{message}");
    assert_eq!(stored(&tenant, "clashing"), None);
    look::delete(tenant.api::<KeyPair>(), "clashing").await;
    assert_eq!(made(&tenant, "theirs").await.data.unwrap().len(), 1);
}

/// Nova lists no key pairs of all users, and so each object looks for itself; but not at every pass.
#[tokio::test(flavor = "multi_thread")]
async fn a_settled_key_pair_costs_no_request_until_its_time_has_come() {
    let world = World::start().await;
    world.declare_cloud().await;
    let operator = world.operator();
    let tenant = world.tenant().await;
    tenant.create::<KeyPair>("settled", json!({"publicKey": KEY})).await;
    tenant.ready::<KeyPair>("settled").await;
    let asked = world.asked("/os-keypairs");
    for _ in 0..3 {
        let passes = operator.passes("keypair");
        tenant.nudge::<KeyPair>("settled").await;
        eventually("a pass", async || operator.passes("keypair") > passes).await;
    }
    assert_eq!(world.asked("/os-keypairs"), asked);
    operator.stop().await;
    // another one has seen nothing itself
    let (now, user) = (world.sim.clock().now(), tenant.user().unwrap().id);
    world.sim.cloud().nova.remove_key_pair(now, &user, "settled");
    let operator = world.operator();
    eventually("a new one", async || stored(&tenant, "settled").is_some()).await;
    eventually("the event", async || tenant.events("settled").await.contains(&"Vanished".to_owned())).await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_goes_with_its_key_pairs() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<KeyPair>("leaving", json!({"publicKey": KEY})).await;
    tenant.ready::<KeyPair>("leaving").await;
    let user = tenant.user().unwrap().id;
    tenant.end().await;
    assert!(tenant.world.sim.cloud().nova.key_pairs().all(|key_pair| key_pair.user_id != user));
}

/// For a while Nova takes no token of the user. It is the administrator who deletes then, and sees nobody's but its own unless it
/// says whose.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_whose_token_is_refused_leaves_no_key_pair() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<KeyPair>("refused", json!({"publicKey": KEY})).await;
    tenant.ready::<KeyPair>("refused").await;
    let refuse = Rule::on("compute", "DELETE", "/v2.1/os-keypairs/refused", Effect::refusal(401)).times(6);
    tenant.world.sim.cloud().faults.add(refuse.in_project(&tenant.project().await));
    look::delete(tenant.api::<KeyPair>(), "refused").await;
    assert_eq!(stored(&tenant, "refused"), None);
    let (user, cloud) = (tenant.user().unwrap().id, tenant.world.sim.cloud());
    let deletions: Vec<_> =
        cloud.journal.entries().filter(|entry| entry.path.ends_with("/os-keypairs/refused")).collect();
    assert!(deletions.iter().any(|entry| entry.status == Some(401)), "{deletions:?}");
    let by = deletions.iter().find(|entry| entry.method == "DELETE" && entry.committed).unwrap();
    assert!(by.user_id.as_ref() != Some(&user) && by.query.contains(&user), "{by:?}");
}

/// The administrator, who deletes what is left of a user that is gone, has key pairs of its own.
#[tokio::test(flavor = "multi_thread")]
async fn the_administrators_key_pair_of_the_name_is_never_touched() {
    let tenant = world::shared().await.tenant().await;
    tenant.create::<KeyPair>("admins", json!({"publicKey": KEY})).await;
    tenant.ready::<KeyPair>("admins").await;
    let (now, user) = (tenant.world.sim.clock().now(), tenant.user().unwrap().id);
    let admin = tenant.world.sim.cloud().keystone.find("users", "admin").unwrap().id.clone();
    tenant.world.sim.cloud().nova.put_key_pair(now, sim::KeyPair::new(&admin, "admins", KEY));
    tenant.world.sim.cloud().nova.remove_key_pair(now, &user, "admins");
    tenant.api::<KeyPair>().delete("admins", &DeleteParams::default()).await.unwrap();
    gone(tenant.api::<KeyPair>(), "admins").await;
    assert!(tenant.world.sim.cloud().nova.key_pair(&admin, "admins").is_some());
}
