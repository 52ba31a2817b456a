//! Ports.

use futures::TryStreamExt;
use kupenstack_openstack::{
    AddressPair, Client, ErrorKind, FixedIp, Network, NetworkFilter, Port, PortAttributes, SecurityGroup,
    SecurityGroupAttributes, Subnet, SubnetAttributes, WantedIp,
};
use kupenstack_testkit::sim::Sim;
use rstest::rstest;
use serde_json::json;

use super::{named, shop, subnets::range};
use crate::support::member;

/// A network with an IPv4 range, and what is on it.
struct Front {
    sim: Sim,
    admin: Client,
    shop: Client,
    network: Network,
    subnet: Subnet,
}

async fn front(cidr: &str) -> Front {
    let (sim, admin, shop) = shop();
    let network = shop.network().networks().create(&named("front")).await.unwrap();
    let subnet = shop.network().subnets().create(&range(&network.id, cidr)).await.unwrap();
    Front { sim, admin, shop, network, subnet }
}

fn on(network: &str) -> PortAttributes {
    PortAttributes { network_id: Some(network.to_owned()), ..PortAttributes::default() }
}

fn at(address: &str) -> Vec<WantedIp> {
    vec![WantedIp { ip_address: Some(address.to_owned()), ..WantedIp::default() }]
}

fn addresses(port: &Port) -> Vec<&str> {
    port.fixed_ips.iter().map(|fixed| fixed.ip_address.as_str()).collect()
}

#[tokio::test]
async fn a_port_lives_on_its_network() {
    let Front { sim: _sim, shop, network, subnet, .. } = front("10.0.0.0/24").await;
    let ports = shop.network().ports();
    let made = ports.create(&on(&network.id)).await.unwrap();
    // the first address is that of the port from which OVN answers
    let first = FixedIp { subnet_id: subnet.id.clone(), ip_address: "10.0.0.3".to_owned() };
    assert_eq!(
        (made.fixed_ips.as_slice(), made.status.as_str(), made.project_id.as_str()),
        (&[first][..], "DOWN", "project-shop")
    );
    assert_eq!((made.port_security_enabled, made.device_id.as_str(), made.host_id.as_deref()), (Some(true), "", None));
    assert!(made.mac_address.starts_with("fa:16:3e:"), "{}", made.mac_address);
    let groups: Vec<SecurityGroup> =
        shop.network().security_groups().list(&NetworkFilter::default()).try_collect().await.unwrap();
    assert_eq!(made.security_groups, [groups[0].id.clone()], "the default group");

    let changes = PortAttributes {
        name: Some("p".to_owned()),
        fixed_ips: Some(at("10.0.0.99")),
        security_groups: Some(Vec::new()),
        allowed_address_pairs: Some(vec![AddressPair { ip_address: "10.9.0.0/16".to_owned(), mac_address: None }]),
        ..PortAttributes::default()
    };
    let updated = ports.update(&made, &changes).await.unwrap();
    assert_eq!((addresses(&updated), updated.security_groups.len()), (vec!["10.0.0.99"], 0));
    let pair = AddressPair { ip_address: "10.9.0.0/16".to_owned(), mac_address: Some(made.mac_address.clone()) };
    assert_eq!(updated.allowed_address_pairs, [pair], "its own MAC is filled in");
    let again = ports.update(&updated, &changes).await.unwrap();
    assert_eq!(again.revision_number, updated.revision_number, "what is as it was is no change");
    assert!(ports.delete(&made.id).await.unwrap());
    assert!(!ports.delete(&made.id).await.unwrap());
}

#[tokio::test]
async fn a_port_has_an_address_of_each_family_and_those_that_follow_from_its_mac() {
    let Front { sim: _sim, shop, network, subnet, .. } = front("10.0.0.0/24").await;
    let (ports, subnets) = (shop.network().ports(), shop.network().subnets());
    subnets.create(&range(&network.id, "fd00::/64")).await.unwrap();
    let slaac = Some("slaac".to_owned());
    let automatic =
        SubnetAttributes { ipv6_address_mode: slaac.clone(), ipv6_ra_mode: slaac, ..range(&network.id, "fd01::/64") };
    let automatic = subnets.create(&automatic).await.unwrap();
    let with_mac = PortAttributes { mac_address: Some("FA:16:3E:00:00:01".to_owned()), ..on(&network.id) };
    let made = ports.create(&with_mac).await.unwrap();
    assert_eq!(addresses(&made), ["10.0.0.3", "fd00::1", "fd01::f816:3eff:fe00:1"]);
    let of_one = Some(vec![WantedIp { subnet_id: Some(subnet.id.clone()), ..WantedIp::default() }]);
    let one = ports.update(&made, &PortAttributes { fixed_ips: of_one, ..PortAttributes::default() }).await.unwrap();
    assert_eq!(
        addresses(&one),
        ["10.0.0.3", "fd01::f816:3eff:fe00:1"],
        "the one it had, and the one that it always has"
    );
    let none = ports.create(&PortAttributes { fixed_ips: Some(Vec::new()), ..on(&network.id) }).await.unwrap();
    assert_eq!(none.fixed_ips.len(), 1);
    assert!(subnets.delete(&automatic.id).await.unwrap(), "nobody holds on to such an address");
    assert!(ports.get(&none.id).await.unwrap().unwrap().fixed_ips.is_empty());
}

#[rstest]
#[case::address_taken(PortAttributes { fixed_ips: Some(at("10.0.0.9")), ..on("") }, 409, "IP address 10.0.0.9 already allocated in subnet")]
#[case::mac_taken(PortAttributes { mac_address: Some("fa:16:3e:00:00:01".to_owned()), ..on("") }, 409, "The mac address fa:16:3e:00:00:01 is in use.")]
#[case::elsewhere(PortAttributes { fixed_ips: Some(at("172.16.0.1")), ..on("") }, 400, "IP address 172.16.0.1 is not a valid IP for any of the subnets")]
#[case::broadcast(PortAttributes { fixed_ips: Some(at("10.0.0.255")), ..on("") }, 400, "is not a valid IP for any of the subnets")]
#[case::nothing_wanted(PortAttributes { fixed_ips: Some(vec![WantedIp::default()]), ..on("") }, 400, "IP allocation requires subnet_id or ip_address.")]
#[case::no_mac(PortAttributes { mac_address: Some("x".to_owned()), ..on("") }, 400, "'x' is not a valid MAC address.")]
#[case::no_group(PortAttributes { security_groups: Some(vec!["no-such".to_owned()]), ..on("") }, 404, "Security group no-such does not exist")]
#[case::pairs_without_security(
    PortAttributes { port_security_enabled: Some(false), allowed_address_pairs: Some(vec![AddressPair { ip_address: "1.2.3.4".to_owned(), mac_address: None }]), ..on("") },
    409, "Port Security must be enabled in order to have allowed address pairs on a port.",
)]
#[case::groups_without_security(
    PortAttributes { port_security_enabled: Some(false), security_groups: Some(vec!["any".to_owned()]), ..on("") },
    400, "Port security must be enabled and port must have an IP address in order to use security groups.",
)]
#[case::bound_by_a_member(PortAttributes { host_id: Some("node".to_owned()), ..on("") }, 403, "(rule:create_port and rule:create_port:binding:host_id) is disallowed by policy")]
#[tokio::test]
async fn what_can_not_be_is_refused(#[case] wrong: PortAttributes, #[case] status: u16, #[case] words: &str) {
    let Front { sim, shop, network, .. } = front("10.0.0.0/24").await;
    let ports = shop.network().ports();
    let taken = PortAttributes {
        mac_address: Some("fa:16:3e:00:00:01".to_owned()),
        fixed_ips: Some(at("10.0.0.9")),
        ..on(&network.id)
    };
    ports.create(&taken).await.unwrap();
    let before = sim.cloud().neutron.all("ports").count();
    let error = ports.create(&PortAttributes { network_id: Some(network.id), ..wrong }).await.unwrap_err();
    assert_eq!(error.status(), Some(status), "{error}");
    assert!(error.to_string().contains(words), "{error}");
    assert_eq!(sim.cloud().neutron.all("ports").count(), before);
}

#[tokio::test]
async fn a_range_runs_out_of_addresses() {
    let Front { sim: _sim, shop, network, .. } = front("10.0.0.0/29").await;
    let ports = shop.network().ports();
    // of eight: the range's own, the gateway's, OVN's, the broadcast address
    let mut made = Vec::new();
    for _ in 0..4 {
        made.push(ports.create(&on(&network.id)).await.unwrap());
    }
    let error = ports.create(&on(&network.id)).await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Conflict, Some(409)));
    assert!(
        error.to_string().ends_with(&format!("No more IP addresses available on network {}.", network.id)),
        "{error}"
    );
    ports.delete(&made[1].id).await.unwrap();
    assert_eq!(ports.create(&on(&network.id)).await.unwrap().fixed_ips, made[1].fixed_ips);
}

#[tokio::test]
async fn what_a_port_uses_is_not_deleted() {
    let Front { sim, shop, network, subnet, .. } = front("10.0.0.0/24").await;
    let (networks, subnets, groups) =
        (shop.network().networks(), shop.network().subnets(), shop.network().security_groups());
    let group = groups
        .create(&SecurityGroupAttributes { name: Some("web".to_owned()), ..SecurityGroupAttributes::default() })
        .await
        .unwrap();
    let guarded = PortAttributes { security_groups: Some(vec![group.id.clone()]), ..on(&network.id) };
    let port = shop.network().ports().create(&guarded).await.unwrap();
    for (error, words) in [
        (groups.delete(&group.id).await.unwrap_err(), format!("Security Group {} in use.", group.id)),
        (
            subnets.delete(&subnet.id).await.unwrap_err(),
            "One or more ports have an IP allocation from this subnet.".to_owned(),
        ),
        (networks.delete(&network.id).await.unwrap_err(), format!("id for these ports is: {}.", port.id)),
    ] {
        assert_eq!(error.status(), Some(409), "{error}");
        assert!(error.to_string().ends_with(&words), "{error}");
    }
    shop.network().ports().delete(&port.id).await.unwrap();
    assert!(groups.delete(&group.id).await.unwrap());
    assert!(subnets.delete(&subnet.id).await.unwrap());
    assert!(networks.delete(&network.id).await.unwrap());
    assert_eq!(sim.cloud().neutron.all("ports").count(), 0, "the port from which OVN answers goes with its network");
}

#[tokio::test]
async fn a_port_is_its_projects_and_bound_by_an_administrator() {
    let Front { sim, admin, shop, network, .. } = front("10.0.0.0/24").await;
    let (other, now) = (member(&sim, &admin, "other"), sim.clock().now());
    let ports = shop.network().ports();
    let made = ports.create(&on(&network.id)).await.unwrap();
    assert_eq!(other.network().ports().get(&made.id).await.unwrap(), None);
    assert_eq!(other.network().ports().create(&on(&network.id)).await.unwrap_err().kind(), ErrorKind::NotFound);
    let seen = admin.network().ports().get(&made.id).await.unwrap().unwrap();
    assert_eq!((seen.host_id.as_deref(), seen.vif_type.as_deref()), (Some(""), Some("unbound")));
    let mac = PortAttributes { mac_address: Some("fa:16:3e:00:00:07".to_owned()), ..PortAttributes::default() };
    assert_eq!(ports.update(&made, &mac).await.unwrap_err().kind(), ErrorKind::Forbidden);
    let bound = PortAttributes {
        host_id: Some("node".to_owned()),
        device_id: Some("server".to_owned()),
        ..PortAttributes::default()
    };
    let told = admin.network().ports().update(&seen, &bound).await.unwrap();
    assert_eq!(told.status, "DOWN", "it is plugged after the answer");
    let plugged = admin.network().ports().get(&made.id).await.unwrap().unwrap();
    assert_eq!((plugged.status.as_str(), plugged.vif_type.as_deref()), ("ACTIVE", Some("ovs")));
    assert!(plugged.revision_number > told.revision_number);
    assert_eq!(admin.network().ports().update(&plugged, &mac).await.unwrap_err().status(), Some(409), "it is bound");
    let of_server: Vec<Port> = ports.of_device("server").try_collect().await.unwrap();
    assert_eq!(of_server.len(), 1);
    // on a network for all, each has his own
    assert!(sim.cloud().neutron.edit(now, "networks", &network.id, |network| {
        network.body.insert("shared".to_owned(), json!(true));
    }));
    let theirs = other.network().ports().create(&on(&network.id)).await.unwrap();
    assert_eq!(other.network().ports().get(&made.id).await.unwrap(), None);
    assert!(ports.get(&theirs.id).await.unwrap().is_some(), "whoever has the network sees what is on it");
}

#[tokio::test]
async fn ports_are_counted() {
    let Front { sim, shop, network, .. } = front("10.0.0.0/24").await;
    // the port from which OVN answers is the project's too
    sim.cloud().quotas.set("project-shop", "port", 2);
    shop.network().ports().create(&on(&network.id)).await.unwrap();
    assert_eq!(shop.network().ports().create(&on(&network.id)).await.unwrap_err().kind(), ErrorKind::Quota);
}
