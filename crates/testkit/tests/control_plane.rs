//! The control plane is what the other crates' tests stand on, so it is tested itself.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::wait::{await_condition, conditions::is_deleted};
use kupenstack_testkit::{ControlPlane, Options, eventually};

const CRD: &str = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.testkit.io}
spec:
  group: testkit.io
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
# nothing
---
apiVersion: testkit.io/v1
kind: Thing
metadata: {name: one}
spec: {size: 3}
";

const READERS: &str = r"
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: read, namespace: NAMESPACE}
rules: [{apiGroups: [''], resources: [configmaps], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: read, namespace: NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: read}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: people}]
";

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(serde_json::json!({"metadata": {"name": name}})).unwrap()
}

#[tokio::test]
async fn serves_the_administrator_and_limits_others() {
    let plane = ControlPlane::shared().await;
    let namespace = plane.create_namespace("users").await;
    let maps: Api<ConfigMap> = Api::namespaced(plane.client().await, &namespace);
    maps.create(&PostParams::default(), &config_map("a")).await.unwrap();

    let stranger = plane.client_as("alice", &["people"]).await;
    let maps: Api<ConfigMap> = Api::namespaced(stranger, &namespace);
    let refused = maps.list(&ListParams::default()).await.unwrap_err();
    assert!(refused.to_string().contains("alice"), "{refused}");

    plane.apply_yaml(&READERS.replace("NAMESPACE", &namespace)).await;
    // The authorizer learns of the binding by a watch.
    eventually("the role binding has an effect", async || maps.get("a").await.is_ok()).await;
}

#[tokio::test]
async fn applies_definitions_and_objects_of_them_in_one_go_and_again() {
    let plane = ControlPlane::shared().await;
    plane.apply_yaml(CRD).await;
    plane.apply_yaml(CRD).await;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("testkit.io", "v1", "Thing"));
    let things: Api<DynamicObject> = Api::namespaced_with(plane.client().await, "default", &kind);
    assert_eq!(things.get("one").await.unwrap().data["spec"]["size"], 3);
}

#[tokio::test]
async fn gives_every_test_a_namespace_of_its_own() {
    let plane = ControlPlane::shared().await;
    let (one, other) = tokio::join!(plane.create_namespace("own"), plane.create_namespace("own"));
    assert_ne!(one, other);
}

#[tokio::test]
async fn runs_controllers_when_asked_and_leaves_nothing_behind() {
    let plane = ControlPlane::start_with(Options { controller_manager: true, ..Options::default() }).await;
    let folder = plane.kubeconfig_path().parent().unwrap().to_owned();
    let namespace = plane.create_namespace("short-lived").await;
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(plane.client().await);
    let accounts: Api<ServiceAccount> = Api::namespaced(plane.client().await, &namespace);
    await_condition(accounts, "default", |account: Option<&ServiceAccount>| account.is_some()).await.unwrap();
    let uid = namespaces.get(&namespace).await.unwrap().metadata.uid.unwrap();
    namespaces.delete(&namespace, &DeleteParams::default()).await.unwrap();
    await_condition(namespaces, &namespace, is_deleted(&uid)).await.unwrap();

    drop(plane);
    assert!(!folder.exists(), "the folder is still there");
    let marker = folder.file_name().unwrap().to_str().unwrap();
    let left = processes_with(marker);
    assert!(left.is_empty(), "still running: {left:?}");
}

#[tokio::test]
async fn ends_with_a_process_that_is_killed() {
    const VICTIM: &str = "TESTKIT_TEST_IS_VICTIM";
    if std::env::var_os(VICTIM).is_some() {
        let plane = ControlPlane::shared().await;
        println!("folder {}", plane.kubeconfig_path().parent().unwrap().display());
        std::future::pending::<()>().await;
    }
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "ends_with_a_process_that_is_killed", "--nocapture"])
        .env(VICTIM, "yes")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(victim.stdout.take().unwrap()).lines().map(Result::unwrap);
    let folder = lines.find_map(|line| line.strip_prefix("folder ").map(PathBuf::from)).unwrap();
    let marker = folder.file_name().unwrap().to_str().unwrap().to_owned();
    assert_eq!(processes_with(&marker).len(), 3, "etcd, the API server and the reaper");
    victim.kill().unwrap();
    victim.wait().unwrap();
    eventually("nothing is left", async || !folder.exists() && processes_with(&marker).is_empty()).await;
}

/// The command lines of processes that mention `marker`.
fn processes_with(marker: &str) -> Vec<String> {
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("cmdline")).ok())
        .filter(|line| line.contains(marker))
        .collect()
}
