//! What runs on nodes with VMs.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::api::{
    apps::v1::{ControllerRevision, DaemonSet},
    core::v1::{Pod, ServiceAccount},
};
use kube::{
    Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
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
        self.play_set("libvirt", nodes, ready, updated).await;
    }

    async fn play_set(&self, name: &str, nodes: i32, ready: i32, updated: i32) {
        let sets = self.api::<DaemonSet>();
        let set = eventually("the DaemonSet", || async { sets.get_opt(name).await.unwrap() }).await;
        let status = json!({"status": {"observedGeneration": set.metadata.generation, "desiredNumberScheduled": nodes,
            "currentNumberScheduled": nodes, "numberMisscheduled": 0, "numberReady": ready, "numberAvailable": ready,
            "updatedNumberScheduled": updated}});
        sets.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
    }
}

impl Stage {
    /// Plays Kubernetes: a version of the set, which the newest pods are of.
    async fn play_version(&self, number: i64, hash: &str) {
        let owner = self.api::<DaemonSet>().get("libvirt").await.unwrap().controller_owner_ref(&()).unwrap();
        let revision = json!({
            "metadata": {"name": format!("libvirt-{hash}"), "ownerReferences": [owner],
                "labels": {"release_group": "libvirt", "controller-revision-hash": hash}},
            "data": {}, "revision": number,
        });
        let revisions = self.api::<ControllerRevision>();
        revisions.create(&PostParams::default(), &serde_json::from_value(revision).unwrap()).await.unwrap();
    }

    /// The same: a pod of that version on a node.
    async fn play_pod(&self, node: &str, hash: &str) {
        let owner = self.api::<DaemonSet>().get("libvirt").await.unwrap().controller_owner_ref(&()).unwrap();
        let pod = json!({
            "metadata": {"name": format!("{hash}-{node}"), "ownerReferences": [owner],
                "labels": {"release_group": "libvirt", "controller-revision-hash": hash}},
            "spec": {"nodeName": node, "automountServiceAccountToken": false, "containers": [{"name": "c", "image": "i"}]},
        });
        self.api::<Pod>().create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    }

    async fn play_ready(&self, pod: &str) {
        let ready = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
        self.api::<Pod>().patch_status(pod, &PatchParams::default(), &Patch::Merge(&ready)).await.unwrap();
    }

    /// The kubelet has ended a pod.
    async fn play_end(&self, pod: &str) {
        self.api::<Pod>().delete(pod, &DeleteParams::default().grace_period(0)).await.unwrap();
    }

    /// Names of the pods, with a mark of those that are ending.
    async fn pods(&self) -> Vec<String> {
        let pods = self.api::<Pod>().list(&ListParams::default()).await.unwrap();
        let told = |pod: &Pod| match pod.metadata.deletion_timestamp {
            Some(_) => format!("{} ends", pod.name_any()),
            None => pod.name_any(),
        };
        pods.iter().map(told).collect()
    }

    async fn ask_for(&self, revision: &str) {
        let patch = json!({"metadata": {"annotations": {"kupenstack.io/replace-pods": revision}}});
        self.api::<Libvirt>().patch("libvirt", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_of_an_earlier_version_are_replaced_one_by_one_when_that_is_asked_for() {
    let stage = Stage::set("replaced").await;
    // no controller makes it here, and the API server takes no pod without one
    let account = serde_json::from_value(json!({"metadata": {"name": "default"}})).unwrap();
    stage.api::<ServiceAccount>().create(&PostParams::default(), &account).await.unwrap();
    stage.pretend_ready("OVN", "ovn").await;
    stage.apply("Libvirt", "libvirt", json!({"release": "2026.2"})).await;
    let _running = stage.run(&["libvirt"]);
    stage.play_daemons(2, 2, 2).await;
    let _: Libvirt = stage.until("libvirt", |l| reason(l) == "Ready").await;
    stage.play_version(1, "old").await;
    for node in ["a", "b"] {
        stage.play_pod(node, "old").await;
        stage.play_ready(&format!("old-{node}")).await;
    }
    let conf = json!({"libvirt": {"listen_tcp": 1}});
    stage.apply("Libvirt", "libvirt", json!({"release": "2026.2", "conf": conf})).await;
    let _: Libvirt = stage.until("libvirt", |l| message(l).contains("not seen by Kubernetes yet")).await;
    stage.play_version(2, "new").await;
    stage.play_daemons(2, 2, 0).await;
    let how = "they are replaced one by one when the annotation kupenstack.io/replace-pods is \"2\"";
    let _: Libvirt = stage.until("libvirt", |l| reason(l) == "Ready" && message(l).ends_with(how)).await;
    assert_eq!(stage.pods().await, ["old-a", "old-b"]);

    stage.ask_for("2").await;
    let told = "Pod old-a on node a runs an earlier version and is replaced, as asked for; 1 more to come";
    let _: Libvirt = stage.until("libvirt", |l| reason(l) == "ReplacingPods" && message(l) == told).await;
    // Kubernetes has not counted it out yet
    stage.play_daemons(2, 2, 1).await;
    let waits = "Pod old-a on node a is not ready";
    let _: Libvirt = stage.until("libvirt", |l| reason(l) == "ReplacingPods" && message(l).ends_with(waits)).await;
    assert_eq!(stage.pods().await, ["old-a ends", "old-b"]);
    stage.play_end("old-a").await;
    stage.play_pod("a", "new").await;
    stage.play_daemons(2, 1, 1).await;
    let _: Libvirt = stage.until("libvirt", |l| message(l).contains("1/2 pods ready")).await;
    assert_eq!(stage.pods().await, ["new-a", "old-b"]);
    stage.play_ready("new-a").await;
    stage.play_daemons(2, 2, 1).await;
    let _: Libvirt =
        stage.until("libvirt", |l| message(l).contains("Pod old-b on node b runs an earlier version")).await;
    stage.play_end("old-b").await;
    stage.play_pod("b", "new").await;
    stage.play_ready("new-b").await;
    stage.play_daemons(2, 2, 2).await;
    let _: Libvirt = stage.until("libvirt", |l| reason(l) == "Ready" && message(l).ends_with("answers")).await;

    // what was asked for then is not asked for now
    stage.apply("Libvirt", "libvirt", json!({"release": "2026.2"})).await;
    let _: Libvirt = stage.until("libvirt", |l| message(l).contains("not seen by Kubernetes yet")).await;
    stage.play_version(3, "newest").await;
    stage.play_daemons(2, 2, 0).await;
    let _: Libvirt = stage.until("libvirt", |l| reason(l) == "Ready" && message(l).contains("is \"3\"")).await;
    assert_eq!(stage.pods().await, ["new-a", "new-b"]);
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

/// What pods leave on their nodes goes by pods of the same sort, as long as the service runs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_are_cleaned_before_what_ran_there_is_removed() {
    let stage = Stage::set("cleaned").await;
    stage.pretend_ready("OVN", "ovn").await;
    stage.apply("Libvirt", "libvirt", json!({"release": "2026.2"})).await;
    let running = stage.run(&["libvirt"]);
    stage.play_daemons(2, 2, 2).await;
    let _: Libvirt = stage.until("libvirt", |l| reason(l) == "Ready").await;
    stage.delete("Libvirt", "libvirt").await;
    let sets = stage.api::<DaemonSet>();
    let cleaners =
        eventually("those who clean", || async { sets.get_opt("libvirt-clean").await.unwrap() }).await.spec.unwrap();
    let (pod, like) = (cleaners.template.spec.unwrap(), sets.get("libvirt").await.unwrap().spec.unwrap());
    let container = &pod.containers[0];
    assert!(container.command.as_ref().unwrap()[2].starts_with("bash /scripts/clean-node.sh"), "{container:?}");
    let like = like.template.spec.unwrap();
    assert_eq!(
        (&pod.node_selector, pod.host_pid, &pod.volumes, &container.security_context),
        (&like.node_selector, like.host_pid, &like.volumes, &like.containers[0].security_context)
    );
    assert_ne!(container.readiness_probe, like.containers[0].readiness_probe);
    for (nodes, clean, told) in [(2, 0, "0 of 2 nodes are clean"), (2, 1, "1 of 2 nodes are clean")] {
        stage.play_set("libvirt-clean", nodes, clean, clean).await;
        let told = format!("waits until its nodes are clean: {told}");
        let _: Libvirt = stage.until("libvirt", |l| reason(l) == "Deleting" && message(l) == told).await;
        assert_eq!(stage.releases().await, 1, "it runs on meanwhile");
    }
    stage.play_set("libvirt-clean", 2, 2, 2).await;
    stage.gone("Libvirt", "libvirt").await;
    running.stop().await;
    assert_eq!(sets.list(&ListParams::default()).await.unwrap().items.len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_status_that_is_written_while_drift_is_looked_for_is_none() {
    let mut stage = Stage::set("meanwhile").await;
    stage.pretend_ready("OVN", "ovn").await;
    stage.apply("Libvirt", "libvirt", json!({"release": "2026.2"})).await;
    let sets = stage.api::<DaemonSet>();
    let writes = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&writes);
    stage.meddle(move |request| {
        let comparison = request.uri().path().ends_with("/daemonsets/libvirt")
            && request.uri().query().is_some_and(|query| query.contains("dryRun=All"));
        let (sets, writes) = (sets.clone(), Arc::clone(&counted));
        async move {
            let misscheduled = if comparison { *writes.lock().unwrap() + 1 } else { return };
            if misscheduled <= 3 {
                let status = json!({"status": {"numberMisscheduled": misscheduled}});
                sets.patch_status("libvirt", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
                *writes.lock().unwrap() = misscheduled;
            }
        }
    });
    let _running = stage.run(&["libvirt"]);
    stage.play_daemons(1, 1, 1).await;
    eventually("three writes", || async { (*writes.lock().unwrap() == 3).then_some(()) }).await;
    let libvirt: Libvirt = stage.until("libvirt", |l| reason(l) == "Ready").await;
    assert_eq!(libvirt.status.unwrap().revision, Some(1), "{:?}", stage.events("DriftRepaired").await);
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
    stage.play_set("libvirt-clean", 1, 1, 1).await;
    eventually("the end", || async {
        stage.api::<Libvirt>().get_opt("libvirt").await.unwrap().is_none().then_some(())
    })
    .await;
    assert!(stage.api::<DaemonSet>().get_opt("libvirt").await.unwrap().is_none());
}

/// How far they are is told, and how long all of them take together is no reason to take a change back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lp_2161760_the_pods_of_100_nodes_may_come_one_after_the_other() {
    let stage = Stage::set("hundred").await;
    stage.pretend_ready("OVN", "ovn").await;
    stage.apply("Libvirt", "libvirt", json!({"release": "2026.2"})).await;
    let none = Duration::ZERO;
    let none = Patience { pods: none, jobs: none, answer: none, surroundings: none };
    let _running = stage.run_with(&["libvirt"], Witness::new(), none);
    stage.play_daemons(100, 100, 100).await;
    let _: Libvirt = stage.until("libvirt", |l| reason(l) == "Ready").await;
    let conf = json!({"libvirt": {"listen_tcp": 1}});
    stage.apply("Libvirt", "libvirt", json!({"release": "2026.2", "conf": conf})).await;
    let _: Libvirt = stage.until("libvirt", |l| message(l).contains("not seen by Kubernetes yet")).await;
    for ready in [1, 50, 99] {
        stage.play_daemons(100, ready, ready).await;
        let told = format!("{ready}/100 pods ready");
        let libvirt: Libvirt =
            stage.until("libvirt", |l| message(l).contains(&told) || reason(l) == "RollingBack").await;
        assert!(message(&libvirt).contains(&told), "{}", message(&libvirt));
    }
    stage.play_daemons(100, 100, 100).await;
    let _: Libvirt = stage.until("libvirt", |l| reason(l) == "Ready").await;
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
