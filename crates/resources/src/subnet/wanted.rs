//! What the Neutron subnet of an object has to be, as a pure function of the object.

use ipnet::IpNet;
use kube::ResourceExt;
use kupenstack_api::resources::{AddressPool, ExternalSubnet, HostRoute, Ipv6Mode, Network, Subnet, SubnetSpec};
use kupenstack_openstack::{self as openstack, AllocationPool, Nullable, Route, SubnetAttributes};

use crate::{
    actuator::Target,
    needs::Needs,
    neutron::{canonical, description, differing, sorted},
};

/// The gateway of a subnet that has none.
const NOWHERE: &str = "None";

/// The subnet that an object declares. Of an adopted one, what is not declared is left as it is.
#[derive(Debug)]
pub(crate) struct Wanted {
    declared: SubnetAttributes,
}

impl Wanted {
    pub(super) fn of(target: &Target<Subnet>) -> Self {
        Self::declared(&target.object, &target.mark, &target.needs)
    }

    fn declared(object: &Subnet, mark: &str, needs: &Needs) -> Self {
        let spec = &object.spec;
        let is_made = spec.adopt.is_none();
        let range = spec.cidr.as_deref().map(str::parse::<IpNet>).and_then(Result::ok);
        let mode = spec.ipv6_mode.map(|mode| mode_word(mode).to_owned());
        // what is declared no more goes back to what a new subnet has
        let declared = SubnetAttributes {
            name: is_made.then(|| object.name_any()),
            description: description(spec.description.as_deref(), mark, is_made),
            network_id: spec.network.as_deref().and_then(|name| needs.id_of::<Network>(name)).map(str::to_owned),
            ip_version: range.map(|range| if range.addr().is_ipv4() { 4 } else { 6 }),
            cidr: range.map(|range| range.trunc().to_string()),
            gateway_ip: spec.gateway.as_deref().map(gateway),
            enable_dhcp: spec.dhcp.or(is_made.then_some(true)),
            dns_nameservers: addresses(spec).or_else(|| is_made.then(Vec::new)),
            allocation_pools: spec.allocation_pools.as_deref().map(pools),
            host_routes: routes(spec).or_else(|| is_made.then(Vec::new)),
            ipv6_address_mode: mode.clone(),
            ipv6_ra_mode: mode,
        };
        Self { declared }
    }

    /// A subnet that is declared with its network, whatever its name; none if its range is none. On a network that was
    /// made, what is not declared is as in a new subnet.
    pub(crate) fn of_external(declared: &ExternalSubnet, is_made: bool) -> Option<Self> {
        let range = declared.cidr.parse::<IpNet>().ok()?;
        let declared = SubnetAttributes {
            ip_version: Some(if range.addr().is_ipv4() { 4 } else { 6 }),
            cidr: Some(range.trunc().to_string()),
            gateway_ip: declared.gateway.as_deref().map(gateway),
            enable_dhcp: declared.dhcp.or(is_made.then_some(false)),
            allocation_pools: declared.allocation_pools.as_deref().map(pools),
            ..SubnetAttributes::default()
        };
        Some(Self { declared })
    }

    /// The declared range.
    pub(crate) fn range(&self) -> &str {
        self.declared.cidr.as_deref().unwrap_or_default()
    }

    /// What a new subnet is to have.
    pub(crate) fn attributes(self) -> SubnetAttributes {
        self.declared
    }

    /// What has to be set of a subnet. What can't be is never declared anew.
    pub(crate) fn changes(self, subnet: &openstack::Subnet) -> SubnetAttributes {
        let gateway_is = Nullable(subnet.gateway_ip.as_deref().map(canonical));
        let pools_are = sorted(subnet.allocation_pools.iter().map(pool).collect());
        let routes_are = sorted(subnet.host_routes.iter().map(route).collect());
        let servers_are: Vec<String> = subnet.dns_nameservers.iter().map(|server| canonical(server)).collect();
        SubnetAttributes {
            name: self.declared.name.filter(|name| *name != subnet.name),
            description: differing(self.declared.description, subnet.description.as_ref()),
            gateway_ip: differing(self.declared.gateway_ip, Some(&gateway_is)),
            enable_dhcp: differing(self.declared.enable_dhcp, Some(&subnet.enable_dhcp)),
            dns_nameservers: differing(self.declared.dns_nameservers, Some(&servers_are)),
            allocation_pools: differing(self.declared.allocation_pools, Some(&pools_are)),
            host_routes: differing(self.declared.host_routes, Some(&routes_are)),
            ..SubnetAttributes::default()
        }
    }
}

fn mode_word(mode: Ipv6Mode) -> &'static str {
    match mode {
        Ipv6Mode::Slaac => "slaac",
        Ipv6Mode::Dhcpv6Stateful => "dhcpv6-stateful",
        Ipv6Mode::Dhcpv6Stateless => "dhcpv6-stateless",
    }
}

fn gateway(declared: &str) -> Nullable<String> {
    Nullable((declared != NOWHERE).then(|| canonical(declared)))
}

/// In the order in which they are asked.
fn addresses(spec: &SubnetSpec) -> Option<Vec<String>> {
    Some(spec.dns_servers.as_ref()?.iter().map(|server| canonical(server)).collect())
}

fn pools(declared: &[AddressPool]) -> Vec<AllocationPool> {
    let said = |declared: &AddressPool| AllocationPool { start: declared.start.clone(), end: declared.end.clone() };
    sorted(declared.iter().map(|declared| pool(&said(declared))).collect())
}

fn routes(spec: &SubnetSpec) -> Option<Vec<Route>> {
    Some(sorted(spec.host_routes.as_ref()?.iter().map(declared_route).collect()))
}

/// A route in the one way to write it.
pub(crate) fn declared_route(declared: &HostRoute) -> Route {
    route(&Route { destination: declared.destination.clone(), nexthop: declared.next_hop.clone() })
}

fn pool(pool: &AllocationPool) -> AllocationPool {
    AllocationPool { start: canonical(&pool.start), end: canonical(&pool.end) }
}

/// One that Neutron shows, in that way.
pub(crate) fn route(route: &Route) -> Route {
    let destination = route.destination.parse::<IpNet>().map(|range| range.trunc().to_string());
    let destination = destination.unwrap_or_else(|_| route.destination.clone());
    Route { destination, nexthop: canonical(&route.nexthop) }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    const MARK: &str = "kupenstack:6f2b6a2e-1f0a-4a55-9c58-0d4f3ad0f7a1:u1";

    fn object(but: &Value) -> Subnet {
        let mut spec = json!({"network": "front", "cidr": "10.0.0.0/24"});
        spec.as_object_mut().unwrap().extend(but.as_object().unwrap().clone());
        if spec["adopt"].is_object() {
            spec.as_object_mut().unwrap().retain(|field, _| !["network", "cidr"].contains(&field.as_str()));
        }
        serde_json::from_value(json!({
            "apiVersion": "kupenstack.io/v1", "kind": "Subnet", "metadata": {"name": "front-4"}, "spec": spec,
        }))
        .unwrap()
    }

    /// A subnet as Neutron shows it, but for some attributes.
    fn seen(but: &Value) -> openstack::Subnet {
        let mut subnet = json!({
            "id": "s1", "name": "front-4", "description": MARK, "project_id": "p", "network_id": "n1", "ip_version": 4,
            "cidr": "10.0.0.0/24", "gateway_ip": "10.0.0.1", "enable_dhcp": true, "dns_nameservers": [],
            "allocation_pools": [{"start": "10.0.0.2", "end": "10.0.0.254"}], "host_routes": [],
            "ipv6_address_mode": null, "ipv6_ra_mode": null, "revision_number": 0,
        });
        subnet.as_object_mut().unwrap().extend(but.as_object().unwrap().clone());
        serde_json::from_value(subnet).unwrap()
    }

    fn changes(spec: &Value, but: &Value) -> Value {
        json!(Wanted::declared(&object(spec), MARK, &Needs::default()).changes(&seen(but)))
    }

    #[rstest]
    #[case::text(json!({"description": "t"}), json!({"description": format!("t {MARK}")}))]
    #[case::gateway(json!({"gateway": "10.0.0.9"}), json!({"gateway_ip": "10.0.0.9"}))]
    #[case::no_gateway(json!({"gateway": "None"}), json!({"gateway_ip": null}))]
    #[case::no_dhcp(json!({"dhcp": false}), json!({"enable_dhcp": false}))]
    #[case::names(json!({"dnsServers": ["10.9.9.9", "10.8.8.8"]}), json!({"dns_nameservers": ["10.9.9.9", "10.8.8.8"]}))]
    #[case::pools(json!({"allocationPools": [{"start": "10.0.0.8", "end": "10.0.0.9"}]}),
        json!({"allocation_pools": [{"start": "10.0.0.8", "end": "10.0.0.9"}]}))]
    #[case::routes(json!({"hostRoutes": [{"destination": "10.1.0.0/16", "nextHop": "10.0.0.7"}]}),
        json!({"host_routes": [{"destination": "10.1.0.0/16", "nexthop": "10.0.0.7"}]}))]
    #[case::nothing(json!({}), json!({}))]
    fn only_what_differs_is_sent(#[case] spec: Value, #[case] sent: Value) {
        assert_eq!(changes(&spec, &json!({})), sent);
        // and nothing once it is so
        assert_eq!(changes(&spec, &sent), json!({}));
    }

    #[rstest]
    #[case::names(json!({"dns_nameservers": ["10.9.9.9"]}), json!({"dns_nameservers": []}))]
    #[case::routes(json!({"host_routes": [{"destination": "10.1.0.0/16", "nexthop": "10.0.0.7"}]}), json!({"host_routes": []}))]
    #[case::dhcp(json!({"enable_dhcp": false}), json!({"enable_dhcp": true}))]
    #[case::gateway_that_nobody_declares(json!({"gateway_ip": null}), json!({}))]
    #[case::pools_that_nobody_declares(json!({"allocation_pools": []}), json!({}))]
    fn what_is_declared_no_more_goes_back(#[case] is: Value, #[case] sent: Value) {
        assert_eq!(changes(&json!({}), &is), sent);
        assert_eq!(changes(&json!({"adopt": {"id": "s1"}}), &is), json!({}), "of an adopted one it is left");
    }

    #[rstest]
    #[case::order_of_pools(
        json!({"allocationPools": [{"start": "10.0.0.8", "end": "10.0.0.9"}, {"start": "10.0.0.2", "end": "10.0.0.3"}]}),
        json!({"allocation_pools": [{"start": "10.0.0.2", "end": "10.0.0.3"}, {"start": "10.0.0.8", "end": "10.0.0.9"}]}))]
    #[case::long_addresses(json!({"dnsServers": ["FD00:0::1"]}), json!({"dns_nameservers": ["fd00::1"]}))]
    #[case::order_of_routes(
        json!({"hostRoutes": [{"destination": "10.2.0.0/16", "nextHop": "10.0.0.7"}, {"destination": "10.1.0.0/16", "nextHop": "10.0.0.7"}]}),
        json!({"host_routes": [{"destination": "10.1.0.0/16", "nexthop": "10.0.0.7"}, {"destination": "10.2.0.0/16", "nexthop": "10.0.0.7"}]}))]
    fn what_is_written_in_another_way_is_the_same(#[case] spec: Value, #[case] is: Value) {
        assert_eq!(changes(&spec, &is), json!({}));
    }

    #[test]
    fn a_new_one_is_on_the_network_that_the_other_object_stands_for() {
        use std::sync::Arc;

        use crate::needs::{Known, Need, When};

        let object = object(&json!({"cidr": "fd00:0:0::/64", "ipv6Mode": "SLAAC"}));
        let known = Known { id: Some(Arc::from("n1")), is_ready: true, ..Known::default() };
        let needs = Needs::new(vec![(Need::of::<Network>(&object, "front", When::FromTheStart), Some(known))]);
        let sent = json!(Wanted::declared(&object, MARK, &needs).attributes());
        assert_eq!(
            sent,
            json!({"name": "front-4", "description": MARK, "network_id": "n1", "ip_version": 6, "cidr": "fd00::/64",
                "enable_dhcp": true, "dns_nameservers": [], "host_routes": [], "ipv6_address_mode": "slaac",
                "ipv6_ra_mode": "slaac"})
        );
    }
}
