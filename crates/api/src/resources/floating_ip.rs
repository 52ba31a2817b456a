//! `FloatingIP`: an address by which a VM is reached from outside.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DeletionPolicy, shared::resource_kind};
use crate::Conditions;

/// An address of an external network that stands for one of a port's: it stays the same, whatever port it stands for. It
/// becomes a floating IP in Neutron, in the namespace's project.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kupenstack.io",
    version = "v1",
    kind = "FloatingIP",
    plural = "floatingips",
    shortname = "fip",
    namespaced,
    category = "kupenstack",
    status = "FloatingIPStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].reason"}"#,
    printcolumn = r#"{"name":"Address","type":"string","jsonPath":".status.address"}"#,
    printcolumn = r#"{"name":"Port","type":"string","jsonPath":".spec.port"}"#,
    printcolumn = r#"{"name":"State","type":"string","jsonPath":".status.state"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Network","type":"string","jsonPath":".spec.externalNetwork","priority":1}"#,
    printcolumn = r#"{"name":"Port address","type":"string","jsonPath":".status.portAddress","priority":1}"#,
    printcolumn = r#"{"name":"ID","type":"string","jsonPath":".status.id","priority":1}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].message","priority":1}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "has(self.adopt) == has(oldSelf.adopt)", "fieldPath": ".adopt", "message": "an adopted floating IP can't become a made one, or the other way round: create another FloatingIP instead"},
    {"rule": "has(self.adopt) != has(self.externalNetwork)", "fieldPath": ".externalNetwork", "message": "externalNetwork has to be given, unless a floating IP is adopted: that is of one already"},
    {"rule": "has(self.address) == has(oldSelf.address)", "fieldPath": ".address", "message": "address can't be changed, create another FloatingIP instead"},
    {"rule": "!has(self.adopt) || !has(self.address)", "fieldPath": ".address", "message": "an adopted floating IP has its address already"},
    {"rule": "!has(self.fixedAddress) || has(self.port)", "fieldPath": ".fixedAddress", "message": "fixedAddress is one of a port's: say which port"},
]))]
pub struct FloatingIPSpec {
    /// A text for people. In Neutron's `description` the operator's mark stands behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 160))]
    pub description: Option<String>,

    /// Name of the `ExternalNetwork` that it is an address of. It can't be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        extend("x-kubernetes-validations" = [
            {"rule": "self == oldSelf", "message": "externalNetwork can't be changed, create another FloatingIP instead"},
        ])
    )]
    pub external_network: Option<String>,

    /// The address. When absent, any that is free, which is what Neutron's policy leaves to all but administrators. It
    /// can't be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 15),
        extend("x-kubernetes-validations" = [
            {"rule": "isIP(self) && ip(self).family() == 4", "message": "not an IPv4 address"},
            {"rule": "self == oldSelf", "message": "address can't be changed, create another FloatingIP instead"},
        ])
    )]
    pub address: Option<String>,

    /// Name of the `Port` in the same namespace that it stands for. When absent, it stands for none, and an adopted one for
    /// what it does already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub port: Option<String>,

    /// Which of the port's addresses it stands for. When absent, for the one of IPv4; if the port has several, it has to be
    /// given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 15),
        extend("x-kubernetes-validations" = [
            {"rule": "isIP(self) && ip(self).family() == 4", "message": "not an IPv4 address"},
        ])
    )]
    pub fixed_address: Option<String>,

    /// A floating IP of the project that is in Neutron already, to be taken over instead of making one. It is changed only
    /// where this object says something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopt: Option<FloatingIPAdoption>,

    /// What becomes of the floating IP in Neutron when this object is deleted. When absent, `Delete` if it was made and
    /// `Retain` if it was adopted. What is retained keeps its address, and can be adopted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
}

/// Which floating IP in Neutron is meant. Exactly one of the project must fit; while none does, the object waits and says
/// so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "has(self.id) != has(self.address)", "message": "exactly one of id and address has to be given"},
    {"rule": "self == oldSelf", "message": "adopt can't be changed, create another object instead"},
]))]
pub struct FloatingIPAdoption {
    /// Its identifier in Neutron.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub id: Option<String>,
    /// Its address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 15),
        extend("x-kubernetes-validations" = [
            {"rule": "isIP(self) && ip(self).family() == 4", "message": "not an IPv4 address"},
        ])
    )]
    pub address: Option<String>,
}

/// What the operator observed of a floating IP.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FloatingIPStatus {
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
    /// Its address, there before the port is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The port's address that it stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port_address: Option<String>,
    /// `ACTIVE` when it stands for a port, `DOWN` otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

resource_kind!(FloatingIP, FloatingIPStatus {
    fn deletion_policy(&self) -> DeletionPolicy {
        DeletionPolicy::effective(self.spec.deletion_policy, self.adopts())
    }
    fn adopts(&self) -> bool {
        self.spec.adopt.is_some()
    }
});
