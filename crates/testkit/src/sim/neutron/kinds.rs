//! What is special about each kind of object.

use serde_json::{Value, json};

use super::{Item, Neutron, networks, subnets::SUBNETS};
use crate::sim::{
    http::Refusal,
    service::{Call, Caller},
};

/// The attribute that tells which network something is on.
pub(super) const NETWORK: &str = "network_id";

/// The attribute that tells which group a rule belongs to.
pub(super) const SECURITY_GROUP: &str = "security_group_id";

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
    /// What is shown with it.
    pub(super) parts: Option<Parts>,
    /// What else there is to do about it.
    pub(super) hooks: Hooks,
}

/// Objects of another kind that belong to one.
#[derive(Debug)]
pub(super) struct Parts {
    /// Their kind.
    pub(super) kind: &'static Kind,
    /// The attribute of theirs that tells where they belong.
    pub(super) key: &'static str,
    /// The attribute that shows them.
    pub(super) shown_as: &'static str,
    /// What it shows of one.
    pub(super) shown: fn(&Item) -> Value,
}

/// What a kind adds to what is done about every object.
#[derive(Debug)]
pub(super) struct Hooks {
    /// Before a list.
    pub(super) listing: fn(&mut Neutron, &mut Call<'_>),
    /// Before one of a project is made.
    pub(super) creating: fn(&mut Neutron, &mut Call<'_>, &str),
    /// What Neutron makes of what is asked for, or why it can't be. Given what it was before, unless it is new.
    pub(super) complete: fn(&Neutron, &mut Call<'_>, &mut Item, Option<&Item>) -> Result<(), Refusal>,
    /// Why it can't be beside what there is, or for this caller.
    pub(super) check: fn(&Neutron, &Call<'_>, &Item) -> Result<(), Refusal>,
    /// Who sees it beside its own project.
    pub(super) is_shared: fn(&Neutron, &Caller, &Item) -> bool,
    /// Once it is made.
    pub(super) created: fn(&mut Neutron, &mut Call<'_>, &Item),
    /// Once it is changed.
    pub(super) changed: fn(&mut Neutron, &mut Call<'_>, &Item),
    /// Why it can't be deleted.
    pub(super) check_end: fn(&Neutron, &Call<'_>, &Item) -> Result<(), Refusal>,
    /// Once it is deleted.
    pub(super) deleted: fn(&mut Neutron, &Call<'_>, &Item),
}

impl Hooks {
    pub(super) const NONE: Self = Self {
        listing: |_, _| {},
        creating: |_, _, _| {},
        complete: |_, _, _, _| Ok(()),
        check: |_, _, _| Ok(()),
        is_shared: |_, _, _| false,
        created: |_, _, _| {},
        changed: |_, _, _| {},
        check_end: |_, _, _| Ok(()),
        deleted: |_, _, _| {},
    };
}

/// What may be asked for.
pub(super) struct Attribute {
    pub(super) name: &'static str,
    /// Whether it may be changed later.
    pub(super) changes: bool,
    /// Whether a new object has to say it.
    pub(super) is_required: bool,
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

pub(super) const fn attribute(name: &'static str, check: fn(&Value) -> Result<(), String>) -> Attribute {
    Attribute { name, changes: true, is_required: false, is_for_admins: false, check }
}

impl Attribute {
    pub(super) const fn for_admins(mut self) -> Self {
        self.is_for_admins = true;
        self
    }

    pub(super) const fn fixed(mut self) -> Self {
        self.changes = false;
        self
    }

    pub(super) const fn required(mut self) -> Self {
        self.is_required = true;
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
            "router:external": false, "mtu": 0, "port_security_enabled": true, "dns_domain": "",
            "availability_zone_hints": [], "availability_zones": [], "ipv4_address_scope": null,
            "ipv6_address_scope": null, "qos_policy_id": null, "tags": [],
        })
    },
    parts: Some(Parts { kind: &SUBNETS, key: NETWORK, shown_as: "subnets", shown: |subnet| json!(subnet.id) }),
    hooks: Hooks {
        creating: Neutron::ensure_default_group,
        complete: networks::complete,
        deleted: |it, call, network| it.remove_subnets(call, network),
        ..Hooks::NONE
    },
};

pub(super) static GROUPS: Kind = Kind {
    collection: "security-groups",
    member: "security_group",
    missing: "SecurityGroupNotFound",
    called: "Security group",
    attributes: &[attribute("name", short_text), attribute("description", short_text), attribute("stateful", flag)],
    defaults: || json!({"name": "", "description": "", "stateful": true, "shared": false, "tags": []}),
    parts: Some(Parts {
        kind: &RULES,
        key: SECURITY_GROUP,
        shown_as: "security_group_rules",
        shown: |rule| Value::Object(rule.shown()),
    }),
    hooks: Hooks {
        listing: Neutron::ensure_own_default_group,
        creating: Neutron::ensure_default_group,
        check: Neutron::check_group,
        created: Neutron::add_egress,
        check_end: |_, call, group| Neutron::check_end_of_group(call, group),
        deleted: Neutron::remove_rules,
        ..Hooks::NONE
    },
};

pub(super) static RULES: Kind = Kind {
    collection: "security-group-rules",
    member: "security_group_rule",
    missing: "SecurityGroupRuleNotFound",
    called: "Security group rule",
    attributes: &[
        attribute(SECURITY_GROUP, short_text).fixed().required(),
        attribute("direction", direction).fixed().required(),
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
            "ethertype": "IPv4", "protocol": null, "port_range_min": null,
            "port_range_max": null, "remote_ip_prefix": null, "remote_group_id": null,
            "remote_address_group_id": null, "normalized_cidr": null, "description": "", "tags": [],
            "belongs_to_default_sg": false,
        })
    },
    parts: None,
    hooks: Hooks {
        check: Neutron::check_rule,
        created: |it, call, rule| it.touch_group(call.now, rule),
        changed: |it, call, rule| it.touch_group(call.now, rule),
        deleted: |it, call, rule| it.touch_group(call.now, rule),
        ..Hooks::NONE
    },
};

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

pub(super) fn short_text(value: &Value) -> Result<(), String> {
    match value {
        Value::String(text) if text.chars().count() > 255 => Err(format!("'{text}' exceeds maximum length of 255")),
        Value::String(_) => Ok(()),
        other => Err(format!("'{other}' is not a valid string")),
    }
}

pub(super) fn flag(value: &Value) -> Result<(), String> {
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
