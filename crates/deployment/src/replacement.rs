//! Pods of an earlier version on nodes with VMs: replaced one at a time, once somebody asks for it.
//!
//! Their `DaemonSets` leave them as they are, since VMs may feel each restart. A demand names the revision that is wanted,
//! so that it is met once, and says nothing about the change that comes after it.

use k8s_openapi::api::{apps::v1::DaemonSet, core::v1::Pod};
use kube::{Api, Client, ResourceExt, api::ListParams};
use kupenstack_core::Outcome;

use crate::{
    Error,
    engine::Note,
    pass::Pass,
    removal::delete_this,
    workloads::{self, RELEASE_GROUP},
};

/// How a demand was met in one pass.
enum Turn {
    /// No pod is of an earlier version.
    Over,
    /// This one, on this node, was deleted, and so many are left.
    Replaced { pod: String, node: String, left: usize },
    /// This has to be well first.
    Waits(String),
}

impl Pass<'_> {
    /// How a person has pods replaced that are of an earlier version; `None` when there are none.
    pub(crate) fn how_to_replace(&self) -> Option<String> {
        let revision = self.status.revision.filter(|_| self.workloads.outdated)?;
        Some(format!("they are replaced one by one when the annotation {} is \"{revision}\"", crate::REPLACE))
    }

    /// Replaces the next pod if that is asked for, now that the service is proven to work; `outcome` if there is nothing to
    /// replace.
    pub(crate) async fn replaced_or(&mut self, outcome: Outcome) -> Result<Outcome, Error> {
        let revision = self.status.revision.map(|number| number.to_string());
        let is_asked_for = revision.is_some() && revision == self.request.replace;
        if !is_asked_for || !outcome.is_done() || !self.workloads.outdated {
            return Ok(outcome);
        }
        let message = match self.turn().await? {
            Turn::Over => return Ok(outcome),
            Turn::Waits(unwell) => format!("the next pod of an earlier version is replaced when all is well: {unwell}"),
            Turn::Replaced { pod, node, left } => {
                let message = format!("Pod {pod} on node {node} runs an earlier version and is replaced, as asked for");
                self.note(Note::normal("PodReplaced", &message));
                format!("{message}; {left} more to come")
            }
        };
        Ok(Outcome::waiting("ReplacingPods", message))
    }

    async fn turn(&self) -> Result<Turn, Error> {
        let missing = self.missing_dependencies();
        if !missing.is_empty() {
            return Ok(Turn::Waits(missing.join(", ")));
        }
        // one at a time whichever service it is of: the pods of a node need each other
        let _alone = self.engine.replacing.lock().await;
        next(&self.engine.client, &self.request.namespace, &self.release.name).await
    }
}

/// Deletes the next pod of the release that is of an earlier version, unless another pod on some node is missing, ends or is
/// not ready. Node by node, so that a version that does not work is seen on one of them.
async fn next(client: &Client, namespace: &str, release: &str) -> Result<Turn, Error> {
    let of_any = ListParams::default().labels(RELEASE_GROUP);
    let sets: Vec<DaemonSet> = workloads::listed(client, namespace, &of_any).await?;
    let pods: Vec<Pod> = workloads::listed(client, namespace, &of_any).await?;
    if let Some(unwell) = sets.iter().find_map(|set| unwell(set, &pods)) {
        return Ok(Turn::Waits(unwell));
    }
    let is_ours = |set: &&DaemonSet| set.labels().get(RELEASE_GROUP).is_some_and(|of| of == release);
    let ours: Vec<_> = sets.iter().filter(is_ours).filter(|set| workloads::on_delete(set)).collect();
    let of_release = ListParams::default().labels(&format!("{RELEASE_GROUP}={release}"));
    let newest = workloads::newest_revisions(client, namespace, &of_release, &ours).await?;
    let mut earlier: Vec<_> = pods.iter().filter(|pod| workloads::is_earlier(pod, &newest)).collect();
    earlier.sort_by_key(|pod| (node(pod), pod.name_any()));
    let Some(pod) = earlier.first() else { return Ok(Turn::Over) };
    delete_this(&Api::<Pod>::namespaced(client.clone(), namespace), &pod.name_any(), pod.uid()).await?;
    Ok(Turn::Replaced { pod: pod.name_any(), node: node(pod), left: earlier.len() - 1 })
}

/// What of the set's pods is not well.
fn unwell(set: &DaemonSet, pods: &[Pod]) -> Option<String> {
    let of_set: Vec<_> = pods.iter().filter(|pod| workloads::is_of(*pod, set.uid().as_ref())).collect();
    if let Some(pod) = of_set.iter().find(|pod| pod.metadata.deletion_timestamp.is_some() || !is_ready(pod)) {
        return Some(format!("Pod {} on node {} is not ready", pod.name_any(), node(pod)));
    }
    let wanted = set.status.as_ref().map_or(0, |status| status.desired_number_scheduled);
    let missing = usize::try_from(wanted).is_ok_and(|wanted| of_set.len() < wanted);
    missing.then(|| format!("DaemonSet {} has {} of {wanted} pods", set.name_any(), of_set.len()))
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn node(pod: &Pod) -> String {
    pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default()
}
