//! What runs on nodes with VMs.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::api::apps::v1::DaemonSet;
use kube::{
    ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
};
use kupenstack_api::cluster::Libvirt;
use kupenstack_core::conditions;
use kupenstack_deployment::{NotProven, Prober};
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

/// Whether users have something there.
#[derive(Default)]
struct Users(AtomicBool);

impl Prober for Users {
    fn prove<'a>(
        &'a self,
        _service: &'a str,
        _request: BoxFuture<'a, Result<(), NotProven>>,
    ) -> BoxFuture<'a, Result<(), NotProven>> {
        let used = self.0.load(Ordering::SeqCst);
        async move { if used { Err(NotProven::InUse("there are VMs".to_owned())) } else { Ok(()) } }.boxed()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_users_have_something_in_is_not_removed() {
    let stage = Stage::set("in-use").await;
    stage.pretend_ready("OVN", "ovn").await;
    stage.apply("Libvirt", "libvirt", json!({"release": "2026.2"})).await;
    let users = Arc::new(Users::default());
    let running = stage.run_with(&["libvirt"], Arc::clone(&users) as Arc<dyn Prober>);
    stage.play_daemons(1, 1, 1).await;
    let _: Libvirt = stage.until("libvirt", |l| reason(l) == "Ready").await;

    users.0.store(true, Ordering::SeqCst);
    stage.api::<Libvirt>().delete("libvirt", &DeleteParams::default()).await.unwrap();
    let libvirt: Libvirt = stage.until("libvirt", |l| reason(l) == "InUse").await;
    assert_eq!(message(&libvirt), "there are VMs");
    assert!(stage.api::<DaemonSet>().get_opt("libvirt").await.unwrap().is_some());

    users.0.store(false, Ordering::SeqCst);
    // another operator looks at once, this one in a while
    running.stop().await;
    let _running = stage.run_with(&["libvirt"], users);
    eventually("the end", || async {
        stage.api::<Libvirt>().get_opt("libvirt").await.unwrap().is_none().then_some(())
    })
    .await;
    assert!(stage.api::<DaemonSet>().get_opt("libvirt").await.unwrap().is_none());
}
