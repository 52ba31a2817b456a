//! `OVN`: the virtual networks of VMs.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    nodes::{ComputeNodes, NodeSelector, Nodes, node_selector_schema},
    service::{CommonSpec, Own, ServiceStatus, Settings, VolumeClaim, flat_rules, service_kind},
};

/// OVN and Open vSwitch: the virtual networks of VMs, and where they meet networks outside.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.kupenstack.io",
    version = "v1",
    kind = "OVN",
    plural = "ovns",
    namespaced,
    category = "kupenstack",
    status = "ServiceStatus",
    derive = "PartialEq",
    validation = Rule::new("self.metadata.name == 'ovn'").message("the name must be 'ovn': one cloud has one OVN")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = flat_rules("OVN", &[])))]
pub struct OVNSpec {
    /// What all services share.
    #[serde(flatten)]
    pub common: CommonSpec,

    /// The volume of each of the two databases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeClaim>,

    /// Nodes and their network cards.
    #[serde(flatten)]
    pub networking: OVNNetworking,
}

/// `OVN` as a part of `OpenStack`: every field that is set here is set on the `OVN` object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = flat_rules("OVN", &[])))]
pub struct OVNTemplate {
    /// Whether the cloud has this service; false when absent. A service that is switched off is removed, its data is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,

    /// Configuration, images, placement.
    #[serde(flatten)]
    pub settings: Settings,

    /// The volume of each of the two databases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeClaim>,

    /// Nodes and their network cards.
    #[serde(flatten)]
    pub networking: OVNNetworking,
}

/// How nodes are joined to virtual networks and to those outside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OVNNetworking {
    /// What moves packets; the kernel when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datapath: Option<Datapath>,

    /// The network card that packets between nodes take; the card of the node's own address when absent. With the datapath
    /// `userspace` the card goes into a bridge and its address with it, so it has to be a card of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 15), regex(pattern = r"^[A-Za-z0-9_.@-]+$"))]
    pub tunnel_interface: Option<String>,

    /// Networks outside, by the names that Neutron's `flatNetworks` has for them, and the bridge that leads to each;
    /// `{public: br-ex}` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "bridges_schema")]
    pub bridge_mappings: Option<BTreeMap<String, String>>,

    /// Bridges, and the network card of each node that goes into them: `{br-ex: eth2}`. A card's addresses stay where they
    /// are.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "cards_schema")]
    pub external_interfaces: BTreeMap<String, String>,

    /// Where VMs are.
    #[serde(flatten)]
    pub nodes: ComputeNodes,

    /// The label of those nodes with VMs that lead to networks outside; all of them when absent.
    #[serde(default, skip_serializing_if = "NodeSelector::is_empty")]
    #[schemars(schema_with = "node_selector_schema")]
    pub gateway_nodes: NodeSelector,
}

/// What moves the packets of virtual networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Datapath {
    /// The kernel's switch: its module openvswitch has to be there.
    Kernel,
    /// Open vSwitch itself: anywhere, slower.
    Userspace,
}

service_kind!(OVN {
    fn volume(&self) -> Option<&VolumeClaim> {
        self.spec.volume.as_ref()
    }

    fn nodes(&self) -> BTreeMap<&'static str, Nodes> {
        let OVNNetworking { nodes, gateway_nodes, .. } = &self.spec.networking;
        // gateways are among the nodes with VMs, whose taints are borne with
        let gateways = Nodes { selector: gateway_nodes.clone(), ..Nodes::default() };
        BTreeMap::from([("ovn_controller", Nodes::from(nodes)), ("ovn_controller_gw", gateways)])
    }

    fn own(&self) -> Own {
        Own::Ovn(self.spec.networking.clone())
    }
});

fn bridges_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "nullable": true,
        "maxProperties": 16,
        "additionalProperties": {"type": "string", "maxLength": 15, "pattern": "^[a-z][-a-z0-9]*$"},
        "x-kubernetes-validations": [
            {"rule": "self.all(network, network.matches('^[A-Za-z0-9_.-]{1,64}$'))", "message": "the name of a network consists of at most 64 letters, digits, '_', '.' and '-'"}
        ]
    })
}

fn cards_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "maxProperties": 16,
        "additionalProperties": {"type": "string", "maxLength": 15, "pattern": "^[A-Za-z0-9_.@-]+$"},
        "x-kubernetes-validations": [
            {"rule": "self.all(bridge, bridge.matches('^[a-z][-a-z0-9]{0,14}$'))", "message": "the name of a bridge consists of at most 15 small letters, digits and '-', the first one a letter"}
        ]
    })
}
