//! A process that is frozen believes, when it goes on, what was true before. Others have begun to work meanwhile.

use std::{
    env,
    process::{Child, Command, Stdio},
    time::Duration,
};

use futures::{StreamExt, stream::BoxStream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{ObjectMeta, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
};
use kupenstack_runtime::lease::Candidate;
use kupenstack_testkit::{eventually, install_tls_provider, within};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::stage::{LEASE, Stage, TERMS, client_at};

const LEDGER: &str = "ledger";
const NAMESPACE: &str = "LEASE_TEST_NAMESPACE";
const NAME: &str = "LEASE_TEST_NAME";
const SERVER: &str = "LEASE_TEST_SERVER";
const CONFIG: &str = "LEASE_TEST_KUBECONFIG";

/// What a worker in a process of its own does: it writes into the ledger as fast as it can.
#[tokio::test]
#[ignore = "a part of the other tests of this file, which run it"]
async fn worker() {
    let Ok(namespace) = env::var(NAMESPACE) else { return };
    let (name, server) = (env::var(NAME).unwrap(), env::var(SERVER).unwrap());
    install_tls_provider();
    let client = client_at(env::var(CONFIG).unwrap().as_ref(), server).await;
    let ledger: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    let held = Candidate::new(client, &namespace, LEASE, &name, TERMS).acquire(|| ()).await;
    let write = async {
        for n in 0_u64.. {
            let entry = Patch::Merge(json!({"data": {"who": name, "n": n.to_string()}}));
            let _ = ledger.patch(LEDGER, &PatchParams::default(), &entry).await;
        }
    };
    held.guard(write).await;
    held.release().await;
}

struct Process(Child);

impl Process {
    fn start(stage: &Stage, name: &str) -> Self {
        let config: serde_json::Value =
            serde_json::from_slice(&std::fs::read(stage.plane.kubeconfig_path()).unwrap()).unwrap();
        let child = Command::new(env::current_exe().unwrap())
            .args(["frozen::worker", "--exact", "--ignored", "--nocapture"])
            .env(NAMESPACE, &stage.namespace)
            .env(NAME, name)
            .env(SERVER, config["clusters"][0]["cluster"]["server"].as_str().unwrap())
            .env(CONFIG, stage.plane.kubeconfig_path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }

    fn send(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.0.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    async fn ends(&mut self) {
        eventually("it ends", async || self.0.try_wait().unwrap().is_some()).await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Who writes, in the order of the API server.
struct Ledger(BoxStream<'static, String>);

impl Ledger {
    async fn open(client: Client, namespace: &str) -> Self {
        let api: Api<ConfigMap> = Api::namespaced(client, namespace);
        let metadata = ObjectMeta { name: Some(LEDGER.to_owned()), ..ObjectMeta::default() };
        let made = api.create(&PostParams::default(), &ConfigMap { metadata, ..ConfigMap::default() }).await.unwrap();
        let version = made.metadata.resource_version.unwrap();
        let entries = api.watch(&WatchParams::default(), &version).await.unwrap();
        Self(
            entries
                .filter_map(async |event| match event.unwrap() {
                    WatchEvent::Modified(entry) => entry.data?.remove("who"),
                    _ => None,
                })
                .boxed(),
        )
    }

    /// Reads on until an entry by `who`.
    async fn next_by(&mut self, who: &str) {
        within(async { while self.0.next().await.unwrap() != who {} }, "an entry").await;
    }

    /// Everybody who writes within the time.
    async fn writers(&mut self, span: Duration) -> Vec<String> {
        let mut writers = Vec::new();
        let _ = timeout(span, async {
            while let Some(who) = self.0.next().await {
                if !writers.contains(&who) {
                    writers.push(who);
                }
            }
        })
        .await;
        writers
    }
}

#[tokio::test]
async fn a_frozen_holder_writes_nothing_more_when_it_goes_on() {
    let stage = Stage::set("frozen").await;
    let mut ledger = Ledger::open(stage.plane.client().await, &stage.namespace).await;
    let mut a = Process::start(&stage, "a");
    ledger.next_by("a").await;
    let b = Process::start(&stage, "b");
    sleep(TERMS.renew_every * 2).await;

    a.send(Signal::STOP);
    ledger.next_by("b").await;
    a.send(Signal::CONT);
    assert_eq!(ledger.writers(TERMS.duration).await, ["b"]);
    a.ends().await;
    drop(b);
}

#[tokio::test]
async fn a_standby_that_was_frozen_takes_nothing_from_a_holder_that_lives() {
    let stage = Stage::set("asleep").await;
    let mut ledger = Ledger::open(stage.plane.client().await, &stage.namespace).await;
    let a = Process::start(&stage, "a");
    ledger.next_by("a").await;
    let b = Process::start(&stage, "b");
    sleep(TERMS.renew_every * 2).await;

    b.send(Signal::STOP);
    assert_eq!(ledger.writers(TERMS.duration * 2).await, ["a"]);
    b.send(Signal::CONT);
    assert_eq!(ledger.writers(TERMS.duration).await, ["a"]);
    drop((a, b));
}
