//! Whether a release's pods serve, and what is wrong with pods that don't.

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    core::v1::Pod,
};
use kube::{Api, Client, ResourceExt, api::ListParams};
use kupenstack_agent::{Evidence, Severity};

use crate::{Error, removal::delete_this};

/// Where a release's workloads stand.
#[derive(Debug)]
pub(crate) enum Look {
    Done,
    /// What is waited for, and the pod that takes longer than it should.
    Under {
        message: String,
        slow: Option<Evidence>,
        serving: bool,
    },
    /// What went wrong.
    Trouble {
        evidence: Evidence,
        serving: bool,
    },
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
        Some(evidence) if evidence.severity == Severity::Failing => Look::Trouble { evidence, serving },
        slow => Look::Under { message: waiting.join("; "), slow, serving },
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
            if !earlier || pod.metadata.deletion_timestamp.is_some() || !kupenstack_agent::fails(&pod) {
                continue;
            }
            tracing::warn!(pod = pod.name_any(), "a failing pod of an earlier revision is replaced");
            delete_this(pods, &pod.name_any(), pod.uid()).await?;
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
    // a quota or a pod security standard: there is no pod that could tell
    let refused = status.conditions.iter().flatten().find(|c| c.type_ == "ReplicaFailure" && c.status == "True");
    let refused = refused.and_then(|c| c.message.as_ref()).map(|m| format!("; Kubernetes refuses its pods: {m}"));
    Some(format!("{available}/{wanted} pods available{rest}{}", refused.unwrap_or_default()))
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

/// What is wrong with the selected pods, or what they hang at.
pub(crate) async fn trouble(client: &Client, namespace: &str, selector: &str) -> Result<Option<Evidence>, Error> {
    Ok(kupenstack_agent::examine(client, namespace, selector, Timestamp::now()).await?)
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
        let refused = json!({"observedGeneration": 2, "conditions": [
            {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"}]});
        assert!(deployment_lag(&deployment(&refused)).unwrap().ends_with("refuses its pods: exceeded quota"));
        let stale = json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2});
        assert!(deployment_lag(&deployment(&stale)).is_some());
    }
}
