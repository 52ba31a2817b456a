//! What a subnet is.

use futures::{Stream, StreamExt, stream};
use serde::{Deserialize, Serialize};

use super::{Collection, NetworkResource, Nullable, in_order};
use crate::{Error, service::Query};

/// Of how many networks subnets are asked for at once: more would not fit into a URL.
const NETWORKS_AT_ONCE: usize = 50;

/// A subnet: a range of addresses on a network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subnet {
    /// The subnet's id.
    pub id: String,
    /// Its name, not unique.
    #[serde(default)]
    pub name: String,
    /// A text for people.
    #[serde(default)]
    pub description: Option<String>,
    /// The project it belongs to.
    pub project_id: String,
    /// The network it is on.
    pub network_id: String,
    /// 4 or 6.
    pub ip_version: u8,
    /// The range, such as `10.0.0.0/24`.
    pub cidr: String,
    /// Where packets for elsewhere go; nowhere when absent.
    #[serde(default)]
    pub gateway_ip: Option<String>,
    /// Whether Neutron answers DHCP.
    pub enable_dhcp: bool,
    /// Servers of names, in their order.
    #[serde(default)]
    pub dns_nameservers: Vec<String>,
    /// The addresses that ports get, in no order.
    #[serde(default)]
    pub allocation_pools: Vec<AllocationPool>,
    /// Routes that DHCP tells of, in no order.
    #[serde(default)]
    pub host_routes: Vec<Route>,
    /// How IPv6 addresses are given out: `slaac`, `dhcpv6-stateful`, `dhcpv6-stateless`; not by Neutron when absent.
    #[serde(default)]
    pub ipv6_address_mode: Option<String>,
    /// How Neutron's routers announce them, in the same words.
    #[serde(default)]
    pub ipv6_ra_mode: Option<String>,
    /// Grows with every change.
    pub revision_number: u64,
}

/// Addresses from the first to the last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AllocationPool {
    /// The first address.
    pub start: String,
    /// The last address.
    pub end: String,
}

/// A static route.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Route {
    /// The range that is reached by it.
    pub destination: String,
    /// The address that packets for it go to.
    pub nexthop: String,
}

/// What may be declared of a subnet. Network, version, range and modes are for a new one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SubnetAttributes {
    /// Its name, at most 255 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A text for people, at most 255 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The network it is on; a new one must have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_id: Option<String>,
    /// 4 or 6; a new one must have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_version: Option<u8>,
    /// The range; a new one must have it. On one network no two may overlap, so a repeated request makes no second subnet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cidr: Option<String>,
    /// Where packets for elsewhere go. When not set, a new one gets the first address of the range, for IPv6 that of the
    /// range itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway_ip: Option<Nullable<String>>,
    /// Whether Neutron answers DHCP, which it does when this is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_dhcp: Option<bool>,
    /// Servers of names, in their order, at most 5 unless Neutron is configured otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dns_nameservers: Option<Vec<String>>,
    /// The addresses that ports get. When not set, a new one gets all but the gateway's; a change of the gateway leaves
    /// them as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocation_pools: Option<Vec<AllocationPool>>,
    /// Routes that DHCP tells of, at most 20 unless Neutron is configured otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_routes: Option<Vec<Route>>,
    /// How IPv6 addresses are given out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv6_address_mode: Option<String>,
    /// How Neutron's routers announce them; the same as the address mode if both are set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv6_ra_mode: Option<String>,
}

impl Collection<Subnet> {
    /// The subnets of these networks.
    pub fn of_networks(&self, ids: &[&str]) -> impl Stream<Item = Result<Subnet, Error>> + Send + use<> {
        let queries: Vec<Query> = ids
            .chunks(NETWORKS_AT_ONCE)
            .map(|ids| in_order().into_iter().chain(ids.iter().map(|id| ("network_id", (*id).to_owned()))).collect())
            .collect();
        let service = self.service.clone();
        stream::iter(queries).flat_map(move |query| service.clone().list(Self::LIST, query))
    }
}

impl NetworkResource for Subnet {
    type Attributes = SubnetAttributes;

    const NAME: &'static str = "subnet";
    const COLLECTION: &'static str = "subnets";

    fn id(&self) -> &str {
        &self.id
    }

    fn revision(&self) -> u64 {
        self.revision_number
    }
}
