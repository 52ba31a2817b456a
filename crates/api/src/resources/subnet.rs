//! `Subnet`: addresses on a network.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Adoption, DeletionPolicy, shared::resource_kind};
use crate::Conditions;

/// A range of addresses on a network, of which its ports get theirs. It becomes a subnet in Neutron, in the namespace's
/// project.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kupenstack.io",
    version = "v1",
    kind = "Subnet",
    plural = "subnets",
    namespaced,
    category = "kupenstack",
    status = "SubnetStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].reason"}"#,
    printcolumn = r#"{"name":"Network","type":"string","jsonPath":".spec.network"}"#,
    printcolumn = r#"{"name":"CIDR","type":"string","jsonPath":".status.cidr"}"#,
    printcolumn = r#"{"name":"Gateway","type":"string","jsonPath":".status.gateway"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"ID","type":"string","jsonPath":".status.id","priority":1}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].message","priority":1}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "has(self.adopt) == has(oldSelf.adopt)", "fieldPath": ".adopt", "message": "an adopted subnet can't become a made one, or the other way round: create another Subnet instead"},
    {"rule": "has(self.adopt) != has(self.network)", "fieldPath": ".network", "message": "network has to be given, unless a subnet is adopted: that is on a network already"},
    {"rule": "has(self.adopt) != has(self.cidr)", "fieldPath": ".cidr", "message": "cidr has to be given, unless a subnet is adopted: that has one already"},
    {"rule": "has(self.ipv6Mode) == has(oldSelf.ipv6Mode)", "fieldPath": ".ipv6Mode", "message": "ipv6Mode can't be changed, create another Subnet instead"},
    {"rule": "!has(self.adopt) || !has(self.ipv6Mode)", "fieldPath": ".ipv6Mode", "message": "an adopted subnet has its ipv6Mode already"},
    {"rule": "has(self.gateway) || !has(oldSelf.gateway)", "fieldPath": ".gateway", "message": "gateway can be changed but not taken back, since Neutron does not tell what it would choose: give the address that you want, or None"},
    {"rule": "has(self.allocationPools) || !has(oldSelf.allocationPools)", "fieldPath": ".allocationPools", "message": "allocationPools can be changed but not taken back, since Neutron does not tell what it would choose: give the pools that you want"},
    {"rule": "!has(self.cidr) || !isCIDR(self.cidr) || !has(self.gateway) || !isIP(self.gateway) || cidr(self.cidr).containsIP(self.gateway) || ip(self.gateway).isLinkLocalUnicast()", "fieldPath": ".gateway", "message": "the gateway is not in cidr"},
    {"rule": "!has(self.cidr) || !isCIDR(self.cidr) || !has(self.allocationPools) || self.allocationPools.all(pool, !isIP(pool.start) || !isIP(pool.end) || cidr(self.cidr).containsIP(pool.start) && cidr(self.cidr).containsIP(pool.end))", "fieldPath": ".allocationPools", "message": "a pool begins or ends outside cidr"},
    {"rule": "!has(self.cidr) || !isCIDR(self.cidr) || !has(self.hostRoutes) || self.hostRoutes.all(route, !isCIDR(route.destination) || cidr(route.destination).ip().family() == cidr(self.cidr).ip().family())", "fieldPath": ".hostRoutes", "message": "a route's destination is of another family than cidr"},
    {"rule": "!has(self.ipv6Mode) || has(self.cidr) && isCIDR(self.cidr) && cidr(self.cidr).ip().family() == 6", "fieldPath": ".ipv6Mode", "message": "ipv6Mode is for subnets of IPv6"},
    {"rule": "!has(self.ipv6Mode) || self.ipv6Mode == 'DHCPv6Stateful' || !has(self.cidr) || !isCIDR(self.cidr) || cidr(self.cidr).prefixLength() == 64", "fieldPath": ".cidr", "message": "hosts can choose their addresses only in a range with 64 bits of prefix"},
    {"rule": "!has(self.ipv6Mode) || !has(self.dhcp) || self.dhcp", "fieldPath": ".dhcp", "message": "ipv6Mode needs dhcp"},
]))]
pub struct SubnetSpec {
    /// A text for people. In Neutron's `description` the operator's mark stands behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 160))]
    pub description: Option<String>,

    /// Name of the `Network` in the same namespace that the addresses are on. It can't be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        extend("x-kubernetes-validations" = [
            {"rule": "self == oldSelf", "message": "network can't be changed, create another Subnet instead"},
        ])
    )]
    pub network: Option<String>,

    /// The range, such as `10.0.0.0/24` or `fd00:1::/64`. It can't be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 43),
        extend("x-kubernetes-validations" = [
            {"rule": "self == oldSelf", "message": "cidr can't be changed, create another Subnet instead"},
            {"rule": "isCIDR(self)", "message": "not an address and the length of a prefix, such as 10.0.0.0/24"},
            {"rule": "!isCIDR(self) || cidr(self).masked() == cidr(self)", "message": "the address has bits beyond its prefix"},
        ])
    )]
    pub cidr: Option<String>,

    /// Where packets for elsewhere go (Neutron's `gateway_ip`): an address, or `None` for nowhere. When absent, Neutron
    /// takes the first address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 39),
        extend("x-kubernetes-validations" = [{"rule": "self == 'None' || isIP(self)", "message": "neither an address nor None"}])
    )]
    pub gateway: Option<String>,

    /// Whether Neutron tells VMs their addresses (`enable_dhcp`). When absent, it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dhcp: Option<bool>,

    /// Servers that VMs ask for names, in this order (`dns_nameservers`). When absent, those of the cloud, if it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 8),
        inner(length(max = 39)),
        extend("x-kubernetes-validations" = [{"rule": "self.all(server, isIP(server))", "message": "one of them is no address"}])
    )]
    pub dns_servers: Option<Vec<String>>,

    /// The addresses that ports get unless they ask for another. When absent, all but the gateway's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16))]
    pub allocation_pools: Option<Vec<AddressPool>>,

    /// Routes that VMs are told of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20))]
    pub host_routes: Option<Vec<HostRoute>>,

    /// How VMs get addresses of IPv6 (Neutron's `ipv6_address_mode` and `ipv6_ra_mode`). When absent, not by Neutron. It
    /// can't be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = [
        {"rule": "self == oldSelf", "message": "ipv6Mode can't be changed, create another Subnet instead"},
    ]))]
    pub ipv6_mode: Option<Ipv6Mode>,

    /// A subnet of the project that is in Neutron already, to be taken over instead of making one. It is changed only where
    /// this object says something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopt: Option<Adoption>,

    /// What becomes of the subnet in Neutron when this object is deleted. When absent, `Delete` if it was made and `Retain`
    /// if it was adopted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
}

/// Addresses from the first to the last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AddressPool {
    /// The first address.
    #[schemars(
        length(max = 39),
        extend("x-kubernetes-validations" = [{"rule": "isIP(self)", "message": "not an address"}])
    )]
    pub start: String,
    /// The last address.
    #[schemars(
        length(max = 39),
        extend("x-kubernetes-validations" = [{"rule": "isIP(self)", "message": "not an address"}])
    )]
    pub end: String,
}

/// A way to other addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostRoute {
    /// Where it leads to.
    #[schemars(
        length(max = 43),
        extend("x-kubernetes-validations" = [
            {"rule": "isCIDR(self)", "message": "not an address and the length of a prefix, such as 10.1.0.0/16"},
            {"rule": "!isCIDR(self) || cidr(self).masked() == cidr(self)", "message": "the address has bits beyond its prefix"},
        ])
    )]
    pub destination: String,
    /// The address on the subnet that packets for it go to.
    #[schemars(
        length(max = 39),
        extend("x-kubernetes-validations" = [{"rule": "isIP(self)", "message": "not an address"}])
    )]
    pub next_hop: String,
}

/// How VMs get addresses of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Ipv6Mode {
    /// They make them of what routers announce.
    #[serde(rename = "SLAAC")]
    Slaac,
    /// By DHCP.
    #[serde(rename = "DHCPv6Stateful")]
    Dhcpv6Stateful,
    /// They make them of what routers announce, and ask DHCP for the rest, such as servers of names.
    #[serde(rename = "DHCPv6Stateless")]
    Dhcpv6Stateless,
}

/// What the operator observed of a subnet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubnetStatus {
    /// `Ready`; `Reconciling` or `Stalled` while true.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Conditions,
    /// Generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Identifier in Neutron.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cidr: Option<String>,
    /// Where packets for elsewhere go; absent if nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<String>,
}

resource_kind!(Subnet, SubnetStatus {
    fn deletion_policy(&self) -> DeletionPolicy {
        DeletionPolicy::effective(self.spec.deletion_policy, self.adopts())
    }
    fn adopts(&self) -> bool {
        self.spec.adopt.is_some()
    }
});
