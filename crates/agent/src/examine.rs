use std::{cmp::Reverse, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, LogParams},
};

use crate::{
    Cause, Evidence, SLOW, Severity, events, log,
    pod::{self, Finding},
};

/// How much of a log is read: lines, and bytes of them. The bytes are counted from the first of the lines, so a log
/// whose lines are too long is read again with few.
const LOG: [(i64, i64); 2] = [(200, 128 * 1024), (8, 64 * 1024)];
/// Longest text that Kubernetes has about a problem.
const PROBLEM: usize = 400;

/// Looks at the selected pods: what is wrong with the one that tells most, and why. `None` while all of them serve,
/// are done or are merely starting.
///
/// A failing pod comes before a slow one, a newer before an older. What `Slow` calls for is the caller's decision.
/// A log or warnings that can't be read leave evidence that says less, no error.
pub async fn examine(
    client: &Client,
    namespace: &str,
    selector: &str,
    now: Timestamp,
) -> Result<Option<Evidence>, kube::Error> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let found = pods.list(&ListParams::default().labels(selector)).await?.items;
    let Some((pod, finding)) = choose(&found, now) else {
        return Ok(None);
    };
    let mut evidence = Evidence {
        object: format!("Pod {}", pod.name_any()),
        container: finding.container.clone(),
        problem: finding.problem.clone(),
        log: Vec::new(),
        cause: finding.cause,
        since: finding.since,
        created: pod.creation_timestamp().map(|t| t.0),
        severity: finding.severity,
    };
    if finding.log {
        add_log(&mut evidence, &pods, pod).await;
    }
    if finding.events {
        add_warning(&mut evidence, client, pod).await;
    }
    // killed from outside, and nobody says that a probe wanted it
    if evidence.cause.is_none() && finding.log && finding.events && finding.severity == Severity::Failing {
        evidence.cause = Some(Cause::OutOfMemory);
    }
    evidence.problem = log::cut(&log::blackened(&evidence.problem), PROBLEM);
    Ok(Some(evidence))
}

/// How soon to look again at what began at that time, so that slowness is seen when it is [`SLOW`] and everything
/// within two minutes.
///
/// Nothing tells when a pod hangs, and the status of a Job or Deployment does not change when an image is missing.
pub fn look_again(begun: Timestamp, now: Timestamp) -> Duration {
    /// Containers start some time after their Job or Deployment, and each is slow [`SLOW`] after its own start.
    const STEP: Duration = Duration::from_secs(20);
    /// Not at the very moment: clocks differ.
    const MARGIN: Duration = Duration::from_secs(1);
    let elapsed = Duration::try_from(now.duration_since(begun)).unwrap_or_default();
    match (SLOW + MARGIN).checked_sub(elapsed) {
        Some(left) if left > Duration::ZERO => left.clamp(MARGIN, STEP),
        _ => STEP,
    }
}

/// Whether a container of the pod fails, by the pod's status alone.
pub fn fails(pod: &Pod) -> bool {
    pod::failing_container(pod).is_some()
}

/// The pod that tells most.
fn choose(pods: &[Pod], now: Timestamp) -> Option<(&Pod, Finding)> {
    let findings = pods.iter().filter(|pod| !replaced(pod, pods)).filter_map(|pod| Some((pod, pod::look(pod, now)?)));
    findings.min_by_key(|(pod, finding)| (Reverse(finding.severity), Reverse(pod.creation_timestamp()), pod.name_any()))
}

/// Whether a dead pod has been replaced by a newer one: an evicted pod stays as a record. One of a Job says why the
/// Job had to try again.
fn replaced(pod: &Pod, pods: &[Pod]) -> bool {
    let dead = pod.status.as_ref().is_some_and(|s| s.phase.as_deref() == Some("Failed"));
    let owner = |pod: &Pod| pod.owner_references().iter().find(|o| o.controller == Some(true)).map(|o| o.uid.clone());
    let newer = |other: &Pod| {
        other.creation_timestamp() > pod.creation_timestamp() && owner(other).is_some() && owner(other) == owner(pod)
    };
    dead && !pod::of_job(pod) && pods.iter().any(newer)
}

async fn add_log(evidence: &mut Evidence, pods: &Api<Pod>, pod: &Pod) {
    let container = evidence.container.clone().unwrap_or_default();
    // one that has just been started again has said nothing yet
    for previous in [false, true] {
        let lines = log::meaningful(&read_log(pods, &pod.name_any(), &container, previous).await);
        if !lines.is_empty() {
            evidence.cause = evidence.cause.or_else(|| Cause::of_log(&lines));
            evidence.log = log::shortened(&lines);
            return;
        }
    }
}

async fn read_log(pods: &Api<Pod>, pod: &str, container: &str, previous: bool) -> String {
    let mut read = String::new();
    for (lines, bytes) in LOG {
        let params = LogParams {
            container: Some(container.to_owned()),
            tail_lines: Some(lines),
            limit_bytes: Some(bytes),
            previous,
            ..LogParams::default()
        };
        match pods.logs(pod, &params).await {
            Ok(text) => read = text,
            Err(error) => {
                tracing::debug!(%error, pod, container, "no log");
                break;
            }
        }
        if i64::try_from(read.len()).is_ok_and(|length| length < bytes) {
            break;
        }
    }
    read
}

async fn add_warning(evidence: &mut Evidence, client: &Client, pod: &Pod) {
    match events::newest(client, pod).await {
        Ok(Some(warning)) => {
            evidence.problem = format!("{}; {}", evidence.problem, warning.text);
            evidence.cause = evidence.cause.or(warning.cause);
        }
        Ok(None) => {}
        Err(error) => tracing::debug!(%error, pod = pod.name_any(), "no events"),
    }
}

#[cfg(test)]
mod tests;
