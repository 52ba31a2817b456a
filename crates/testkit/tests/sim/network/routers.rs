//! Routers, their interfaces, and floating IPs.

use futures::TryStreamExt;
use kupenstack_openstack::{
    Client, ErrorKind, FloatingIp, FloatingIpAttributes, InterfaceBy, Network, NetworkAttributes, NetworkFilter,
    Nullable, Port, PortAttributes, Route, Router, RouterAttributes, Subnet, SubnetAttributes, WantedGateway, WantedIp,
};
use kupenstack_testkit::sim::Sim;

use super::{named, shop, subnets::range};
use crate::support::member;

/// An external network, and a network of the shop's with a router beside it.
struct Shop {
    sim: Sim,
    admin: Client,
    user: Client,
    outside: Network,
    inside: Network,
    subnet: Subnet,
    router: Router,
}

async fn with_router() -> Shop {
    let (sim, admin, user) = shop();
    let external = NetworkAttributes { external: Some(true), ..named("public") };
    let outside = admin.network().networks().create(&external).await.unwrap();
    let small = SubnetAttributes { enable_dhcp: Some(false), ..range(&outside.id, "198.51.100.0/29") };
    admin.network().subnets().create(&small).await.unwrap();
    let inside = user.network().networks().create(&named("front")).await.unwrap();
    let subnet = user.network().subnets().create(&range(&inside.id, "10.0.0.0/24")).await.unwrap();
    let new = RouterAttributes { name: Some("r".to_owned()), ..RouterAttributes::default() };
    let router = user.network().routers().create(&new).await.unwrap();
    Shop { sim, admin, user, outside, inside, subnet, router }
}

impl Shop {
    async fn led_out(&self) -> Router {
        let seen = self.seen().await;
        self.user.network().routers().update(&seen, &out(Some(&self.outside.id))).await.unwrap()
    }

    async fn seen(&self) -> Router {
        self.user.network().routers().get(&self.router.id).await.unwrap().unwrap()
    }

    async fn connect(&self) -> String {
        let by = InterfaceBy::Subnet(&self.subnet.id);
        self.user.network().routers().add_interface(&self.router.id, by).await.unwrap().port_id
    }

    async fn port(&self) -> Port {
        let new = PortAttributes { network_id: Some(self.inside.id.clone()), ..PortAttributes::default() };
        self.user.network().ports().create(&new).await.unwrap()
    }

    fn floating(&self, port: Option<&str>) -> FloatingIpAttributes {
        FloatingIpAttributes {
            floating_network_id: Some(self.outside.id.clone()),
            port_id: port.map(|port| Nullable(Some(port.to_owned()))),
            ..FloatingIpAttributes::default()
        }
    }
}

fn out(network: Option<&str>) -> RouterAttributes {
    let gateway = network.map(|network| WantedGateway {
        network_id: network.to_owned(),
        enable_snat: None,
        external_fixed_ips: None,
    });
    RouterAttributes { external_gateway_info: Some(Nullable(gateway)), ..RouterAttributes::default() }
}

fn stands_for(port: Option<&str>) -> FloatingIpAttributes {
    let port_id = Some(Nullable(port.map(str::to_owned)));
    FloatingIpAttributes { port_id, ..FloatingIpAttributes::default() }
}

#[tokio::test]
async fn a_router_is_led_out_and_back() {
    let shop = with_router().await;
    let routers = shop.user.network().routers();
    assert_eq!((shop.router.status.as_str(), &shop.router.external_gateway_info), ("ACTIVE", &None));
    let led = shop.led_out().await;
    let gateway = led.external_gateway_info.clone().unwrap();
    assert_eq!((gateway.enable_snat, gateway.external_fixed_ips[0].ip_address.as_str()), (Some(true), "198.51.100.2"));
    let again = routers.update(&led, &out(Some(&shop.outside.id))).await.unwrap();
    assert_eq!(again, led, "the same way out keeps its address");
    let ports: Vec<Port> = shop.admin.network().ports().of_device(&led.id).try_collect().await.unwrap();
    assert_eq!(
        (ports.len(), ports[0].device_owner.as_str(), ports[0].project_id.as_str()),
        (1, "network:router_gateway", "")
    );
    let own: Vec<Port> = shop.user.network().ports().of_device(&led.id).try_collect().await.unwrap();
    assert!(own.is_empty(), "it is not the project's");
    assert_eq!(shop.admin.network().networks().delete(&shop.outside.id).await.unwrap_err().status(), Some(409));
    let back = routers.update(&again, &out(None)).await.unwrap();
    assert_eq!(back.external_gateway_info, None);
    assert!(routers.delete(&back.id).await.unwrap());
    assert!(shop.admin.network().networks().delete(&shop.outside.id).await.unwrap());
}

#[tokio::test]
async fn a_way_out_leads_to_external_networks_and_its_details_are_an_administrators() {
    let shop = with_router().await;
    let routers = shop.user.network().routers();
    let inner = routers.update(&shop.router, &out(Some(&shop.inside.id))).await.unwrap_err();
    assert!(inner.to_string().ends_with("is not an external network."), "{inner}");
    let nowhere = routers.update(&shop.router, &out(Some("no-such"))).await.unwrap_err();
    assert_eq!(nowhere.kind(), ErrorKind::NotFound);
    let detailed = |snat| {
        let address = WantedIp { ip_address: Some("198.51.100.5".to_owned()), ..WantedIp::default() };
        let gateway = WantedGateway {
            network_id: shop.outside.id.clone(),
            enable_snat: snat,
            external_fixed_ips: Some(vec![address]),
        };
        RouterAttributes { external_gateway_info: Some(Nullable(Some(gateway))), ..RouterAttributes::default() }
    };
    let refused = routers.update(&shop.router, &detailed(None)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Forbidden);
    let led = shop.admin.network().routers().update(&shop.router, &detailed(Some(false))).await.unwrap();
    let gateway = led.external_gateway_info.unwrap();
    assert_eq!((gateway.enable_snat, gateway.external_fixed_ips[0].ip_address.as_str()), (Some(false), "198.51.100.5"));
}

#[tokio::test]
async fn a_subnet_is_connected_by_its_gateway_address() {
    let shop = with_router().await;
    let (routers, subnet) = (shop.user.network().routers(), InterfaceBy::Subnet(&shop.subnet.id));
    let port = shop.connect().await;
    assert_eq!(shop.seen().await.revision_number, shop.router.revision_number + 1);
    let ports: Vec<Port> = shop.user.network().ports().of_device(&shop.router.id).try_collect().await.unwrap();
    assert_eq!((ports.len(), ports[0].id.as_str(), ports[0].status.as_str()), (1, port.as_str(), "ACTIVE"));
    assert_eq!(
        (ports[0].device_owner.as_str(), ports[0].fixed_ips[0].ip_address.as_str()),
        ("network:router_interface", "10.0.0.1")
    );
    let again = routers.add_interface(&shop.router.id, subnet).await.unwrap_err();
    assert_eq!(again.status(), Some(400));
    assert!(again.to_string().contains("overlaps with cidr 10.0.0.0/24"), "{again}");

    for (error, words) in [
        (routers.delete(&shop.router.id).await.unwrap_err(), format!("has ports still attached: {port}")),
        (
            shop.user.network().ports().delete(&port).await.unwrap_err(),
            "has device owner network:router_interface.".to_owned(),
        ),
        (shop.user.network().subnets().delete(&shop.subnet.id).await.unwrap_err(), "from this subnet.".to_owned()),
        (
            shop.user
                .network()
                .subnets()
                .update(
                    &shop.subnet,
                    &SubnetAttributes { gateway_ip: Some(Nullable(None)), ..SubnetAttributes::default() },
                )
                .await
                .unwrap_err(),
            "Unable to update.".to_owned(),
        ),
    ] {
        assert_eq!(error.status(), Some(409), "{error}");
        assert!(error.to_string().ends_with(&words), "{error}");
    }
    assert!(routers.remove_interface(&shop.router.id, subnet).await.unwrap());
    assert!(!routers.remove_interface(&shop.router.id, subnet).await.unwrap());
    assert!(routers.delete(&shop.router.id).await.unwrap());
    assert!(shop.user.network().networks().delete(&shop.inside.id).await.unwrap());
    assert_eq!(shop.sim.cloud().neutron.all("routers").count(), 0);
}

/// One list has the interfaces of all routers, and another the subnets of many networks.
#[tokio::test]
async fn what_belongs_to_many_is_listed_together() {
    let shop = with_router().await;
    shop.led_out().await;
    let port = shop.connect().await;
    shop.port().await;
    let ports: Vec<Port> = shop.admin.network().ports().router_interfaces().try_collect().await.unwrap();
    let ports: Vec<_> = ports.iter().map(|port| (port.id.as_str(), port.is_router_interface())).collect();
    assert_eq!(ports, [(port.as_str(), true)], "neither ways out nor others");
    let subnets = shop.admin.network().subnets();
    for (networks, found) in
        [(vec![], 0), (vec![shop.inside.id.as_str()], 1), (vec![&shop.inside.id, &shop.outside.id], 2)]
    {
        let listed: Vec<Subnet> = subnets.of_networks(&networks).try_collect().await.unwrap();
        assert_eq!(listed.len(), found);
    }
}

#[tokio::test]
async fn a_wire_outside_takes_one_flat_network_and_one_of_each_vlan() {
    let (_sim, admin, _) = shop();
    let networks = admin.network().networks();
    let on = |network_type: &str, segmentation_id| NetworkAttributes {
        external: Some(true),
        network_type: Some(network_type.to_owned()),
        physical_network: Some("wire".to_owned()),
        segmentation_id,
        ..named("public")
    };
    let flat = networks.create(&on("flat", None)).await.unwrap();
    assert_eq!((flat.mtu, flat.segmentation_id), (Some(1500), None));
    networks.create(&on("vlan", Some(7))).await.unwrap();
    networks.create(&on("vlan", Some(8))).await.unwrap();
    for again in [on("flat", None), on("vlan", Some(7))] {
        let refused = networks.create(&again).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict);
        assert!(
            refused.to_string().ends_with("on physical network wire is in use.")
                || refused.to_string().ends_with("Physical network wire is in use."),
            "{refused}"
        );
    }
    assert!(networks.delete(&flat.id).await.unwrap());
    networks.create(&on("flat", None)).await.unwrap();
}

#[tokio::test]
async fn a_port_becomes_an_interface_and_goes_with_it() {
    let shop = with_router().await;
    let routers = shop.user.network().routers();
    let port = shop.port().await;
    let by = InterfaceBy::Port(&port.id);
    let made = routers.add_interface(&shop.router.id, by).await.unwrap();
    assert_eq!((made.port_id.as_str(), made.subnet_ids), (port.id.as_str(), vec![shop.subnet.id.clone()]));
    assert_eq!(
        routers.add_interface(&shop.router.id, by).await.unwrap_err().kind(),
        ErrorKind::Conflict,
        "it is connected"
    );
    assert!(routers.remove_interface(&shop.router.id, by).await.unwrap());
    assert!(!routers.remove_interface(&shop.router.id, by).await.unwrap());
    assert_eq!(shop.user.network().ports().get(&port.id).await.unwrap(), None);
}

#[tokio::test]
async fn ranges_of_ipv6_share_a_port_and_what_has_no_gateway_is_not_connected() {
    let shop = with_router().await;
    let (routers, subnets) = (shop.user.network().routers(), shop.user.network().subnets());
    let mut ports = Vec::new();
    for cidr in ["fd00::/64", "fd01::/64"] {
        let subnet = subnets.create(&range(&shop.inside.id, cidr)).await.unwrap();
        ports.push((
            routers.add_interface(&shop.router.id, InterfaceBy::Subnet(&subnet.id)).await.unwrap().port_id,
            subnet,
        ));
    }
    assert_eq!(ports[0].0, ports[1].0);
    let port = shop.user.network().ports().get(&ports[0].0).await.unwrap().unwrap();
    assert_eq!(port.fixed_ips.iter().map(|fixed| fixed.ip_address.as_str()).collect::<Vec<_>>(), ["fd00::", "fd01::"]);
    assert!(routers.remove_interface(&shop.router.id, InterfaceBy::Subnet(&ports[0].1.id)).await.unwrap());
    let left = shop.user.network().ports().get(&port.id).await.unwrap().unwrap();
    assert_eq!(left.fixed_ips.len(), 1);
    let none = SubnetAttributes { gateway_ip: Some(Nullable(None)), ..range(&shop.inside.id, "10.1.0.0/24") };
    let none = subnets.create(&none).await.unwrap();
    let refused = routers.add_interface(&shop.router.id, InterfaceBy::Subnet(&none.id)).await.unwrap_err();
    assert!(refused.to_string().ends_with("Subnet for router interface must have a gateway IP."), "{refused}");
    let theirs = member(&shop.sim, &shop.admin, "other");
    let refused = theirs.network().routers().add_interface(&shop.router.id, InterfaceBy::Subnet(&none.id)).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_route_leads_to_what_is_connected_and_keeps_it() {
    let shop = with_router().await;
    let routers = shop.user.network().routers();
    shop.connect().await;
    let by = |hop: &str| RouterAttributes {
        routes: Some(vec![Route { destination: "10.9.0.0/16".to_owned(), nexthop: hop.to_owned() }]),
        ..RouterAttributes::default()
    };
    assert_eq!(routers.create(&by("10.0.0.7")).await.unwrap_err().kind(), ErrorKind::BadRequest, "not of a new one");
    let seen = shop.seen().await;
    for (hop, words) in [("172.16.0.1", "is not connected with router"), ("10.0.0.1", "is used by router")] {
        let error = routers.update(&seen, &by(hop)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BadRequest);
        assert!(error.to_string().ends_with(words), "{error}");
    }
    let routed = routers.update(&seen, &by("10.0.0.7")).await.unwrap();
    assert_eq!(routed.routes.len(), 1);
    let needed = routers.remove_interface(&routed.id, InterfaceBy::Subnet(&shop.subnet.id)).await.unwrap_err();
    assert!(needed.to_string().ends_with("required by one or more routes."), "{needed}");
    let none = RouterAttributes { routes: Some(Vec::new()), ..RouterAttributes::default() };
    routers.update(&routed, &none).await.unwrap();
    assert!(routers.remove_interface(&routed.id, InterfaceBy::Subnet(&shop.subnet.id)).await.unwrap());
}

#[tokio::test]
async fn a_floating_ip_stands_for_a_port_and_no_more() {
    let shop = with_router().await;
    let floating = shop.user.network().floating_ips();
    shop.led_out().await;
    shop.connect().await;
    let port = shop.port().await;
    let new = FloatingIpAttributes { description: Some("d".to_owned()), ..shop.floating(None) };
    let made = floating.create(&new).await.unwrap();
    assert_eq!(
        (made.floating_ip_address.as_str(), made.status.as_str(), &made.port_id),
        ("198.51.100.3", "DOWN", &None)
    );
    let told = floating.update(&made, &stands_for(Some(&port.id))).await.unwrap();
    assert_eq!(
        (told.port_id.as_deref(), told.router_id.as_deref()),
        (Some(port.id.as_str()), Some(shop.router.id.as_str()))
    );
    assert_eq!(
        (told.fixed_ip_address.as_deref(), told.status.as_str()),
        (Some("10.0.0.3"), "DOWN"),
        "it comes up after the answer"
    );
    let up = floating.get(&made.id).await.unwrap().unwrap();
    assert_eq!((up.status.as_str(), up.revision_number), ("ACTIVE", told.revision_number + 1));
    let outdated = floating.update(&told, &stands_for(None)).await.unwrap_err();
    assert_eq!(outdated.kind(), ErrorKind::Outdated, "its status has changed meanwhile");

    let (routers, ports) = (shop.user.network().routers(), shop.user.network().ports());
    let second = floating.create(&shop.floating(Some(&port.id))).await.unwrap_err();
    assert!(second.to_string().contains("already has a floating IP on external network"), "{second}");
    let interface = routers.remove_interface(&shop.router.id, InterfaceBy::Subnet(&shop.subnet.id)).await.unwrap_err();
    assert!(interface.to_string().ends_with("required by one or more floating IPs."), "{interface}");
    let gateway = routers.update(&shop.seen().await, &out(None)).await.unwrap_err();
    assert_eq!((gateway.kind(), gateway.status()), (ErrorKind::Conflict, Some(409)));
    let moved = PortAttributes { fixed_ips: Some(Vec::new()), ..PortAttributes::default() };
    assert_eq!(ports.update(&port, &moved).await.unwrap_err().kind(), ErrorKind::BadRequest);

    let alone = floating.update(&up, &stands_for(None)).await.unwrap();
    assert_eq!((alone.port_id.as_deref(), alone.router_id.as_deref(), alone.status.as_str()), (None, None, "ACTIVE"));
    let down = floating.get(&made.id).await.unwrap().unwrap();
    assert_eq!(down.status, "DOWN");
    floating.update(&down, &stands_for(Some(&port.id))).await.unwrap();
    assert!(ports.delete(&port.id).await.unwrap(), "a floating IP keeps no port");
    assert_eq!(floating.get(&made.id).await.unwrap().unwrap().port_id, None);
    assert!(floating.delete(&made.id).await.unwrap());
    assert!(!floating.delete(&made.id).await.unwrap());
    assert_eq!(
        shop.sim.cloud().neutron.all("ports").filter(|port| port.text("device_owner") == "network:floatingip").count(),
        0
    );
}

/// CAPO#1632: without a router between them, nothing is made of it, and what is there stays usable.
#[tokio::test]
async fn capo_1632_a_floating_ip_needs_a_router_to_its_port() {
    let shop = with_router().await;
    let floating = shop.user.network().floating_ips();
    shop.led_out().await;
    let port = shop.port().await;
    let made = floating.create(&shop.floating(None)).await.unwrap();
    let error = floating.update(&made, &stands_for(Some(&port.id))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoRoute);
    assert!(error.to_string().contains("is not reachable from subnet"), "{error}");
    assert_eq!(shop.sim.cloud().neutron.all("floatingips").count(), 1);
    shop.connect().await;
    assert_eq!(floating.update(&made, &stands_for(Some(&port.id))).await.unwrap().port_id, Some(port.id));
}

#[tokio::test]
async fn floating_ips_are_of_external_networks_counted_and_run_out() {
    let shop = with_router().await;
    let floating = shop.user.network().floating_ips();
    let inner =
        FloatingIpAttributes { floating_network_id: Some(shop.inside.id.clone()), ..FloatingIpAttributes::default() };
    let error = floating.create(&inner).await.unwrap_err();
    assert!(error.to_string().ends_with("is not a valid external network."), "{error}");
    let chosen = FloatingIpAttributes { floating_ip_address: Some("198.51.100.6".to_owned()), ..shop.floating(None) };
    assert_eq!(floating.create(&chosen).await.unwrap_err().kind(), ErrorKind::Forbidden);
    shop.admin.network().floating_ips().create(&chosen).await.unwrap();
    shop.sim.cloud().quotas.set("project-shop", "floatingip", 1);
    let first = floating.create(&shop.floating(None)).await.unwrap();
    assert_eq!(floating.create(&shop.floating(None)).await.unwrap_err().kind(), ErrorKind::Quota);
    shop.sim.cloud().quotas.set("project-shop", "floatingip", -1);
    for _ in 0..3 {
        floating.create(&shop.floating(None)).await.unwrap();
    }
    let error = floating.create(&shop.floating(None)).await.unwrap_err();
    assert!(error.to_string().contains("No more IP addresses available on network"), "{error}");
    let own: Vec<FloatingIp> = floating.list(&NetworkFilter::default()).try_collect().await.unwrap();
    assert_eq!(own.len(), 4);
    let theirs = member(&shop.sim, &shop.admin, "other");
    assert_eq!(theirs.network().floating_ips().get(&first.id).await.unwrap(), None);
    let all: Vec<FloatingIp> = shop.admin.network().floating_ips().survey().try_collect().await.unwrap();
    assert_eq!(all.len(), 5);
    // it has no name, as Neutron says too
    let named = NetworkFilter { name: Some("x".to_owned()), ..NetworkFilter::default() };
    let refused = floating.list(&named).try_collect::<Vec<_>>().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::BadRequest);
}

#[tokio::test]
async fn an_external_network_is_seen_by_all_and_used_through_routers_only() {
    let shop = with_router().await;
    let theirs = member(&shop.sim, &shop.admin, "other");
    let seen = theirs.network().networks().get(&shop.outside.id).await.unwrap().unwrap();
    assert!(seen.external && seen.network_type.is_none());
    assert!(theirs.network().subnets().get(&seen.subnets[0]).await.unwrap().is_some());
    let port = PortAttributes { network_id: Some(seen.id.clone()), ..PortAttributes::default() };
    assert_eq!(theirs.network().ports().create(&port).await.unwrap_err().kind(), ErrorKind::Forbidden);
    let external = NetworkAttributes { external: Some(true), ..named("mine") };
    assert_eq!(theirs.network().networks().create(&external).await.unwrap_err().kind(), ErrorKind::Forbidden);
    let flat = NetworkAttributes {
        external: Some(true),
        network_type: Some("flat".to_owned()),
        physical_network: Some("external".to_owned()),
        ..named("flat")
    };
    let made = shop.admin.network().networks().create(&flat).await.unwrap();
    assert_eq!((made.network_type.as_deref(), made.physical_network.as_deref()), (Some("flat"), Some("external")));
}
