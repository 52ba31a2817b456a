//! Which addresses images may be fetched from: the operator stands in a network that its users may not.

use std::iter::once;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use strum::Display;

mod resolver;

pub(crate) use resolver::{Denied, Resolver};

/// Where clouds answer questions about the machine that asks, credentials included, beside the link-local addresses.
const METADATA_V4: [Ipv4Addr; 3] =
    [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(168, 63, 129, 16), Ipv4Addr::new(192, 0, 0, 192)];
const METADATA_V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x254), Ipv6Addr::new(0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x254)];

/// What is wrong with an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Display)]
#[non_exhaustive]
pub enum AddressClass {
    /// The operator's own pod.
    #[strum(to_string = "a loopback address")]
    Loopback,
    /// The network segment, with the metadata services of most clouds.
    #[strum(to_string = "a link-local address")]
    LinkLocal,
    /// A metadata service elsewhere.
    #[strum(to_string = "the address of a cloud's metadata service")]
    Metadata,
    /// No address at all, which systems take for the own one.
    #[strum(to_string = "an unspecified address")]
    Unspecified,
    /// Many hosts.
    #[strum(to_string = "a multicast address")]
    Multicast,
    /// All hosts, or what nobody may use.
    #[strum(to_string = "a broadcast or reserved address")]
    Reserved,
    /// Something that was named when the guard was made.
    #[strum(to_string = "the address of {0}")]
    Protected(&'static str),
    /// One of the ranges that the settings deny.
    #[strum(to_string = "an address that the operator's settings deny")]
    Denied,
}

/// Decides about addresses. Loopback, link-local, metadata services, unspecified, multicast and reserved addresses are
/// denied from the start, private ones are not.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    allow: Vec<IpNet>,
    deny: Vec<IpNet>,
    protected: Vec<(IpAddr, &'static str)>,
}

impl Guard {
    /// Denies further ranges, and allows others in spite of everything that denies them.
    pub fn new(allow: Vec<IpNet>, deny: Vec<IpNet>) -> Self {
        Self { allow, deny, protected: Vec::new() }
    }

    /// Denies one more address; `what` is shown in the refusal.
    #[must_use]
    pub fn protecting(mut self, address: IpAddr, what: &'static str) -> Self {
        self.protected.push((address.to_canonical(), what));
        self
    }

    /// Refuses an address, or one of IPv6 that leads to a refused one of IPv4.
    pub(crate) fn check(&self, address: IpAddr) -> Result<(), AddressClass> {
        leads_to(address).try_for_each(|address| self.check_one(address))
    }

    fn check_one(&self, address: IpAddr) -> Result<(), AddressClass> {
        let within = |ranges: &[IpNet]| ranges.iter().any(|range| range.contains(&address));
        if within(&self.allow) {
            return Ok(());
        }
        if let Some((_, what)) = self.protected.iter().find(|(protected, _)| *protected == address) {
            return Err(AddressClass::Protected(what));
        }
        let class = match address {
            IpAddr::V4(address) => class_v4(address),
            IpAddr::V6(address) => class_v6(address),
        };
        class.or_else(|| within(&self.deny).then_some(AddressClass::Denied)).map_or(Ok(()), Err)
    }
}

/// Whether an address is one that the whole world cannot reach.
pub(crate) fn is_internal(address: IpAddr) -> bool {
    leads_to(address).any(|address| match address {
        IpAddr::V4(v4) => {
            let shared = v4.octets()[0] == 100 && v4.octets()[1] & 0xc0 == 64;
            class_v4(v4).is_some() || v4.is_private() || shared
        }
        IpAddr::V6(v6) => {
            let site_local = v6.segments()[0] & 0xffc0 == 0xfec0;
            class_v6(v6).is_some() || v6.is_unique_local() || site_local
        }
    })
}

fn class_v4(address: Ipv4Addr) -> Option<AddressClass> {
    match address.octets() {
        [0, ..] => Some(AddressClass::Unspecified),
        [127, ..] => Some(AddressClass::Loopback),
        [169, 254, ..] => Some(AddressClass::LinkLocal),
        [224..=239, ..] => Some(AddressClass::Multicast),
        [240..=255, ..] => Some(AddressClass::Reserved),
        _ => METADATA_V4.contains(&address).then_some(AddressClass::Metadata),
    }
}

fn class_v6(address: Ipv6Addr) -> Option<AddressClass> {
    match address.segments() {
        _ if address.is_unspecified() => Some(AddressClass::Unspecified),
        _ if address.is_loopback() => Some(AddressClass::Loopback),
        [0xfe80..=0xfebf, ..] => Some(AddressClass::LinkLocal),
        [0xff00..=0xffff, ..] => Some(AddressClass::Multicast),
        // NAT64 of a local kind: which address of IPv4 is meant, and in which network, only its translator knows.
        [0x64, 0xff9b, 1, ..] => Some(AddressClass::Reserved),
        _ => METADATA_V6.contains(&address).then_some(AddressClass::Metadata),
    }
}

/// The address, and the addresses of IPv4 that its packets may come out at.
fn leads_to(address: IpAddr) -> impl Iterator<Item = IpAddr> {
    let address = address.to_canonical();
    let embedded = match address {
        IpAddr::V4(_) => [None, None],
        IpAddr::V6(address) => embedded(address),
    };
    once(address).chain(embedded.into_iter().flatten().map(IpAddr::V4))
}

fn embedded(address: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let octets = address.octets();
    let v4 = |at: usize| Some(Ipv4Addr::new(octets[at], octets[at + 1], octets[at + 2], octets[at + 3]));
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => [None, None],
        // IPv4-compatible, IPv4-translated, NAT64, ISATAP
        [0, 0, 0, 0, 0 | 0xffff, 0, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] | [_, _, _, _, 0 | 0x200, 0x5efe, ..] => {
            [v4(12), None]
        }
        // 6to4
        [0x2002, ..] => [v4(2), None],
        // Teredo: the server, and the client behind it, whose address is inverted
        [0x2001, 0, ..] => [v4(4), v4(12).map(|client| Ipv4Addr::from_bits(!client.to_bits()))],
        _ => [None, None],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use url::{Host, Url};

    /// The address in a URL, as it is after the URL was read.
    fn literal(host: &str) -> IpAddr {
        match Url::parse(&format!("http://{host}/x")).unwrap().host().unwrap() {
            Host::Ipv4(address) => address.into(),
            Host::Ipv6(address) => address.into(),
            Host::Domain(name) => panic!("{name} is a name"),
        }
    }

    #[rstest]
    #[case("127.0.0.1", AddressClass::Loopback)]
    #[case("127.1", AddressClass::Loopback)]
    #[case("2130706433", AddressClass::Loopback)]
    #[case("0x7f000001", AddressClass::Loopback)]
    #[case("0x7f.1", AddressClass::Loopback)]
    #[case("0177.0.0.1", AddressClass::Loopback)]
    #[case("127.0.0.1.", AddressClass::Loopback)]
    #[case("%31%32%37.0.0.1", AddressClass::Loopback)]
    #[case("127。0。0。1", AddressClass::Loopback)]
    #[case("[::1]", AddressClass::Loopback)]
    #[case("[0:0:0:0:0:0:0:1]", AddressClass::Loopback)]
    #[case("[::ffff:127.0.0.1]", AddressClass::Loopback)]
    #[case("[::ffff:7f00:1]", AddressClass::Loopback)]
    #[case("[::127.0.0.1]", AddressClass::Loopback)]
    #[case("[::ffff:0:127.0.0.1]", AddressClass::Loopback)]
    #[case("[64:ff9b::127.0.0.1]", AddressClass::Loopback)]
    #[case("[2002:7f00:1::]", AddressClass::Loopback)]
    #[case("[2001:db8::5efe:7f00:1]", AddressClass::Loopback)]
    #[case("[2001:0:0808:0808::80ff:fffe]", AddressClass::Loopback)]
    #[case("[64:ff9b:1::8.8.8.8]", AddressClass::Reserved)]
    #[case("169.254.169.254", AddressClass::LinkLocal)]
    #[case("0xa9fea9fe", AddressClass::LinkLocal)]
    #[case("[64:ff9b::a9fe:a9fe]", AddressClass::LinkLocal)]
    #[case("[2002:a9fe:a9fe::1]", AddressClass::LinkLocal)]
    #[case("[fe80::a9fe:a9fe]", AddressClass::LinkLocal)]
    #[case("100.100.100.200", AddressClass::Metadata)]
    #[case("168.63.129.16", AddressClass::Metadata)]
    #[case("[fd00:ec2::254]", AddressClass::Metadata)]
    #[case("0.0.0.0", AddressClass::Unspecified)]
    #[case("0", AddressClass::Unspecified)]
    #[case("[::]", AddressClass::Unspecified)]
    #[case("224.0.0.1", AddressClass::Multicast)]
    #[case("[ff02::1]", AddressClass::Multicast)]
    #[case("255.255.255.255", AddressClass::Reserved)]
    #[case("240.0.0.1", AddressClass::Reserved)]
    fn what_is_denied_from_the_start(#[case] host: &str, #[case] class: AddressClass) {
        assert_eq!(Guard::default().check(literal(host)), Err(class));
    }

    #[rstest]
    #[case("8.8.8.8", false)]
    #[case("[2606:4700::1111]", false)]
    #[case("[64:ff9b::8.8.8.8]", false)]
    #[case("10.96.3.4", true)]
    #[case("172.31.0.1", true)]
    #[case("192.168.0.1", true)]
    #[case("100.64.0.1", true)]
    #[case("[fd12::1]", true)]
    #[case("[64:ff9b::10.0.0.1]", true)]
    fn what_is_not_though_it_may_be_internal(#[case] host: &str, #[case] internal: bool) {
        let address = literal(host);
        assert_eq!((Guard::default().check(address), is_internal(address)), (Ok(()), internal));
    }

    #[test]
    fn settings_deny_more_and_allow_in_spite_of_it() {
        let ranges = |all: &[&str]| all.iter().map(|range| range.parse().unwrap()).collect();
        let guard = Guard::new(ranges(&["10.1.2.0/24", "127.0.0.0/8"]), ranges(&["10.0.0.0/8", "fd00::/8"]));
        let check = |host: &str| guard.check(literal(host));
        for allowed in ["10.1.2.3", "127.0.0.1", "[::ffff:127.0.0.1]", "[64:ff9b::10.1.2.3]", "192.168.0.1"] {
            assert_eq!(check(allowed), Ok(()), "{allowed}");
        }
        for denied in ["10.9.9.9", "[64:ff9b::10.9.9.9]", "[::ffff:10.9.9.9]", "[fd00::1]"] {
            assert_eq!(check(denied), Err(AddressClass::Denied), "{denied}");
        }
        assert_eq!(check("[::1]"), Err(AddressClass::Loopback), "allowed is only what is named");
        let guard = Guard::new(ranges(&["::1/128"]), Vec::new());
        assert_eq!(guard.check(literal("[::1]")), Ok(()));
    }

    #[test]
    fn a_protected_address_is_named_in_every_spelling() {
        let guard = Guard::default().protecting("10.96.0.1".parse().unwrap(), "the Kubernetes API server");
        for host in ["10.96.0.1", "0x0a600001", "[::ffff:10.96.0.1]"] {
            let class = guard.check(literal(host)).unwrap_err();
            assert_eq!(class.to_string(), "the address of the Kubernetes API server");
        }
        assert_eq!(guard.check(literal("10.96.0.2")), Ok(()));
    }
}
