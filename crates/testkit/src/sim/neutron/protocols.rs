//! The protocols that rules know.

use crate::sim::http::Refusal;

/// What they are called, in Neutron's order, and their numbers.
const NAMES: [(&str, u8); 25] = [
    ("ah", 51),
    ("dccp", 33),
    ("egp", 8),
    ("esp", 50),
    ("gre", 47),
    ("hopopt", 0),
    ("icmp", 1),
    ("igmp", 2),
    ("ip", 0),
    ("ipip", 4),
    ("ipv6-encap", 41),
    ("ipv6-frag", 44),
    ("ipv6-icmp", 58),
    ("icmpv6", 58),
    ("ipv6-nonxt", 59),
    ("ipv6-opts", 60),
    ("ipv6-route", 43),
    ("ospf", 89),
    ("pgm", 113),
    ("rsvp", 46),
    ("sctp", 132),
    ("tcp", 6),
    ("udp", 17),
    ("udplite", 136),
    ("vrrp", 112),
];

/// ICMP, and what it is in IPv6.
pub(super) const ICMP: [u8; 2] = [1, 58];

/// Those that are only in IPv6.
pub(super) const OF_IPV6: [u8; 6] = [41, 43, 44, 58, 59, 60];

/// Those that have ports.
pub(super) const WITH_PORTS: [u8; 5] = [33, 132, 6, 17, 136];

/// The number of a protocol, given by name or number.
pub(super) fn number(protocol: &str) -> Option<u8> {
    let named = NAMES.iter().find(|(name, _)| *name == protocol).map(|(_, number)| *number);
    named.or_else(|| protocol.parse().ok())
}

/// The refusal of a protocol that is none.
pub(super) fn unknown(protocol: &str) -> Refusal {
    let names: Vec<String> = NAMES.iter().map(|(name, _)| format!("'{name}'")).collect();
    Refusal::bad_request(format!(
        "Security group rule protocol {protocol} not supported. Only protocol values (None, 'any', {}) and integer \
         representations [0 to 255] are supported.",
        names.join(", ")
    ))
    .of_type("SecurityGroupRuleInvalidProtocol")
}
