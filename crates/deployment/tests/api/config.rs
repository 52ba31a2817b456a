//! Configuration: what a spec and the objects that it names come to in a status.

use k8s_openapi::api::{
    core::v1::{ConfigMap, Secret},
    events::v1::Event,
};
use kube::{
    Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use kupenstack_api::{
    HasConditions,
    cluster::{EffectiveOption, Keystone},
};
use kupenstack_core::conditions;
use serde_json::{Value, json};

use crate::stage::{Stage, reason};

const UNKNOWN: &str = "UnknownOptions";

async fn ready_for_keystone(prefix: &str) -> Stage {
    let stage = Stage::set(prefix).await;
    stage.pretend_ready("MariaDB", "mariadb").await;
    stage.pretend_ready("Memcached", "memcached").await;
    stage
}

async fn write(stage: &Stage, kind: &str, name: &str, text: &str) {
    let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
    let field = if kind == "Secret" { "stringData" } else { "data" };
    object[field] = json!({"keystone.conf": text});
    let (params, patch) = (PatchParams::apply("user"), Patch::Apply(&object));
    match kind {
        "Secret" => drop(stage.api::<Secret>().patch(name, &params, &patch).await.unwrap()),
        _ => drop(stage.api::<ConfigMap>().patch(name, &params, &patch).await.unwrap()),
    }
}

/// Whether the status says that an option has this value from there.
fn has(keystone: &Keystone, option: &str, value: &str, from: &str) -> bool {
    let mut all = keystone.status.iter().flat_map(|s| &s.configuration);
    all.any(|e| e.option == option && e.value.as_deref() == Some(value) && e.from == from)
}

fn message(keystone: &Keystone) -> String {
    conditions::find(keystone.conditions(), conditions::READY).map(|c| c.message.clone()).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn referenced_objects_are_awaited_and_followed() {
    let stage = ready_for_keystone("config-refs").await;
    let _running = stage.run(&["keystone"]);
    let spec = json!({
        "release": "2026.2", "conf": {"DEFAULT": {"debug": true, "use_stderr": null}, "token": {"expiration": 1}},
        "confFrom": [{"configMapRef": {"name": "tokens"}}, {"secretRef": {"name": "ldap", "key": "keystone.conf"}}],
    });
    stage.apply("Keystone", "keystone", spec).await;
    let waiting: Keystone = stage.until("keystone", |k| reason(k) == "ReferenceNotFound").await;
    assert_eq!(message(&waiting), "spec.confFrom[0]: ConfigMap tokens does not exist");

    write(&stage, "ConfigMap", "tokens", "[token]\nexpiration = 2\n").await;
    let named = |k: &Keystone| message(k) == "spec.confFrom[1]: Secret ldap does not exist";
    let _: Keystone = stage.until("keystone", named).await;
    write(&stage, "Secret", "ldap", "[ldap]\npassword = hunter22\n").await;
    let keystone: Keystone = stage.until("keystone", |k| reason(k) == "RunningJobs").await;
    assert!(has(&keystone, "DEFAULT/debug", "true", "spec.conf"), "{keystone:?}");
    assert!(has(&keystone, "token/expiration", "2", "ConfigMap tokens"), "{keystone:?}");
    assert!(has(&keystone, "ldap/password", "***", "Secret ldap"), "{keystone:?}");
    let removed = |e: &EffectiveOption| e.option == "DEFAULT/use_stderr" && e.value.is_none();
    assert!(keystone.status.as_ref().unwrap().configuration.iter().any(removed), "{keystone:?}");
    assert!(!serde_json::to_string(&keystone).unwrap().contains("hunter22"));

    // nothing but the objects that are named changes
    write(&stage, "ConfigMap", "tokens", "[token]\nexpiration = 3\n").await;
    let follows = |k: &Keystone| has(k, "token/expiration", "3", "ConfigMap tokens");
    let _: Keystone = stage.until("keystone", follows).await;
    stage.api::<Secret>().delete("ldap", &DeleteParams::default()).await.unwrap();
    let _: Keystone = stage.until("keystone", named).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn understack_2345_a_misspelt_option_is_a_warning_and_one_event() {
    let stage = ready_for_keystone("config-unknown").await;
    let running = stage.run(&["keystone"]);
    let spec = |option: &str| json!({"release": "2026.2", "conf": {"DEFAULT": {option: true}}});
    stage.apply("Keystone", "keystone", spec("debgu")).await;
    let warned = |k: &Keystone| conditions::find(k.conditions(), UNKNOWN).is_some() && reason(k) == "RunningJobs";
    let keystone: Keystone = stage.until("keystone", warned).await;
    let warning = conditions::find(keystone.conditions(), UNKNOWN).unwrap();
    let text = "spec.conf.DEFAULT.debgu is not an option of Keystone 2026.2; did you mean debug?";
    assert_eq!((warning.status.as_str(), warning.message.as_str()), ("True", text));
    running.stop().await;
    let running = stage.run(&["keystone"]);
    running.passes(2).await;
    running.stop().await;
    let events = stage.api::<Event>().list(&ListParams::default()).await.unwrap().items;
    let warnings: Vec<_> = events.into_iter().filter(|e| e.reason.as_deref() == Some(UNKNOWN)).collect();
    assert_eq!(warnings.iter().map(|e| e.note.as_deref().unwrap()).collect::<Vec<_>>(), [text]);
    assert!(warnings[0].type_.as_deref() == Some("Warning") && warnings[0].series.is_none(), "{warnings:?}");

    let _running = stage.run(&["keystone"]);
    stage.apply("Keystone", "keystone", spec("debug")).await;
    let corrected = |k: &Keystone| has(k, "DEFAULT/debug", "true", "spec.conf");
    let keystone: Keystone = stage.until("keystone", corrected).await;
    assert!(conditions::find(keystone.conditions(), UNKNOWN).is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_breaks_a_file_is_refused_and_cured_by_an_edit() {
    let stage = ready_for_keystone("config-hostile").await;
    let _running = stage.run(&["keystone"]);
    let refused = async |spec: Value, expected: &str| {
        let whole = json!({"release": "2026.2"}).as_object().cloned().into_iter().chain(spec.as_object().cloned());
        stage.apply("Keystone", "keystone", whole.flatten().collect()).await;
        let keystone: Keystone = stage.until("keystone", |k| message(k).contains(expected)).await;
        assert_eq!(reason(&keystone), "InvalidSpec");
    };
    refused(json!({"conf": {"DEFAULT": {"a=b": 1}}}), "spec.conf.DEFAULT.a=b").await;
    refused(json!({"conf": {"DEFAULT": {"a": "x".repeat(1 << 20)}}}), "at most 256 KiB").await;
    refused(json!({"files": {"policy": {"inline": "- a"}}}), "spec.files.policy.inline, line 1").await;
    let spec = json!({"release": "2026.2", "conf": {"DEFAULT": {"log_dir": "a\nadmin_token = \"$é%\""}}});
    stage.apply("Keystone", "keystone", spec).await;
    let _: Keystone = stage.until("keystone", |k| reason(k) == "RunningJobs").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reference_names_exactly_one_object() {
    let stage = Stage::set("config-one-of").await;
    let create = async |settings: Value| {
        let mut object = json!({
            "apiVersion": Keystone::api_version(&()), "kind": Keystone::kind(&()),
            "metadata": {"name": "keystone"}, "spec": settings,
        });
        object["spec"]["release"] = json!("2026.2");
        let object: Keystone = serde_json::from_value(object).unwrap();
        let params = PostParams { dry_run: true, ..PostParams::default() };
        stage.api::<Keystone>().create(&params, &object).await.map(|k| k.name_any())
    };
    let (a, b) = (json!({"name": "a", "key": "k"}), json!({"name": "b", "key": "k"}));
    let wrong = [
        json!({"confFrom": [{}]}),
        json!({"confFrom": [{"secretRef": a, "configMapRef": b}]}),
        json!({"files": {"policy": {}}}),
        json!({"files": {"policy": {"inline": "", "secretRef": a}}}),
    ];
    for settings in wrong {
        let error = create(settings).await.unwrap_err().to_string();
        assert!(error.contains("exactly one of"), "{error}");
    }
    create(json!({"confFrom": [{"secretRef": a}], "files": {"policy": {"configMapRef": b}}})).await.unwrap();
}
