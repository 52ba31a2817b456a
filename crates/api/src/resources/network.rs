//! `Network`: what VMs of a namespace talk to each other over.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Adoption, DeletionPolicy, shared::resource_kind};
use crate::Conditions;

/// A network in the namespace's project, apart from all others. It becomes a network in Neutron, of the type that the
/// cloud has for its projects. Addresses come with its subnets.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kupenstack.io",
    version = "v1",
    kind = "Network",
    plural = "networks",
    namespaced,
    category = "kupenstack",
    status = "NetworkStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].reason"}"#,
    printcolumn = r#"{"name":"MTU","type":"integer","format":"int64","jsonPath":".status.mtu"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"ID","type":"string","jsonPath":".status.id","priority":1}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].message","priority":1}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "has(self.adopt) == has(oldSelf.adopt)", "fieldPath": ".adopt", "message": "an adopted network can't become a made one, or the other way round: create another Network instead"},
    {"rule": "has(self.mtu) || !has(oldSelf.mtu)", "fieldPath": ".mtu", "message": "mtu can be changed but not taken back, since Neutron does not tell what it would choose: give the size that you want"},
]))]
pub struct NetworkSpec {
    /// A text for people. In Neutron's `description` the operator's mark stands behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 160))]
    pub description: Option<String>,

    /// Whether the network forwards anything (Neutron's `admin_state_up`). When absent, it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admin_state_up: Option<bool>,

    /// The largest packet, in bytes, headers of IP included (Neutron's `mtu`). When absent, the most that the cloud's
    /// networks have room for; more than that is refused by Neutron.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 68, max = 65535))]
    pub mtu: Option<i64>,

    /// Domain of the names that ports of the network get in an outside DNS, with a dot at its end (Neutron's
    /// `dns_domain`). It can be given only where Neutron keeps DNS names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 255), regex(pattern = r"^([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+$"))]
    pub dns_domain: Option<String>,

    /// Whether ports of the network are guarded by security groups, and may send only from their own addresses, unless
    /// they say otherwise (Neutron's `port_security_enabled`). When absent, they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port_security: Option<bool>,

    /// A network of the project that is in Neutron already, to be taken over instead of making one. It is changed only
    /// where this object says something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopt: Option<Adoption>,

    /// What becomes of the network in Neutron when this object is deleted. When absent, `Delete` if it was made and
    /// `Retain` if it was adopted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
}

/// What the operator observed of a network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkStatus {
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
}

resource_kind!(Network, NetworkStatus {
    fn deletion_policy(&self) -> DeletionPolicy {
        DeletionPolicy::effective(self.spec.deletion_policy, self.adopts())
    }
    fn adopts(&self) -> bool {
        self.spec.adopt.is_some()
    }
});
