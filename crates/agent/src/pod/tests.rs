use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::Placement;

const START: &str = "2026-01-01T00:00:00Z";

fn after(seconds: i64) -> Timestamp {
    START.parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds)
}

fn pod(owner: &str, status: &Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": {
            "name": "p", "creationTimestamp": START,
            "ownerReferences": [{"apiVersion": "v1", "kind": owner, "name": "o", "uid": "u", "controller": true}],
        },
        "spec": {"nodeName": "n", "containers": [], "initContainers": [{"name": "sidecar", "restartPolicy": "Always"}]},
        "status": status,
    }))
    .unwrap()
}

fn container(name: &str, ready: bool, restarts: i32, state: &Value, last: &Value) -> Value {
    json!({"name": name, "image": "", "imageID": "", "ready": ready, "restartCount": restarts, "state": state, "lastState": last})
}

/// A pod of a Deployment with one container.
fn with(ready: bool, restarts: i32, state: &Value, last: &Value) -> Pod {
    pod("ReplicaSet", &json!({"phase": "Running", "containerStatuses": [container("c", ready, restarts, state, last)]}))
}

fn running() -> Value {
    json!({"running": {"startedAt": START}})
}

fn end(reason: &str, code: i32) -> Value {
    json!({"terminated": {"reason": reason, "exitCode": code, "startedAt": START, "finishedAt": START}})
}

fn waiting(reason: &str, message: &str) -> Value {
    json!({"waiting": {"reason": reason, "message": message}})
}

fn told(pod: &Pod, seconds: i64) -> (String, Option<Cause>, Severity) {
    let finding = look(pod, after(seconds)).unwrap();
    (finding.problem, finding.cause, finding.severity)
}

#[rstest]
#[case(&waiting("ImagePullBackOff", "not found"), &json!({}), 0, "ImagePullBackOff: not found", Some(Cause::ImagePull), false)]
#[case(&waiting("CreateContainerConfigError", "secret \"x\" not found"), &json!({}), 0, "CreateContainerConfigError: secret \"x\" not found", Some(Cause::MissingConfiguration), false)]
#[case(&waiting("CrashLoopBackOff", "back-off 40s"), &end("Error", 1), 3, "CrashLoopBackOff, Error, exit code 1, 3 restarts", None, true)]
#[case(&waiting("CrashLoopBackOff", "back-off 40s"), &end("OOMKilled", 137), 1, "CrashLoopBackOff, OOMKilled, exit code 137, 1 restart", Some(Cause::OutOfMemory), true)]
#[case(&end("Error", 1), &json!({}), 0, "Error, exit code 1", None, true)]
#[case(&end("OOMKilled", 137), &json!({}), 0, "OOMKilled, exit code 137", Some(Cause::OutOfMemory), true)]
#[case(&end("Error", 127), &json!({}), 0, "Error, exit code 127", Some(Cause::ProgramMissing), true)]
#[case(&running(), &end("Error", 1), 2, "runs again after Error, exit code 1, 2 restarts", None, true)]
fn a_container_that_fails_is_told_at_once(
    #[case] state: &Value,
    #[case] last: &Value,
    #[case] restarts: i32,
    #[case] problem: &str,
    #[case] cause: Option<Cause>,
    #[case] log: bool,
) {
    let pod = with(false, restarts, state, last);
    assert_eq!(told(&pod, 0), (problem.to_owned(), cause, Severity::Failing));
    let finding = look(&pod, after(0)).unwrap();
    assert_eq!((finding.container.as_deref(), finding.log), (Some("c"), log));
}

#[rstest]
#[case(with(false, 0, &waiting("ContainerCreating", ""), &json!({})))]
#[case(with(false, 0, &waiting("PodInitializing", ""), &json!({})))]
#[case(with(false, 0, &running(), &json!({})))]
#[case(with(false, 1, &running(), &end("Error", 1)))]
#[case(with(true, 9, &running(), &end("Error", 1)))]
#[case(pod("Job", &json!({"phase": "Succeeded", "containerStatuses": [container("c", false, 0, &end("Completed", 0), &json!({}))]})))]
#[case(pod("Job", &json!({"phase": "Running", "containerStatuses": [container("c", true, 0, &running(), &json!({}))]})))]
fn what_starts_serves_or_is_done_is_no_trouble(#[case] pod: Pod) {
    assert_eq!(look(&pod, after(59)), None);
}

#[test]
fn a_killed_container_may_have_failed_its_probe() {
    let finding = look(&with(false, 0, &end("Error", 137), &json!({})), after(0)).unwrap();
    assert_eq!((finding.events, finding.log, finding.cause), (true, true, None));
}

#[test]
fn what_the_scheduler_refuses_is_slow_at_once() {
    let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available: 1 Insufficient cpu.", "lastTransitionTime": START});
    let pod = pod("ReplicaSet", &json!({"phase": "Pending", "conditions": [condition]}));
    let cause = Some(Cause::Unschedulable(Placement::Resources));
    let problem = "can't be scheduled: 0/1 nodes are available: 1 Insufficient cpu.";
    assert_eq!(told(&pod, 0), (problem.to_owned(), cause, Severity::Slow));
}

#[rstest]
#[case("Evicted", "The node was low on resource: ephemeral-storage.", Some(Cause::VolumeFull))]
#[case("Evicted", "The node was low on resource: memory.", Some(Cause::OutOfMemory))]
#[case("DeadlineExceeded", "Pod was active longer than specified deadline", None)]
fn a_pod_can_fail_as_a_whole(#[case] reason: &str, #[case] message: &str, #[case] cause: Option<Cause>) {
    let pod = pod("Job", &json!({"phase": "Failed", "reason": reason, "message": message}));
    assert_eq!(told(&pod, 0), (format!("{reason}: {message}"), cause, Severity::Failing));
}

/// Kind of the owner, status, what is told after two minutes, container, whether there is a log.
#[rstest]
#[case("Job", json!({"phase": "Running", "containerStatuses": [container("c", true, 0, &running(), &json!({}))]}), "has been running and is not done after 2 minutes", Some("c"), true)]
#[case("ReplicaSet", json!({"phase": "Pending", "initContainerStatuses": [container("init", false, 0, &running(), &json!({}))], "containerStatuses": [container("c", false, 0, &waiting("PodInitializing", ""), &json!({}))]}), "has been running and is not done after 2 minutes", Some("init"), true)]
#[case("ReplicaSet", json!({"phase": "Running", "initContainerStatuses": [container("sidecar", true, 0, &running(), &json!({}))], "containerStatuses": [container("c", false, 0, &running(), &json!({}))]}), "runs but has not been ready for 2 minutes", Some("c"), true)]
#[case("ReplicaSet", json!({"phase": "Pending", "containerStatuses": [container("c", false, 0, &waiting("ContainerCreating", ""), &json!({}))]}), "is still being created after 2 minutes", Some("c"), false)]
#[case("Job", json!({"phase": "Pending", "initContainerStatuses": [container("init", true, 0, &end("Completed", 0), &json!({}))], "containerStatuses": [container("c", false, 0, &waiting("PodInitializing", ""), &json!({}))]}), "is still being created after 2 minutes", Some("c"), false)]
#[case("ReplicaSet", json!({"phase": "Pending"}), "has a node but has not been started for 2 minutes", None, false)]
#[case("ReplicaSet", json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "False", "reason": "ReadinessGatesNotReady", "lastTransitionTime": START}], "containerStatuses": [container("c", true, 0, &running(), &json!({}))]}), "has not been ready for 2 minutes: ReadinessGatesNotReady", None, false)]
fn what_hangs_is_slow_after_a_minute(
    #[case] owner: &str,
    #[case] status: Value,
    #[case] problem: &str,
    #[case] container: Option<&str>,
    #[case] log: bool,
) {
    let pod = pod(owner, &status);
    assert_eq!(look(&pod, after(59)), None);
    assert!(look(&pod, after(60)).is_some());
    let finding = look(&pod, after(120)).unwrap();
    assert_eq!((finding.problem.as_str(), finding.severity), (problem, Severity::Slow));
    assert_eq!((finding.container.as_deref(), finding.log, finding.events), (container, log, true));
    assert_eq!(finding.since, Some(after(0)));
}

#[test]
fn what_was_ready_once_is_unready_since_then() {
    let condition = json!({"type": "ContainersReady", "status": "False", "lastTransitionTime": after(600).to_string()});
    let containers = [container("c", false, 0, &running(), &json!({}))];
    let pod =
        pod("ReplicaSet", &json!({"phase": "Running", "conditions": [condition], "containerStatuses": containers}));
    assert_eq!(look(&pod, after(659)), None);
    assert_eq!(told(&pod, 660).0, "runs but has not been ready for 1 minute");
}

#[test]
fn a_pod_without_a_node_waits_for_one_a_minute() {
    let mut pod = pod("ReplicaSet", &json!({"phase": "Pending"}));
    pod.spec.as_mut().unwrap().node_name = None;
    assert_eq!(look(&pod, after(59)), None);
    assert_eq!(told(&pod, 3 * 3600).0, "has had no node for 3 hours");
}

#[test]
fn a_pod_that_does_not_end_is_slow_a_minute_after_its_grace_period() {
    let mut pod = with(false, 0, &end("Error", 1), &json!({}));
    pod.metadata.deletion_timestamp = serde_json::from_value(json!(START)).unwrap();
    assert_eq!(look(&pod, after(59)), None);
    assert_eq!(told(&pod, 60).0, "should have ended 1 minute ago; its node does not report that it has ended");
    pod.metadata.finalizers = Some(vec!["example.com/hold".to_owned()]);
    assert_eq!(told(&pod, 60).0, "should have ended 1 minute ago; held by the finalizers example.com/hold");
}
