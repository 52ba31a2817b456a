//! A rule in the one form that all ways to write it come to.

use kupenstack_api::resources::{self as api, IpFamily};
use kupenstack_openstack::{SecurityGroupRule, SecurityGroupRuleAttributes};

/// Which way traffic goes, as a port sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Direction {
    Ingress,
    Egress,
}

impl Direction {
    pub(super) const ALL: [Self; 2] = [Self::Ingress, Self::Egress];

    fn word(self) -> &'static str {
        match self {
            Self::Ingress => "ingress",
            Self::Egress => "egress",
        }
    }

    pub(super) fn is_that_of(self, rule: &SecurityGroupRule) -> bool {
        rule.direction == self.word()
    }
}

/// What Neutron calls protocols by that have a number.
const PROTOCOLS: [(&str, &str); 5] = [("1", "icmp"), ("6", "tcp"), ("17", "udp"), ("58", "ipv6-icmp"), ("132", "sctp")];

/// What makes one rule another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rule {
    pub(super) direction: Direction,
    family: IpFamily,
    protocol: Option<String>,
    /// Ports, or type and code of ICMP.
    range: (Option<u16>, Option<u16>),
    cidr: Option<String>,
    group: Option<String>,
}

impl Rule {
    /// The rules that a declared one comes to: one for each family that is meant. `group` is the identifier of the group
    /// that it names.
    pub(super) fn declared(direction: Direction, rule: &api::SecurityGroupRule, group: Option<&str>) -> Vec<Self> {
        let of_cidr = rule.cidr.as_ref().map(|cidr| if cidr.contains(':') { IpFamily::V6 } else { IpFamily::V4 });
        let families = rule.ip_family.or(of_cidr).map_or(vec![IpFamily::V4, IpFamily::V6], |family| vec![family]);
        let of = |family| Self {
            direction,
            family,
            protocol: rule.protocol.as_deref().and_then(|protocol| protocol_of(protocol, family)),
            range: limiting(range_of(rule)),
            cidr: rule.cidr.as_deref().and_then(narrowing),
            group: group.map(str::to_owned),
        };
        families.into_iter().map(of).collect()
    }

    /// What lets everything through.
    pub(super) fn everything(direction: Direction) -> Vec<Self> {
        Self::declared(direction, &api::SecurityGroupRule::default(), None)
    }

    /// None for what Neutron shows in words of its own.
    pub(super) fn seen(rule: &SecurityGroupRule) -> Option<Self> {
        let direction = Direction::ALL.into_iter().find(|direction| direction.is_that_of(rule))?;
        let family = match rule.ethertype.as_deref() {
            Some("IPv4") => IpFamily::V4,
            Some("IPv6") => IpFamily::V6,
            _ => return None,
        };
        Some(Self {
            direction,
            family,
            protocol: rule.protocol.as_deref().and_then(|protocol| protocol_of(protocol, family)),
            range: limiting((rule.port_range_min, rule.port_range_max)),
            cidr: rule.remote_ip_prefix.as_deref().and_then(narrowing),
            group: rule.remote_group_id.clone(),
        })
    }

    /// What has to be said to Neutron to have it in a group.
    pub(super) fn attributes(&self, group: &str) -> SecurityGroupRuleAttributes {
        let ethertype = match self.family {
            IpFamily::V4 => "IPv4",
            IpFamily::V6 => "IPv6",
        };
        SecurityGroupRuleAttributes {
            security_group_id: Some(group.to_owned()),
            direction: Some(self.direction.word().to_owned()),
            ethertype: Some(ethertype.to_owned()),
            protocol: self.protocol.clone(),
            port_range_min: self.range.0,
            port_range_max: self.range.1,
            remote_ip_prefix: self.cidr.clone(),
            remote_group_id: self.group.clone(),
            description: None,
        }
    }
}

/// A protocol by the name that Neutron has for it, if it has one. 0 and `any` stand for all.
fn protocol_of(protocol: &str, family: IpFamily) -> Option<String> {
    let word = protocol.to_ascii_lowercase();
    let name = PROTOCOLS.iter().find(|(number, _)| *number == word).map_or(word.as_str(), |(_, name)| name);
    match (name, family) {
        ("0" | "any", _) => None,
        ("icmp" | "icmpv6", IpFamily::V6) => Some("ipv6-icmp".to_owned()),
        _ => Some(name.to_owned()),
    }
}

/// The definition's bounds keep the numbers within.
fn range_of(rule: &api::SecurityGroupRule) -> (Option<u16>, Option<u16>) {
    let number = |value: Option<i32>| value.and_then(|value| u16::try_from(value).ok());
    match rule.port {
        Some(first) => (number(Some(first)), number(rule.end_port.or(Some(first)))),
        None => (number(rule.icmp_type), number(rule.icmp_code)),
    }
}

/// Neutron shows all ports as no range, and so does this.
fn limiting(range: (Option<u16>, Option<u16>)) -> (Option<u16>, Option<u16>) {
    if range == (Some(1), Some(u16::MAX)) { (None, None) } else { range }
}

/// A prefix, in the one way to write it; none if it leaves nothing out.
fn narrowing(cidr: &str) -> Option<String> {
    match cidr.parse::<ipnet::IpNet>() {
        Ok(net) if net.prefix_len() == 0 => None,
        Ok(net) => Some(net.trunc().to_string()),
        Err(_) => Some(cidr.to_owned()),
    }
}
