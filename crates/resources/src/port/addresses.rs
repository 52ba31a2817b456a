//! The addresses that a port has and is to have.

use std::{
    net::{IpAddr, Ipv6Addr},
    time::Duration,
};

use futures::TryStreamExt;
use kupenstack_core::Outcome;
use kupenstack_openstack::{Client, FixedIp, Port, PortAttributes, Subnet, WantedIp};

use crate::stop::Stop;

/// Gives a port without any its first address, of IPv4 if it can be. Those that Neutron makes of the MAC it has anyway.
pub(super) async fn first(client: &Client, port: &Port) -> Result<(), Stop> {
    let mut subnets: Vec<Subnet> = client.network().subnets().of_networks(&[&port.network_id]).try_collect().await?;
    subnets.sort_by_key(|subnet| subnet.ip_version);
    let Some(subnet) = subnets.first() else {
        let message = "its network has no subnet yet, of which it could have an address; for a port without one declare an \
                       empty list of addresses";
        return Err(Outcome::waiting("NoAddress", message).within(LOOK).into());
    };
    let any = WantedIp { subnet_id: Some(subnet.id.clone()), ip_address: None };
    let changes = PortAttributes { fixed_ips: Some(vec![any]), ..PortAttributes::default() };
    Ok(client.network().ports().update(port, &changes).await.map(drop)?)
}

/// Nobody tells of a subnet that others make.
const LOOK: Duration = Duration::from_secs(5);

/// In the order in which people look for them.
pub(super) fn shown(port: &Port) -> Vec<String> {
    let mut all: Vec<_> = port.fixed_ips.iter().map(|ip| ip.ip_address.clone()).collect();
    all.sort_by_key(|text| (text.contains(':'), text.parse::<IpAddr>().ok()));
    all
}

/// What has to be said to have the declared addresses and no other; nothing if it is so. An address that fits stays.
pub(super) fn changed(wanted: Vec<WantedIp>, port: &Port) -> Option<Vec<WantedIp>> {
    let mut is: Vec<&FixedIp> = port.fixed_ips.iter().collect();
    let mut is_so = true;
    // those with an address first, so that none of them is taken for any of a subnet
    let (exact, any): (Vec<_>, Vec<_>) = wanted.into_iter().partition(|wanted| wanted.ip_address.is_some());
    let mut said: Vec<WantedIp> = Vec::new();
    for wanted in exact.into_iter().chain(any) {
        if let Some(found) = is.iter().position(|ip| fits(&wanted, ip)) {
            let FixedIp { subnet_id, ip_address } = is.swap_remove(found).clone();
            said.push(WantedIp { subnet_id: Some(subnet_id), ip_address: Some(ip_address) });
        } else {
            is_so = false;
            said.push(wanted);
        }
    }
    let is_needless = |ip: &&FixedIp| !follows_from_the_mac(&ip.ip_address, &port.mac_address);
    (!is_so || is.iter().any(is_needless)).then_some(said)
}

fn fits(wanted: &WantedIp, ip: &FixedIp) -> bool {
    wanted.subnet_id.as_ref().is_none_or(|subnet| *subnet == ip.subnet_id)
        && wanted.ip_address.as_ref().is_none_or(|address| same(address, &ip.ip_address))
}

fn same(one: &str, other: &str) -> bool {
    match (one.parse::<IpAddr>(), other.parse::<IpAddr>()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

/// Whether Neutron made the address of the port's MAC (EUI-64), which it does whatever is said.
fn follows_from_the_mac(address: &str, mac: &str) -> bool {
    let bytes: Option<Vec<u8>> = mac.split(':').map(|part| u8::from_str_radix(part, 16).ok()).collect();
    let (Ok(address), Some(mac)) = (address.parse::<Ipv6Addr>(), bytes) else { return false };
    let ([first, of_maker @ ..], 6) = (&mac[..], mac.len()) else { return false };
    let (of_maker, own) = of_maker.split_at(2);
    let interface = [&[first ^ 2], of_maker, &[0xff, 0xfe], own].concat();
    address.octets()[8..] == interface[..]
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn port(addresses: &[(&str, &str)]) -> Port {
        let ips: Vec<_> = addresses.iter().map(|(subnet, ip)| json!({"subnet_id": subnet, "ip_address": ip})).collect();
        serde_json::from_value(json!({"id": "p", "project_id": "q", "network_id": "n", "admin_state_up": true,
            "mac_address": "fa:16:3e:01:02:03", "fixed_ips": ips, "status": "DOWN", "revision_number": 1}))
        .unwrap()
    }

    fn wanted(addresses: &[(&str, &str)]) -> Vec<WantedIp> {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let of = |(subnet, ip): &(&str, &str)| WantedIp { subnet_id: given(subnet), ip_address: given(ip) };
        addresses.iter().map(of).collect()
    }

    #[rstest]
    #[case::any_of_a_subnet(&[("a", "")], &[("a", "10.0.0.7")])]
    #[case::address_alone(&[("", "10.0.0.7")], &[("a", "10.0.0.7")])]
    #[case::in_another_order(&[("a", ""), ("b", "")], &[("b", "10.1.0.7"), ("a", "10.0.0.7")])]
    #[case::any_beside_a_certain_one(&[("a", ""), ("a", "10.0.0.7")], &[("a", "10.0.0.7"), ("a", "10.0.0.8")])]
    #[case::written_in_another_way(&[("s", "FD00:0::7")], &[("s", "fd00::7")])]
    #[case::with_one_that_follows_from_the_mac(&[("a", "")], &[("a", "10.0.0.7"), ("s", "fd00::f816:3eff:fe01:203")])]
    #[case::none(&[], &[])]
    fn what_fits_stays(#[case] declared: &[(&str, &str)], #[case] is: &[(&str, &str)]) {
        assert_eq!(changed(wanted(declared), &port(is)), None);
    }

    #[rstest]
    #[case::one_more(&[("a", ""), ("b", "")], &[("a", "10.0.0.7")], &[("a", "10.0.0.7"), ("b", "")])]
    #[case::one_less(&[("a", "")], &[("a", "10.0.0.7"), ("a", "10.0.0.8")], &[("a", "10.0.0.7")])]
    #[case::another(&[("a", "10.0.0.9")], &[("a", "10.0.0.7")], &[("a", "10.0.0.9")])]
    #[case::none(&[], &[("a", "10.0.0.7")], &[])]
    #[case::a_chosen_one_of_ipv6(&[], &[("s", "fd00::7")], &[])]
    fn all_are_said_when_one_differs(
        #[case] declared: &[(&str, &str)],
        #[case] is: &[(&str, &str)],
        #[case] said: &[(&str, &str)],
    ) {
        assert_eq!(changed(wanted(declared), &port(is)), Some(wanted(said)));
    }

    #[test]
    fn addresses_of_version_4_are_shown_first() {
        let port = port(&[("s", "fd00::7"), ("a", "10.0.0.20"), ("a", "10.0.0.3")]);
        assert_eq!(shown(&port), ["10.0.0.3", "10.0.0.20", "fd00::7"]);
    }
}
