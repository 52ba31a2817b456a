//! What is special about each kind of object.

use serde_json::{Value, json};

/// A kind of object.
#[derive(Debug)]
pub(super) struct Kind {
    /// Its name in paths.
    pub(super) collection: &'static str,
    /// Its name in bodies and words, and that of its quota.
    pub(super) member: &'static str,
    /// The type of the fault that there is none.
    pub(super) missing: &'static str,
    /// What it is called in such words.
    pub(super) called: &'static str,
    /// What may be asked for.
    pub(super) attributes: &'static [Attribute],
    /// What an object has beside what is asked for.
    pub(super) defaults: fn() -> Value,
}

/// What may be asked for.
pub(super) struct Attribute {
    pub(super) name: &'static str,
    /// Whether it may be changed later.
    pub(super) changes: bool,
    /// Whether only an administrator sets it.
    pub(super) is_for_admins: bool,
    /// Why a value can't be.
    pub(super) check: fn(&Value) -> Result<(), String>,
}

impl std::fmt::Debug for Attribute {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

const fn attribute(name: &'static str, check: fn(&Value) -> Result<(), String>) -> Attribute {
    Attribute { name, changes: true, is_for_admins: false, check }
}

impl Attribute {
    const fn for_admins(mut self) -> Self {
        self.is_for_admins = true;
        self
    }

    const fn fixed(mut self) -> Self {
        self.changes = false;
        self
    }
}

pub(super) static NETWORKS: Kind = Kind {
    collection: "networks",
    member: "network",
    missing: "NetworkNotFound",
    called: "Network",
    attributes: &[
        attribute("name", short_text),
        attribute("description", short_text),
        attribute("admin_state_up", flag),
        attribute("shared", flag).for_admins(),
        attribute("router:external", flag).for_admins(),
        attribute("mtu", count),
        attribute("port_security_enabled", flag),
        attribute("dns_domain", domain),
        attribute("availability_zone_hints", list).fixed(),
    ],
    defaults: || {
        json!({
            "name": "", "description": "", "admin_state_up": true, "status": "ACTIVE", "shared": false,
            "router:external": false, "mtu": 0, "port_security_enabled": true, "dns_domain": "", "subnets": [],
            "availability_zone_hints": [], "availability_zones": [], "ipv4_address_scope": null,
            "ipv6_address_scope": null, "qos_policy_id": null, "tags": [],
        })
    },
};

pub(super) static GROUPS: Kind = Kind {
    collection: "security-groups",
    member: "security_group",
    missing: "SecurityGroupNotFound",
    called: "Security group",
    attributes: &[attribute("name", short_text), attribute("description", short_text), attribute("stateful", flag)],
    defaults: || json!({"name": "", "description": "", "stateful": true, "shared": false, "tags": []}),
};

pub(super) static RULES: Kind = Kind {
    collection: "security-group-rules",
    member: "security_group_rule",
    missing: "SecurityGroupRuleNotFound",
    called: "Security group rule",
    attributes: &[
        attribute("security_group_id", short_text).fixed(),
        attribute("direction", direction).fixed(),
        attribute("ethertype", ethertype).fixed(),
        attribute("protocol", text_or_null).fixed(),
        attribute("port_range_min", port_or_null).fixed(),
        attribute("port_range_max", port_or_null).fixed(),
        attribute("remote_ip_prefix", text_or_null).fixed(),
        attribute("remote_group_id", text_or_null).fixed(),
        attribute("description", short_text),
    ],
    defaults: || {
        json!({
            "security_group_id": "", "direction": "", "ethertype": "IPv4", "protocol": null, "port_range_min": null,
            "port_range_max": null, "remote_ip_prefix": null, "remote_group_id": null,
            "remote_address_group_id": null, "normalized_cidr": null, "description": "", "tags": [],
            "belongs_to_default_sg": false,
        })
    },
};

impl Kind {
    pub(super) fn is(&self, other: &Self) -> bool {
        self.collection == other.collection
    }
}

fn direction(value: &Value) -> Result<(), String> {
    one_of(value, &["ingress", "egress"])
}

fn ethertype(value: &Value) -> Result<(), String> {
    one_of(value, &["IPv4", "IPv6"])
}

fn one_of(value: &Value, known: &[&str]) -> Result<(), String> {
    match value.as_str() {
        Some(text) if known.contains(&text) => Ok(()),
        _ => Err(format!("{value} is not in {known:?}")),
    }
}

fn text_or_null(value: &Value) -> Result<(), String> {
    if value.is_null() { Ok(()) } else { short_text(value) }
}

fn port_or_null(value: &Value) -> Result<(), String> {
    match value.as_u64() {
        Some(0..=65535) => Ok(()),
        None if value.is_null() => Ok(()),
        _ => Err(format!("Invalid port: {value}")),
    }
}

fn short_text(value: &Value) -> Result<(), String> {
    match value {
        Value::String(text) if text.chars().count() > 255 => Err(format!("'{text}' exceeds maximum length of 255")),
        Value::String(_) => Ok(()),
        other => Err(format!("'{other}' is not a valid string")),
    }
}

fn flag(value: &Value) -> Result<(), String> {
    if value.is_boolean() { Ok(()) } else { Err(format!("'{value}' cannot be converted to boolean")) }
}

fn count(value: &Value) -> Result<(), String> {
    match value.as_i64() {
        Some(0..) => Ok(()),
        Some(less) => Err(format!("'{less}' should be non-negative")),
        None => Err(format!("'{value}' is not an integer")),
    }
}

fn list(value: &Value) -> Result<(), String> {
    if value.is_array() { Ok(()) } else { Err(format!("'{value}' is not a list")) }
}

fn domain(value: &Value) -> Result<(), String> {
    short_text(value)?;
    match value.as_str() {
        Some(text) if !text.is_empty() && !text.ends_with('.') => {
            Err(format!("'{text}' not a valid PQDN or FQDN. Reason: '{text}' is not a FQDN"))
        }
        _ => Ok(()),
    }
}
