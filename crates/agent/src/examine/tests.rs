use serde_json::{Value, json};

use super::*;

fn pod(name: &str, minute: u32, owner: &str, phase: &str, containers: &Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": {
            "name": name, "creationTimestamp": format!("2026-01-01T00:{minute:02}:00Z"),
            "ownerReferences": [{"apiVersion": "v1", "kind": owner, "name": "o", "uid": "u", "controller": true}],
        },
        "spec": {"nodeName": "n", "containers": []},
        "status": {"phase": phase, "containerStatuses": containers},
    }))
    .unwrap()
}

fn failed() -> Value {
    json!([{"name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": {"terminated": {"exitCode": 1}}}])
}

fn running() -> Value {
    json!([{"name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}])
}

fn chosen(pods: &[Pod]) -> Option<String> {
    choose(pods, "2026-01-01T01:00:00Z".parse().unwrap()).map(|(pod, _)| pod.name_any())
}

#[test]
fn a_failing_pod_comes_before_a_slow_one_and_a_newer_before_an_older() {
    let mut pods = vec![
        pod("slow", 9, "StatefulSet", "Running", &running()),
        pod("old", 1, "StatefulSet", "Running", &failed()),
        pod("new", 2, "StatefulSet", "Running", &failed()),
    ];
    assert_eq!(chosen(&pods).unwrap(), "new");
    pods.truncate(1);
    assert_eq!(chosen(&pods).unwrap(), "slow");
    assert_eq!(chosen(&[]), None);
}

#[test]
fn a_dead_pod_that_was_replaced_counts_for_a_job_only() {
    let serving = json!([{"name": "c", "image": "", "imageID": "", "ready": true, "restartCount": 0, "state": {"running": {"startedAt": "2026-01-01T00:59:30Z"}}}]);
    let pods = |owner| [pod("dead", 1, owner, "Failed", &failed()), pod("next", 2, owner, "Running", &serving)];
    assert_eq!(chosen(&pods("ReplicaSet")), None);
    assert_eq!(chosen(&pods("ReplicaSet")[..1]).unwrap(), "dead");
    assert_eq!(chosen(&pods("Job")).unwrap(), "dead");
}

#[test]
fn slowness_is_seen_soon_after_a_minute() {
    let begun: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let at = |seconds: u64| look_again(begun, begun + Duration::from_secs(seconds)).as_secs();
    assert_eq!([at(0), at(41), at(50), at(60), at(61), at(3600)], [20, 20, 11, 1, 20, 20]);
    assert_eq!(look_again(begun, begun - Duration::from_secs(5)).as_secs(), 20, "clocks differ");
}
