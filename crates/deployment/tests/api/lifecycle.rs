//! From the first credentials to the end of a service, or its return to those who run it by hand.

use std::{collections::BTreeMap, path::PathBuf, process::Stdio};

use k8s_openapi::api::{
    apps::v1::Deployment,
    batch::v1::Job,
    core::v1::{ConfigMap, PersistentVolumeClaim, Secret},
    events::v1::Event,
};
use kube::{
    ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams},
};
use kupenstack_api::{
    HasConditions,
    cluster::{Keystone, MariaDB},
};
use kupenstack_core::conditions;
use kupenstack_testkit::{ControlPlane, repository};
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt, process::Command};

use crate::stage::{Stage, completed, eventually, reason};

pub(crate) const SPEC: &str = "2026.2";
const KEYS: &str = "keystone-fernet-keys";

impl Stage {
    /// Keystone alone, with its dependencies pretended.
    pub(crate) async fn with_keystone(prefix: &str, spec: Value) -> Self {
        let stage = Self::set(prefix).await;
        stage.pretend_ready("MariaDB", "mariadb").await;
        stage.pretend_ready("Memcached", "memcached").await;
        stage.apply("Keystone", "keystone", spec).await;
        stage
    }

    /// Plays the job controller for all jobs of a rollout, until its release is there.
    pub(crate) async fn rolled_out(&self) -> Keystone {
        eventually("the release", || async {
            self.play_jobs().await;
            let keystone = self.api::<Keystone>().get_opt("keystone").await.unwrap();
            keystone.filter(|k| matches!(reason(k).as_str(), "RollingOut" | "NotAnswering"))
        })
        .await
    }

    /// Every job succeeds at once, and one that is deleted in the foreground goes.
    pub(crate) async fn play_jobs(&self) {
        let jobs = self.api::<Job>();
        for job in jobs.list(&ListParams::default()).await.unwrap() {
            if job.metadata.deletion_timestamp.is_some() {
                let patch = json!({"metadata": {"finalizers": null}});
                let _ = jobs.patch(&job.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await;
            } else if job.status.as_ref().is_none_or(|s| s.completion_time.is_none()) {
                completed(self, &job).await;
            }
        }
    }

    /// Version of every Secret, but those that Helm writes.
    pub(crate) async fn versions(&self) -> BTreeMap<String, Option<String>> {
        let own = ListParams::default().labels("owner!=helm,app.kubernetes.io/managed-by!=Helm");
        let all = self.api::<Secret>().list_metadata(&own).await.unwrap();
        all.iter().map(|s| (s.name_any(), s.resource_version())).collect()
    }

    pub(crate) async fn secret(&self, name: &str) -> Option<BTreeMap<String, String>> {
        let data = self.api::<Secret>().get_opt(name).await.unwrap()?.data.unwrap_or_default();
        Some(data.into_iter().map(|(k, v)| (k, String::from_utf8(v.0).unwrap())).collect())
    }

    pub(crate) async fn delete(&self, kind: &str, name: &str) {
        self.dynamic(kind).delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(crate) async fn gone(&self, kind: &str, name: &str) {
        eventually(name, || async { self.dynamic(kind).get_opt(name).await.unwrap().is_none().then_some(()) }).await;
    }

    pub(crate) async fn until_exists(&self, kind: &str, name: &str) -> DynamicObject {
        eventually(name, || async { self.dynamic(kind).get_opt(name).await.unwrap() }).await
    }

    /// Names of all that is in the namespace, by kind, apart from what Kubernetes puts there.
    pub(crate) async fn everything(&self) -> Vec<String> {
        let mut names = Vec::new();
        let all = ListParams::default();
        let mut add = |kind: &str, name: String| names.push(format!("{kind} {name}"));
        self.api::<Job>().list(&all).await.unwrap().iter().for_each(|o| add("Job", o.name_any()));
        self.api::<Deployment>().list(&all).await.unwrap().iter().for_each(|o| add("Deployment", o.name_any()));
        self.api::<Secret>().list(&all).await.unwrap().iter().for_each(|o| add("Secret", o.name_any()));
        self.api::<PersistentVolumeClaim>().list(&all).await.unwrap().iter().for_each(|o| add("Claim", o.name_any()));
        let maps = self.api::<ConfigMap>().list(&all).await.unwrap();
        maps.iter().filter(|o| o.name_any() != "kube-root-ca.crt").for_each(|o| add("ConfigMap", o.name_any()));
        names
    }

    /// Notes of the events with a reason.
    pub(crate) async fn events(&self, reason: &str) -> Vec<String> {
        let all = self.api::<Event>().list(&ListParams::default()).await.unwrap();
        all.into_iter().filter(|e| e.reason.as_deref() == Some(reason)).filter_map(|e| e.note).collect()
    }

    /// Runs Helm as an admin does, with the operator's own chart, and plays what Helm waits for.
    pub(crate) async fn helm(&self, arguments: &[&str], values: &Value) {
        let program = std::env::var_os("HELM_BIN").map_or_else(|| PathBuf::from("helm"), PathBuf::from);
        let mut helm = Command::new(program)
            .args(arguments)
            .arg(format!("--namespace={}", self.namespace))
            .env("KUBECONFIG", ControlPlane::shared().await.kubeconfig_path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        helm.stdin.take().unwrap().write_all(values.to_string().as_bytes()).await.unwrap();
        let status = loop {
            tokio::select! {
                status = helm.wait() => break status.unwrap(),
                () = tokio::time::sleep(std::time::Duration::from_millis(200)) => self.play_jobs().await,
            }
        };
        assert!(status.success(), "helm {arguments:?}");
    }
}

/// Message of the object's `Ready` condition, empty when it has none.
pub(crate) fn says<K: HasConditions>(object: &K) -> String {
    conditions::find(object.conditions(), conditions::READY).map(|c| c.message.clone()).unwrap_or_default()
}

fn chart(service: &str) -> String {
    repository().join("charts/openstack").join(service).display().to_string()
}

fn passwords() -> Value {
    json!({"endpoints": {
        "oslo_db": {"auth": {"admin": {"password": "root"}, "keystone": {"password": "by-hand-db"}}},
        "identity": {"auth": {"admin": {"password": "by-hand-admin"}}},
        "oslo_cache": {"auth": {"memcache_secret_key": "cache"}},
    }})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gerrit_959251_and_osh_28de5c471_re_applies_and_restarts_leave_keys_and_passwords_alone() {
    let stage = Stage::with_keystone("cases-5-6", json!({"release": SPEC})).await;
    let running = stage.run(&["keystone"]);
    stage.rolled_out().await;
    stage.roll_out("keystone-api").await;
    let _: Keystone = stage.until("keystone", |k| reason(k) == "NotAnswering").await;
    running.stop().await;
    let (before, versions) = (stage.secrets().await, stage.versions().await);
    assert!(versions.contains_key(KEYS) && versions.contains_key("keystone-credentials"), "{versions:?}");
    let job = stage.job("keystone-db-init").await;
    for round in 0..10 {
        let running = stage.run(&["keystone"]);
        // alternately as it was, and with a change that rolls out anew
        let debug = round % 2 == 1;
        stage
            .apply(
                "Keystone",
                "keystone",
                json!({"release": SPEC, "paused": false, "conf": {"DEFAULT": {"debug": debug}}}),
            )
            .await;
        if round == 9 {
            eventually("the last change", || async {
                stage.play_jobs().await;
                (stage.job("keystone-db-init").await.metadata.uid != job.metadata.uid).then_some(())
            })
            .await;
        } else {
            running.passes(1).await;
        }
        running.stop().await;
    }
    assert_eq!(stage.versions().await.get(KEYS), versions.get(KEYS), "Secrets are not written");
    assert_eq!(stage.versions().await.get("keystone-credentials"), versions.get("keystone-credentials"));
    let after = stage.secrets().await;
    for name in [KEYS, "keystone-credential-keys", "keystone-credentials"] {
        assert_eq!(after[name], before[name], "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn genestack_1682_keys_rotate_on_schedule_and_nothing_restarts() {
    let stage = Stage::with_keystone("rotation", json!({"release": SPEC, "fernet": {"rotationInterval": "1h"}})).await;
    let running = stage.run(&["keystone"]);
    stage.rolled_out().await;
    stage.roll_out("keystone-api").await;
    let _: Keystone = stage.until("keystone", |k| reason(k) == "NotAnswering").await;
    let deployment: Deployment = stage.until("keystone-api", |_| true).await;
    let (before, releases) = (stage.secret(KEYS).await.unwrap(), stage.releases().await);
    let long_ago = json!({"metadata": {"annotations": {"kupenstack.io/rotated-at": "2026-01-01T00:00:00Z"}}});
    stage.api::<Secret>().patch(KEYS, &PatchParams::default(), &Patch::Merge(&long_ago)).await.unwrap();
    let after = eventually("a rotation", || async { stage.secret(KEYS).await.filter(|k| k.len() == 3) }).await;
    assert_eq!((&after["2"], &after["1"]), (&before["0"], &before["1"]), "the staged key is the primary");
    assert!(!before.values().any(|k| *k == after["0"]));
    let event = eventually("the event", || async { stage.events("KeysRotated").await.pop() }).await;
    assert!(event.contains("key 2") && !after.values().any(|k| event.contains(k.as_str())), "{event}");

    running.passes(3).await;
    running.stop().await;
    // another operator finds it done
    let running = stage.run(&["keystone"]);
    running.passes(2).await;
    running.stop().await;
    assert_eq!(stage.secret(KEYS).await.unwrap(), after);
    assert_eq!(stage.releases().await, releases);
    let now: Deployment = stage.until("keystone-api", |_| true).await;
    assert_eq!(now.metadata.resource_version, deployment.metadata.resource_version);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_few_keys_are_refused_before_anything_is_rolled_out() {
    let stage = Stage::with_keystone("few-keys", json!({"release": SPEC, "fernet": {"activeKeys": 3}})).await;
    let _running = stage.run(&["keystone"]);
    let keystone: Keystone = stage.until("keystone", |k| reason(k) == "InvalidSpec").await;
    let message = says(&keystone);
    assert!(message.contains("spec.fernet.activeKeys") && message.contains("at least 5"), "{message}");
    let patch = json!({"spec": {"fernet": {"rotationInterval": "59m"}}});
    let refused = stage.dynamic("Keystone").patch("keystone", &PatchParams::default(), &Patch::Merge(&patch)).await;
    assert!(refused.unwrap_err().to_string().contains("spec.fernet.rotationInterval"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_service_leaves_nothing_but_its_credentials() {
    let stage = Stage::with_keystone("delete", json!({"release": SPEC})).await;
    let before = stage.everything().await;
    let running = stage.run(&["keystone"]);
    stage.rolled_out().await;
    // configuration of an earlier revision, and copies for jobs of a rollout under way
    stage.apply("Keystone", "keystone", json!({"release": SPEC, "conf": {"DEFAULT": {"debug": true}}})).await;
    eventually("another revision", || async {
        stage.play_jobs().await;
        (stage.releases().await == 2).then_some(())
    })
    .await;
    stage.apply("Keystone", "keystone", json!({"release": SPEC, "conf": {"DEFAULT": {"debug": false}}})).await;
    eventually("copies", || async { (stage.copies().await > 0).then_some(()) }).await;
    stage.delete("Keystone", "keystone").await;
    stage.gone("Keystone", "keystone").await;
    running.stop().await;
    let kept = ["keystone-credential-keys", "keystone-credentials", KEYS, "openstack-admin"];
    let left: Vec<_> = stage.everything().await.into_iter().filter(|o| !before.contains(o)).collect();
    assert!(left.iter().all(|o| kept.iter().any(|k| *o == format!("Secret {k}"))), "{left:?}");
    assert!(left.contains(&format!("Secret {KEYS}")), "{left:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_is_removed_after_those_that_need_it() {
    let stage = Stage::with_keystone("order", json!({"release": SPEC})).await;
    let running = stage.run(&["mariadb"]);
    let _: MariaDB = stage.until("mariadb", |m: &MariaDB| !m.finalizers().is_empty()).await;
    stage.delete("MariaDB", "mariadb").await;
    let mariadb: MariaDB = stage.until("mariadb", |m| reason(m) == "Deleting").await;
    assert_eq!(says(&mariadb), "is removed after Keystone");
    stage.delete("Keystone", "keystone").await;
    stage.gone("MariaDB", "mariadb").await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn data_goes_only_when_asked_and_with_it_the_credentials_that_open_it() {
    for policy in ["Retain", "Delete"] {
        let stage = Stage::set("data").await;
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data-mariadb-0", "labels": {"release_group": "mariadb"}},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        });
        let claims = stage.api::<PersistentVolumeClaim>();
        claims.patch("data-mariadb-0", &PatchParams::apply("user"), &Patch::Apply(&claim)).await.unwrap();
        stage.apply("MariaDB", "mariadb", json!({"release": SPEC, "volume": {"deletionPolicy": policy}})).await;
        let running = stage.run(&["mariadb"]);
        let _: MariaDB = stage.until("mariadb", |m| reason(m) == "RollingOut").await;
        stage.delete("MariaDB", "mariadb").await;
        stage.gone("MariaDB", "mariadb").await;
        running.stop().await;
        let claim = claims.get_opt("data-mariadb-0").await.unwrap();
        let kept = claim.is_some_and(|c| c.metadata.deletion_timestamp.is_none());
        assert_eq!(
            (kept, stage.secret("mariadb-credentials").await.is_some()),
            (policy == "Retain", policy == "Retain")
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_goes_from_hand_to_operator_to_hand_and_back() {
    let stage = Stage::set("by-hand").await;
    stage.pretend_ready("MariaDB", "mariadb").await;
    stage.pretend_ready("Memcached", "memcached").await;
    let mut values = passwords();
    values["conf"] = json!({"keystone": {"token": {"expiration": 1800}}});
    stage.helm(&["install", "keystone", &chart("keystone"), "--values=-"], &values).await;
    // what the job of that release would have made
    let made = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": KEYS}, "stringData": {"0": "staged", "1": "primary"}});
    stage.api::<Secret>().patch(KEYS, &PatchParams::apply("user"), &Patch::Apply(&made)).await.unwrap();
    let keys = stage.secret(KEYS).await;

    // nobody consents: nothing is touched
    let before = stage.everything().await;
    stage.apply("Keystone", "keystone", json!({"release": SPEC})).await;
    let running = stage.run(&["keystone"]);
    let keystone: Keystone = stage.until("keystone", |k| reason(k) == "ReleaseExists").await;
    let message = says(&keystone);
    assert!(message.contains("spec.adopt: true") && message.contains("conf.keystone.token.expiration"), "{message}");
    assert!(!message.contains("by-hand-"), "{message}");
    assert_eq!(stage.everything().await, before);

    // an object that nobody consented to goes without a trace
    stage.delete("Keystone", "keystone").await;
    stage.gone("Keystone", "keystone").await;
    assert_eq!(stage.everything().await, before);

    // consent: the passwords in use are ours now
    stage.apply("Keystone", "keystone", json!({"release": SPEC, "adopt": true})).await;
    stage.rolled_out().await;
    let credentials = stage.secret("keystone-credentials").await.unwrap();
    let expected = [("admin-password", "by-hand-admin"), ("db-password", "by-hand-db")];
    assert_eq!(credentials, expected.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
    assert_eq!(stage.secret(KEYS).await, keys, "keys are taken as they are");
    let event = eventually("the event", || async { stage.events("Adopted").await.pop() }).await;
    assert!(event.contains("conf.keystone.token.expiration") && !event.contains("by-hand-"), "{event}");

    // back to hand: the release, its pods and its jobs stay as they are
    let deployment: Deployment = stage.until("keystone-api", |_| true).await;
    stage.apply("Keystone", "keystone", json!({"release": SPEC, "adopt": true, "deletionPolicy": "Retain"})).await;
    let _: Keystone = stage
        .until("keystone", |k: &Keystone| {
            k.status.as_ref().and_then(|s| s.observed_generation) == k.metadata.generation
        })
        .await;
    stage.delete("Keystone", "keystone").await;
    stage.gone("Keystone", "keystone").await;
    let now: Deployment = stage.until("keystone-api", |_| true).await;
    assert_eq!(now.metadata.resource_version, deployment.metadata.resource_version);
    assert!(stage.job("keystone-bootstrap").await.owner_references().is_empty());
    assert_eq!(stage.copies().await, 0);
    let marked = ListParams::default().labels("owner=helm,kupenstack.io/hash");
    assert!(stage.api::<Secret>().list_metadata(&marked).await.unwrap().items.is_empty());

    // an upgrade by hand, with hooks, from the values that are there
    stage
        .helm(
            &["upgrade", "keystone", &chart("keystone"), "--reuse-values", "--set=conf.keystone.DEFAULT.debug=true"],
            &json!({}),
        )
        .await;

    // and the operator again: it asks again
    stage.apply("Keystone", "keystone", json!({"release": SPEC, "adopt": false, "deletionPolicy": "Delete"})).await;
    let keystone: Keystone = stage.until("keystone", |k| reason(k) == "ReleaseExists").await;
    assert!(says(&keystone).contains("conf.keystone.DEFAULT.debug"));
    stage.apply("Keystone", "keystone", json!({"release": SPEC, "adopt": true})).await;
    stage.rolled_out().await;
    assert_eq!(stage.secret("keystone-credentials").await.unwrap(), credentials);
    running.stop().await;
}
