//! `ExternalNetwork`: a network outside of the cloud that routers lead to.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AddressPool, Adoption, DeletionPolicy, shared::resource_kind};
use crate::Conditions;

/// A network outside of the cloud, with its addresses: routers of every namespace lead to it, and floating IPs are of it. It
/// becomes an external network in Neutron, in the project of the cloud's administrator.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kupenstack.io",
    version = "v1",
    kind = "ExternalNetwork",
    plural = "externalnetworks",
    category = "kupenstack",
    status = "ExternalNetworkStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].reason"}"#,
    printcolumn = r#"{"name":"CIDR","type":"string","jsonPath":".status.subnets[0]"}"#,
    printcolumn = r#"{"name":"Physical Network","type":"string","jsonPath":".status.physicalNetwork"}"#,
    printcolumn = r#"{"name":"VLAN","type":"integer","format":"int64","jsonPath":".status.segmentationId"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"ID","type":"string","jsonPath":".status.id","priority":1}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].message","priority":1}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "has(self.adopt) == has(oldSelf.adopt)", "fieldPath": ".adopt", "message": "an adopted network can't become a made one, or the other way round: create another ExternalNetwork instead"},
    {"rule": "has(self.adopt) != has(self.physicalNetwork)", "fieldPath": ".physicalNetwork", "message": "physicalNetwork has to be given, unless a network is adopted: that is on one already"},
    {"rule": "has(self.networkType) == has(oldSelf.networkType)", "fieldPath": ".networkType", "message": "networkType can't be changed, create another ExternalNetwork instead"},
    {"rule": "!has(self.adopt) || !has(self.networkType)", "fieldPath": ".networkType", "message": "an adopted network has its networkType already"},
    {"rule": "has(self.segmentationId) == has(oldSelf.segmentationId)", "fieldPath": ".segmentationId", "message": "segmentationId can't be changed, create another ExternalNetwork instead"},
    {"rule": "!has(self.segmentationId) || self.?networkType.orValue('Flat') == 'VLAN'", "fieldPath": ".segmentationId", "message": "segmentationId is for networkType VLAN"},
    {"rule": "has(self.mtu) || !has(oldSelf.mtu)", "fieldPath": ".mtu", "message": "mtu can be changed but not taken back, since Neutron does not tell what it would choose: give the size that you want"},
    {"rule": "has(self.subnets) || !has(oldSelf.subnets)", "fieldPath": ".subnets", "message": "subnets can be changed but not taken back: give an empty list for none"},
]))]
pub struct ExternalNetworkSpec {
    /// A text for people. In Neutron's `description` the operator's mark stands behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 160))]
    pub description: Option<String>,

    /// Name of the network outside, as Neutron's configuration calls it (Neutron's `provider:physical_network`). It can't be
    /// changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 64),
        extend("x-kubernetes-validations" = [
            {"rule": "self == oldSelf", "message": "physicalNetwork can't be changed, create another ExternalNetwork instead"},
        ])
    )]
    pub physical_network: Option<String>,

    /// How packets are told apart there (Neutron's `provider:network_type`). When absent, `Flat`. It can't be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = [
        {"rule": "self == oldSelf", "message": "networkType can't be changed, create another ExternalNetwork instead"},
    ]))]
    pub network_type: Option<ExternalNetworkType>,

    /// Number of the VLAN (Neutron's `provider:segmentation_id`). When absent, one of those that Neutron's configuration
    /// sets aside. It can't be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        range(min = 1, max = 4094),
        extend("x-kubernetes-validations" = [
            {"rule": "self == oldSelf", "message": "segmentationId can't be changed, create another ExternalNetwork instead"},
        ])
    )]
    pub segmentation_id: Option<i64>,

    /// Whether the network forwards anything (Neutron's `admin_state_up`). When absent, it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admin_state_up: Option<bool>,

    /// The largest packet, in bytes, headers of IP included (Neutron's `mtu`). When absent, the most that the network outside
    /// has room for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 68, max = 65535))]
    pub mtu: Option<i64>,

    /// Its subnets. When absent, they are left to others. When given, a network that was made has these and no others, and an
    /// adopted one has these beside those that it had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 16),
        extend(
            "x-kubernetes-list-type" = "map",
            "x-kubernetes-list-map-keys" = ["cidr"],
            "x-kubernetes-validations" = [
                {"rule": "self.all(one, self.all(other, one.cidr == other.cidr || !isCIDR(one.cidr) || !isCIDR(other.cidr) || !cidr(one.cidr).containsCIDR(cidr(other.cidr))))", "message": "two of the subnets overlap"},
            ]
        )
    )]
    pub subnets: Option<Vec<ExternalSubnet>>,

    /// An external network that is in Neutron already, of whichever project, to be taken over instead of making one. It is
    /// changed only where this object says something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopt: Option<Adoption>,

    /// What becomes of the network in Neutron when this object is deleted. When absent, `Delete` if it was made and
    /// `Retain` if it was adopted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
}

/// How packets of several networks are told apart on one wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ExternalNetworkType {
    /// There is one network on the wire.
    #[default]
    Flat,
    /// By the number of a VLAN.
    #[serde(rename = "VLAN")]
    Vlan,
}

/// Addresses of a network outside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "has(self.gateway) || !has(oldSelf.gateway)", "fieldPath": ".gateway", "message": "gateway can be changed but not taken back, since Neutron does not tell what it would choose: give the address that you want, or None"},
    {"rule": "has(self.allocationPools) || !has(oldSelf.allocationPools)", "fieldPath": ".allocationPools", "message": "allocationPools can be changed but not taken back, since Neutron does not tell what it would choose: give the pools that you want"},
    {"rule": "!isCIDR(self.cidr) || !has(self.gateway) || !isIP(self.gateway) || cidr(self.cidr).containsIP(self.gateway) || ip(self.gateway).isLinkLocalUnicast()", "fieldPath": ".gateway", "message": "the gateway is not in cidr"},
    {"rule": "!isCIDR(self.cidr) || !has(self.allocationPools) || self.allocationPools.all(pool, !isIP(pool.start) || !isIP(pool.end) || cidr(self.cidr).containsIP(pool.start) && cidr(self.cidr).containsIP(pool.end))", "fieldPath": ".allocationPools", "message": "a pool begins or ends outside cidr"},
]))]
pub struct ExternalSubnet {
    /// The range, such as `203.0.113.0/24`.
    #[schemars(
        length(max = 43),
        extend("x-kubernetes-validations" = [
            {"rule": "isCIDR(self)", "message": "not an address and the length of a prefix, such as 203.0.113.0/24"},
            {"rule": "!isCIDR(self) || cidr(self).masked() == cidr(self)", "message": "the address has bits beyond its prefix"},
        ])
    )]
    pub cidr: String,

    /// Where packets for elsewhere go (Neutron's `gateway_ip`): an address, or `None` for nowhere. When absent, Neutron
    /// takes the first address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 39),
        extend("x-kubernetes-validations" = [{"rule": "self == 'None' || isIP(self)", "message": "neither an address nor None"}])
    )]
    pub gateway: Option<String>,

    /// The addresses that routers and floating IPs get: those that nobody outside uses. When absent, all but the gateway's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16))]
    pub allocation_pools: Option<Vec<AddressPool>>,

    /// Whether Neutron answers DHCP, for VMs that are on the network themselves. When absent, it does not in a subnet that is
    /// made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dhcp: Option<bool>,
}

/// What the operator observed of an external network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalNetworkStatus {
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
    /// The largest packet, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<i64>,
    /// Name of the network outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub physical_network: Option<String>,
    /// Number of the VLAN there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segmentation_id: Option<i64>,
    /// The ranges of its subnets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<String>,
}

resource_kind!(ExternalNetwork, ExternalNetworkStatus {
    fn deletion_policy(&self) -> DeletionPolicy {
        DeletionPolicy::effective(self.spec.deletion_policy, self.adopts())
    }
    fn adopts(&self) -> bool {
        self.spec.adopt.is_some()
    }
});
