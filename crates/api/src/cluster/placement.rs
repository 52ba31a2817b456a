//! `Placement`: what resources hypervisors have.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::service::{CommonSpec, ServiceStatus, Settings, file_rules, service_kind};

/// The placement service: knows which hypervisor has how much left, and hands it out.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.kupenstack.io",
    version = "v1",
    kind = "Placement",
    plural = "placements",
    namespaced,
    category = "kupenstack",
    status = "ServiceStatus",
    derive = "PartialEq",
    validation = Rule::new("self.metadata.name == 'placement'").message("the name must be 'placement': one cloud has one Placement")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = file_rules("Placement", &["policy", "logging"])))]
pub struct PlacementSpec {
    /// What all services share.
    #[serde(flatten)]
    pub common: CommonSpec,

    /// Number of pods by component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<PlacementReplicas>,
}

/// Pods by component of `Placement`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlacementReplicas {
    /// API servers. 0 stops the service and keeps its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub api: Option<i32>,
}

/// `Placement` as a part of `OpenStack`: every field that is set here is set on the `Placement` object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = file_rules("Placement", &["policy", "logging"])))]
pub struct PlacementTemplate {
    /// Whether the cloud has this service; false when absent. A service that is switched off is removed, its data is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,

    /// Configuration, images, placement.
    #[serde(flatten)]
    pub settings: Settings,

    /// Number of pods by component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<PlacementReplicas>,
}

service_kind!(Placement {
    fn replicas(&self) -> BTreeMap<&'static str, i32> {
        let set = self.spec.replicas.as_ref();
        set.and_then(|r| r.api).map(|n| ("api", n)).into_iter().collect()
    }
});
