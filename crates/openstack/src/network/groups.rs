//! What a security group is, and its rules.

use serde::{Deserialize, Serialize};

use super::NetworkResource;

/// A security group: what traffic its ports let through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecurityGroup {
    /// The group's id.
    pub id: String,
    /// Its name, not unique, but for `default`, of which each project has one.
    pub name: String,
    /// A text for people.
    #[serde(default)]
    pub description: Option<String>,
    /// The project it belongs to.
    pub project_id: String,
    /// Whether answers to what was let through are let through too. Only where Neutron knows groups that do not.
    #[serde(default)]
    pub stateful: Option<bool>,
    /// Its rules.
    #[serde(default, rename = "security_group_rules")]
    pub rules: Vec<SecurityGroupRule>,
    /// Grows with every change, that of its rules among them.
    pub revision_number: u64,
}

/// What may be declared of a security group.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SecurityGroupAttributes {
    /// Its name, at most 255 characters. `default` is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A text for people, at most 255 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether answers to what was let through are let through too. It can't be changed while ports use the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stateful: Option<bool>,
}

/// What is let through. It can't be changed, but for its description.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecurityGroupRule {
    /// The rule's id.
    pub id: String,
    /// The group it belongs to.
    pub security_group_id: String,
    /// `ingress` or `egress`, as the port sees it.
    pub direction: String,
    /// `IPv4` or `IPv6`.
    #[serde(default)]
    pub ethertype: Option<String>,
    /// A name such as `tcp`, or a number; all when absent.
    #[serde(default)]
    pub protocol: Option<String>,
    /// The first port, or the type of ICMP.
    #[serde(default)]
    pub port_range_min: Option<u16>,
    /// The last port, or the code of ICMP.
    #[serde(default)]
    pub port_range_max: Option<u16>,
    /// The other side, as addresses.
    #[serde(default)]
    pub remote_ip_prefix: Option<String>,
    /// The other side, as a group.
    #[serde(default)]
    pub remote_group_id: Option<String>,
    /// A text for people.
    #[serde(default)]
    pub description: Option<String>,
    /// Grows with every change.
    #[serde(default)]
    pub revision_number: u64,
}

/// What may be declared of a rule. All but the description are for a new one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SecurityGroupRuleAttributes {
    /// The group it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_group_id: Option<String>,
    /// `ingress` or `egress`, as the port sees it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<String>,
    /// `IPv4`, which is meant when absent, or `IPv6`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ethertype: Option<String>,
    /// A name such as `tcp`, or a number; all when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// The first port, or the type of ICMP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_range_min: Option<u16>,
    /// The last port, or the code of ICMP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_range_max: Option<u16>,
    /// The other side, as addresses of the same family.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_ip_prefix: Option<String>,
    /// The other side, as a group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_group_id: Option<String>,
    /// A text for people, at most 255 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl NetworkResource for SecurityGroup {
    type Attributes = SecurityGroupAttributes;

    const NAME: &'static str = "security_group";
    const COLLECTION: &'static str = "security-groups";
    const KEY: &'static str = "security_groups";

    fn id(&self) -> &str {
        &self.id
    }

    fn revision(&self) -> u64 {
        self.revision_number
    }
}

impl NetworkResource for SecurityGroupRule {
    type Attributes = SecurityGroupRuleAttributes;

    const NAME: &'static str = "security_group_rule";
    const COLLECTION: &'static str = "security-group-rules";
    const KEY: &'static str = "security_group_rules";

    fn id(&self) -> &str {
        &self.id
    }

    fn revision(&self) -> u64 {
        self.revision_number
    }
}
