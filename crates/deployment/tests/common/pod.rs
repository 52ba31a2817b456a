//! Pods as a kubelet sees them.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use kube::ResourceExt;
use serde_json::{Value, json};

const NOW: &str = "2026-01-01T00:00:00Z";

/// What has to be there before a pod's containers start.
#[derive(Debug, Default)]
pub(crate) struct Needs {
    pub(crate) maps: BTreeSet<String>,
    pub(crate) secrets: BTreeSet<String>,
    pub(crate) jobs: BTreeSet<String>,
    pub(crate) services: BTreeSet<String>,
}

impl Needs {
    pub(crate) fn of(spec: &PodSpec) -> Self {
        let mut needs = Self::default();
        for volume in spec.volumes.iter().flatten() {
            needs.maps.extend(volume.config_map.iter().map(|m| m.name.clone()));
            needs.secrets.extend(volume.secret.iter().filter_map(|s| s.secret_name.clone()));
            for source in volume.projected.iter().flat_map(|p| p.sources.iter().flatten()) {
                needs.maps.extend(source.config_map.iter().map(|m| m.name.clone()));
                needs.secrets.extend(source.secret.iter().map(|s| s.name.clone()));
            }
        }
        for container in spec.init_containers.iter().flatten().chain(&spec.containers) {
            needs.references(container);
        }
        for env in spec.init_containers.iter().flatten().flat_map(|c| c.env.iter().flatten()) {
            let list = env.value.iter().flat_map(|v| v.split(',')).map(str::trim).filter(|v| !v.is_empty());
            match env.name.as_str() {
                "DEPENDENCY_JOBS" => needs.jobs.extend(list.map(str::to_owned)),
                "DEPENDENCY_SERVICE" => {
                    needs.services.extend(list.filter_map(|s| s.rsplit(':').next()).map(str::to_owned));
                }
                _ => {}
            }
        }
        // every namespace of a whole cluster has it
        needs.maps.remove("kube-root-ca.crt");
        needs
    }

    fn references(&mut self, container: &Container) {
        for source in container.env.iter().flatten().filter_map(|e| e.value_from.as_ref()) {
            self.secrets.extend(source.secret_key_ref.iter().map(|s| s.name.clone()));
            self.maps.extend(source.config_map_key_ref.iter().map(|m| m.name.clone()));
        }
        for source in container.env_from.iter().flatten() {
            self.secrets.extend(source.secret_ref.iter().map(|s| s.name.clone()));
            self.maps.extend(source.config_map_ref.iter().map(|m| m.name.clone()));
        }
    }
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|s| s.conditions.iter().flatten());
    conditions.into_iter().any(|c| c.type_ == "Ready" && c.status == "True")
}

/// The Deployment or StatefulSet that a pod is of.
pub(crate) fn workload(pod: &Pod) -> String {
    let owner = pod.owner_references().first().map(|o| o.name.clone()).unwrap_or_default();
    let hash = pod.labels().get("pod-template-hash").map(|hash| format!("-{hash}")).unwrap_or_default();
    owner.strip_suffix(&hash).unwrap_or(&owner).to_owned()
}

/// The status of a pod that is `Running`, `Succeeded` or `Crashing`.
pub(crate) fn status(pod: &Pod, how: &str) -> Value {
    let (phase, ready, state) = match how {
        "Running" => ("Running", true, json!({"running": {"startedAt": NOW}})),
        "Succeeded" => ("Succeeded", false, json!({"terminated": {"exitCode": 0, "reason": "Completed"}})),
        _ => ("Running", false, json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}})),
    };
    let containers: Vec<_> = pod.spec.iter().flat_map(|s| &s.containers).collect();
    let statuses: Vec<_> = containers
        .iter()
        .map(|c| {
            json!({
                "name": c.name, "image": c.image, "imageID": "sha256:0", "ready": ready, "started": ready,
                "restartCount": u8::from(how == "Crashing"), "state": state,
            })
        })
        .collect();
    let condition = |kind: &str, yes: bool| json!({"type": kind, "status": if yes { "True" } else { "False" }, "lastTransitionTime": NOW});
    json!({"status": {
        "phase": phase, "startTime": NOW, "containerStatuses": statuses,
        "conditions": [
            condition("PodScheduled", true), condition("Initialized", true),
            condition("ContainersReady", ready), condition("Ready", ready),
        ],
    }})
}

/// The status of a job whose pod succeeded.
pub(crate) fn completed() -> Value {
    let condition =
        |kind: &str| json!({"type": kind, "status": "True", "lastProbeTime": NOW, "lastTransitionTime": NOW});
    json!({"status": {
        "startTime": NOW, "completionTime": NOW, "succeeded": 1, "uncountedTerminatedPods": {},
        "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
    }})
}
