//! Subnets.

use futures::TryStreamExt;
use kupenstack_openstack::{
    AllocationPool, Client, ErrorKind, Network, NetworkAttributes, NetworkFilter, Nullable, Route, Subnet,
    SubnetAttributes,
};
use kupenstack_testkit::sim::Sim;
use rstest::rstest;
use serde_json::json;

use super::{named, shop};
use crate::support::member;

/// A network of the shop's, and the shop.
async fn network() -> (Sim, Client, Client, Network) {
    let (sim, admin, shop) = shop();
    let network = shop.network().networks().create(&named("front")).await.unwrap();
    (sim, admin, shop, network)
}

pub(super) fn range(network: &str, cidr: &str) -> SubnetAttributes {
    SubnetAttributes {
        network_id: Some(network.to_owned()),
        ip_version: Some(if cidr.contains(':') { 6 } else { 4 }),
        cidr: Some(cidr.to_owned()),
        ..SubnetAttributes::default()
    }
}

fn gateway(address: &str) -> Nullable<String> {
    Nullable(Some(address.to_owned()))
}

fn pool(start: &str, end: &str) -> AllocationPool {
    AllocationPool { start: start.to_owned(), end: end.to_owned() }
}

#[tokio::test]
async fn a_subnet_lives_on_its_network() {
    let (sim, _, shop, network) = network().await;
    let (networks, subnets) = (shop.network().networks(), shop.network().subnets());
    let made = subnets.create(&range(&network.id, "10.0.0.7/24")).await.unwrap();
    assert_eq!((made.cidr.as_str(), made.gateway_ip.as_deref()), ("10.0.0.0/24", Some("10.0.0.1")));
    assert_eq!(made.allocation_pools, [pool("10.0.0.2", "10.0.0.254")]);
    assert_eq!((made.enable_dhcp, made.project_id.as_str(), made.revision_number), (true, "project-shop", 0));
    assert_eq!(subnets.get(&made.id).await.unwrap(), Some(made.clone()));
    let with_it = networks.get(&network.id).await.unwrap().unwrap();
    assert_eq!((with_it.subnets, with_it.revision_number), (vec![made.id.clone()], network.revision_number + 1));

    let changes = SubnetAttributes {
        name: Some("s".to_owned()),
        gateway_ip: Some(Nullable(None)),
        dns_nameservers: Some(vec!["9.9.9.9".to_owned(), "1.1.1.1".to_owned()]),
        host_routes: Some(vec![Route { destination: "10.9.0.0/16".to_owned(), nexthop: "10.0.0.9".to_owned() }]),
        enable_dhcp: Some(false),
        ..SubnetAttributes::default()
    };
    let updated = subnets.update(&made, &changes).await.unwrap();
    assert_eq!((updated.gateway_ip.as_deref(), updated.enable_dhcp, updated.revision_number), (None, false, 1));
    assert_eq!(
        (updated.dns_nameservers.as_slice(), updated.host_routes.len()),
        (&["9.9.9.9", "1.1.1.1"].map(str::to_owned)[..], 1)
    );
    assert_eq!(updated.allocation_pools, made.allocation_pools, "the gateway's address is given to nobody");
    assert_eq!(subnets.update(&updated, &changes).await.unwrap().revision_number, 1, "what is as it was is no change");
    let pools =
        SubnetAttributes { allocation_pools: Some(vec![pool("10.0.0.1", "10.0.0.9")]), ..SubnetAttributes::default() };
    assert_eq!(subnets.update(&updated, &pools).await.unwrap().allocation_pools, [pool("10.0.0.1", "10.0.0.9")]);

    assert!(subnets.delete(&made.id).await.unwrap());
    assert!(!subnets.delete(&made.id).await.unwrap());
    assert!(networks.get(&network.id).await.unwrap().unwrap().subnets.is_empty());
    assert_eq!(sim.cloud().neutron.all("subnets").count(), 0);
}

/// The first gateway of IPv6 is the range's own address, which every router listens to.
#[rstest]
#[case("10.0.0.0/30", "10.0.0.1", ("10.0.0.2", "10.0.0.2"))]
#[case("fd00:0:0::/64", "fd00::", ("fd00::1", "fd00::ffff:ffff:ffff:ffff"))]
#[tokio::test]
async fn a_gateway_and_pools_are_chosen(#[case] cidr: &str, #[case] gateway: &str, #[case] ends: (&str, &str)) {
    let (_sim, _, shop, network) = network().await;
    let made = shop.network().subnets().create(&range(&network.id, cidr)).await.unwrap();
    assert_eq!((made.gateway_ip.as_deref(), made.allocation_pools), (Some(gateway), vec![pool(ends.0, ends.1)]));
}

#[tokio::test]
async fn a_gateway_may_be_elsewhere_and_pools_go_around_it() {
    let (_sim, _, shop, network) = network().await;
    let subnets = shop.network().subnets();
    let middle = SubnetAttributes { gateway_ip: Some(gateway("10.0.0.9")), ..range(&network.id, "10.0.0.0/24") };
    let made = subnets.create(&middle).await.unwrap();
    assert_eq!(made.allocation_pools, [pool("10.0.0.1", "10.0.0.8"), pool("10.0.0.10", "10.0.0.254")]);
    let outside = SubnetAttributes { gateway_ip: Some(gateway("192.168.0.1")), ..range(&network.id, "10.0.1.0/24") };
    assert_eq!(subnets.create(&outside).await.unwrap().gateway_ip.as_deref(), Some("192.168.0.1"));
    let none = SubnetAttributes { gateway_ip: Some(Nullable(None)), ..range(&network.id, "10.0.2.0/24") };
    let none = subnets.create(&none).await.unwrap();
    assert_eq!((none.gateway_ip, none.allocation_pools), (None, vec![pool("10.0.2.1", "10.0.2.254")]));
}

#[tokio::test]
async fn ranges_of_one_network_do_not_overlap() {
    let (_sim, _, shop, network) = network().await;
    let subnets = shop.network().subnets();
    subnets.create(&range(&network.id, "10.0.0.0/24")).await.unwrap();
    for cidr in ["10.0.0.0/24", "10.0.0.128/25", "10.0.0.0/8"] {
        let error = subnets.create(&range(&network.id, cidr)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadRequest);
        let words = format!(
            "Invalid input for operation: Requested subnet with cidr: {cidr} for network: {} overlaps with another subnet.",
            network.id
        );
        assert!(error.to_string().ends_with(&words), "{error}");
    }
    let other = shop.network().networks().create(&named("back")).await.unwrap();
    subnets.create(&range(&other.id, "10.0.0.0/24")).await.unwrap();
}

#[rstest]
#[case::gateway_in_pool(
    SubnetAttributes { gateway_ip: Some(gateway("10.0.0.5")), allocation_pools: Some(vec![pool("10.0.0.4", "10.0.0.6")]), ..range("", "10.0.0.0/24") },
    "Gateway ip 10.0.0.5 conflicts with allocation pool 10.0.0.4-10.0.0.6.", ErrorKind::Conflict,
)]
#[case::pools_overlap(
    SubnetAttributes { allocation_pools: Some(vec![pool("10.0.0.4", "10.0.0.6"), pool("10.0.0.6", "10.0.0.8")]), ..range("", "10.0.0.0/24") },
    "Found overlapping allocation pools: 10.0.0.4-10.0.0.6 10.0.0.6-10.0.0.8 for subnet 10.0.0.0/24.", ErrorKind::Conflict,
)]
#[case::pool_outside(
    SubnetAttributes { allocation_pools: Some(vec![pool("10.0.0.4", "10.0.1.6")]), ..range("", "10.0.0.0/24") },
    "The allocation pool 10.0.0.4-10.0.1.6 spans beyond the subnet cidr 10.0.0.0/24.", ErrorKind::BadRequest,
)]
#[case::gateway_is_broadcast(
    SubnetAttributes { gateway_ip: Some(gateway("10.0.0.255")), ..range("", "10.0.0.0/24") },
    "Gateway is not valid on subnet.", ErrorKind::BadRequest,
)]
#[case::gateway_of_other_family(
    SubnetAttributes { gateway_ip: Some(gateway("fd00::1")), ..range("", "10.0.0.0/24") },
    "gateway_ip 'fd00::1' does not match the ip_version '4'.", ErrorKind::BadRequest,
)]
#[case::no_address(
    SubnetAttributes { gateway_ip: Some(gateway("ten")), ..range("", "10.0.0.0/24") },
    "Invalid input for gateway_ip. Reason: 'ten' is not a valid IP address.", ErrorKind::BadRequest,
)]
#[case::no_range(
    range("", "10.0.0.0/33"),
    "Invalid input for operation: 10.0.0.0/33 is not in a CIDR format.",
    ErrorKind::BadRequest
)]
#[case::other_version(
    SubnetAttributes { ip_version: Some(6), ..range("", "10.0.0.0/24") },
    "cidr '10.0.0.0/24' does not match the ip_version '6'.", ErrorKind::BadRequest,
)]
#[case::no_version(
    SubnetAttributes { ip_version: None, ..range("", "10.0.0.0/24") },
    "Failed to parse request. Required attribute 'ip_version' not specified", ErrorKind::BadRequest,
)]
#[case::mode_of_ipv4(
    SubnetAttributes { ipv6_ra_mode: Some("slaac".to_owned()), ..range("", "10.0.0.0/24") },
    "ipv6_ra_mode is not valid when ip_version is 4.", ErrorKind::BadRequest,
)]
#[case::slaac_needs_64(
    SubnetAttributes { ipv6_ra_mode: Some("slaac".to_owned()), ..range("", "fd00::/80") },
    "requires the prefix to be /64.", ErrorKind::BadRequest,
)]
#[case::too_small_for_dhcp(
    range("", "10.0.0.0/31"),
    "Subnet has a prefix length that is incompatible with DHCP service enabled.",
    ErrorKind::BadRequest
)]
#[case::too_many_servers(
    SubnetAttributes { dns_nameservers: Some((1..7).map(|n| format!("10.0.0.{n}")).collect()), ..range("", "10.0.0.0/24") },
    "The number of DNS nameservers exceeds the limit 5.", ErrorKind::BadRequest,
)]
#[tokio::test]
async fn what_can_not_be_is_refused(#[case] wrong: SubnetAttributes, #[case] words: &str, #[case] kind: ErrorKind) {
    let (sim, _, shop, network) = network().await;
    let wrong = SubnetAttributes { network_id: Some(network.id), ..wrong };
    let error = shop.network().subnets().create(&wrong).await.unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().ends_with(words), "{error}");
    assert_eq!(sim.cloud().neutron.all("subnets").count(), 0);
}

#[tokio::test]
async fn what_a_subnet_is_of_does_not_change() {
    let (_sim, _, shop, network) = network().await;
    let subnets = shop.network().subnets();
    let made = subnets.create(&range(&network.id, "fd00::/64")).await.unwrap();
    for change in [
        SubnetAttributes { cidr: Some("fd00::/65".to_owned()), ..SubnetAttributes::default() },
        SubnetAttributes { ip_version: Some(4), ..SubnetAttributes::default() },
        SubnetAttributes { network_id: Some("other".to_owned()), ..SubnetAttributes::default() },
        SubnetAttributes { ipv6_ra_mode: Some("slaac".to_owned()), ..SubnetAttributes::default() },
    ] {
        let error = subnets.update(&made, &change).await.unwrap_err();
        assert!(error.to_string().contains("Cannot update read-only attribute"), "{error}");
    }
    let conflict = SubnetAttributes { gateway_ip: Some(gateway("fd00::5")), ..SubnetAttributes::default() };
    assert_eq!(subnets.update(&made, &conflict).await.unwrap_err().kind(), ErrorKind::Conflict);
}

#[tokio::test]
async fn subnets_are_seen_by_who_sees_their_network() {
    let (sim, admin, shop, network) = network().await;
    let (other, now) = (member(&sim, &admin, "other"), sim.clock().now());
    let made = shop.network().subnets().create(&range(&network.id, "10.0.0.0/24")).await.unwrap();
    let subnets = other.network().subnets();
    assert_eq!(subnets.get(&made.id).await.unwrap(), None);
    let refused = subnets.create(&range(&network.id, "10.1.0.0/24")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Forbidden);
    let nowhere = subnets.create(&range("00000000-0000-4000-8000-000000000000", "10.1.0.0/24")).await.unwrap_err();
    assert_eq!(nowhere.kind(), ErrorKind::NotFound);
    assert!(sim.cloud().neutron.edit(now, "networks", &network.id, |network| {
        network.body.insert("shared".to_owned(), json!(true));
    }));
    assert_eq!(subnets.get(&made.id).await.unwrap(), Some(made.clone()));
    assert_eq!(subnets.delete(&made.id).await.unwrap_err().kind(), ErrorKind::Forbidden);
}

#[tokio::test]
async fn subnets_are_counted_and_go_with_their_network() {
    let (sim, _, shop, network) = network().await;
    sim.cloud().quotas.set("project-shop", "subnet", 1);
    let subnets = shop.network().subnets();
    subnets.create(&range(&network.id, "10.0.0.0/24")).await.unwrap();
    let full = subnets.create(&range(&network.id, "10.1.0.0/24")).await.unwrap_err();
    assert_eq!((full.kind(), full.status()), (ErrorKind::Quota, Some(409)));
    let found: Vec<Subnet> = subnets.list(&NetworkFilter::default()).try_collect().await.unwrap();
    assert_eq!(found.len(), 1);
    assert!(shop.network().networks().delete(&network.id).await.unwrap());
    assert_eq!(sim.cloud().neutron.all("subnets").count(), 0);
}

/// What IPv6 needs at least.
#[tokio::test]
async fn a_network_of_small_packets_takes_no_ipv6() {
    let (_sim, _, shop) = shop();
    let small = NetworkAttributes { mtu: Some(1279), ..named("small") };
    let network = shop.network().networks().create(&small).await.unwrap();
    let error = shop.network().subnets().create(&range(&network.id, "fd00::/64")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    shop.network().subnets().create(&range(&network.id, "10.0.0.0/24")).await.unwrap();
}
