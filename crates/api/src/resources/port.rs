//! `Port`: where a VM is connected to a network.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Adoption, DeletionPolicy, shared::resource_kind};
use crate::Conditions;

/// A place at which something can be connected to a network, with its own MAC and addresses: they stay what they are,
/// whatever is connected. It becomes a port in Neutron, in the namespace's project.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kupenstack.io",
    version = "v1",
    kind = "Port",
    plural = "ports",
    namespaced,
    category = "kupenstack",
    status = "PortStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].reason"}"#,
    printcolumn = r#"{"name":"Network","type":"string","jsonPath":".spec.network"}"#,
    printcolumn = r#"{"name":"IP","type":"string","jsonPath":".status.addresses[0]"}"#,
    printcolumn = r#"{"name":"State","type":"string","jsonPath":".status.state"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"MAC","type":"string","jsonPath":".status.macAddress","priority":1}"#,
    printcolumn = r#"{"name":"ID","type":"string","jsonPath":".status.id","priority":1}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].message","priority":1}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "has(self.adopt) == has(oldSelf.adopt)", "fieldPath": ".adopt", "message": "an adopted port can't become a made one, or the other way round: create another Port instead"},
    {"rule": "has(self.adopt) != has(self.network)", "fieldPath": ".network", "message": "network has to be given, unless a port is adopted: that is on a network already"},
    {"rule": "has(self.macAddress) == has(oldSelf.macAddress)", "fieldPath": ".macAddress", "message": "macAddress can't be changed, create another Port instead"},
    {"rule": "!has(self.adopt) || !has(self.macAddress)", "fieldPath": ".macAddress", "message": "an adopted port has its macAddress already"},
    {"rule": "has(self.securityGroups) || !has(oldSelf.securityGroups)", "fieldPath": ".securityGroups", "message": "securityGroups can be changed but not taken back: name the groups that you want"},
    {"rule": "has(self.portSecurity) || !has(oldSelf.portSecurity)", "fieldPath": ".portSecurity", "message": "portSecurity can be changed but not taken back: say true or false"},
    {"rule": "self.?portSecurity.orValue(true) || self.?securityGroups.orValue([]).size() == 0", "fieldPath": ".securityGroups", "message": "a port without portSecurity has no security groups"},
    {"rule": "self.?portSecurity.orValue(true) || self.?allowedAddresses.orValue([]).size() == 0", "fieldPath": ".allowedAddresses", "message": "a port without portSecurity may send from any address: leave allowedAddresses out"},
]))]
pub struct PortSpec {
    /// A text for people. In Neutron's `description` the operator's mark stands behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 160))]
    pub description: Option<String>,

    /// Name of the `Network` in the same namespace that it is on. It can't be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        extend("x-kubernetes-validations" = [
            {"rule": "self == oldSelf", "message": "network can't be changed, create another Port instead"},
        ])
    )]
    pub network: Option<String>,

    /// All of its addresses (Neutron's `fixed_ips`). When absent, Neutron gives it one of each family that the network has,
    /// as soon as it has a subnet, and they stay as they are; none when empty. Those that follow from the MAC (`SLAAC`) it has beside them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    pub addresses: Option<Vec<PortAddress>>,

    /// Its MAC. When absent, one that follows from the object's UID. It can't be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 17),
        regex(pattern = r"^[0-9A-Fa-f][02468ACEace](:[0-9A-Fa-f]{2}){5}$"),
        extend("x-kubernetes-validations" = [
            {"rule": "self == oldSelf", "message": "macAddress can't be changed, create another Port instead"},
        ])
    )]
    pub mac_address: Option<String>,

    /// Names of the `SecurityGroup`s in the same namespace that guard it. When absent, the project's group `default` does;
    /// when empty, nothing is let through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 253)))]
    pub security_groups: Option<Vec<String>>,

    /// Whether it is guarded by security groups, and may send only from its own addresses (Neutron's
    /// `port_security_enabled`). When absent, as its network says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port_security: Option<bool>,

    /// What it may send from beside its own addresses (`allowed_address_pairs`), as for addresses that move between VMs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10))]
    pub allowed_addresses: Option<Vec<AllowedAddress>>,

    /// Whether it forwards anything (Neutron's `admin_state_up`). When absent, it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admin_state_up: Option<bool>,

    /// A port of the project that is in Neutron already, to be taken over instead of making one. It is changed only where
    /// this object says something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopt: Option<Adoption>,

    /// What becomes of the port in Neutron when this object is deleted. When absent, `Delete` if it was made and `Retain`
    /// if it was adopted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
}

/// An address of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "has(self.subnet) || has(self.ip)", "message": "subnet or ip has to be given, or both"},
]))]
pub struct PortAddress {
    /// Name of the `Subnet` in the same namespace that it is of. When absent, the one that has the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub subnet: Option<String>,
    /// The address. When absent, any that is free in the subnet; it stays once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 39),
        extend("x-kubernetes-validations" = [{"rule": "isIP(self)", "message": "not an address"}])
    )]
    pub ip: Option<String>,
}

/// What a port may send from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AllowedAddress {
    /// An address or a range.
    #[schemars(
        length(max = 43),
        extend("x-kubernetes-validations" = [
            {"rule": "isIP(self) || isCIDR(self)", "message": "neither an address nor a range"},
            {"rule": "!isCIDR(self) || cidr(self).masked() == cidr(self)", "message": "the address has bits beyond its prefix"},
        ])
    )]
    pub ip: String,
    /// The MAC that goes with it; the port's own when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 17), regex(pattern = r"^[0-9A-Fa-f][02468ACEace](:[0-9A-Fa-f]{2}){5}$"))]
    pub mac_address: Option<String>,
}

/// What the operator observed of a port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PortStatus {
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
    /// Its MAC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac_address: Option<String>,
    /// Its addresses, those of IPv4 first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// `ACTIVE` when something is connected that works, mostly `DOWN` otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

resource_kind!(Port, PortStatus {
    fn deletion_policy(&self) -> DeletionPolicy {
        DeletionPolicy::effective(self.spec.deletion_policy, self.adopts())
    }
    fn adopts(&self) -> bool {
        self.spec.adopt.is_some()
    }
});
