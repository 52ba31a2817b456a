//! `Glance`: the image service.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::service::{CommonSpec, ServiceStatus, Settings, VolumeClaim, service_kind};

/// The image service: stores the disk images that VMs boot from.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.kupenstack.io",
    version = "v1",
    kind = "Glance",
    plural = "glances",
    namespaced,
    category = "kupenstack",
    status = "ServiceStatus",
    derive = "PartialEq",
    validation = Rule::new("self.metadata.name == 'glance'").message("the name must be 'glance': one cloud has one Glance")
)]
#[serde(rename_all = "camelCase")]
pub struct GlanceSpec {
    /// What all services share.
    #[serde(flatten)]
    pub common: CommonSpec,

    /// Number of pods by component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<GlanceReplicas>,

    /// The volume that holds the images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeClaim>,
}

/// Pods by component of `Glance`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GlanceReplicas {
    /// API servers. 0 stops the service and keeps its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub api: Option<i32>,
}

/// `Glance` as a part of `OpenStack`: every field that is set here is set on the `Glance` object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GlanceTemplate {
    /// Whether the cloud has this service; true when absent. A service that is switched off is removed, its data is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,

    /// Configuration, images, placement.
    #[serde(flatten)]
    pub settings: Settings,

    /// Number of pods by component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<GlanceReplicas>,

    /// The volume that holds the images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeClaim>,
}

service_kind!(Glance {
    fn replicas(&self) -> BTreeMap<&'static str, i32> {
        let set = self.spec.replicas.as_ref();
        set.and_then(|r| r.api).map(|n| ("api", n)).into_iter().collect()
    }

    fn volume(&self) -> Option<&VolumeClaim> {
        self.spec.volume.as_ref()
    }
});
