//! What a port is.

use futures::Stream;
use serde::{Deserialize, Serialize};

use super::{Collection, NetworkResource, in_order};
use crate::{Error, service::given};

/// What the ports are for that connect a router to subnets: one on a node, one on every node, one that stands by.
const ROUTER_INTERFACES: [&str; 3] =
    ["network:router_interface", "network:router_interface_distributed", "network:ha_router_replicated_interface"];

/// A port: where something is connected to a network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// The port's id.
    pub id: String,
    /// Its name, not unique.
    #[serde(default)]
    pub name: String,
    /// A text for people.
    #[serde(default)]
    pub description: Option<String>,
    /// The project it belongs to; empty for what Neutron made for itself.
    pub project_id: String,
    /// The network it is on.
    pub network_id: String,
    /// Its MAC, in lower case, unique on its network.
    pub mac_address: String,
    /// Its addresses, in no order.
    #[serde(default)]
    pub fixed_ips: Vec<FixedIp>,
    /// Other addresses that may be sent from, in no order.
    #[serde(default)]
    pub allowed_address_pairs: Vec<AddressPair>,
    /// Ids of the security groups that guard it, in no order.
    #[serde(default)]
    pub security_groups: Vec<String>,
    /// Whether it is guarded at all. Only where Neutron has port security.
    #[serde(default)]
    pub port_security_enabled: Option<bool>,
    /// Whether it forwards anything.
    pub admin_state_up: bool,
    /// How it is: `ACTIVE` when something is connected, `DOWN`, `BUILD`, `ERROR`; `N/A` for a floating IP's.
    pub status: String,
    /// Id of what is connected, such as a server; empty if nothing is.
    #[serde(default)]
    pub device_id: String,
    /// What sort of thing that is: `compute:nova`, `network:router_interface`.
    #[serde(default)]
    pub device_owner: String,
    /// How it is plugged: `normal`, `direct`.
    #[serde(default, rename = "binding:vnic_type")]
    pub vnic_type: Option<String>,
    /// The host that it is bound to; only administrators see it, empty if there is none.
    #[serde(default, rename = "binding:host_id")]
    pub host_id: Option<String>,
    /// How it is bound there: `unbound`, `binding_failed`, `ovs`; only administrators see it.
    #[serde(default, rename = "binding:vif_type")]
    pub vif_type: Option<String>,
    /// Grows with every change.
    pub revision_number: u64,
}

impl Port {
    /// Whether it is what connects a router to a subnet, of whatever type the router is.
    pub fn is_router_interface(&self) -> bool {
        ROUTER_INTERFACES.contains(&self.device_owner.as_str())
    }
}

/// An address of a port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FixedIp {
    /// The subnet it is of.
    pub subnet_id: String,
    /// The address.
    pub ip_address: String,
}

/// An address that a port is to have. One of the two has to be set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct WantedIp {
    /// The subnet it is of; the one with the address when not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet_id: Option<String>,
    /// The address; any free one of the subnet when not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_address: Option<String>,
}

/// Addresses that a port may send from beside its own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AddressPair {
    /// An address or a range.
    pub ip_address: String,
    /// The MAC that goes with it. When not set, Neutron fills in the port's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac_address: Option<String>,
}

/// What may be declared of a port. The network is for a new one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PortAttributes {
    /// Its name, at most 255 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A text for people, at most 255 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The network it is on; a new one must have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_id: Option<String>,
    /// Its MAC, any when not set. A repeated request with the same one is a conflict, so that no second port is made.
    /// Only an administrator changes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac_address: Option<String>,
    /// All of its addresses. When not set, a new one gets one of each family that its network has. Those of subnets
    /// whose addresses follow from the MAC it has whatever is said here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed_ips: Option<Vec<WantedIp>>,
    /// Other addresses that may be sent from, at most 10 unless Neutron is configured otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_address_pairs: Option<Vec<AddressPair>>,
    /// Ids of the security groups that guard it. When not set, a new one gets the project's group `default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_groups: Option<Vec<String>>,
    /// Whether it is guarded at all, as its network says when this is not set. Without, there may be neither groups nor
    /// pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_security_enabled: Option<bool>,
    /// Whether it forwards anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_state_up: Option<bool>,
    /// Id of what is connected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_id: Option<String>,
    /// What sort of thing that is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_owner: Option<String>,
    /// How it is plugged.
    #[serde(skip_serializing_if = "Option::is_none", rename = "binding:vnic_type")]
    pub vnic_type: Option<String>,
    /// The host that it is bound to; for administrators.
    #[serde(skip_serializing_if = "Option::is_none", rename = "binding:host_id")]
    pub host_id: Option<String>,
}

impl Collection<Port> {
    /// The ports that something is connected to, such as a router with its interfaces.
    pub fn of_device(&self, id: &str) -> impl Stream<Item = Result<Port, Error>> + Send + use<> {
        let mut query = in_order();
        query.extend(given([("device_id", Some(id.to_owned()))]));
        self.service.clone().list(Self::LIST, query)
    }

    /// What connects routers to subnets, of every project, as [`survey`](Self::survey) does.
    pub fn router_interfaces(&self) -> impl Stream<Item = Result<Port, Error>> + Send + use<> {
        let mut query = in_order();
        query.extend(ROUTER_INTERFACES.map(|owner| ("device_owner", owner.to_owned())));
        self.service.clone().survey(Self::LIST, query)
    }
}

impl NetworkResource for Port {
    type Attributes = PortAttributes;

    const NAME: &'static str = "port";
    const COLLECTION: &'static str = "ports";

    fn id(&self) -> &str {
        &self.id
    }

    fn revision(&self) -> u64 {
        self.revision_number
    }
}
