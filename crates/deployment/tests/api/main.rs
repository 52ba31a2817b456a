//! The engine against a real API server, with the real Helm and the real charts. Only the kubelet is played: jobs
//! finish and pods become available when the test says so.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that can't go on ends")]

mod clouds;
mod config;
mod daemons;
mod lifecycle;
mod stage;

use kupenstack_api::cluster::{Keystone, OpenStack, StepState};
use kupenstack_core::conditions;
use rstest::rstest;
use stage::{Stage, completed, reason};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keystone_waits_for_its_dependencies_and_names_them() {
    let stage = Stage::set("waits").await;
    let _running = stage.run(&["keystone"]);
    stage.apply("Keystone", "keystone", serde_json::json!({"release": "2026.2"})).await;
    let keystone: Keystone = stage.until("keystone", |k| reason(k) == "DependencyNotReady").await;
    let ready = conditions::find(&keystone.status.as_ref().unwrap().conditions, conditions::READY).unwrap();
    assert!(ready.message.contains("MariaDB") && ready.message.contains("Memcached"), "{}", ready.message);
    assert_eq!(stage.releases().await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_release_is_stalled_and_cured_by_an_edit() {
    let stage = Stage::set("release").await;
    let _running = stage.run(&["memcached"]);
    stage.apply("Memcached", "memcached", serde_json::json!({"release": "2019.1"})).await;
    let object: kupenstack_api::cluster::Memcached = stage.until("memcached", |k| reason(k) == "UnknownRelease").await;
    let all = &object.status.unwrap().conditions;
    assert!(conditions::find(all, conditions::STALLED).unwrap().message.contains("2026.2"));
    stage.apply("Memcached", "memcached", serde_json::json!({"release": "2026.2"})).await;
    let _: kupenstack_api::cluster::Memcached = stage.until("memcached", |k| reason(k) == "RollingOut").await;
}

#[rstest]
#[case("helm", "helm3")]
#[case("helm3", "helm")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_run_once_and_in_order_across_restarts_of_the_operator(#[case] helm: &str, #[case] other_helm: &str) {
    let Some(mut stage) = Stage::set_with("jobs", helm).await else { return };
    stage.pretend_ready("MariaDB", "mariadb").await;
    stage.pretend_ready("Memcached", "memcached").await;
    stage.apply("Keystone", "keystone", serde_json::json!({"release": "2026.2"})).await;

    let mut made = Vec::new();
    for name in ["keystone-db-init", "keystone-db-sync", "keystone-bootstrap"] {
        // a new operator for every job: what the one before knew is gone
        let running = stage.run(&["keystone"]);
        let job = stage.job(name).await;
        assert!(stage.copies().await > 0, "{name} mounts private copies");
        assert_eq!(stage.releases().await, 0, "{name} runs before the release");
        running.stop().await;
        completed(&stage, &job).await;
        made.push(job);
    }
    let running = stage.run(&["keystone"]);
    let _: Keystone = stage.until("keystone", |k| reason(k) == "RollingOut").await;
    assert_eq!(stage.releases().await, 1);
    for job in &made {
        let now = stage.job(job.metadata.name.as_deref().unwrap()).await;
        assert_eq!(now.metadata.uid, job.metadata.uid, "ran twice");
    }

    // pods serve: the copies go, then the service is asked, and there is nobody to answer here
    stage.roll_out("keystone-api").await;
    let keystone: Keystone = stage.until("keystone", |k| reason(k) == "NotAnswering").await;
    assert_eq!(stage.copies().await, 0);
    let steps = keystone.status.unwrap().steps;
    let done: Vec<_> = steps.iter().filter(|s| s.state == StepState::Done).map(|s| s.name.as_str()).collect();
    let expected = [
        "Dependencies",
        "Credentials",
        "Job keystone-db-init",
        "Job keystone-db-sync",
        "Job keystone-bootstrap",
        "Helm release",
        "Pods",
    ];
    assert_eq!(done, expected);
    running.stop().await;

    // an operator with another Helm takes the release as it is
    if stage.change_helm(other_helm).await {
        let running = stage.run(&["keystone"]);
        running.passes(1).await;
        assert_eq!((stage.releases().await, stage.copies().await), (1, 0));
        running.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_never_change_and_a_pass_without_news_writes_nothing() {
    let stage = Stage::set("idle").await;
    stage.pretend_ready("MariaDB", "mariadb").await;
    stage.pretend_ready("Memcached", "memcached").await;
    stage.apply("Keystone", "keystone", serde_json::json!({"release": "2026.2"})).await;
    let running = stage.run(&["keystone"]);
    let job = stage.job("keystone-db-init").await;
    // while somebody is there to say that the job runs
    let settled = stage.settled_keystone().await;
    let before = stage.secrets().await;
    assert!(before.contains_key("keystone-credentials") && before.contains_key("keystone-fernet-keys"));
    running.stop().await;
    let version = |job: &k8s_openapi::api::batch::v1::Job| job.metadata.resource_version.clone();
    for _ in 0..3 {
        let running = stage.run(&["keystone"]);
        running.passes(1).await;
        running.stop().await;
    }
    assert_eq!(stage.secrets().await, before);
    assert_eq!(version(&stage.job("keystone-db-init").await), version(&job));
    assert_eq!(stage.settled_keystone().await, settled);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cloud_makes_its_services_and_leaves_foreign_fields_alone() {
    let _only = stage::only_cloud().await;
    let stage = Stage::set("cloud").await;
    let _running = stage.run(&["openstack"]);
    stage
        .apply_cloud(serde_json::json!({
            "namespace": stage.namespace, "release": "2026.2",
            "services": {"keystone": {"replicas": {"api": 2}, "conf": {"DEFAULT": {"debug": true}}}},
            "storage": {"className": "fast"},
        }))
        .await;
    let keystone: Keystone = stage.until("keystone", |_| true).await;
    assert_eq!(keystone.spec.replicas.unwrap().api, Some(2));
    let mariadb: kupenstack_api::cluster::MariaDB = stage.until("mariadb", |_| true).await;
    assert_eq!(mariadb.spec.volume.unwrap().class_name.as_deref(), Some("fast"));
    stage.patch_foreign("Keystone", "keystone", serde_json::json!({"nodeSelector": {"disk": "ssd"}})).await;
    // nothing but a removal: all that is still declared is so already
    stage
        .apply_cloud(serde_json::json!({"namespace": stage.namespace, "release": "2026.2", "services": {"keystone": {"replicas": {"api": 2}}}}))
        .await;
    let keystone: Keystone = stage.until("keystone", |k: &Keystone| k.spec.common.settings.conf.is_empty()).await;
    let settings = &keystone.spec.common.settings;
    assert_eq!(settings.node_selector["disk"], "ssd", "a user's field stays");
    let cloud: OpenStack = stage.until_cloud(|c| c.status.as_ref().is_some_and(|s| s.cluster_id.is_some())).await;
    assert_eq!(cloud.status.unwrap().ready.as_deref(), Some("0/4"));
    stage.delete_cloud().await;
}
