//! `SecurityGroup`: what traffic the ports of VMs let through.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Adoption, DeletionPolicy, shared::resource_kind};
use crate::Conditions;

/// What traffic ports let through that carry the group. It becomes a security group in Neutron, in the namespace's project,
/// with the rules that are declared and no other. A port lets through what any of its groups does.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kupenstack.io",
    version = "v1",
    kind = "SecurityGroup",
    plural = "securitygroups",
    shortname = "secgroup",
    namespaced,
    category = "kupenstack",
    status = "SecurityGroupStatus",
    derive = "PartialEq",
    validation = Rule::new("self.metadata.name != 'default' || has(self.spec.adopt)").message(
        "each project has a group called default already: adopt it by its name"
    ),
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].reason"}"#,
    printcolumn = r#"{"name":"Rules","type":"integer","format":"int64","jsonPath":".status.rules"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"ID","type":"string","jsonPath":".status.id","priority":1}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].message","priority":1}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "has(self.adopt) == has(oldSelf.adopt)", "fieldPath": ".adopt", "message": "an adopted group can't become a made one, or the other way round: create another SecurityGroup instead"},
]))]
pub struct SecurityGroupSpec {
    /// A text for people. In Neutron's `description` the operator's mark stands behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 160))]
    pub description: Option<String>,

    /// Whether answers to what was let through are let through too (Neutron's `stateful`). When absent, they are. It can
    /// be given only where Neutron knows groups that are not, and changed only while no port carries the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stateful: Option<bool>,

    /// What comes in. When absent or empty, nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 300))]
    pub ingress: Option<Vec<SecurityGroupRule>>,

    /// What goes out. When absent, everything does; when empty, nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 300))]
    pub egress: Option<Vec<SecurityGroupRule>>,

    /// A group of the project that is in Neutron already, to be taken over instead of making one. It is changed only
    /// where this object says something: without `ingress` or `egress` its rules for that direction stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopt: Option<Adoption>,

    /// What becomes of the group in Neutron when this object is deleted. When absent, `Delete` if it was made and
    /// `Retain` if it was adopted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
}

/// Traffic that is let through. What is not said does not matter: a rule that says nothing lets everything through.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "!has(self.cidr) || !has(self.group)", "message": "cidr and group can't be given together"},
    {"rule": "!has(self.port) || self.?protocol.orValue('') in ['TCP', 'UDP', 'SCTP']", "fieldPath": ".port", "message": "a port needs protocol TCP, UDP or SCTP"},
    {"rule": "!has(self.endPort) || self.?port.orValue(65536) <= self.endPort", "fieldPath": ".endPort", "message": "endPort needs a port that is no larger"},
    {"rule": "!has(self.icmpType) || self.?protocol.orValue('') == 'ICMP'", "fieldPath": ".icmpType", "message": "icmpType needs protocol ICMP"},
    {"rule": "!has(self.icmpCode) || has(self.icmpType)", "fieldPath": ".icmpCode", "message": "icmpCode needs an icmpType"},
    {"rule": "!has(self.cidr) || !has(self.ipFamily) || self.cidr.contains(':') == (self.ipFamily == 'IPv6')", "fieldPath": ".cidr", "message": "cidr is of another family than ipFamily"},
]))]
pub struct SecurityGroupRule {
    /// `TCP`, `UDP`, `SCTP`, `ICMP` (of the rule's family), or a number of IP's protocols.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 4),
        regex(pattern = r"^(TCP|UDP|SCTP|ICMP|[0-9]|[1-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5])$")
    )]
    pub protocol: Option<String>,

    /// The port, on the side that is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: Option<i32>,

    /// The last of several ports, of which `port` is the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub end_port: Option<i32>,

    /// The type of an ICMP message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 255))]
    pub icmp_type: Option<i32>,

    /// The code of an ICMP message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 255))]
    pub icmp_code: Option<i32>,

    /// When absent, that of `cidr`; both when that is absent too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_family: Option<IpFamily>,

    /// Addresses on the other side: where it comes from, or goes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 43),
        extend("x-kubernetes-validations" = [
            {"rule": "isCIDR(self)", "message": "not an address and the length of a prefix, such as 10.0.0.0/8"},
            {"rule": "!isCIDR(self) || cidr(self).masked() == cidr(self)", "message": "the address has bits beyond its prefix"},
        ])
    )]
    pub cidr: Option<String>,

    /// Ports on the other side, as those that carry a group: name of a `SecurityGroup` in the same namespace, which can be
    /// this one. As long as there is none of that name, the rule does not count, and the others do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub group: Option<String>,
}

/// A family of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum IpFamily {
    /// Version 4.
    #[serde(rename = "IPv4")]
    V4,
    /// Version 6.
    #[serde(rename = "IPv6")]
    V6,
}

/// What the operator observed of a security group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecurityGroupStatus {
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
    /// How many rules it has in Neutron, where each is of one family.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<i64>,
}

resource_kind!(SecurityGroup, SecurityGroupStatus {
    fn deletion_policy(&self) -> DeletionPolicy {
        DeletionPolicy::effective(self.spec.deletion_policy, self.adopts())
    }
    fn adopts(&self) -> bool {
        self.spec.adopt.is_some()
    }
});
