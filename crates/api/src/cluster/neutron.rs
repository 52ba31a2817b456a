//! `Neutron`: the networks of VMs.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    nodes::{ComputeNodes, Nodes},
    service::{CommonSpec, Own, ServiceStatus, Settings, service_kind},
};

/// The network service: networks, routers, addresses and security groups, made by OVN.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.kupenstack.io",
    version = "v1",
    kind = "Neutron",
    plural = "neutrons",
    namespaced,
    category = "kupenstack",
    status = "ServiceStatus",
    derive = "PartialEq",
    validation = Rule::new("self.metadata.name == 'neutron'").message("the name must be 'neutron': one cloud has one Neutron")
)]
#[serde(rename_all = "camelCase")]
pub struct NeutronSpec {
    /// What all services share.
    #[serde(flatten)]
    pub common: CommonSpec,

    /// Number of pods by component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<NeutronReplicas>,

    /// Networks and nodes.
    #[serde(flatten)]
    pub networks: NeutronNetworks,
}

/// `Neutron` as a part of `OpenStack`: every field that is set here is set on the `Neutron` object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NeutronTemplate {
    /// Whether the cloud has this service; false when absent. A service that is switched off is removed, its data is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,

    /// Configuration, images, placement.
    #[serde(flatten)]
    pub settings: Settings,

    /// Number of pods by component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<NeutronReplicas>,

    /// Networks and nodes.
    #[serde(flatten)]
    pub networks: NeutronNetworks,
}

/// Pods by component of `Neutron`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NeutronReplicas {
    /// API servers. 0 stops the service and keeps its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub api: Option<i32>,
    /// Servers for what agents ask of Neutron.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub rpc: Option<i32>,
}

/// Networks outside, and the nodes that VMs are told of themselves on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NeutronNetworks {
    /// Networks outside that are used as they are, by the names that OVN's `bridgeMappings` has for them; `[public]` when
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 16),
        inner(length(max = 64), regex(pattern = r"^[A-Za-z0-9_.-]+$")),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub flat_networks: Option<Vec<String>>,

    /// Where VMs are.
    #[serde(flatten)]
    pub nodes: ComputeNodes,
}

service_kind!(Neutron {
    fn replicas(&self) -> BTreeMap<&'static str, i32> {
        let Some(set) = &self.spec.replicas else { return BTreeMap::new() };
        [("api", set.api), ("rpc_server", set.rpc)].into_iter().filter_map(|(name, n)| Some((name, n?))).collect()
    }

    fn nodes(&self) -> BTreeMap<&'static str, Nodes> {
        BTreeMap::from([("ovn_metadata_agent", Nodes::from(&self.spec.networks.nodes))])
    }

    fn own(&self) -> Own {
        Own::Neutron(self.spec.networks.clone())
    }
});
