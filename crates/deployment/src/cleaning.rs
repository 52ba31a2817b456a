//! What pods leave on their nodes so that VMs outlive them is taken from there before the service goes: bridges, network
//! namespaces, disks.
//!
//! Only pods like those that made it can do that, while they still run. So a `DaemonSet` is made after the one that runs, on
//! the same nodes and with the same rights there, and is there only until all its pods have done their work. The program of the
//! operator itself has no rights on nodes.

use k8s_openapi::api::{
    apps::v1::DaemonSet,
    core::v1::{ExecAction, Probe},
};
use kube::{Api, Client, ResourceExt, api::ObjectMeta};
use kupenstack_runtime::{Failure, apply};

use crate::{
    Error,
    jobs::{self, SERVICE},
    removal::delete,
    service::{Request, Service},
    workloads,
};

/// Label of the pods; the value is the service.
const CLEANS: &str = "kupenstack.io/cleans";
/// There when a node is clean, and as long as the pod.
const DONE: &str = "/tmp/node-is-clean";
/// What the script of a chart ends with when there are VMs, which were left to run on: nothing of theirs is taken away.
const LEFT_ALONE: u8 = 3;

/// Has the nodes cleaned. What is waited for; nothing once all are clean, or there is nobody who could do it.
pub(crate) async fn advance(
    client: &Client,
    service: &dyn Service,
    request: &Request,
) -> Result<Option<String>, Error> {
    let sets: Api<DaemonSet> = Api::namespaced(client.clone(), &request.namespace);
    let Some(name) = service.cleans_nodes_like() else { return Ok(None) };
    let Some(running) = sets.get_opt(name).await?.filter(|set| set.metadata.deletion_timestamp.is_none()) else {
        return Ok(None);
    };
    let Some(cleaners) = sets.get_opt(&cleaners(name)).await? else {
        return match apply::create_if_absent(&sets, &like(running, service.kind().object(), request)).await {
            Err(failure) if is_of_an_ending_namespace(&failure) => Ok(None),
            result => result.map(|_| Some("nodes are to be cleaned".to_owned())).map_err(Error::from),
        };
    };
    let Some(lag) = lag(&cleaners) else { return Ok(None) };
    let selector = format!("{CLEANS}={}", service.kind().object());
    let evidence = workloads::trouble(client, &request.namespace, &selector).await?;
    Ok(Some(match evidence {
        Some(evidence) => format!("{lag}: {evidence}"),
        None => lag,
    }))
}

/// Removes what cleaned the nodes.
pub(crate) async fn end(client: &Client, service: &dyn Service, namespace: &str) -> Result<(), Error> {
    match service.cleans_nodes_like() {
        Some(name) => delete::<DaemonSet>(&Api::namespaced(client.clone(), namespace), &cleaners(name)).await,
        None => Ok(()),
    }
}

fn cleaners(name: &str) -> String {
    format!("{name}-clean")
}

/// Everything in it is being deleted by Kubernetes, what could clean nodes too.
fn is_of_an_ending_namespace(failure: &Failure) -> bool {
    failure.to_string().contains("because it is being terminated")
}

/// How many nodes are still to be cleaned.
fn lag(cleaners: &DaemonSet) -> Option<String> {
    let status = cleaners.status.clone().unwrap_or_default();
    if status.observed_generation < cleaners.metadata.generation {
        return Some("nodes are to be cleaned".to_owned());
    }
    let (nodes, clean) = (status.desired_number_scheduled, status.number_ready);
    (clean < nodes).then(|| format!("{clean} of {nodes} nodes are clean"))
}

/// The set of those who clean, on the nodes of a set that runs.
fn like(running: DaemonSet, service: &str, request: &Request) -> DaemonSet {
    let label = || (CLEANS.to_owned(), service.to_owned());
    let name = cleaners(&running.name_any());
    let mut spec = running.spec.unwrap_or_default();
    spec.selector.match_labels = Some([label()].into());
    spec.update_strategy = None;
    spec.template.metadata = Some(ObjectMeta { labels: Some([label()].into()), ..ObjectMeta::default() });
    if let Some(pod) = &mut spec.template.spec {
        jobs::drop_wait(pod);
        pod.termination_grace_period_seconds = Some(1);
        for container in &mut pod.containers {
            let script =
                format!("bash /scripts/clean-node.sh || [ $? = {LEFT_ALONE} ]; touch {DONE}; exec sleep infinity");
            container.command = Some(["bash", "-euc", &script].map(ToOwned::to_owned).to_vec());
            let done = ["test", "-e", DONE].map(ToOwned::to_owned).to_vec();
            let exec = Some(ExecAction { command: Some(done) });
            container.readiness_probe = Some(Probe { exec, period_seconds: Some(1), ..Probe::default() });
            // a node that is full has to be cleaned too
            (container.args, container.lifecycle, container.ports, container.resources) = (None, None, None, None);
            (container.liveness_probe, container.startup_probe) = (None, None);
        }
    }
    DaemonSet {
        metadata: ObjectMeta {
            name: Some(name),
            labels: Some([label(), (SERVICE.to_owned(), service.to_owned())].into()),
            owner_references: Some(vec![request.owner.clone()]),
            ..ObjectMeta::default()
        },
        spec: Some(spec),
        status: None,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    #[rstest]
    #[case::unseen(json!({}), Some("nodes are to be cleaned"))]
    #[case::seen_before(json!({"observedGeneration": 1, "desiredNumberScheduled": 0}), Some("nodes are to be cleaned"))]
    #[case::one_of_two(json!({"observedGeneration": 2, "desiredNumberScheduled": 2, "numberReady": 1}),
        Some("1 of 2 nodes are clean"))]
    #[case::all(json!({"observedGeneration": 2, "desiredNumberScheduled": 2, "numberReady": 2}), None)]
    #[case::no_node(json!({"observedGeneration": 2, "desiredNumberScheduled": 0, "numberReady": 0}), None)]
    fn nodes_are_clean_when_all_pods_say_so(#[case] status: Value, #[case] expected: Option<&str>) {
        let mut all = json!({"currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0});
        all.as_object_mut().unwrap().extend(status.as_object().unwrap().clone());
        let set = json!({"metadata": {"generation": 2}, "spec": {"selector": {}, "template": {}}, "status": all});
        assert_eq!(lag(&serde_json::from_value(set).unwrap()).as_deref(), expected);
    }
}
