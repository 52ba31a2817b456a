//! The webhook as the chart sets it up: what it refuses, and that nothing depends on it.

use std::time::Instant;

use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use kupenstack_testkit::eventually;
use serde_json::{Value, json};

use crate::{
    operator::Operator,
    process::{acting_as, refusals},
    stage::{CLOUD, Stage, objects},
};

const CLUSTER: &str = "cluster.kupenstack.io";
const RESOURCES: &str = "kupenstack.io";
const CONFIGURATION: &str = "validatingwebhookconfigurations/kupenstack-webhook";

/// An operator that serves the webhook where the API server looks for it.
fn serving(stage: &Stage, controllers: &str) -> Operator {
    let address = stage.webhook.to_string();
    let name = stage.webhook.ip().to_string();
    let arguments = ["--webhook-listen", &address, "--webhook-name", &name, "--webhook-certificate", "keep"];
    let arguments = [["--controllers", controllers].as_slice(), &arguments].concat();
    Operator::run("cloud", &acting_as(stage, "cloud"), &arguments)
}

async fn leads(operator: &Operator) -> bool {
    let metrics = operator.get("/metrics").await.unwrap_or_default();
    metrics.lines().any(|line| line == r#"kupenstack_leader{lease="kupenstack-cloud"} 1"#)
}

async fn kind(stage: &Stage, kind: &str) -> Api<DynamicObject> {
    let client = stage.plane.client().await;
    match kind {
        "OpenStack" => objects(client, CLUSTER, kind, None),
        "ClusterImage" => objects(client, RESOURCES, kind, None),
        "Image" => objects(client, RESOURCES, kind, Some("default")),
        _ => objects(client, CLUSTER, kind, Some(CLOUD)),
    }
}

fn object(kind: &str, spec: &Value) -> DynamicObject {
    let (group, name) = match kind {
        "OpenStack" => (CLUSTER, "default".to_owned()),
        "Image" | "ClusterImage" => (RESOURCES, "image".to_owned()),
        _ => (CLUSTER, kind.to_lowercase()),
    };
    let mut whole =
        json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {"name": name}, "spec": spec});
    if group == CLUSTER && spec["release"].is_null() {
        whole["spec"]["release"] = json!("2026.2");
    }
    serde_json::from_value(whole).unwrap()
}

/// Why the API server refuses the object, if it does.
async fn refusal(stage: &Stage, name: &str, spec: &Value) -> Option<String> {
    let parameters = PostParams { dry_run: true, ..PostParams::default() };
    match kind(stage, name).await.create(&parameters, &object(name, spec)).await {
        Ok(_) => None,
        Err(kube::Error::Api(status)) => Some(status.message),
        Err(other) => panic!("{other}"),
    }
}

async fn refused_edit(stage: &Stage, name: &str, spec: &Value) -> Option<String> {
    let parameters = PatchParams { dry_run: true, ..PatchParams::default() };
    let object = object(name, spec);
    let patch = Patch::Merge(json!({"spec": spec}));
    match kind(stage, name).await.patch(&object.name_any(), &parameters, &patch).await {
        Ok(_) => None,
        Err(kube::Error::Api(status)) => Some(status.message),
        Err(other) => panic!("{other}"),
    }
}

async fn condition(api: &Api<DynamicObject>, name: &str, kind: &str) -> Option<(String, String)> {
    let object = api.get_opt(name).await.unwrap()?;
    let condition = object.data["status"]["conditions"].as_array()?.iter().find(|c| c["type"] == kind)?;
    Some((condition["reason"].as_str()?.to_owned(), condition["message"].as_str()?.to_owned()))
}

/// What can never work, and the first words about it.
fn never() -> Vec<(&'static str, Value, &'static str)> {
    let long = "x".repeat(200_000);
    vec![
        ("OpenStack", json!({"release": "2019.1"}), "spec.release: \"2019.1\" is not a release"),
        ("OpenStack", json!({"common": {"conf": {"a]": {}}}}), "spec.common.conf.a]: a section's name"),
        (
            "OpenStack",
            json!({"services": {"keystone": {"conf": {"a": {"b=": 1}}}}}),
            "spec.services.keystone.conf.a.b=: ",
        ),
        ("MariaDB", json!({"release": "2019.1"}), "spec.release: \"2019.1\" is not a release"),
        ("MariaDB", json!({"conf": {"a": {"b": {"c": 1}}}}), "spec.conf.a.b: a map must be"),
        (
            "Memcached",
            json!({"commonConf": {"DEFAULT": {"a": 1}}}),
            "OpenStack spec.common.conf.DEFAULT: Memcached takes",
        ),
        ("Keystone", json!({"conf": {"": {}}}), "spec.conf.: a section needs a name"),
        ("Keystone", json!({"conf": {"a": {"": 1}}}), "spec.conf.a.: an option needs a name"),
        ("Keystone", json!({"conf": {"a": {"b": "c\n\nd"}}}), "spec.conf.a.b: a value holds no empty lines"),
        ("Keystone", json!({"conf": {"a": {"b": "c\u{1}"}}}), "spec.conf.a.b: a value holds no control characters"),
        ("Keystone", json!({"conf": {"a": {"b": [["c"]]}}}), "spec.conf.a.b: an item of a list must be a text"),
        ("Keystone", json!({"conf": {"a": {"b": ["c,d"]}}}), "spec.conf.a.b: an item of a list holds a comma"),
        (
            "Keystone",
            json!({"files": {"policy": {"inline": "- a"}}}),
            "spec.files.policy.inline, line 1: this is not YAML",
        ),
        ("Keystone", json!({"files": {"policy": {"inline": "a: 1"}}}), "spec.files.policy.inline: rule \"a\""),
        ("Keystone", json!({"files": {"logging": {"inline": "a"}}}), "spec.files.logging.inline, line 1"),
        ("Keystone", json!({"fernet": {"activeKeys": 3}}), "spec.fernet.activeKeys: with 3 keys"),
        (
            "Keystone",
            json!({"conf": {"token": {"expiration": 9_999_999}}, "fernet": {"rotationInterval": "1h"}}),
            "spec.fernet.rotationInterval: tokens are of use",
        ),
        (
            "Glance",
            json!({"files": {"paste": {"inline": long}, "policy": {"inline": long}}}),
            "spec.conf: with confFrom, files",
        ),
        ("Glance", json!({"files": {"paste": {"inline": "[a\n"}}}), "spec.files.paste.inline, line 1"),
    ]
}

#[tokio::test]
async fn what_can_never_work_is_refused_at_create_and_at_update_by_a_standby_too() {
    let stage = &Stage::set().await;
    let leader = Operator::run("leader", &acting_as(stage, "cloud"), &["--controllers", "memcached"]);
    eventually("it leads", || async { leads(&leader).await }).await;
    let operator = serving(stage, "memcached");
    eventually("ready", || async { operator.get("/readyz").await.is_some() }).await;
    let first = &never()[0].1;
    eventually("asked", || async { refusal(stage, "OpenStack", first).await.is_some() }).await;

    for (name, spec, words) in never() {
        let message = refusal(stage, name, &spec).await.unwrap_or_else(|| panic!("not refused: {words}"));
        assert!(message.contains(&format!("denied the request: {words}")), "{words:?} is not in {message:?}");
    }
    for (name, spec, words) in [
        ("OpenStack", json!({"namespace": "elsewhere"}), "spec.namespace: this operator may only work in"),
        ("Image", json!({"src": "http://a.example:99999/i", "format": "raw"}), "spec.src: "),
        ("ClusterImage", json!({"src": "http://[::1/i", "format": "raw"}), "spec.src: "),
    ] {
        let message = refusal(stage, name, &spec).await.unwrap_or_else(|| panic!("not refused: {words}"));
        assert!(message.contains(&format!("denied the request: {words}")), "{words:?} is not in {message:?}");
    }
    for name in ["OpenStack", "MariaDB", "Memcached", "Keystone", "Glance"] {
        let sound = object(name, &json!({}));
        kind(stage, name).await.create(&PostParams::default(), &sound).await.expect("sound");
    }
    for (name, spec, words) in never() {
        let message = refused_edit(stage, name, &spec).await.unwrap_or_else(|| panic!("not refused: {words}"));
        assert!(message.contains(&format!("denied the request: {words}")), "{words:?} is not in {message:?}");
    }
    let later = json!({"confFrom": [{"secretRef": {"name": "missing"}}], "conf": {"DEFAULT": {"debug": true}}});
    assert_eq!(refused_edit(stage, "Keystone", &later).await, None, "what may become right");
    assert!(leads(&leader).await && !leads(&operator).await);
    let log = operator.stop().await;
    assert_eq!(refusals(&log), Vec::<&str>::new());
    leader.stop().await;
}

#[tokio::test]
async fn openstack_operator_1888_ci_framework_2249_requests_work_before_and_after_the_webhook_serves() {
    let stage = &Stage::set().await;
    let (keystones, glances) = (kind(stage, "Keystone").await, kind(stage, "Glance").await);
    let spec = json!({"conf": {"DEFAULT": {"debgu": true, "a=b": 1}}});

    // the chart is installed, no operator runs yet
    let since = Instant::now();
    keystones.create(&PostParams::default(), &object("Keystone", &spec)).await.expect("nobody answers");
    assert!(since.elapsed().as_secs() < 5, "the API server waited");

    // the instant the operator is ready
    let operator = serving(stage, "keystone");
    eventually("ready", || async { operator.get("/readyz").await.is_some() }).await;
    let sound = json!({"conf": {"DEFAULT": {"debug": true}}});
    glances.create(&PostParams::default(), &object("Glance", &sound)).await.expect("works the first time");
    eventually("asked", || async { refused_edit(stage, "Glance", &spec).await.is_some() }).await;
    eventually("the controller says", || async { condition(&keystones, "keystone", "Ready").await.is_some() }).await;
    let (reason, told) = condition(&keystones, "keystone", "Ready").await.unwrap();
    let refused = refused_edit(stage, "Glance", &spec).await.unwrap();
    assert!(
        reason == "InvalidSpec" && refused.ends_with(&format!("denied the request: {told}")),
        "{told:?} {refused:?}"
    );

    // what was taken before may be edited and deleted, but not made worse
    stage.kubectl(["annotate", "keystone", "keystone", "-n", CLOUD, "a=b"]);
    assert_eq!(refused_edit(stage, "Keystone", &json!({"replicas": {"api": 2}})).await, None);
    assert!(refused_edit(stage, "Keystone", &json!({"conf": {"a]": {}}})).await.is_some());
    let better = json!({"spec": {"conf": {"DEFAULT": {"a=b": null}}}}).to_string();
    let edit = ["patch", "keystone", "keystone", "-n", CLOUD, "--type=merge", "--patch", &better];
    let answer = stage.kubectl_says(edit);
    eventually("warned", || async { condition(&keystones, "keystone", "UnknownOptions").await.is_some() }).await;
    let (_, warning) = condition(&keystones, "keystone", "UnknownOptions").await.unwrap();
    assert!(answer.contains(&format!("Warning: {warning}")), "{warning:?} is not in {answer:?}");
    keystones.delete("keystone", &DeleteParams::default()).await.expect("deleted");

    // the operator is gone
    let log = operator.stop().await;
    assert_eq!(refusals(&log), Vec::<&str>::new());
    assert_eq!(refused_edit(stage, "Glance", &spec).await, None, "nobody answers");
    assert!(stage.kubectl(["get", CONFIGURATION, "-o=jsonpath={.webhooks[0].clientConfig.caBundle}"]).len() > 100);
}
