//! Subnets: ranges of addresses, which may not overlap on one network.

use std::net::IpAddr;

use ipnet::IpNet;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Item, Neutron,
    convert::{self, plain},
    invalid,
    kinds::{Hooks, Kind, Lists, NETWORK, NETWORKS, StrayMarker, Views, attribute, converted, short_text},
    missing,
    span::{Span, after},
    values::{self, parsed, range},
};
use crate::sim::{
    http::Refusal,
    service::{Call, Caller},
};

/// As many as Neutron allows unless it is configured otherwise.
const MOST_NAMESERVERS: usize = 5;
const MOST_ROUTES: usize = 20;

/// The smallest size of packets of networks with IPv6.
const IPV6_MTU: u64 = 1280;

/// What makes another revision of a subnet and its network. A description that is given counts as a new one, for the subnet
/// alone; pools, routes and name servers are kept beside it.
const REVISING: [&str; 3] = ["name", "gateway_ip", "enable_dhcp"];

const MODES: [&str; 2] = ["ipv6_ra_mode", "ipv6_address_mode"];

pub(super) static SUBNETS: Kind = Kind {
    collection: "subnets",
    member: "subnet",
    missing: "SubnetNotFound",
    called: ["Subnet", "could not be found."],
    first_revision: 0,
    can_change: true,
    attributes: &[
        attribute("name", short_text),
        attribute("description", short_text),
        attribute(NETWORK, short_text).fixed().required(),
        attribute("ip_version", values::ip_version).fixed().required(),
        converted("cidr", convert::range).fixed(),
        attribute("gateway_ip", values::address_or_null),
        converted("enable_dhcp", convert::flag),
        attribute("dns_nameservers", values::nameservers),
        attribute("allocation_pools", values::pools),
        attribute("host_routes", values::routes),
        attribute("ipv6_ra_mode", values::ipv6_mode).fixed(),
        attribute("ipv6_address_mode", values::ipv6_mode).fixed(),
    ],
    // gateway and pools are what Neutron makes of what is asked for
    defaults: || {
        json!({
            "name": "", "description": "", "enable_dhcp": true, "dns_nameservers": [], "host_routes": [],
            "ipv6_ra_mode": null, "ipv6_address_mode": null, "subnetpool_id": null, "service_types": [], "tags": [],
            "router:external": false,
        })
    },
    views: Views::NONE,
    parts: None,
    lists: Lists {
        no_filters: &[
            "allocation_pools",
            "host_routes",
            "dns_nameservers",
            "service_types",
            "created_at",
            "updated_at",
        ],
        no_sort_keys: &[
            "allocation_pools",
            "host_routes",
            "dns_nameservers",
            "description",
            "router:external",
            "service_types",
            "tags",
            "created_at",
            "updated_at",
            "revision_number",
        ],
        stray_marker: StrayMarker::Ignored,
        unknown_of_parts: &[],
    },
    hooks: Hooks {
        complete: Neutron::complete_subnet,
        is_shared: Neutron::is_of_shared_network,
        created: |it, call, subnet| {
            it.touch_network(call.now, subnet);
            it.readdress_metadata_port(call, subnet);
        },
        revises: |asked, before, after| asked.contains_key("description") || is_revised(before, after),
        changed: |it, call, before, after| {
            if is_revised(before, after) {
                it.touch_network(call.now, after);
            }
            it.readdress_metadata_port(call, after);
        },
        check_end: |it, _, subnet| it.check_use_of_subnet(subnet),
        deleted: |it, call, subnet| {
            it.drop_addresses(call, subnet);
            it.touch_network(call.now, subnet);
        },
        ..Hooks::NONE
    },
};

fn is_revised(before: &Item, after: &Item) -> bool {
    REVISING.iter().any(|part| before.body.get(*part) != after.body.get(*part))
}

impl Neutron {
    /// The subnets of a network, the oldest first.
    pub(super) fn subnets_of(&self, network: &str) -> impl Iterator<Item = &Item> {
        self.table(&SUBNETS).by(NETWORK, network).map(|subnet| &**subnet)
    }

    /// A network's subnets go with it.
    pub(super) fn remove_subnets(&mut self, call: &Call<'_>, network: &Item) {
        let subnets: Vec<_> = self.subnets_of(&network.id).map(|subnet| subnet.id.clone()).collect();
        for subnet in subnets {
            self.remove(call.now, SUBNETS.collection, &subnet);
        }
    }

    fn is_of_shared_network(&self, _: &Caller, subnet: &Item) -> bool {
        let network = self.get(NETWORKS.collection, subnet.text(NETWORK));
        network.is_some_and(|network| network.is("shared") || network.is("router:external"))
    }

    /// A network has changed when a subnet of it has come, changed or gone.
    fn touch_network(&mut self, now: Timestamp, subnet: &Item) {
        self.edit(now, NETWORKS.collection, subnet.text(NETWORK), |_| {});
    }

    fn complete_subnet(&self, call: &mut Call<'_>, subnet: &mut Item, before: Option<&Item>) -> Result<(), Refusal> {
        for list in ["dns_nameservers", "host_routes"] {
            if subnet.body.get(list).is_some_and(Value::is_null) {
                subnet.body.insert(list.to_owned(), json!([]));
            }
        }
        canonical(subnet, "gateway_ip");
        match before {
            None => self.complete_new(call, subnet),
            Some(before) => {
                self.check_use_of_gateway_ip(subnet, before)?;
                complete_change(subnet, before)
            }
        }
    }

    fn complete_new(&self, call: &Call<'_>, subnet: &mut Item) -> Result<(), Refusal> {
        let network = self.network_for(call, subnet.text(NETWORK), "create_subnet")?;
        let Some(range) = subnet.body.get("cidr").and_then(range).map(|range| range.trunc()) else {
            let words = "Bad subnets request: a subnetpool must be specified in the absence of a cidr.";
            return Err(Refusal::bad_request(words).of_type("BadRequest"));
        };
        check_version(subnet, "cidr", &range.to_string())?;
        check_dhcp(subnet, range)?;
        check_gateway(subnet, range)?;
        check_lists(subnet, "new subnet")?;
        check_modes(subnet, range)?;
        let mtu = network.body.get("mtu").and_then(Value::as_u64).unwrap_or_default();
        if range.addr().is_ipv6() && (1..IPV6_MTU).contains(&mtu) {
            let words = format!("MTU of {} is not valid, subnet requires a minimum of {IPV6_MTU}", network.id);
            return Err(Refusal::conflict(words).of_type("NetworkMTUSubnetConflict"));
        }
        subnet.body.insert("cidr".to_owned(), json!(range.to_string()));
        subnet.body.insert("router:external".to_owned(), json!(network.is("router:external")));
        if !subnet.body.contains_key("gateway_ip") {
            let first = if range.addr().is_ipv4() { after(range.network()) } else { range.network() };
            subnet.body.insert("gateway_ip".to_owned(), json!(first));
        }
        complete_pools(subnet, range)?;
        self.check_overlap(&network.id, range)
    }

    fn check_overlap(&self, network: &str, range: IpNet) -> Result<(), Refusal> {
        if range.prefix_len() == 0 {
            return Err(invalid("0 is not allowed as CIDR prefix length"));
        }
        let mut others = self.subnets_of(network).filter_map(cidr);
        if others.any(|other| other.contains(&range) || range.contains(&other)) {
            return Err(invalid(&format!(
                "Requested subnet with cidr: {range} for network: {network} overlaps with another subnet"
            )));
        }
        Ok(())
    }

    /// A network that the caller may put something on.
    pub(super) fn network_for(&self, call: &Call<'_>, id: &str, action: &str) -> Result<&Item, Refusal> {
        let network = self.get(NETWORKS.collection, id).ok_or_else(|| missing(&NETWORKS, id))?;
        if network.is_changeable_by(&call.caller) {
            return Ok(network);
        }
        Err(Refusal::forbidden(format!("rule:{action} is disallowed by policy")).of_type("PolicyNotAuthorized"))
    }
}

/// A change of what there is: its range stays, and its gateway moves no pools.
fn complete_change(subnet: &mut Item, before: &Item) -> Result<(), Refusal> {
    let Some(range) = cidr(subnet) else { return Ok(()) };
    if subnet.is("enable_dhcp") && !before.is("enable_dhcp") {
        check_dhcp(subnet, range)?;
    }
    check_gateway(subnet, range)?;
    check_lists(subnet, &subnet.id)?;
    let has_mode = MODES.iter().any(|mode| !subnet.text(mode).is_empty());
    if has_mode && !subnet.is("enable_dhcp") && before.is("enable_dhcp") {
        return Err(invalid("Cannot disable enable_dhcp with ipv6 attributes set"));
    }
    let moved = |attribute: &str| subnet.body.get(attribute) != before.body.get(attribute);
    if moved("gateway_ip") || moved("allocation_pools") { complete_pools(subnet, range) } else { Ok(()) }
}

/// Its range.
pub(super) fn cidr(subnet: &Item) -> Option<IpNet> {
    subnet.body.get("cidr").and_then(range)
}

/// Its gateway.
pub(super) fn gateway(subnet: &Item) -> Option<IpAddr> {
    subnet.body.get("gateway_ip").and_then(parsed)
}

/// Writes an address as everybody does.
fn canonical(item: &mut Item, attribute: &str) {
    if let Some(address) = item.body.get(attribute).and_then(parsed) {
        item.body.insert(attribute.to_owned(), json!(address));
    }
}

/// What of a subnet is of its version.
fn check_version(subnet: &Item, name: &str, value: &str) -> Result<(), Refusal> {
    let version = subnet.body.get("ip_version").and_then(Value::as_u64).unwrap_or_default();
    if value.contains(':') == (version == 6) {
        return Ok(());
    }
    Err(invalid(&format!("{name} '{value}' does not match the ip_version '{version}'")))
}

fn check_dhcp(subnet: &Item, range: IpNet) -> Result<(), Refusal> {
    let address = range.network();
    if address.is_ipv6() && address.is_unspecified() {
        return Err(invalid("IPv6 subnet '::' is not supported"));
    }
    if !subnet.is("enable_dhcp") {
        return Ok(());
    }
    if range.prefix_len() > range.max_prefix_len() - 2 {
        return Err(invalid("Subnet has a prefix length that is incompatible with DHCP service enabled"));
    }
    if address.is_multicast() {
        return Err(invalid("Multicast IP subnet is not supported if enable_dhcp is True"));
    }
    if address.is_loopback() {
        return Err(invalid("Loopback IP subnet is not supported if enable_dhcp is True"));
    }
    if address.is_unspecified() {
        return Err(invalid("First IP '0.0.0.0' of network is not supported if enable_dhcp is True."));
    }
    Ok(())
}

/// A gateway may well be outside of the range.
fn check_gateway(subnet: &Item, range: IpNet) -> Result<(), Refusal> {
    let Some(gateway) = gateway(subnet) else { return Ok(()) };
    check_version(subnet, "gateway_ip", &gateway.to_string())?;
    if gateway.is_ipv4() && range.contains(&gateway) && [range.network(), range.broadcast()].contains(&gateway) {
        return Err(invalid("Gateway is not valid on subnet"));
    }
    Ok(())
}

fn check_lists(subnet: &Item, called: &str) -> Result<(), Refusal> {
    let list = |name: &str| subnet.body.get(name).and_then(Value::as_array).into_iter().flatten();
    let too_many = |what: &str, most: usize, kind| {
        let words =
            format!("Unable to complete operation for {called}. The number of {what} exceeds the limit {most}.");
        Err(Refusal::bad_request(words).of_type(kind))
    };
    if list("dns_nameservers").count() > MOST_NAMESERVERS {
        return too_many("DNS nameservers", MOST_NAMESERVERS, "DNSNameServersExhausted");
    }
    if list("host_routes").count() > MOST_ROUTES {
        return too_many("host routes", MOST_ROUTES, "HostRoutesExhausted");
    }
    for server in list("dns_nameservers") {
        check_version(subnet, "dns_nameserver", &plain(server))?;
    }
    for route in list("host_routes") {
        check_version(subnet, "nexthop", &plain(&route["nexthop"]))?;
        check_version(subnet, "destination", &plain(&route["destination"]))?;
    }
    Ok(())
}

fn check_modes(subnet: &Item, range: IpNet) -> Result<(), Refusal> {
    let given = MODES.into_iter().filter(|mode| !subnet.text(mode).is_empty());
    if range.addr().is_ipv4() {
        return match given.into_iter().next() {
            None => Ok(()),
            Some(mode) => Err(invalid(&format!("{mode} is not valid when ip_version is 4"))),
        };
    }
    let given: Vec<_> = given.map(|mode| subnet.text(mode)).collect();
    if !given.is_empty() && !subnet.is("enable_dhcp") {
        let words = "ipv6_ra_mode or ipv6_address_mode cannot be set when enable_dhcp is set to False";
        return Err(invalid(words));
    }
    if let [announced, addresses] = given[..]
        && announced != addresses
    {
        return Err(invalid(&format!(
            "ipv6_ra_mode set to '{announced}' with ipv6_address_mode set to '{addresses}' is not valid. If both \
             attributes are set, they must be the same value"
        )));
    }
    if is_automatic(subnet) && range.prefix_len() != 64 {
        return Err(invalid(&format!(
            "Invalid CIDR {range} for IPv6 address mode. OpenStack uses the EUI-64 address format, which requires the \
             prefix to be /64"
        )));
    }
    Ok(())
}

/// The modes in which a port's address follows from its MAC.
const AUTOMATIC: [&str; 2] = ["slaac", "dhcpv6-stateless"];

/// Whether addresses follow from MACs.
pub(super) fn is_automatic(subnet: &Item) -> bool {
    MODES.iter().any(|mode| AUTOMATIC.contains(&subnet.text(mode)))
}

/// The pools it has or gets, if they can be.
fn complete_pools(subnet: &mut Item, range: IpNet) -> Result<(), Refusal> {
    let gateway = gateway(subnet);
    let given = match subnet.body.get("allocation_pools") {
        None => {
            let pools: Vec<_> = Span::usable(range).without(gateway).into_iter().map(Span::pool).collect();
            subnet.body.insert("allocation_pools".to_owned(), json!(pools));
            return Ok(());
        }
        Some(given) => given.as_array().cloned().unwrap_or_default(),
    };
    let usable = Span::usable(range);
    let mut pools: Vec<Span> = Vec::new();
    for pool in &given {
        let Some(pool) = Span::of_pool(pool).filter(|pool| pool.first.is_ipv4() == range.addr().is_ipv4()) else {
            let [start, end] = ["start", "end"].map(|end| plain(&pool[end]));
            let words = format!("The allocation pool {{'start': '{start}', 'end': '{end}'}} is not valid.");
            return Err(Refusal::bad_request(words).of_type("InvalidAllocationPool"));
        };
        if !usable.contains(pool.first) || !usable.contains(pool.last) {
            let words = format!("The allocation pool {pool} spans beyond the subnet cidr {range}.");
            return Err(Refusal::bad_request(words).of_type("OutOfBoundsAllocationPool"));
        }
        if let Some(other) = pools.iter().find(|other| other.overlaps(&pool)) {
            let words = format!("Found overlapping allocation pools: {other} {pool} for subnet {range}.");
            return Err(Refusal::conflict(words).of_type("OverlappingAllocationPools"));
        }
        pools.push(pool);
    }
    if let Some((gateway, pool)) =
        gateway.and_then(|gateway| Some((gateway, pools.iter().find(|pool| pool.contains(gateway))?)))
    {
        let words = format!("Gateway ip {gateway} conflicts with allocation pool {pool}.");
        return Err(Refusal::conflict(words).of_type("GatewayConflictWithAllocationPools"));
    }
    let pools: Vec<_> = pools.into_iter().map(Span::pool).collect();
    subnet.body.insert("allocation_pools".to_owned(), json!(pools));
    Ok(())
}
