//! What a network is.

use serde::{Deserialize, Serialize};

use super::NetworkResource;

/// A network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// The network's id.
    pub id: String,
    /// Its name, not unique.
    #[serde(default)]
    pub name: String,
    /// A text for people.
    #[serde(default)]
    pub description: Option<String>,
    /// The project it belongs to.
    pub project_id: String,
    /// How it is: `ACTIVE`, `BUILD`, `DOWN`, `ERROR`.
    pub status: String,
    /// Whether it forwards anything.
    pub admin_state_up: bool,
    /// Whether every project sees it.
    #[serde(default)]
    pub shared: bool,
    /// Whether routers lead to it, and floating IPs are of it.
    #[serde(default, rename = "router:external")]
    pub external: bool,
    /// What it is made of, such as `geneve`, `flat`, `vlan`; only administrators see it.
    #[serde(default, rename = "provider:network_type")]
    pub network_type: Option<String>,
    /// Name of the network outside that it is on; only administrators see it.
    #[serde(default, rename = "provider:physical_network")]
    pub physical_network: Option<String>,
    /// Number of its tunnel or VLAN; only administrators see it.
    #[serde(default, rename = "provider:segmentation_id")]
    pub segmentation_id: Option<u32>,
    /// The largest packet, in bytes.
    #[serde(default)]
    pub mtu: Option<u32>,
    /// Domain of the names that its ports get in an outside DNS, with a dot at its end. Only where Neutron keeps DNS names.
    #[serde(default)]
    pub dns_domain: Option<String>,
    /// Whether its ports are guarded by security groups unless they say otherwise. Only where Neutron has port security.
    #[serde(default)]
    pub port_security_enabled: Option<bool>,
    /// Ids of its subnets.
    #[serde(default)]
    pub subnets: Vec<String>,
    /// Grows with every change, that of its subnets among them.
    pub revision_number: u64,
}

/// What may be declared of a network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NetworkAttributes {
    /// Its name, at most 255 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A text for people, at most 255 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it forwards anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_state_up: Option<bool>,
    /// Whether every project sees it; for administrators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared: Option<bool>,
    /// Whether routers lead to it, and floating IPs are of it; for administrators.
    #[serde(skip_serializing_if = "Option::is_none", rename = "router:external")]
    pub external: Option<bool>,
    /// What a new one is made of, such as `flat`; for administrators.
    #[serde(skip_serializing_if = "Option::is_none", rename = "provider:network_type")]
    pub network_type: Option<String>,
    /// Name of the network outside that a new one is on; for administrators.
    #[serde(skip_serializing_if = "Option::is_none", rename = "provider:physical_network")]
    pub physical_network: Option<String>,
    /// Number of a new one's VLAN; for administrators.
    #[serde(skip_serializing_if = "Option::is_none", rename = "provider:segmentation_id")]
    pub segmentation_id: Option<u32>,
    /// The largest packet, in bytes; 0 stands for the most that the network's type allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// Domain of the names of its ports, with a dot at its end; empty for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns_domain: Option<String>,
    /// Whether its ports are guarded by security groups unless they say otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_security_enabled: Option<bool>,
}

impl NetworkResource for Network {
    type Attributes = NetworkAttributes;

    const NAME: &'static str = "network";
    const COLLECTION: &'static str = "networks";

    fn id(&self) -> &str {
        &self.id
    }

    fn revision(&self) -> u64 {
        self.revision_number
    }
}
