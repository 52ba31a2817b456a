//! Rules of security groups.

use std::sync::Arc;

use ipnet::IpNet;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Item, Neutron,
    item::attributes,
    kinds::{GROUPS, REMOTE_GROUP, RULES, SECURITY_GROUP},
    missing, protocols,
};
use crate::sim::{http::Refusal, service::Call};

/// Whether a rule came with the group that every project has.
pub(super) const OF_DEFAULT: &str = "belongs_to_default_sg";

/// What makes one rule another, beside its protocol and addresses.
const IDENTITY: [&str; 6] =
    [SECURITY_GROUP, "direction", "ethertype", "port_range_min", "port_range_max", REMOTE_GROUP];

impl Neutron {
    /// A rule is one of a group that the caller may change, has parts that go together, and is the only one like it.
    pub(super) fn check_rule(&self, call: &Call<'_>, rule: &Item) -> Result<(), Refusal> {
        let id = rule.text(SECURITY_GROUP);
        let group = self.get(GROUPS.collection, id).ok_or_else(|| missing(&GROUPS, id))?;
        if !group.is_changeable_by(&call.caller) {
            let words = "rule:create_security_group_rule is disallowed by policy";
            return Err(Refusal::forbidden(words).of_type("PolicyNotAuthorized"));
        }
        check_range(rule)?;
        check_family(rule)?;
        let remote = rule.text(REMOTE_GROUP);
        if !remote.is_empty() && has(rule, "remote_ip_prefix") {
            let words = "Only one of remote_ip_prefix or remote_group_id or remote_address_group_id may be provided.";
            return Err(Refusal::bad_request(words).of_type("SecurityGroupMultipleRemoteEntites"));
        }
        if !remote.is_empty() && !self.get(GROUPS.collection, remote).is_some_and(|it| it.is_visible_to(&call.caller)) {
            return Err(missing(&GROUPS, remote));
        }
        let is_same = |other: &&Arc<Item>| other.id != rule.id && identity(other) == identity(rule);
        match self.table(&RULES).by(SECURITY_GROUP, id).find(is_same) {
            None => Ok(()),
            Some(other) => {
                let words = format!("Security group rule already exists. Rule id is {}.", other.id);
                Err(Refusal::conflict(words).of_type("SecurityGroupRuleExists"))
            }
        }
    }

    /// A group has changed when its rules have.
    pub(super) fn touch_group(&mut self, now: Timestamp, rule: &Item) {
        self.edit(now, GROUPS.collection, rule.text(SECURITY_GROUP), |_| {});
    }

    /// A group's rules go with it, and so do those of other groups that name it.
    pub(super) fn remove_rules(&mut self, call: &Call<'_>, group: &Item) {
        let own: Vec<_> = self.table(&RULES).by(SECURITY_GROUP, &group.id).map(|rule| rule.id.clone()).collect();
        for rule in own {
            self.remove(call.now, RULES.collection, &rule);
        }
        let naming: Vec<_> = self.table(&RULES).by(REMOTE_GROUP, &group.id).cloned().collect();
        for rule in naming {
            self.remove(call.now, RULES.collection, &rule.id);
            self.touch_group(call.now, &rule);
        }
    }
}

/// Names ICMP as its family does, has all ports as none, and adds the range that a prefix stands for.
pub(super) fn complete(rule: &mut Item) {
    if rule.text("ethertype") == "IPv6" && ["icmp", "icmpv6"].contains(&rule.text("protocol")) {
        rule.body.insert("protocol".to_owned(), json!("ipv6-icmp"));
    }
    let ports = [port(rule, "port_range_min"), port(rule, "port_range_max")];
    if ports == [Some(1), Some(u64::from(u16::MAX))] {
        rule.body.extend(attributes(json!({"port_range_min": null, "port_range_max": null})));
    }
    let range = prefix(rule).map(|net| net.trunc().to_string());
    rule.body.insert("normalized_cidr".to_owned(), json!(range));
}

/// A rule as its group shows it.
pub(super) fn as_part(rule: &Item) -> Value {
    let mut shown = rule.shown();
    shown.extend(attributes(json!({"tags": [], "standard_attr_id": 1})));
    Value::Object(shown)
}

fn has(rule: &Item, part: &str) -> bool {
    rule.body.get(part).is_some_and(|value| !value.is_null())
}

fn prefix(rule: &Item) -> Option<IpNet> {
    rule.text("remote_ip_prefix").parse().ok()
}

fn port(rule: &Item, part: &str) -> Option<u64> {
    rule.body.get(part).and_then(Value::as_u64)
}

/// By whatever name or number of its protocol. All addresses are as none.
fn identity(rule: &Item) -> (Vec<Option<&Value>>, Option<u8>, Option<IpNet>) {
    let protocol = match protocols::number(rule.text("protocol")) {
        Some(1) if rule.text("ethertype") == "IPv6" => Some(58),
        number => number,
    };
    (
        IDENTITY.iter().map(|part| rule.body.get(*part)).collect(),
        protocol,
        prefix(rule).filter(|net| net.prefix_len() > 0),
    )
}

/// Ports, or the type and code of ICMP.
fn check_range(rule: &Item) -> Result<(), Refusal> {
    let refused = |kind, words: String| Err(Refusal::bad_request(words).of_type(kind));
    let (first, last) = (port(rule, "port_range_min"), port(rule, "port_range_max"));
    if first.or(last).is_none() {
        return Ok(());
    }
    let Some(protocol) = protocols::number(rule.text("protocol")) else {
        let words = "Must also specify protocol if port range is given.";
        return refused("SecurityGroupProtocolRequiredWithPorts", words.to_owned());
    };
    if protocols::WITH_PORTS.contains(&protocol) {
        if first == Some(0) || last == Some(0) {
            return refused("SecurityGroupInvalidPortValue", "Invalid value for port 0".to_owned());
        }
        if first.is_none() || last.is_none() || first > last {
            let words = "For TCP/UDP protocols, port_range_min must be <= port_range_max";
            return refused("SecurityGroupInvalidPortRange", words.to_owned());
        }
    } else if protocols::ICMP.contains(&protocol) {
        for (value, part, noun) in [(first, "port_range_min", "type"), (last, "port_range_max", "code")] {
            if let Some(value) = value.filter(|value| *value > 255) {
                let words = format!("Invalid value for ICMP {noun} ({part}) {value}. It must be 0 to 255.");
                return refused("SecurityGroupInvalidIcmpValue", words);
            }
        }
        if let (None, Some(code)) = (first, last) {
            let words =
                format!("ICMP code (port-range-max) {code} is provided but ICMP type (port-range-min) is missing.");
            return refused("SecurityGroupMissingIcmpType", words);
        }
    } else {
        let words = format!(
            "Ports cannot be specified for protocol {protocol}. Ports are only supported for DCCP, SCTP, TCP, UDP, UDPLITE."
        );
        return refused("SecurityGroupInvalidProtocolForPort", words);
    }
    Ok(())
}

/// Whether addresses and protocol are of the rule's family.
fn check_family(rule: &Item) -> Result<(), Refusal> {
    let ethertype = rule.text("ethertype");
    let family = |net: IpNet| if net.addr().is_ipv4() { "IPv4" } else { "IPv6" };
    if prefix(rule).is_some_and(|net| family(net) != ethertype) {
        let words = format!("Conflicting value ethertype {ethertype} for CIDR {}", rule.text("remote_ip_prefix"));
        return Err(Refusal::bad_request(words).of_type("SecurityGroupRuleParameterConflict"));
    }
    let protocol = rule.text("protocol");
    if ethertype == "IPv4" && protocols::number(protocol).is_some_and(|number| protocols::OF_IPV6.contains(&number)) {
        let words = format!("Invalid ethertype {ethertype} for protocol {protocol}.");
        return Err(Refusal::bad_request(words).of_type("SecurityGroupEthertypeConflictWithProtocol"));
    }
    Ok(())
}
