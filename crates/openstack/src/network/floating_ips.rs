//! What a floating IP is.

use serde::{Deserialize, Serialize};

use super::{NetworkResource, Nullable};

/// A floating IP: an address of an external network that stands for one of a port's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FloatingIp {
    /// The floating IP's id.
    pub id: String,
    /// A text for people. It has no name.
    #[serde(default)]
    pub description: Option<String>,
    /// The project it belongs to.
    pub project_id: String,
    /// The external network.
    pub floating_network_id: String,
    /// The address there.
    pub floating_ip_address: String,
    /// The port it stands for; none when absent.
    #[serde(default)]
    pub port_id: Option<String>,
    /// The port's address it stands for.
    #[serde(default)]
    pub fixed_ip_address: Option<String>,
    /// The router that leads to it.
    #[serde(default)]
    pub router_id: Option<String>,
    /// How it is: `ACTIVE` when it leads to a port, `DOWN`, `ERROR`. An answer to a change has that of before.
    pub status: String,
    /// Grows with every change, that of its status among them.
    pub revision_number: u64,
}

/// What may be declared of a floating IP. Network and address are for a new one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FloatingIpAttributes {
    /// A text for people, at most 255 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The external network; a new one must have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floating_network_id: Option<String>,
    /// The subnet of the external network that the address is of; any when not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subnet_id: Option<String>,
    /// The address, any when not set; for administrators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub floating_ip_address: Option<String>,
    /// The port it stands for. A router of the port's subnet has to lead to the external network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_id: Option<Nullable<String>>,
    /// The port's address it stands for; needed if the port has several of IPv4.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed_ip_address: Option<String>,
}

impl NetworkResource for FloatingIp {
    type Attributes = FloatingIpAttributes;

    const NAME: &'static str = "floatingip";
    const COLLECTION: &'static str = "floatingips";

    fn id(&self) -> &str {
        &self.id
    }

    fn revision(&self) -> u64 {
        self.revision_number
    }
}
