//! Whether a release's pods serve, and what is wrong with pods that don't.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{ControllerRevision, DaemonSet, Deployment, StatefulSet},
    core::v1::Pod,
};
use kube::{Api, Client, Resource, ResourceExt, api::ListParams, core::NamespaceResourceScope};
use kupenstack_agent::{Evidence, Severity};
use serde::de::DeserializeOwned;

use crate::{Error, removal::delete_this};

/// The update strategy of pods that are replaced when somebody deletes them, and not before.
const ON_DELETE: &str = "OnDelete";
/// Label of pods of `StatefulSets` and `DaemonSets`, and of the revisions that they are made of.
const REVISION: &str = "controller-revision-hash";
/// Label of a release's workloads and pods, with its name.
pub(crate) const RELEASE_GROUP: &str = "release_group";

/// What is told of workloads that are rolled out.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// On how many nodes the release's daemons run.
    pub(crate) nodes: u32,
    /// What a person may want to do.
    pub(crate) remarks: Vec<String>,
    /// Whether pods are of an earlier version, and stay so until they are deleted.
    pub(crate) outdated: bool,
}

/// Where a release's workloads stand.
#[derive(Debug)]
pub(crate) enum Look {
    Done(Done),
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
            Self::Done(_) => true,
            Self::Under { serving, .. } | Self::Trouble { serving, .. } => *serving,
        }
    }
}

/// The workloads of a release.
struct Workloads {
    deployments: Vec<Deployment>,
    stateful_sets: Vec<StatefulSet>,
    daemon_sets: Vec<DaemonSet>,
}

impl Workloads {
    async fn read(client: &Client, namespace: &str, of_release: &ListParams) -> Result<Self, Error> {
        Ok(Self {
            deployments: listed(client, namespace, of_release).await?,
            stateful_sets: listed(client, namespace, of_release).await?,
            daemon_sets: listed(client, namespace, of_release).await?,
        })
    }

    /// What is not yet as it should be.
    fn waiting(&self) -> Vec<String> {
        let deployments = self.deployments.iter().map(|d| ("Deployment", d.name_any(), deployment_lag(d)));
        let stateful_sets = self.stateful_sets.iter().map(|s| ("StatefulSet", s.name_any(), stateful_set_lag(s)));
        let daemon_sets = self.daemon_sets.iter().map(|d| ("DaemonSet", d.name_any(), daemon_set_lag(d)));
        let all = deployments.chain(stateful_sets).chain(daemon_sets);
        all.filter_map(|(kind, name, lag)| lag.map(|lag| format!("{kind} {name}: {lag}"))).collect()
    }

    fn serving(&self) -> bool {
        let none = self.deployments.is_empty() && self.stateful_sets.is_empty() && self.daemon_sets.is_empty();
        !none
            && self.deployments.iter().all(deployment_serves)
            && self.stateful_sets.iter().all(stateful_set_serves)
            && self.daemon_sets.iter().all(daemon_set_serves)
    }

    fn done(&self) -> Done {
        let desired = |d: &DaemonSet| d.status.as_ref().map_or(0, |s| s.desired_number_scheduled);
        let nodes = self.daemon_sets.iter().map(desired).max().and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
        let outdated = self.daemon_sets.iter().any(|set| on_delete(set) && earlier(set) > 0);
        Done { nodes, remarks: daemon_set_remarks(&self.daemon_sets), outdated }
    }
}

pub(crate) async fn listed<K>(client: &Client, namespace: &str, of_release: &ListParams) -> Result<Vec<K>, Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + std::fmt::Debug,
{
    Ok(Api::<K>::namespaced(client.clone(), namespace).list(of_release).await?.items)
}

/// Looks at every workload of the release.
pub(crate) async fn look(client: &Client, namespace: &str, release: &str) -> Result<Look, Error> {
    let of_release = ListParams::default().labels(&format!("{RELEASE_GROUP}={release}"));
    let workloads = Workloads::read(client, namespace, &of_release).await?;
    let waiting = workloads.waiting();
    if waiting.is_empty() {
        return Ok(Look::Done(workloads.done()));
    }
    let serving = workloads.serving();
    let selector = format!("{RELEASE_GROUP}={release},!batch.kubernetes.io/job-name");
    replace_stuck(client, namespace, &workloads, &of_release).await?;
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

fn daemon_set_serves(set: &DaemonSet) -> bool {
    let status = set.status.clone().unwrap_or_default();
    status.desired_number_scheduled == 0 || status.number_available.unwrap_or(0) > 0
}

/// Deletes pods of an earlier revision that fail, where nothing else would: Kubernetes waits for such a pod of a
/// `StatefulSet` to become ready before it makes the one that would be, and leaves a `DaemonSet`'s to whoever deletes it.
async fn replace_stuck(
    client: &Client,
    namespace: &str,
    workloads: &Workloads,
    of_release: &ListParams,
) -> Result<(), Error> {
    let outdated: Vec<_> = workloads.daemon_sets.iter().filter(|set| earlier(set) > 0).collect();
    let mut newest = newest_revisions(client, namespace, of_release, &outdated).await?;
    for set in &workloads.stateful_sets {
        newest.extend(set.uid().zip(set.status.as_ref().and_then(|s| s.update_revision.clone())));
    }
    replace_failing(client, namespace, of_release, &newest).await
}

/// The newest revision of each of these sets, by the set's UID.
pub(crate) async fn newest_revisions(
    client: &Client,
    namespace: &str,
    of_release: &ListParams,
    sets: &[&DaemonSet],
) -> Result<BTreeMap<String, String>, Error> {
    let mut newest = BTreeMap::new();
    if sets.is_empty() {
        return Ok(newest);
    }
    let revisions: Vec<ControllerRevision> = listed(client, namespace, of_release).await?;
    for set in sets {
        let of_set = |r: &&ControllerRevision| is_of(*r, set.uid().as_ref());
        let revision = revisions.iter().filter(of_set).max_by_key(|r| r.revision);
        newest.extend(set.uid().zip(revision.and_then(|r| r.labels().get(REVISION).cloned())));
    }
    Ok(newest)
}

/// Whether the pod is of another revision than the newest of its set. The revisions are by the sets' UIDs.
pub(crate) fn is_earlier(pod: &Pod, newest: &BTreeMap<String, String>) -> bool {
    let newest = newest.iter().find(|(set, _)| is_of(pod, Some(*set))).map(|(_, revision)| revision);
    newest.is_some_and(|newest| pod.labels().get(REVISION).is_some_and(|of| of != newest))
}

pub(crate) fn is_of(object: &impl ResourceExt, uid: Option<&String>) -> bool {
    object.owner_references().iter().any(|owner| Some(&owner.uid) == uid)
}

/// Deletes pods that fail and are not of their set's newest revision.
async fn replace_failing(
    client: &Client,
    namespace: &str,
    of_release: &ListParams,
    newest: &BTreeMap<String, String>,
) -> Result<(), Error> {
    if newest.is_empty() {
        return Ok(());
    }
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    for pod in pods.list(of_release).await? {
        if !is_earlier(&pod, newest) || pod.metadata.deletion_timestamp.is_some() || !kupenstack_agent::fails(&pod) {
            continue;
        }
        tracing::warn!(pod = pod.name_any(), "a failing pod of an earlier revision is replaced");
        delete_this(&pods, &pod.name_any(), pod.uid()).await?;
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

pub(crate) fn on_delete(set: &DaemonSet) -> bool {
    set.spec.as_ref().and_then(|s| s.update_strategy.as_ref()?.type_.as_deref()) == Some(ON_DELETE)
}

/// How many of the set's pods are of an earlier version.
fn earlier(set: &DaemonSet) -> i32 {
    set.status.as_ref().map_or(0, |s| s.current_number_scheduled - s.updated_number_scheduled.unwrap_or(0))
}

/// Pods that wait for somebody to delete them are no lag: they serve.
fn daemon_set_lag(set: &DaemonSet) -> Option<String> {
    let status = set.status.clone().unwrap_or_default();
    if status.observed_generation < set.metadata.generation {
        return Some("not seen by Kubernetes yet".to_owned());
    }
    let (ready, wanted, old) = (status.number_ready, status.desired_number_scheduled, earlier(set));
    let to_go = !on_delete(set) && old > 0;
    let rest = if to_go { format!(", {old} of the earlier version to go") } else { String::new() };
    (ready != wanted || to_go).then(|| format!("{ready}/{wanted} pods ready{rest}"))
}

/// What a person may want to do about sets that are rolled out.
fn daemon_set_remarks(sets: &[DaemonSet]) -> Vec<String> {
    // usually all of a service wait for the same label
    let mut without_nodes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut remarks = Vec::new();
    for set in sets {
        let wanted = set.status.as_ref().map_or(0, |s| s.desired_number_scheduled);
        if let (0, Some(labels)) = (wanted, node_labels(set)) {
            without_nodes.entry(labels).or_default().push(set.name_any());
        } else if on_delete(set) && earlier(set) > 0 {
            let (old, name) = (earlier(set), set.name_any());
            remarks.push(format!("{old} of {wanted} pods of DaemonSet {name} run an earlier version"));
        }
    }
    let told = |(labels, names): (String, Vec<String>)| {
        format!(
            "no node that takes pods has the label {labels}, so there are none of DaemonSet {}: label one; if it has a taint, \
             computeTolerations has to name that",
            names.join(", ")
        )
    };
    remarks.extend(without_nodes.into_iter().map(told));
    remarks
}

/// The labels of the nodes that the set is for; `None` when it is for those that others leave over, which may be none.
fn node_labels(set: &DaemonSet) -> Option<String> {
    let pod = set.spec.as_ref()?.template.spec.as_ref()?;
    let mut labels: Vec<_> = pod.node_selector.iter().flatten().map(|(k, v)| format!("{k}={v}")).collect();
    let required = pod
        .affinity
        .as_ref()
        .and_then(|a| a.node_affinity.as_ref()?.required_during_scheduling_ignored_during_execution.as_ref());
    for expression in
        required.iter().flat_map(|r| &r.node_selector_terms).flat_map(|t| t.match_expressions.iter().flatten())
    {
        if expression.operator == "NotIn" {
            return None;
        }
        labels.push(format!(
            "{}={}",
            expression.key,
            expression.values.iter().flatten().cloned().collect::<Vec<_>>().join("|")
        ));
    }
    Some(labels.join(","))
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
    fn daemon_set(strategy: &str, status: &serde_json::Value) -> DaemonSet {
        serde_json::from_value(json!({"metadata": {"name": "d", "generation": 2}, "spec": {
            "updateStrategy": {"type": strategy}, "selector": {},
            "template": {"spec": {"containers": [], "nodeSelector": {"role": "compute"}}},
        }, "status": status}))
        .unwrap()
    }

    fn counted(ready: i32, updated: i32) -> serde_json::Value {
        json!({"observedGeneration": 2, "desiredNumberScheduled": 3, "currentNumberScheduled": 3, "numberMisscheduled": 0,
            "numberReady": ready, "updatedNumberScheduled": updated})
    }

    #[test]
    fn pods_that_are_replaced_on_demand_are_no_lag_but_told() {
        let remarks = |set: &DaemonSet| daemon_set_remarks(std::slice::from_ref(set));
        let set = daemon_set("OnDelete", &counted(3, 1));
        assert_eq!(daemon_set_lag(&set), None);
        assert_eq!(remarks(&set), ["2 of 3 pods of DaemonSet d run an earlier version"]);
        assert_eq!(remarks(&daemon_set("OnDelete", &counted(3, 3))), Vec::<String>::new());
        assert_eq!(daemon_set_lag(&daemon_set("OnDelete", &counted(2, 3))).unwrap(), "2/3 pods ready");
        let rolling = daemon_set("RollingUpdate", &counted(3, 1));
        assert!(daemon_set_lag(&rolling).unwrap().ends_with("2 of the earlier version to go"));
        assert_eq!(remarks(&rolling), Vec::<String>::new());
        let mut stale = counted(3, 3);
        stale["observedGeneration"] = json!(1);
        assert!(daemon_set_lag(&daemon_set("OnDelete", &stale)).is_some());
    }

    #[test]
    fn no_node_with_the_label_is_told_and_fails_nothing() {
        let none = json!({"observedGeneration": 2, "desiredNumberScheduled": 0, "currentNumberScheduled": 0,
            "numberMisscheduled": 0, "numberReady": 0});
        let sets = vec![daemon_set("OnDelete", &none), daemon_set("OnDelete", &none)];
        let workloads = Workloads { deployments: Vec::new(), stateful_sets: Vec::new(), daemon_sets: sets };
        assert!(workloads.waiting().is_empty() && workloads.serving());
        let Done { nodes, remarks, outdated } = workloads.done();
        assert_eq!((nodes, outdated), (0, false));
        assert_eq!(
            remarks,
            [
                "no node that takes pods has the label role=compute, so there are none of DaemonSet d, d: label one; if it has a \
              taint, computeTolerations has to name that"
            ]
        );
    }
}
