//! What runs on nodes with VMs.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::api::apps::v1::DaemonSet;
use kube::{
    ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use kupenstack_api::cluster::Libvirt;
use kupenstack_core::conditions;
use kupenstack_deployment::{NotProven, Patience, Prober};
use rstest::rstest;
use serde_json::json;

use crate::stage::{Stage, eventually, reason};

fn message(libvirt: &Libvirt) -> String {
    let status = libvirt.status.as_ref();
    let ready = status.and_then(|s| conditions::find(&s.conditions, conditions::READY));
    ready.map(|c| c.message.clone()).unwrap_or_default()
}

impl Stage {
    /// Plays Kubernetes for the `DaemonSet`: so many nodes have its label, on so many of these its pod is ready, and so
    /// many of the pods are of its present version.
    async fn play_daemons(&self, nodes: i32, ready: i32, updated: i32) {
        let sets = self.api::<DaemonSet>();
        let set = eventually("the DaemonSet", || async { sets.get_opt("libvirt").await.unwrap() }).await;
        let status = json!({"status": {"observedGeneration": set.metadata.generation, "desiredNumberScheduled": nodes,
            "currentNumberScheduled": nodes, "numberMisscheduled": 0, "numberReady": ready, "numberAvailable": ready,
            "updatedNumberScheduled": updated}});
        sets.patch_status("libvirt", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_on_nodes_with_vms_are_waited_for_but_not_replaced() {
    let stage = Stage::set("daemons").await;
    stage.pretend_ready("OVN", "ovn").await;
    stage.apply("Libvirt", "libvirt", json!({"release": "2026.2"})).await;
    let _running = stage.run(&["libvirt"]);

    stage.play_daemons(0, 0, 0).await;
    let told = "no node that takes pods has the label openstack-compute-node=enabled";
    let _: Libvirt = stage.until("libvirt", |l| reason(l) == "Ready" && message(l).contains(told)).await;
    stage.play_daemons(2, 1, 2).await;
    let _: Libvirt = stage.until("libvirt", |l| message(l).contains("1/2 pods ready")).await;
    stage.play_daemons(2, 2, 2).await;
    let _: Libvirt = stage.until("libvirt", |l| reason(l) == "Ready" && message(l).ends_with("answers")).await;

    // a change: the pods stay as they are, which is told and fails nothing
    let conf = json!({"libvirt": {"listen_tcp": 1}});
    stage.apply("Libvirt", "libvirt", json!({"release": "2026.2", "conf": conf})).await;
    let _: Libvirt = stage.until("libvirt", |l| message(l).contains("not seen by Kubernetes yet")).await;
    stage.play_daemons(2, 2, 0).await;
    let told = "2 of 2 pods of DaemonSet libvirt run an earlier version";
    let libvirt: Libvirt = stage.until("libvirt", |l| reason(l) == "Ready" && message(l).contains(told)).await;
    assert_eq!(libvirt.status.unwrap().revision, Some(2));

    // drift of a kind that is watched is repaired
    let sets = stage.api::<DaemonSet>();
    let before = sets.get("libvirt").await.unwrap().uid();
    sets.delete("libvirt", &DeleteParams::background()).await.unwrap();
    eventually("another DaemonSet", || async { sets.get_opt("libvirt").await.unwrap().filter(|s| s.uid() != before) })
        .await;
}

/// What a service is found to be, when it is asked for.
#[derive(Clone, Copy)]
enum Found {
    Well,
    InUse,
    Silent,
    Unwell,
    OnFewerNodes,
}

struct Witness(Mutex<Found>);

impl Witness {
    fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Found::Well)))
    }

    fn finds(&self, found: Found) {
        *self.0.lock().unwrap() = found;
    }
}

impl Prober for Witness {
    fn prove<'a>(
        &'a self,
        _service: &'a str,
        _request: BoxFuture<'a, Result<(), NotProven>>,
    ) -> BoxFuture<'a, Result<(), NotProven>> {
        let found = match *self.0.lock().unwrap() {
            Found::Well => Ok(()),
            Found::InUse => Err(NotProven::InUse("there are VMs".to_owned())),
            Found::Silent => Err(NotProven::NoAccess),
            Found::Unwell => Err(NotProven::Unwell("0 of 1 up".to_owned())),
            Found::OnFewerNodes => Err(NotProven::NodesDown("1 of 2 up".to_owned())),
        };
        async move { found }.boxed()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lp_2150668_what_users_have_something_in_is_not_removed() {
    let stage = Stage::set("in-use").await;
    stage.pretend_ready("OVN", "ovn").await;
    stage.apply("Libvirt", "libvirt", json!({"release": "2026.2"})).await;
    let witness = Witness::new();
    let run = || stage.run_with(&["libvirt"], Arc::clone(&witness) as Arc<dyn Prober>, Patience::default());
    let running = run();
    stage.play_daemons(1, 1, 1).await;
    let _: Libvirt = stage.until("libvirt", |l| reason(l) == "Ready").await;

    witness.finds(Found::InUse);
    stage.api::<Libvirt>().delete("libvirt", &DeleteParams::default()).await.unwrap();
    let libvirt: Libvirt = stage.until("libvirt", |l| reason(l) == "InUse").await;
    assert_eq!(message(&libvirt), "there are VMs");
    assert!(stage.api::<DaemonSet>().get_opt("libvirt").await.unwrap().is_some());

    // nobody can tell, and what was proven once is forgotten, as after a restore; another operator looks at once
    running.stop().await;
    witness.finds(Found::Silent);
    let forgotten = json!({"status": {"hash": null}});
    stage.api::<Libvirt>().patch_status("libvirt", &PatchParams::default(), &Patch::Merge(&forgotten)).await.unwrap();
    let running = run();
    let _: Libvirt = stage.until("libvirt", |l| message(l).starts_with("can't tell whether it is in use")).await;
    assert!(stage.api::<DaemonSet>().get_opt("libvirt").await.unwrap().is_some());

    running.stop().await;
    witness.finds(Found::Well);
    let _running = run();
    eventually("the end", || async {
        stage.api::<Libvirt>().get_opt("libvirt").await.unwrap().is_none().then_some(())
    })
    .await;
    assert!(stage.api::<DaemonSet>().get_opt("libvirt").await.unwrap().is_none());
}

/// Pods of nodes are as they were before the change, which is not to blame for a node that is down.
#[rstest]
#[case::a_node(Found::OnFewerNodes, "NotAnswering")]
#[case::the_service(Found::Unwell, "RollingBack")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_is_taken_back_for_what_it_may_have_done_only(#[case] found: Found, #[case] becomes: &str) {
    let stage = Stage::set("node-down").await;
    stage.pretend_ready("OVN", "ovn").await;
    stage.apply("Libvirt", "libvirt", json!({"release": "2026.2"})).await;
    let (witness, none) = (Witness::new(), Patience { answer: Duration::ZERO, ..Patience::default() });
    let _running = stage.run_with(&["libvirt"], Arc::clone(&witness) as Arc<dyn Prober>, none);
    stage.play_daemons(2, 2, 2).await;
    let _: Libvirt = stage.until("libvirt", |l| reason(l) == "Ready").await;

    witness.finds(found);
    let conf = json!({"libvirt": {"listen_tcp": 1}});
    stage.apply("Libvirt", "libvirt", json!({"release": "2026.2", "conf": conf})).await;
    let _: Libvirt = stage.until("libvirt", |l| message(l).contains("not seen by Kubernetes yet")).await;
    stage.play_daemons(2, 2, 0).await;
    let libvirt: Libvirt = stage.until("libvirt", |l| ["NotAnswering", "RollingBack"].contains(&&*reason(l))).await;
    assert_eq!(reason(&libvirt), becomes);
}
