//! `Libvirt`: what starts VMs on their nodes.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    nodes::{ComputeNodes, Nodes},
    service::{CommonSpec, ServiceStatus, Settings, flat_rules, service_kind},
};

/// libvirtd on every node with VMs: starts them, and leaves them running when it ends itself.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.kupenstack.io",
    version = "v1",
    kind = "Libvirt",
    plural = "libvirts",
    namespaced,
    category = "kupenstack",
    status = "ServiceStatus",
    derive = "PartialEq",
    validation = Rule::new("self.metadata.name == 'libvirt'").message("the name must be 'libvirt': one cloud has one Libvirt")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = flat_rules("Libvirt", &["libvirt", "qemu"])))]
pub struct LibvirtSpec {
    /// What all services share.
    #[serde(flatten)]
    pub common: CommonSpec,

    /// Where VMs are.
    #[serde(flatten)]
    pub nodes: ComputeNodes,
}

/// `Libvirt` as a part of `OpenStack`: every field that is set here is set on the `Libvirt` object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = flat_rules("Libvirt", &["libvirt", "qemu"])))]
pub struct LibvirtTemplate {
    /// Whether the cloud has this service; false when absent. A service that is switched off is removed, its data is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,

    /// Configuration, images, placement.
    #[serde(flatten)]
    pub settings: Settings,

    /// Where VMs are.
    #[serde(flatten)]
    pub nodes: ComputeNodes,
}

service_kind!(Libvirt {
    fn nodes(&self) -> BTreeMap<&'static str, Nodes> {
        BTreeMap::from([("libvirt", Nodes::from(&self.spec.nodes))])
    }
});
