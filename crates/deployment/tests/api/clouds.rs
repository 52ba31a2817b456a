//! `OpenStack` and its services: switched off and on, paused, deleted, given back.

use std::pin::pin;

use futures::TryStreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    ResourceExt,
    api::{DeleteParams, Patch, PatchParams, WatchEvent, WatchParams},
};
use kupenstack_api::cluster::{Glance, Keystone, MariaDB, Memcached, OpenStack};
use serde_json::{Value, json};

use crate::{
    lifecycle::{SPEC, says},
    stage::{Stage, eventually, only_cloud, reason},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openstack_operator_1744_a_disabled_service_is_not_awaited_and_comes_back() {
    let _only = only_cloud().await;
    let stage = Stage::set("disable").await;
    let running = stage.run(&["openstack", "glance"]);
    let spec = |enabled: bool| json!({"namespace": stage.namespace, "release": SPEC, "services": {"glance": {"enabled": enabled}}});
    stage.apply_cloud(spec(true)).await;
    let _: Glance = stage.until("glance", |g| reason(g) == "DependencyNotReady").await;
    stage.apply_cloud(spec(false)).await;
    stage.gone("Glance", "glance").await;
    for (kind, name) in [("MariaDB", "mariadb"), ("Memcached", "memcached"), ("Keystone", "keystone")] {
        stage.until_exists(kind, name).await;
        stage.pretend_ready(kind, name).await;
    }
    let cloud = stage.until_cloud(|c| reason(c) == "Ready").await;
    let status = cloud.status.unwrap();
    assert_eq!(status.ready.as_deref(), Some("3/3"));
    assert!(status.services.iter().all(|s| s.public_endpoints.is_empty()));
    let glance = status.services.iter().find(|s| s.kind == "Glance").unwrap();
    assert_eq!((glance.ready, glance.reason.as_str()), (false, "Disabled"));
    stage.apply_cloud(json!({"namespace": stage.namespace, "release": SPEC})).await;
    let _: Glance = stage.until("glance", |_| true).await;
    let cloud = stage.until_cloud(|c| reason(c) == "ServicesNotReady").await;
    assert_eq!(cloud.status.unwrap().ready.as_deref(), Some("3/4"));
    stage.delete_cloud().await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cloud_tells_the_urls_of_all_its_services() {
    let _only = only_cloud().await;
    let stage = Stage::set("urls").await;
    let running = stage.run(&["openstack"]);
    let expose = json!({"type": "nodePort", "url": "http://192.0.2.10:{port}"});
    stage.apply_cloud(json!({"namespace": stage.namespace, "release": SPEC, "networking": {"expose": expose}})).await;
    let keystone: Keystone = stage.until("keystone", |k: &Keystone| k.spec.common.expose.is_some()).await;
    assert_eq!(serde_json::to_value(keystone.spec.common.expose).unwrap(), expose);
    let url = "http://192.0.2.10:30500/v3";
    let status = json!({"status": {"publicEndpoints": {"keystone": url}}});
    stage.api::<Keystone>().patch_status("keystone", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
    let told = |c: &OpenStack| {
        let services = c.status.iter().flat_map(|s| &s.services);
        services.filter_map(|s| s.public_endpoints.get("keystone")).any(|told| told == url)
    };
    stage.until_cloud(told).await;
    stage.delete_cloud().await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cloud_that_changes_a_service_is_not_ready_by_what_that_was_before() {
    let _only = only_cloud().await;
    let stage = Stage::set("changed").await;
    let running = stage.run(&["openstack"]);
    let spec = |conf: Value| json!({"namespace": stage.namespace, "release": SPEC, "services": {"keystone": {"conf": conf}, "glance": {"enabled": false}}});
    stage.apply_cloud(spec(json!({}))).await;
    for (kind, name) in [("MariaDB", "mariadb"), ("Memcached", "memcached"), ("Keystone", "keystone")] {
        stage.until_exists(kind, name).await;
        stage.pretend_ready(kind, name).await;
    }
    let ready = stage.until_cloud(|c| reason(c) == "Ready").await;
    let only = WatchParams::default().fields("metadata.name=default");
    let news = stage.clouds().watch(&only, &ready.resource_version().unwrap()).await.unwrap();
    stage.apply_cloud(spec(json!({"DEFAULT": {"debug": true}}))).await;
    let judged = news.try_filter_map(async |event| {
        let WatchEvent::Modified(cloud) = event else { return Ok(None) };
        let judged = cloud.status.as_ref().and_then(|s| s.observed_generation) > ready.metadata.generation;
        Ok(judged.then_some(cloud))
    });
    let first = pin!(judged).try_next().await.unwrap().unwrap();
    assert_eq!(reason(&first), "ServicesNotReady");
    let status = first.status.unwrap();
    let keystone = status.services.iter().find(|s| s.kind == "Keystone").unwrap();
    assert_eq!((status.ready.as_deref(), keystone.ready), (Some("2/3"), false));
    stage.delete_cloud().await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_enabled_service_needs_cannot_be_disabled() {
    let _only = only_cloud().await;
    let stage = Stage::set("needed").await;
    let off = json!({"enabled": false});
    let dry = PatchParams { dry_run: true, ..PatchParams::apply("user") };
    let pairs = [
        ("mariadb", "keystone"),
        ("mariadb", "glance"),
        ("memcached", "keystone"),
        ("memcached", "glance"),
        ("keystone", "glance"),
    ];
    let apply = async |services: Value| {
        let cloud = json!({"apiVersion": "cluster.kupenstack.io/v1", "kind": "OpenStack", "metadata": {"name": "default"},
            "spec": {"namespace": stage.namespace, "release": SPEC, "services": services}});
        stage.clouds().patch("default", &dry, &Patch::Apply(&cloud)).await
    };
    for (needed, dependent) in pairs {
        let error = apply(json!({needed: off})).await.unwrap_err().to_string();
        assert!(error.contains(&format!("{needed}.enabled")), "{error}");
        assert!(error.contains(&format!("{dependent}.enabled")), "{error}");
    }
    apply(json!({"glance": off})).await.unwrap();
    apply(json!({"glance": off, "keystone": off, "mariadb": off, "memcached": off})).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn openstack_operator_1867_a_cloud_deleted_while_it_reconciles_leaves_room_for_another() {
    let _only = only_cloud().await;
    let stage = Stage::set("case-22").await;
    let running = stage.run(&["openstack", "mariadb", "memcached", "keystone", "glance"]);
    let spec = json!({"namespace": stage.namespace, "release": SPEC, "storage": {"deletionPolicy": "Delete"}});
    let mut cloud: Option<OpenStack> = None;
    for _ in 0..2 {
        stage.apply_cloud(spec.clone()).await;
        let _: Memcached = stage.until("memcached", |m| reason(m) == "RollingOut").await;
        let _: MariaDB = stage.until("mariadb", |m| !reason(m).is_empty()).await;
        let now = stage.until_cloud(|c| c.status.is_some()).await;
        assert_ne!(Some(now.uid()), cloud.as_ref().map(ResourceExt::uid), "another object");
        cloud = Some(now);
        stage.delete_cloud().await;
        for (kind, name) in [("MariaDB", "mariadb"), ("Memcached", "memcached"), ("Glance", "glance")] {
            stage.gone(kind, name).await;
        }
        assert_eq!(stage.everything().await, Vec::<String>::new());
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_service_says_that_it_is_not_looked_at_and_the_cloud_leaves_it_alone() {
    let _only = only_cloud().await;
    let stage = Stage::set("paused").await;
    let running = stage.run(&["openstack", "keystone"]);
    let spec = |replicas: i32| json!({"namespace": stage.namespace, "release": SPEC, "services": {"keystone": {"replicas": {"api": replicas}}}});
    stage.apply_cloud(spec(1)).await;
    let _: Keystone = stage.until("keystone", |k| reason(k) == "DependencyNotReady").await;
    stage.patch_foreign("Keystone", "keystone", json!({"paused": true})).await;
    let keystone: Keystone = stage.until("keystone", |k| reason(k) == "Paused").await;
    let message = says(&keystone);
    assert!(message.starts_with("spec.paused is true: it is not looked at since 20"), "{message}");
    assert!(message.ends_with("it was not ready then"), "{message}");
    stage.apply_cloud(spec(2)).await;
    stage.until_cloud(|c| c.status.as_ref().and_then(|s| s.observed_generation) == c.metadata.generation).await;
    let keystone: Keystone = stage.until("keystone", |_| true).await;
    assert_eq!(keystone.spec.replicas.as_ref().unwrap().api, Some(1), "the cloud's edit waits");
    assert_eq!(says(&keystone), message, "the same words: nothing was looked at");
    stage.patch_foreign("Keystone", "keystone", json!({"paused": false})).await;
    let _: Keystone = stage.until("keystone", |k: &Keystone| k.spec.replicas.as_ref().unwrap().api == Some(2)).await;
    stage.delete_cloud().await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cloud_given_back_leaves_its_releases_even_when_nobody_saw_the_edit() {
    let _only = only_cloud().await;
    let stage = Stage::set("given-back").await;
    let running = stage.run(&["openstack", "memcached"]);
    let spec = |policy: &str| json!({"namespace": stage.namespace, "release": SPEC, "deletionPolicy": policy});
    stage.apply_cloud(spec("Delete")).await;
    let _: Memcached = stage.until("memcached", |m| reason(m) == "RollingOut").await;
    running.stop().await;
    let deployment: Deployment = stage.until("memcached", |_| true).await;
    stage.apply_cloud(spec("Retain")).await;
    stage.clouds().delete("default", &DeleteParams::default()).await.unwrap();
    let running = stage.run(&["openstack", "memcached"]);
    stage.gone("Memcached", "memcached").await;
    eventually("the end of the cloud", || async {
        stage.clouds().get_opt("default").await.unwrap().is_none().then_some(())
    })
    .await;
    running.stop().await;
    let now: Deployment = stage.until("memcached", |_| true).await;
    assert_eq!(now.metadata.resource_version, deployment.metadata.resource_version);
    assert_eq!(stage.releases().await, 1);
    assert!(stage.secret("memcached-credentials").await.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn switched_off_services_go_in_reverse_order_and_find_their_credentials_again() {
    let _only = only_cloud().await;
    let stage = Stage::set("re-enable").await;
    let running = stage.run(&["openstack", "mariadb", "memcached", "keystone", "glance"]);
    let spec = |on: bool| {
        let service = json!({"enabled": on});
        json!({"namespace": stage.namespace, "release": SPEC,
            "services": {"mariadb": service, "memcached": service, "keystone": service, "glance": service}})
    };
    stage.apply_cloud(spec(true)).await;
    let _: MariaDB = stage.until("mariadb", |m| reason(m) == "RollingOut").await;
    let password = stage.secret("mariadb-credentials").await.unwrap();
    stage.apply_cloud(spec(false)).await;
    for (kind, name) in [("Glance", "glance"), ("Keystone", "keystone"), ("MariaDB", "mariadb")] {
        stage.gone(kind, name).await;
    }
    let cloud = stage.until_cloud(|c| reason(c) == "Ready").await;
    assert_eq!(cloud.status.unwrap().ready.as_deref(), Some("0/0"));
    stage.gone("Memcached", "memcached").await;
    assert_eq!(stage.releases().await, 0);
    stage.apply_cloud(spec(true)).await;
    let _: MariaDB = stage.until("mariadb", |m| reason(m) == "RollingOut").await;
    assert_eq!(stage.secret("mariadb-credentials").await.unwrap(), password);
    stage.delete_cloud().await;
    running.stop().await;
}
