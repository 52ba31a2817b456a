//! Evidence from a real API server, where the tests play scheduler and kubelet.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Event, Pod, ServiceAccount};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use kupenstack_agent::{Cause, Evidence, Placement, Severity, examine};
use kupenstack_testkit::ControlPlane;
use serde_json::{Value, json};

struct World {
    client: Client,
    namespace: String,
    begun: Timestamp,
}

impl World {
    async fn new(prefix: &str) -> Self {
        let plane = ControlPlane::shared().await;
        let namespace = plane.create_namespace(prefix).await;
        let client = plane.client().await;
        // no controller makes it here, and the API server takes no pod without one
        let account = serde_json::from_value(json!({"metadata": {"name": "default"}})).unwrap();
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), &namespace);
        accounts.create(&PostParams::default(), &account).await.unwrap();
        Self { client, namespace, begun: Timestamp::now() }
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// A pod with that status. It stays without a node: a log of it can't be had.
    async fn pod(&self, name: &str, labels: &Value, status: &Value) -> Pod {
        let pod = json!({
            "metadata": {"name": name, "labels": labels},
            "spec": {"automountServiceAccountToken": false, "containers": [{"name": "api", "image": "i"}]},
        });
        self.pods().create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
        let status = Patch::Merge(json!({"status": status}));
        self.pods().patch_status(name, &PatchParams::default(), &status).await.unwrap()
    }

    async fn warn(&self, pod: &Pod, reason: &str, message: &str) {
        let event = json!({
            "metadata": {"generateName": "e-"},
            "involvedObject": {"kind": "Pod", "namespace": self.namespace, "name": pod.name_any(), "uid": pod.uid()},
            "type": "Warning", "reason": reason, "message": message, "lastTimestamp": self.begun.to_string(),
        });
        let events: Api<Event> = Api::namespaced(self.client.clone(), &self.namespace);
        events.create(&PostParams::default(), &serde_json::from_value(event).unwrap()).await.unwrap();
    }

    /// What is seen that many seconds later.
    async fn seen(&self, seconds: i64) -> Option<Evidence> {
        let now = self.begun + SignedDuration::from_secs(seconds);
        examine(&self.client, &self.namespace, "app=x", now).await.unwrap()
    }

    fn scheduled(&self) -> Value {
        json!([{"type": "PodScheduled", "status": "True", "lastTransitionTime": self.begun.to_string()}])
    }
}

fn container(state: &Value) -> Value {
    json!([{"name": "api", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": state}])
}

#[tokio::test]
async fn pods_that_start_are_no_evidence_and_others_pods_are_not_looked_at() {
    let world = World::new("starting").await;
    let failed = container(&json!({"terminated": {"exitCode": 1, "reason": "Error"}}));
    world.pod("other", &json!({"app": "y"}), &json!({"phase": "Failed", "containerStatuses": failed})).await;
    let creating = container(&json!({"waiting": {"reason": "ContainerCreating"}}));
    let status = json!({"phase": "Pending", "conditions": world.scheduled(), "containerStatuses": creating});
    world.pod("p", &json!({"app": "x"}), &status).await;
    assert_eq!(world.seen(50).await, None);
}

#[tokio::test]
async fn a_missing_secret_is_told_by_the_pods_warnings() {
    let world = World::new("mount").await;
    let creating = container(&json!({"waiting": {"reason": "ContainerCreating"}}));
    let status = json!({"phase": "Pending", "conditions": world.scheduled(), "containerStatuses": creating});
    let pod = world.pod("p", &json!({"app": "x"}), &status).await;
    world
        .warn(&pod, "FailedMount", "MountVolume.SetUp failed for volume \"etc\" : secret \"keystone-etc\" not found")
        .await;
    let other =
        Pod { metadata: kube::api::ObjectMeta { uid: Some("another".to_owned()), ..pod.metadata.clone() }, ..pod };
    world.warn(&other, "FailedCreatePodSandBox", "of an earlier pod of that name").await;

    let evidence = world.seen(125).await.unwrap();
    assert_eq!(evidence.severity, Severity::Slow);
    assert_eq!(
        evidence.to_string(),
        "Pod p, container api: is still being created after 2 minutes; FailedMount: MountVolume.SetUp failed for volume \
         \"etc\" : secret \"keystone-etc\" not found; probably a Secret, a ConfigMap or a file of configuration is \
         missing: is its name right?"
    );
}

#[tokio::test]
async fn a_pod_that_no_node_takes_is_told_at_once() {
    let world = World::new("unschedulable").await;
    let condition = json!({
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/1 nodes are available: 1 Insufficient memory.", "lastTransitionTime": world.begun.to_string(),
    });
    world.pod("p", &json!({"app": "x"}), &json!({"phase": "Pending", "conditions": [condition]})).await;
    let evidence = world.seen(0).await.unwrap();
    assert_eq!(evidence.cause, Some(Cause::Unschedulable(Placement::Resources)));
    assert_eq!(evidence.since.unwrap().as_second(), world.begun.as_second());
    assert!(evidence.created.is_some());
}

#[tokio::test]
async fn a_failing_pod_comes_before_one_that_hangs_and_is_told_without_its_log_too() {
    let world = World::new("failing").await;
    let crashed =
        container(&json!({"terminated": {"exitCode": 137, "reason": "Error", "startedAt": world.begun.to_string()}}));
    let pod = world.pod("a", &json!({"app": "x"}), &json!({"phase": "Running", "containerStatuses": crashed})).await;
    world.pod("b", &json!({"app": "x"}), &json!({"phase": "Pending"})).await;
    let killed = world.seen(3600).await.unwrap();
    assert_eq!((killed.object.as_str(), killed.severity, killed.log.len()), ("Pod a", Severity::Failing, 0));
    assert_eq!(killed.cause, Some(Cause::OutOfMemory));

    world.warn(&pod, "Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 500").await;
    let unhealthy = world.seen(3600).await.unwrap();
    assert_eq!(unhealthy.cause, Some(Cause::ProbeFailing));
    assert!(unhealthy.problem.starts_with("Error, exit code 137; Unhealthy: Liveness probe failed"));
}
