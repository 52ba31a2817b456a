//! Whether a release's pods serve, and what is wrong with pods that don't.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use kube::{Api, Client, ResourceExt, api::ListParams};
use kupenstack_agent::{Evidence, Severity};

use crate::Error;

/// Where a release's workloads stand.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Rollout {
    Done,
    /// What is waited for.
    Under(String),
    /// What went wrong.
    Trouble(String),
}

/// Looks at every Deployment and StatefulSet of the release.
pub(crate) async fn rollout(client: &Client, namespace: &str, release: &str) -> Result<Rollout, Error> {
    let of_release = ListParams::default().labels(&format!("release_group={release}"));
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let stateful_sets: Api<StatefulSet> = Api::namespaced(client.clone(), namespace);
    let waiting: Vec<String> = deployments
        .list(&of_release)
        .await?
        .iter()
        .filter_map(|d| deployment_lag(d).map(|lag| format!("Deployment {}: {lag}", d.name_any())))
        .chain(
            stateful_sets
                .list(&of_release)
                .await?
                .iter()
                .filter_map(|s| stateful_set_lag(s).map(|lag| format!("StatefulSet {}: {lag}", s.name_any()))),
        )
        .collect();
    if waiting.is_empty() {
        return Ok(Rollout::Done);
    }
    let selector = format!("release_group={release},!batch.kubernetes.io/job-name");
    Ok(match trouble(client, namespace, &selector).await? {
        Some(evidence) if evidence.severity == Severity::Failing => Rollout::Trouble(evidence.to_string()),
        Some(slow) => Rollout::Under(format!("{}; {slow}", waiting.join("; "))),
        None => Rollout::Under(waiting.join("; ")),
    })
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
        let stale = json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2});
        assert!(deployment_lag(&deployment(&stale)).is_some());
    }
}
