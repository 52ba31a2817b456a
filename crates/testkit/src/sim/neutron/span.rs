//! Addresses from one to another.

use std::{fmt, net::IpAddr};

use ipnet::IpNet;
use serde_json::{Value, json};

use super::values::parsed;

/// Addresses of one family, from the first to the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    pub(super) first: IpAddr,
    pub(super) last: IpAddr,
}

impl Span {
    /// What a pool of addresses has; none if it is no pool.
    pub(super) fn of_pool(pool: &Value) -> Option<Self> {
        let (first, last) = (parsed(&pool["start"])?, parsed(&pool["end"])?);
        (first.is_ipv4() == last.is_ipv4() && first <= last).then_some(Self { first, last })
    }

    /// The addresses of a range that a port may have: not its own, and not the broadcast address of IPv4.
    pub(super) fn usable(range: IpNet) -> Self {
        let (first, last) = (range.network(), range.broadcast());
        if range.prefix_len() + 1 >= range.max_prefix_len() && range.addr().is_ipv4() || first == last {
            return Self { first, last };
        }
        Self { first: after(first), last: if first.is_ipv4() { before(last) } else { last } }
    }

    pub(super) fn contains(&self, address: IpAddr) -> bool {
        (self.first..=self.last).contains(&address)
    }

    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// What is left without one address.
    pub(super) fn without(self, address: Option<IpAddr>) -> Vec<Self> {
        let Some(address) = address.filter(|address| self.contains(*address)) else { return vec![self] };
        let below = (address > self.first).then(|| Self { last: before(address), ..self });
        let above = (address < self.last).then(|| Self { first: after(address), ..self });
        below.into_iter().chain(above).collect()
    }

    /// As a pool of addresses.
    pub(super) fn pool(self) -> Value {
        json!({"start": self.first, "end": self.last})
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

/// The next address; of the last one there is, the first.
pub(super) fn after(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => IpAddr::V4(address.to_bits().wrapping_add(1).into()),
        IpAddr::V6(address) => IpAddr::V6(address.to_bits().wrapping_add(1).into()),
    }
}

/// The address that follows from a MAC on a range of IPv6.
pub(super) fn eui64(range: IpNet, mac: &str) -> Option<IpAddr> {
    let IpAddr::V6(network) = range.network() else { return None };
    let octets: Vec<u8> = mac.split(':').filter_map(|octet| u8::from_str_radix(octet, 16).ok()).collect();
    let (maker, card) = octets.split_first_chunk::<3>()?;
    let [first, second, third] = *maker;
    let card: &[u8; 3] = card.try_into().ok()?;
    // the bit that tells that it was not chosen by the maker is the other way round
    let identifier = u64::from_be_bytes([first ^ 2, second, third, 0xff, 0xfe, card[0], card[1], card[2]]);
    Some(IpAddr::V6((network.to_bits() | u128::from(identifier)).into()))
}

fn before(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => IpAddr::V4(address.to_bits().wrapping_sub(1).into()),
        IpAddr::V6(address) => IpAddr::V6(address.to_bits().wrapping_sub(1).into()),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn spans(cidr: &str, gateway: Option<&str>) -> Vec<String> {
        let all = Span::usable(cidr.parse().unwrap()).without(gateway.map(|gateway| gateway.parse().unwrap()));
        all.iter().map(Span::to_string).collect()
    }

    #[test]
    fn an_address_follows_from_a_mac() {
        let address = eui64("fd01::/64".parse().unwrap(), "fa:16:3e:70:78:ff");
        assert_eq!(address.unwrap().to_string(), "fd01::f816:3eff:fe70:78ff");
        assert_eq!(eui64("10.0.0.0/24".parse().unwrap(), "fa:16:3e:70:78:ff"), None);
    }

    #[rstest]
    #[case("10.0.0.0/24", Some("10.0.0.1"), &["10.0.0.2-10.0.0.254"])]
    #[case("10.0.0.0/24", Some("10.0.0.254"), &["10.0.0.1-10.0.0.253"])]
    #[case("10.0.0.0/24", Some("10.0.0.9"), &["10.0.0.1-10.0.0.8", "10.0.0.10-10.0.0.254"])]
    #[case("10.0.0.0/24", None, &["10.0.0.1-10.0.0.254"])]
    #[case("10.0.0.0/24", Some("192.168.0.1"), &["10.0.0.1-10.0.0.254"])]
    #[case("10.0.0.0/30", Some("10.0.0.1"), &["10.0.0.2-10.0.0.2"])]
    #[case("10.0.0.0/31", Some("10.0.0.1"), &["10.0.0.0-10.0.0.0"])]
    #[case("10.0.0.7/32", None, &["10.0.0.7-10.0.0.7"])]
    #[case("10.0.0.7/32", Some("10.0.0.7"), &[])]
    #[case("fd00::/64", Some("fd00::"), &["fd00::1-fd00::ffff:ffff:ffff:ffff"])]
    fn ports_get_all_but_the_gateway(#[case] cidr: &str, #[case] gateway: Option<&str>, #[case] left: &[&str]) {
        assert_eq!(spans(cidr, gateway), left);
    }
}
