//! What is special about each kind of object.

use serde_json::{Map, Value, json};

use super::{
    Item, Neutron,
    convert::{self, Converted, plain},
    networks, rules,
    subnets::SUBNETS,
};
use crate::sim::{
    http::Refusal,
    service::{Call, Caller},
};

/// The attribute that tells which network something is on.
pub(super) const NETWORK: &str = "network_id";

/// The attribute that tells which group a rule belongs to.
pub(super) const SECURITY_GROUP: &str = "security_group_id";

/// The attribute that tells which group a rule lets through.
pub(super) const REMOTE_GROUP: &str = "remote_group_id";

/// A kind of object.
#[derive(Debug)]
pub(super) struct Kind {
    /// Its name in paths.
    pub(super) collection: &'static str,
    /// Its name in bodies and words, and that of its quota.
    pub(super) member: &'static str,
    /// The type of the fault that there is none.
    pub(super) missing: &'static str,
    /// What it is called in such words, and how they end.
    pub(super) called: [&'static str; 2],
    /// The revision of a new one.
    pub(super) first_revision: u64,
    /// Whether one can be changed. If not, Neutron tries nevertheless, and fails.
    pub(super) can_change: bool,
    /// What may be asked for.
    pub(super) attributes: &'static [Attribute],
    /// What an object has beside what is asked for.
    pub(super) defaults: fn() -> Value,
    /// What else is shown of it at times.
    pub(super) views: Views,
    /// What is shown with it.
    pub(super) parts: Option<Parts>,
    /// What is special about lists of it.
    pub(super) lists: Lists,
    /// What else there is to do about it.
    pub(super) hooks: Hooks,
}

/// Attributes that are not always shown.
#[derive(Debug)]
pub(super) struct Views {
    /// Those that only an administrator sees.
    pub(super) for_admins: fn() -> Value,
    /// Those that only the answer to its creation has.
    pub(super) when_new: fn() -> Value,
}

impl Views {
    pub(super) const NONE: Self = Self { for_admins: || json!({}), when_new: || json!({}) };
}

/// What lists of a kind can't do.
#[derive(Debug)]
pub(super) struct Lists {
    /// What is shown, and is nothing to filter by.
    pub(super) no_filters: &'static [&'static str],
    /// What is shown, and is nothing to sort by.
    pub(super) no_sort_keys: &'static [&'static str],
    /// What becomes of one whose marker is unknown.
    pub(super) stray_marker: StrayMarker,
    /// What is null in the parts of what is listed, whatever it is.
    pub(super) unknown_of_parts: &'static [&'static str],
}

/// What becomes of a list whose marker is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StrayMarker {
    /// It is refused.
    Refused,
    /// It begins at the beginning.
    Ignored,
    /// It is empty.
    Empty,
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
    /// Whether what is asked for makes another revision of what it was.
    pub(super) revises: fn(&Map<String, Value>, &Item, &Item) -> bool,
    /// Once it is changed, from what it was.
    pub(super) changed: fn(&mut Neutron, &mut Call<'_>, &Item, &Item),
    /// Why it can't be deleted.
    pub(super) check_end: fn(&Neutron, &Call<'_>, &Item) -> Result<(), Refusal>,
    /// Once it is deleted.
    pub(super) deleted: fn(&mut Neutron, &Call<'_>, &Item),
    /// What else is shown of it that others know.
    pub(super) extend: fn(&Neutron, &mut Map<String, Value>),
}

impl Hooks {
    pub(super) const NONE: Self = Self {
        listing: |_, _| {},
        creating: |_, _, _| {},
        complete: |_, _, _, _| Ok(()),
        check: |_, _, _| Ok(()),
        is_shared: |_, _, _| false,
        created: |_, _, _| {},
        revises: |_, before, after| before != after,
        changed: |_, _, _, _| {},
        check_end: |_, _, _| Ok(()),
        deleted: |_, _, _| {},
        extend: |_, _| {},
    };
}

/// What may be asked for.
pub(super) struct Attribute {
    pub(super) name: &'static str,
    /// When it may be said.
    pub(super) when: When,
    /// Whether a new object has to say it.
    pub(super) is_required: bool,
    /// What of it is an administrator's.
    pub(super) reserved: Reserved,
    /// What is made of a value before it is checked.
    pub(super) convert: fn(&Value) -> Converted,
    /// Why a value can't be.
    pub(super) check: fn(&Value) -> Result<(), String>,
}

/// When an attribute may be said.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// Of a new object.
    New,
    /// Of what there is.
    Later,
    Always,
}

/// What of an attribute only an administrator does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reserved {
    Nothing,
    /// Changing it.
    Changes,
    Everything,
}

impl std::fmt::Debug for Attribute {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

pub(super) const fn attribute(name: &'static str, check: fn(&Value) -> Result<(), String>) -> Attribute {
    Attribute {
        name,
        when: When::Always,
        is_required: false,
        reserved: Reserved::Nothing,
        convert: |value| Ok(value.clone()),
        check,
    }
}

/// One of which any value fits that can be converted.
pub(super) const fn converted(name: &'static str, convert: fn(&Value) -> Converted) -> Attribute {
    attribute(name, |_| Ok(())).converted(convert)
}

impl Attribute {
    pub(super) const fn for_admins(mut self) -> Self {
        self.reserved = Reserved::Everything;
        self
    }

    pub(super) const fn changed_by_admins(mut self) -> Self {
        self.reserved = Reserved::Changes;
        self
    }

    pub(super) const fn not_of_new(mut self) -> Self {
        self.when = When::Later;
        self
    }

    pub(super) const fn fixed(mut self) -> Self {
        self.when = When::New;
        self
    }

    pub(super) const fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    pub(super) const fn converted(mut self, convert: fn(&Value) -> Converted) -> Self {
        self.convert = convert;
        self
    }
}

pub(super) static NETWORKS: Kind = Kind {
    collection: "networks",
    member: "network",
    missing: "NetworkNotFound",
    called: ["Network", "could not be found."],
    first_revision: 1,
    can_change: true,
    attributes: &[
        attribute("name", short_text),
        attribute("description", short_text),
        converted("admin_state_up", convert::flag),
        converted("shared", convert::flag).for_admins(),
        converted("router:external", convert::flag).for_admins(),
        attribute("mtu", count).converted(convert::number),
        converted("port_security_enabled", convert::flag),
        attribute("dns_domain", domain),
        attribute("availability_zone_hints", list).fixed(),
        attribute("provider:network_type", text_or_null).fixed().for_admins(),
        attribute("provider:physical_network", text_or_null).fixed().for_admins(),
        converted("provider:segmentation_id", convert::number).fixed().for_admins(),
    ],
    defaults: || {
        json!({
            "name": "", "description": "", "admin_state_up": true, "status": "ACTIVE", "shared": false,
            "router:external": false, "mtu": 0, "port_security_enabled": true, "dns_domain": "",
            "availability_zone_hints": [], "availability_zones": [], "ipv4_address_scope": null,
            "ipv6_address_scope": null, "vlan_transparent": false, "qinq": false, "tags": [],
        })
    },
    views: Views {
        for_admins: || {
            json!({
                "provider:network_type": "geneve", "provider:physical_network": null, "provider:segmentation_id": 1,
            })
        },
        when_new: || json!({"is_default": false}),
    },
    parts: Some(Parts { kind: &SUBNETS, key: NETWORK, shown_as: "subnets", shown: |subnet| json!(subnet.id) }),
    lists: Lists {
        no_filters: &[
            "subnets",
            "port_security_enabled",
            "availability_zone_hints",
            "availability_zones",
            "ipv4_address_scope",
            "ipv6_address_scope",
            "created_at",
            "updated_at",
        ],
        no_sort_keys: &[
            "subnets",
            "shared",
            "port_security_enabled",
            "router:external",
            "vlan_transparent",
            "qinq",
            "availability_zones",
            "ipv4_address_scope",
            "ipv6_address_scope",
            "description",
            "tags",
            "created_at",
            "updated_at",
            "revision_number",
        ],
        stray_marker: StrayMarker::Refused,
        unknown_of_parts: &[],
    },
    hooks: Hooks {
        creating: Neutron::ensure_default_group,
        complete: networks::complete,
        created: Neutron::add_metadata_port,
        check_end: |it, _, network| it.check_use_of_network(network),
        deleted: |it, call, network| {
            it.remove_passing_ports(call, network);
            it.remove_subnets(call, network);
        },
        extend: Neutron::tell_of_domain,
        ..Hooks::NONE
    },
};

pub(super) static GROUPS: Kind = Kind {
    collection: "security-groups",
    member: "security_group",
    missing: "SecurityGroupNotFound",
    called: ["Security group", "does not exist"],
    first_revision: 1,
    can_change: true,
    attributes: &[
        attribute("name", short_text),
        attribute("description", short_text),
        converted("stateful", convert::flag),
    ],
    defaults: || json!({"name": "", "description": "", "stateful": true, "shared": false, "tags": []}),
    views: Views::NONE,
    lists: Lists {
        no_filters: &["security_group_rules", "created_at", "updated_at"],
        no_sort_keys: &[
            "stateful",
            "description",
            "shared",
            "security_group_rules",
            "tags",
            "created_at",
            "updated_at",
            "revision_number",
        ],
        stray_marker: StrayMarker::Ignored,
        unknown_of_parts: &[rules::OF_DEFAULT],
    },
    parts: Some(Parts { kind: &RULES, key: SECURITY_GROUP, shown_as: "security_group_rules", shown: rules::as_part }),
    hooks: Hooks {
        listing: Neutron::ensure_listed_default_group,
        creating: Neutron::ensure_default_group,
        check: Neutron::check_group,
        created: Neutron::add_egress,
        check_end: |it, call, group| {
            it.check_use_of_group(group)?;
            Neutron::check_end_of_group(call, group)
        },
        deleted: Neutron::remove_rules,
        ..Hooks::NONE
    },
};

pub(super) static RULES: Kind = Kind {
    collection: "security-group-rules",
    member: "security_group_rule",
    missing: "SecurityGroupRuleNotFound",
    called: ["Security group rule", "does not exist"],
    first_revision: 0,
    can_change: false,
    attributes: &[
        attribute(SECURITY_GROUP, short_text).fixed().required(),
        attribute("direction", direction).fixed().required(),
        converted("ethertype", convert::ethertype).fixed(),
        converted("protocol", convert::protocol).fixed(),
        converted("port_range_min", convert::port).fixed(),
        converted("port_range_max", convert::port).fixed(),
        converted("remote_ip_prefix", convert::prefix).fixed(),
        attribute(REMOTE_GROUP, text_or_null).fixed(),
        attribute("description", short_text),
    ],
    defaults: || {
        json!({
            "ethertype": "IPv4", "protocol": null, "port_range_min": null, "port_range_max": null,
            "remote_ip_prefix": null, REMOTE_GROUP: null, "remote_address_group_id": null, "normalized_cidr": null,
            "description": "", "belongs_to_default_sg": false,
        })
    },
    views: Views::NONE,
    parts: None,
    lists: Lists {
        no_filters: &["created_at", "updated_at"],
        no_sort_keys: &[
            "normalized_cidr",
            "belongs_to_default_sg",
            "description",
            "created_at",
            "updated_at",
            "revision_number",
        ],
        stray_marker: StrayMarker::Ignored,
        unknown_of_parts: &[],
    },
    hooks: Hooks {
        complete: |_, _, rule, _| {
            rules::complete(rule);
            Ok(())
        },
        check: Neutron::check_rule,
        created: |it, call, rule| it.touch_group(call.now, rule),
        deleted: |it, call, rule| it.touch_group(call.now, rule),
        ..Hooks::NONE
    },
};

fn direction(value: &Value) -> Result<(), String> {
    match value.as_str() {
        Some("ingress" | "egress") => Ok(()),
        _ => Err(format!("{} is not in valid_values", plain(value))),
    }
}

pub(super) fn text_or_null(value: &Value) -> Result<(), String> {
    if value.is_null() { Ok(()) } else { short_text(value) }
}

pub(super) fn short_text(value: &Value) -> Result<(), String> {
    match value {
        Value::String(text) if text.chars().count() > 255 => Err(format!("'{text}' exceeds maximum length of 255")),
        Value::String(_) => Ok(()),
        other => Err(format!("'{}' is not a valid string", plain(other))),
    }
}

fn count(value: &Value) -> Result<(), String> {
    match value.as_i64() {
        Some(0..) => Ok(()),
        _ => Err(format!("'{}' should be non-negative", plain(value))),
    }
}

fn list(value: &Value) -> Result<(), String> {
    if value.is_array() { Ok(()) } else { Err(format!("'{value}' is not a list")) }
}

fn domain(value: &Value) -> Result<(), String> {
    short_text(value)?;
    match value.as_str() {
        Some(text) if !text.is_empty() && !text.ends_with('.') => Err(format!("'{text}' is not a FQDN")),
        _ => Ok(()),
    }
}
