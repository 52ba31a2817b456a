//! The program itself, with the rights of its accounts and no more.

use std::path::PathBuf;

use kube::{
    Api,
    api::{DynamicObject, Patch, PatchParams},
};
use kupenstack_testkit::{eventually, within};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::{
    operator::{Operator, PROGRAM},
    stage::{CLOUD, Stage, account, objects, shared},
};

const CLUSTER: &str = "cluster.kupenstack.io";
/// Starts an operator with the rights of an account.
fn start(stage: &Stage, name: &str, controllers: &str) -> Operator {
    Operator::run(name, &acting_as(stage, name), &["--controllers", controllers])
}

/// A kubeconfig of the administrator acting as an account.
pub(crate) fn acting_as(stage: &Stage, name: &str) -> PathBuf {
    let admin = stage.plane.kubeconfig_path();
    let mut config: Value = serde_json::from_slice(&std::fs::read(admin).expect("readable")).expect("JSON");
    config["users"][0]["user"]["as"] = json!(account(name));
    config["users"][0]["user"]["as-groups"] = json!(["system:serviceaccounts", "system:authenticated"]);
    let path = admin.with_file_name(format!("operator-{name}.kubeconfig"));
    std::fs::write(&path, config.to_string()).expect("writable");
    path
}

/// Lines of a log that tell of a missing right.
pub(crate) fn refusals(log: &str) -> Vec<&str> {
    log.lines().filter(|l| l.contains("orbidden")).collect()
}

async fn reason(api: &Api<DynamicObject>, name: &str) -> String {
    let object = api.get_opt(name).await.expect("an answer");
    let ready = object.and_then(|o| o.data["status"]["conditions"].as_array()?.first().cloned());
    ready.and_then(|c| c["reason"].as_str().map(str::to_owned)).unwrap_or_default()
}

#[tokio::test]
async fn the_cloud_account_suffices_to_roll_out_and_the_program_ends_when_asked() {
    let stage = shared().await;
    let clouds = objects(stage.plane.client().await, CLUSTER, "OpenStack", None);
    let cloud = json!({"apiVersion": "cluster.kupenstack.io/v1", "kind": "OpenStack",
        "metadata": {"name": "default"}, "spec": {"release": "2026.2"}});
    clouds.patch("default", &PatchParams::apply("test"), &Patch::Apply(cloud)).await.expect("a cloud");

    let operator = start(stage, "cloud", "openstack,mariadb,memcached,keystone,glance");
    eventually("ready", || async { operator.get("/readyz").await.is_some() }).await;
    assert_eq!(operator.get("/livez").await.as_deref(), Some("ok"));
    for (kind, name, expected) in [
        ("MariaDB", "mariadb", "RollingOut"),
        ("Memcached", "memcached", "RollingOut"),
        ("Keystone", "keystone", "DependencyNotReady"),
        ("Glance", "glance", "DependencyNotReady"),
    ] {
        let services = objects(stage.plane.client().await, CLUSTER, kind, Some(CLOUD));
        eventually(&format!("{kind} {expected}"), || async { reason(&services, name).await == expected }).await;
    }
    let log = operator.stop().await;
    assert_eq!(refusals(&log), Vec::<&str>::new());
    assert!(log.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "not JSON: {log}");
    assert!(log.contains("\"signal\":\"SIGTERM\"") && log.contains("\"message\":\"stopped\""), "{log}");
}

#[tokio::test]
async fn the_resources_account_suffices_to_watch_and_to_tell() {
    let stage = shared().await;
    let namespace = stage.plane.create_namespace("told").await;
    let images = objects(stage.plane.client().await, "kupenstack.io", "Image", Some(&namespace));
    let image = json!({"apiVersion": "kupenstack.io/v1", "kind": "Image", "metadata": {"name": "image"},
        "spec": {"src": "http://a.example/i", "format": "raw"}});
    images.patch("image", &PatchParams::apply("test"), &Patch::Apply(image)).await.expect("an image");

    let operator = start(stage, "resources", "projects,image");
    eventually("namespaces are looked at", || async { operator.passes("projects").await > 0 }).await;
    eventually("the image says what it waits for", || async { !reason(&images, "image").await.is_empty() }).await;
    let log = operator.stop().await;
    assert_eq!(refusals(&log), Vec::<&str>::new());
}

#[tokio::test]
async fn what_cannot_run_ends_with_an_error() {
    let stage = shared().await;
    for (argument, words) in [
        ("--controllers=projects,cinder", "no controller is named cinder; there are: openstack,"),
        ("--work-dir=/dev/null/work", "/dev/null/work (--work-dir)"),
    ] {
        let mut command = Command::new(PROGRAM);
        command.args(["controller", "--listen=127.0.0.1:0", "--controllers=projects", argument]);
        command.env("KUBECONFIG", stage.plane.kubeconfig_path()).kill_on_drop(true);
        let output = within(command.output(), "its end").await.expect("it starts");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && message.contains(words), "{message}");
    }
}
