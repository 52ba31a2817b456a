//! Whether a release's pods serve, and what is wrong with pods that don't.

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    core::v1::{ContainerStatus, Pod},
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, LogParams, Preconditions},
};
use kupenstack_core::conditions::truncate;

use crate::Error;

/// Lines of a failed container's log that are shown.
const LOG_LINES: i64 = 4;
/// Characters of them at most.
const LOG_LENGTH: usize = 600;

/// Where a release's workloads stand.
#[derive(Debug)]
pub(crate) enum Look {
    Done,
    /// What is waited for.
    Under {
        message: String,
        serving: bool,
    },
    /// What went wrong.
    Trouble {
        message: String,
        pod: PodTrouble,
        serving: bool,
    },
}

/// What is known of a pod in trouble.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PodTrouble {
    /// When the pod was made.
    pub(crate) created: Option<Timestamp>,
    /// Whether the cause may lie outside of what the pod was made from: a registry, a full node.
    pub(crate) of_surroundings: bool,
}

impl Look {
    /// Whether every workload that should have pods has one that serves.
    pub(crate) fn serving(&self) -> bool {
        match self {
            Self::Done => true,
            Self::Under { serving, .. } | Self::Trouble { serving, .. } => *serving,
        }
    }
}

/// Looks at every Deployment and StatefulSet of the release.
pub(crate) async fn look(client: &Client, namespace: &str, release: &str) -> Result<Look, Error> {
    let of_release = ListParams::default().labels(&format!("release_group={release}"));
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let stateful_sets: Api<StatefulSet> = Api::namespaced(client.clone(), namespace);
    let deployments = deployments.list(&of_release).await?.items;
    let stateful_sets = stateful_sets.list(&of_release).await?.items;
    let waiting: Vec<String> = deployments
        .iter()
        .filter_map(|d| deployment_lag(d).map(|lag| format!("Deployment {}: {lag}", d.name_any())))
        .chain(
            stateful_sets
                .iter()
                .filter_map(|s| stateful_set_lag(s).map(|lag| format!("StatefulSet {}: {lag}", s.name_any()))),
        )
        .collect();
    if waiting.is_empty() {
        return Ok(Look::Done);
    }
    let serving = !(deployments.is_empty() && stateful_sets.is_empty())
        && deployments.iter().all(deployment_serves)
        && stateful_sets.iter().all(stateful_set_serves);
    let selector = format!("release_group={release},!batch.kubernetes.io/job-name");
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    replace_stuck(&pods, &stateful_sets).await?;
    Ok(match trouble(client, namespace, &selector).await? {
        Some((message, pod)) => Look::Trouble { message, pod, serving },
        None => Look::Under { message: waiting.join("; "), serving },
    })
}

fn deployment_serves(deployment: &Deployment) -> bool {
    let wanted = deployment.spec.as_ref().and_then(|s| s.replicas).unwrap_or(1);
    wanted == 0 || deployment.status.as_ref().and_then(|s| s.available_replicas).unwrap_or(0) > 0
}

fn stateful_set_serves(set: &StatefulSet) -> bool {
    let wanted = set.spec.as_ref().and_then(|s| s.replicas).unwrap_or(1);
    wanted == 0 || set.status.as_ref().and_then(|s| s.ready_replicas).unwrap_or(0) > 0
}

/// Deletes pods of an earlier revision of a `StatefulSet` that fail: Kubernetes waits for such a pod to become ready
/// before it makes the one that would be.
async fn replace_stuck(pods: &Api<Pod>, sets: &[StatefulSet]) -> Result<(), Error> {
    for set in sets {
        let Some(update) = set.status.as_ref().and_then(|s| s.update_revision.as_ref()) else { continue };
        let labels = set.spec.as_ref().and_then(|s| s.selector.match_labels.clone()).unwrap_or_default();
        let selector = labels.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(",");
        for pod in pods.list(&ListParams::default().labels(&selector)).await? {
            let earlier = pod.labels().get("controller-revision-hash").is_some_and(|of| of != update);
            if !earlier || pod.metadata.deletion_timestamp.is_some() || failing_container(&pod).is_none() {
                continue;
            }
            tracing::warn!(pod = pod.name_any(), "a failing pod of an earlier revision is replaced");
            let this_one = Preconditions { uid: pod.uid(), ..Preconditions::default() };
            let params = DeleteParams { preconditions: Some(this_one), ..DeleteParams::default() };
            match pods.delete(&pod.name_any(), &params).await {
                Err(kube::Error::Api(e)) if e.code == 404 || e.code == 409 => {}
                result => drop(result?),
            }
        }
    }
    Ok(())
}

fn deployment_lag(deployment: &Deployment) -> Option<String> {
    let wanted = deployment.spec.as_ref().and_then(|s| s.replicas).unwrap_or(1);
    let status = deployment.status.clone().unwrap_or_default();
    if status.observed_generation < deployment.metadata.generation {
        return Some("not seen by Kubernetes yet".to_owned());
    }
    let updated = status.updated_replicas.unwrap_or(0);
    let old = status.replicas.unwrap_or(0) - updated;
    let available = status.available_replicas.unwrap_or(0);
    if updated == wanted && old == 0 && available == wanted {
        return None;
    }
    let rest = if old > 0 { format!(", {old} of the earlier version to go") } else { String::new() };
    Some(format!("{available}/{wanted} pods available{rest}"))
}

fn stateful_set_lag(set: &StatefulSet) -> Option<String> {
    let wanted = set.spec.as_ref().and_then(|s| s.replicas).unwrap_or(1);
    let status = set.status.clone().unwrap_or_default();
    if status.observed_generation < set.metadata.generation {
        return Some("not seen by Kubernetes yet".to_owned());
    }
    let current = status.update_revision == status.current_revision || status.updated_replicas == Some(wanted);
    let ready = status.ready_replicas.unwrap_or(0);
    (ready != wanted || !current || status.replicas != wanted).then(|| format!("{ready}/{wanted} pods ready"))
}

/// The first thing that is wrong with the selected pods: pod, container, what Kubernetes says, the last lines of its
/// log. `None` while they are merely starting.
pub(crate) async fn trouble(
    client: &Client,
    namespace: &str,
    selector: &str,
) -> Result<Option<(String, PodTrouble)>, Error> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    for pod in pods.list(&ListParams::default().labels(selector)).await? {
        if pod.metadata.deletion_timestamp.is_some() {
            continue;
        }
        let created = pod.creation_timestamp().map(|t| t.0);
        if let Some(why) = unschedulable(&pod) {
            let message = format!("pod {} can't be scheduled: {why}", pod.name_any());
            return Ok(Some((message, PodTrouble { created, of_surroundings: true })));
        }
        if let Some((container, why, crashed)) = failing_container(&pod) {
            let log = if crashed { last_log(&pods, &pod.name_any(), &container).await } else { String::new() };
            let message = format!("pod {}, container {container}: {why}{log}", pod.name_any());
            return Ok(Some((message, PodTrouble { created, of_surroundings: !crashed })));
        }
    }
    Ok(None)
}

fn unschedulable(pod: &Pod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let scheduled = conditions.iter().find(|c| c.type_ == "PodScheduled" && c.status == "False")?;
    (scheduled.reason.as_deref() == Some("Unschedulable")).then(|| scheduled.message.clone().unwrap_or_default())
}

/// Container, what is wrong, and whether it ran and failed (so that its log says why).
fn failing_container(pod: &Pod) -> Option<(String, String, bool)> {
    let status = pod.status.as_ref()?;
    let mut containers =
        status.init_container_statuses.iter().flatten().chain(status.container_statuses.iter().flatten());
    containers.find_map(failing)
}

fn failing(container: &ContainerStatus) -> Option<(String, String, bool)> {
    let state = container.state.as_ref()?;
    let name = container.name.clone();
    if let Some(waiting) = &state.waiting {
        let reason = waiting.reason.clone().unwrap_or_default();
        // being created and initialised is normal, everything else is not
        if matches!(reason.as_str(), "" | "ContainerCreating" | "PodInitializing") {
            return None;
        }
        let message = waiting.message.clone().map(|m| format!(": {m}")).unwrap_or_default();
        return Some((name, format!("{reason}{message}"), container.restart_count > 0));
    }
    let ended = state.terminated.as_ref().filter(|t| t.exit_code != 0)?;
    let reason = ended.reason.clone().unwrap_or_default();
    Some((name, format!("{reason}, exit code {}", ended.exit_code), true))
}

/// The log's last lines. A log that can't be had (the pod has just gone) leaves the rest of the message as it is.
async fn last_log(pods: &Api<Pod>, pod: &str, container: &str) -> String {
    for previous in [false, true] {
        let params = LogParams {
            container: Some(container.to_owned()),
            tail_lines: Some(LOG_LINES),
            limit_bytes: Some(16 * 1024),
            previous,
            ..LogParams::default()
        };
        match pods.logs(pod, &params).await {
            Ok(log) if !log.trim().is_empty() => {
                return format!("; its log ends: {}", truncate(log.trim(), LOG_LENGTH));
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%error, pod, container, "no log"),
        }
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(status: &serde_json::Value) -> Deployment {
        serde_json::from_value(json!({"metadata": {"generation": 2}, "spec": {"replicas": 2, "selector": {}, "template": {}}, "status": status}))
            .unwrap()
    }

    #[test]
    fn a_deployment_is_rolled_out_when_all_pods_are_new_and_available() {
        let done = json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2});
        assert_eq!(deployment_lag(&deployment(&done)), None);
        let old_left = json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 2, "availableReplicas": 2});
        assert!(deployment_lag(&deployment(&old_left)).unwrap().contains("1 of the earlier version"));
        let stale = json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2});
        assert!(deployment_lag(&deployment(&stale)).is_some());
    }

    fn pod(status: &serde_json::Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "p"}, "status": status})).unwrap()
    }

    #[test]
    fn a_starting_container_is_no_trouble_a_failing_one_is() {
        let starting = json!({"containerStatuses": [{"name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": {"waiting": {"reason": "ContainerCreating"}}}]});
        assert_eq!(failing_container(&pod(&starting)), None);
        let pull = json!({"containerStatuses": [{"name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}}]});
        assert_eq!(failing_container(&pod(&pull)), Some(("c".into(), "ImagePullBackOff: not found".into(), false)));
        let crash = json!({"initContainerStatuses": [{"name": "i", "image": "", "imageID": "", "ready": false, "restartCount": 1, "state": {"terminated": {"exitCode": 1, "reason": "Error"}}}]});
        assert_eq!(failing_container(&pod(&crash)), Some(("i".into(), "Error, exit code 1".into(), true)));
    }
}
