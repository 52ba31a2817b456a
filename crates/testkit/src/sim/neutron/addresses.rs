//! Which addresses a port gets. Neutron draws lots among the first free ones; here it is the first.

use std::{collections::HashSet, net::IpAddr};

use serde_json::{Value, json};

use super::{
    Item, Neutron, invalid,
    kinds::NETWORK,
    missing,
    ports::{PORTS, ROUTER_INTERFACE},
    span::{Span, after, eui64},
    subnets::{SUBNETS, cidr, is_automatic},
    values::parsed,
};
use crate::sim::http::Refusal;

/// The attribute that has a port's addresses.
pub(super) const FIXED_IPS: &str = "fixed_ips";

/// A port's way to its addresses.
struct Allocation<'a> {
    neutron: &'a Neutron,
    port: &'a Item,
    subnets: Vec<&'a Item>,
    /// What other ports have, and what this one has got so far.
    taken: HashSet<IpAddr>,
    got: Vec<Value>,
}

impl Neutron {
    /// Addresses for a port that says nothing of them: one of each family that its network has.
    pub(super) fn any_addresses(&self, port: &Item) -> Result<Value, Refusal> {
        let mut all = self.allocation(port);
        for is_v4 in [true, false] {
            let of_family = |subnet: &&Item| cidr(subnet).is_some_and(|range| range.addr().is_ipv4() == is_v4);
            let subnets: Vec<&Item> =
                all.subnets.iter().copied().filter(of_family).filter(|subnet| !is_automatic(subnet)).collect();
            if subnets.is_empty() {
                continue;
            }
            let free = subnets.iter().find_map(|subnet| Some((*subnet, all.free(subnet)?)));
            let (subnet, address) = free.ok_or_else(|| all.exhausted())?;
            all.take(subnet, address);
        }
        Ok(all.with_automatic())
    }

    /// Those that are wanted, of which it has some already.
    pub(super) fn these_addresses(&self, port: &Item, wanted: &[Value], had: &[Value]) -> Result<Value, Refusal> {
        let mut all = self.allocation(port);
        let (chosen, any): (Vec<&Value>, Vec<&Value>) =
            wanted.iter().partition(|wanted| wanted["ip_address"].is_string());
        for wanted in chosen {
            all.take_chosen(wanted)?;
        }
        for wanted in any {
            all.take_any(wanted, had)?;
        }
        let Value::Array(mut got) = all.with_automatic() else { return Ok(json!([])) };
        // what it had stays where it was, before what it has whatever is wanted
        let follows = |address: &Value| {
            let subnet = address["subnet_id"].as_str().and_then(|id| self.get(SUBNETS.collection, id));
            subnet.is_some_and(is_automatic)
        };
        got.sort_by_key(|address| {
            let place = had.iter().position(|had| had == address).unwrap_or(usize::MAX);
            (follows(address), place)
        });
        Ok(json!(got))
    }

    fn allocation<'a>(&'a self, port: &'a Item) -> Allocation<'a> {
        let network = port.text(NETWORK);
        let others = self.table(&PORTS).by(NETWORK, network).filter(|other| other.id != port.id);
        let taken = others.flat_map(|other| addresses(other).collect::<Vec<_>>()).collect();
        Allocation { neutron: self, port, subnets: self.subnets_of(network).collect(), taken, got: Vec::new() }
    }
}

impl Allocation<'_> {
    /// The first address of a subnet's pools that nobody has.
    fn free(&self, subnet: &Item) -> Option<IpAddr> {
        let pools = subnet.body.get("allocation_pools").and_then(Value::as_array).into_iter().flatten();
        pools.filter_map(Span::of_pool).find_map(|pool| {
            let mut address = pool.first;
            while self.taken.contains(&address) {
                if address == pool.last {
                    return None;
                }
                address = after(address);
            }
            Some(address)
        })
    }

    fn take(&mut self, subnet: &Item, address: IpAddr) {
        self.taken.insert(address);
        self.got.push(json!({"subnet_id": subnet.id, "ip_address": address}));
    }

    fn take_chosen(&mut self, wanted: &Value) -> Result<(), Refusal> {
        let (subnet, Some(address)) = (self.subnet(wanted)?.clone(), parsed(&wanted["ip_address"])) else {
            return Ok(());
        };
        if is_automatic(&subnet) && !self.is_router() && self.automatic(&subnet) != Some(address) {
            let words = format!(
                "IPv6 address {address} cannot be directly assigned to a port on subnet {} as the subnet is configured \
                 for automatic addresses",
                subnet.id
            );
            return Err(Refusal::bad_request(words).of_type("AllocationOnAutoAddressSubnet"));
        }
        if self.taken.contains(&address) {
            let words = format!("IP address {address} already allocated in subnet {}", subnet.id);
            return Err(Refusal::conflict(words).of_type("IpAddressAlreadyAllocated"));
        }
        self.take(&subnet, address);
        Ok(())
    }

    fn take_any(&mut self, wanted: &Value, had: &[Value]) -> Result<(), Refusal> {
        let subnet = self.subnet(wanted)?.clone();
        if is_automatic(&subnet) && !self.is_router() {
            return Ok(());
        }
        let mut had = had.iter().filter(|had| had["subnet_id"] == subnet.id.as_str());
        let had = had.find_map(|had| parsed(&had["ip_address"]).filter(|address| !self.taken.contains(address)));
        let address = had.or_else(|| self.free(&subnet)).ok_or_else(|| self.exhausted())?;
        self.take(&subnet, address);
        Ok(())
    }

    /// With those that follow from its MAC, which it has whatever is wanted.
    fn with_automatic(mut self) -> Value {
        if !self.is_router() {
            for subnet in self.subnets.clone() {
                if let Some(address) = self.automatic(subnet).filter(|address| !self.taken.contains(address)) {
                    self.take(subnet, address);
                }
            }
        }
        json!(self.got)
    }

    fn automatic(&self, subnet: &Item) -> Option<IpAddr> {
        cidr(subnet).filter(|_| is_automatic(subnet)).and_then(|range| eui64(range, self.port.text("mac_address")))
    }

    fn is_router(&self) -> bool {
        self.port.text("device_owner") == ROUTER_INTERFACE
    }

    fn exhausted(&self) -> Refusal {
        let words = format!("No more IP addresses available on network {}.", self.port.text(NETWORK));
        Refusal::conflict(words).of_type("IpAddressGenerationFailure")
    }

    /// The subnet that an address is wanted of, if it can have it.
    fn subnet(&self, wanted: &Value) -> Result<&Item, Refusal> {
        let network = self.port.text(NETWORK);
        if self.subnets.is_empty() {
            return Err(invalid("IP allocation requires subnets for network"));
        }
        let address = parsed(&wanted["ip_address"]);
        let fits = |subnet: &Item| address.is_none_or(|address| self.has(subnet, address));
        let refused = |kind, words: String| Err(Refusal::bad_request(words).of_type(kind));
        match (wanted["subnet_id"].as_str(), address) {
            (None, None) => Err(invalid("IP allocation requires subnet_id or ip_address")),
            (Some(id), _) => match self.subnets.iter().find(|subnet| subnet.id == id) {
                Some(subnet) if fits(subnet) => Ok(subnet),
                Some(_) => refused(
                    "InvalidIpForSubnet",
                    format!(
                        "IP address {} is not a valid IP for the specified subnet.",
                        wanted["ip_address"].as_str().unwrap_or_default()
                    ),
                ),
                None if self.neutron.get(SUBNETS.collection, id).is_none() => Err(missing(&SUBNETS, id)),
                None => Err(invalid(&format!(
                    "Failed to create port on network {network}, because fixed_ips included invalid subnet {id}"
                ))),
            },
            (None, Some(address)) => match self.subnets.iter().find(|subnet| fits(subnet)) {
                Some(subnet) => Ok(subnet),
                None => refused(
                    "InvalidIpForNetwork",
                    format!("IP address {address} is not a valid IP for any of the subnets on the specified network."),
                ),
            },
        }
    }

    /// Whether a subnet has an address to give. A router may have the range's own of IPv6.
    fn has(&self, subnet: &Item, address: IpAddr) -> bool {
        let Some(range) = cidr(subnet).filter(|range| range.contains(&address)) else { return false };
        match address {
            IpAddr::V4(_) => ![range.network(), range.broadcast()].contains(&address),
            IpAddr::V6(_) => self.is_router() || address != range.network(),
        }
    }
}

/// A port's addresses.
pub(super) fn addresses(port: &Item) -> impl Iterator<Item = IpAddr> {
    fixed_ips(port).iter().filter_map(|fixed| parsed(&fixed["ip_address"]))
}

/// A port's addresses with their subnets.
pub(super) fn fixed_ips(port: &Item) -> &[Value] {
    port.body.get(FIXED_IPS).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Whether a port has an address of a subnet.
pub(super) fn is_on(port: &Item, subnet: &str) -> bool {
    fixed_ips(port).iter().any(|fixed| fixed["subnet_id"] == subnet)
}
