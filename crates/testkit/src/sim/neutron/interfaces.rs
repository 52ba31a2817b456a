//! What a router is connected to: its interfaces.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::{
    Item, Neutron,
    addresses::{FIXED_IPS, addresses, fixed_ips, is_on},
    floating_ips::FLOATING_IPS,
    kinds::NETWORK,
    missing,
    ports::{DEVICE, PORTS, ROUTER_GATEWAY, ROUTER_INTERFACE},
    routers::{ROUTERS, bad_router},
    subnets::{SUBNETS, cidr, gateway},
    values::parsed,
};
use crate::sim::{
    http::{Answer, Outcome, Refusal},
    service::Call,
};

impl Neutron {
    pub(super) fn add_interface(&mut self, call: &mut Call<'_>) -> Outcome {
        let (router, [subnet, port]) = self.ends(call)?;
        let (port, subnets) = match (subnet, port) {
            (Some(_), Some(_)) => return Err(bad_router("Cannot specify both subnet-id and port-id")),
            (Some(subnet), None) => self.connect_subnet(call, &router, &subnet)?,
            (None, Some(port)) => self.connect_port(call, &router, &port)?,
            (None, None) => return Err(nothing()),
        };
        self.settle_port(call, &port);
        self.edit(call.now, ROUTERS.collection, &router.id, |_| {});
        Ok(told(&router, &port, &subnets))
    }

    pub(super) fn remove_interface(&mut self, call: &mut Call<'_>) -> Outcome {
        let (router, [subnet, port]) = self.ends(call)?;
        let port = match (&subnet, port) {
            (None, None) => return Err(nothing()),
            (_, Some(port)) => self.interface_by_port(&router, &port, subnet.as_deref())?,
            (Some(subnet), None) => self.interface_by_subnet(&router, subnet)?,
        };
        let all: Vec<String> =
            fixed_ips(&port).iter().filter_map(|fixed| fixed["subnet_id"].as_str().map(str::to_owned)).collect();
        // told by its subnet, of a port on several only that one is left
        let left = match subnet {
            Some(subnet) if all.len() > 1 => vec![subnet],
            _ => all.clone(),
        };
        left.iter().try_for_each(|subnet| self.check_use_of_interface(&router, subnet))?;
        if left.len() < all.len() {
            self.edit(call.now, PORTS.collection, &port.id, |port| {
                let kept: Vec<_> =
                    fixed_ips(port).iter().filter(|fixed| fixed["subnet_id"] != left[0]).cloned().collect();
                port.body.insert(FIXED_IPS.to_owned(), json!(kept));
            });
        } else {
            self.remove(call.now, PORTS.collection, &port.id);
        }
        self.edit(call.now, ROUTERS.collection, &router.id, |_| {});
        Ok(told(&router, &port, &left))
    }

    /// The router, and the subnet and the port of the request.
    fn ends(&self, call: &Call<'_>) -> Result<(Item, [Option<String>; 2]), Refusal> {
        let id = call.param(0);
        let router = self.get(ROUTERS.collection, id).filter(|router| router.is_changeable_by(&call.caller));
        let router = router.ok_or_else(|| missing(&ROUTERS, id))?.clone();
        let body = call.request.json();
        Ok((router, ["subnet_id", "port_id"].map(|end| body[end].as_str().map(str::to_owned))))
    }

    /// The router gets the subnet's gateway address, for IPv6 on the port that it may have on that network.
    fn connect_subnet(&mut self, call: &mut Call<'_>, router: &Item, id: &str) -> Result<(Item, Vec<String>), Refusal> {
        let subnet = self.get(SUBNETS.collection, id).filter(|subnet| self.shows(&SUBNETS, subnet, &call.caller));
        let subnet = subnet.ok_or_else(|| missing(&SUBNETS, id))?.clone();
        let Some(address) = gateway(&subnet) else {
            return Err(bad_router("Subnet for router interface must have a gateway IP"));
        };
        if !subnet.is_changeable_by(&call.caller) {
            let words = format!(
                "Cannot add interface to router because subnet {id} is not owned by project making the request"
            );
            return Err(bad_router(&words));
        }
        self.check_overlap_of_router(router, &subnet)?;
        let wanted = json!({"subnet_id": id, "ip_address": address});
        let mut port = match self.ipv6_interface(router, &subnet) {
            Some(port) => port.clone(),
            None => self.new_interface(call, router, subnet.text(NETWORK))?,
        };
        let mut all = fixed_ips(&port).to_vec();
        all.push(wanted);
        let addresses = self.these_addresses(&port, &all, fixed_ips(&port))?;
        port.body.insert(FIXED_IPS.to_owned(), addresses);
        self.put(&PORTS, call.now, port.clone());
        Ok((port, vec![id.to_owned()]))
    }

    fn new_interface(&self, call: &mut Call<'_>, router: &Item, network: &str) -> Result<Item, Refusal> {
        self.check_quota(call, &PORTS, &router.project_id)?;
        let mut port = Item::new(&PORTS, call.ids.uuid().to_string(), &router.project_id, call.now);
        port.body.extend(super::attributes(json!({
            NETWORK: network, DEVICE: router.id, "device_owner": ROUTER_INTERFACE,
            "mac_address": self.free_mac(call, network), FIXED_IPS: [], "security_groups": [],
            "port_security_enabled": false,
        })));
        Ok(port)
    }

    fn ipv6_interface(&self, router: &Item, subnet: &Item) -> Option<&Item> {
        let is_v6 = cidr(subnet).is_some_and(|range| range.addr().is_ipv6());
        let mut ports = self.ports_of(router).filter(|port| {
            port.text("device_owner") == ROUTER_INTERFACE
                && port.text(NETWORK) == subnet.text(NETWORK)
                && addresses(port).any(|address| address.is_ipv6())
        });
        ports.next().filter(|_| is_v6)
    }

    /// The port becomes the router's.
    fn connect_port(&mut self, call: &Call<'_>, router: &Item, id: &str) -> Result<(Item, Vec<String>), Refusal> {
        let port = self.get(PORTS.collection, id).filter(|port| self.shows(&PORTS, port, &call.caller));
        let mut port = port.ok_or_else(|| missing(&PORTS, id))?.clone();
        let device = port.text(DEVICE);
        if !device.is_empty() {
            let words = format!(
                "Unable to complete operation on port {id} for network {}. Port already has an attached device {device}.",
                port.text(NETWORK)
            );
            return Err(Refusal::conflict(words).of_type("PortInUse"));
        }
        let subnets: Vec<String> =
            fixed_ips(&port).iter().filter_map(|fixed| fixed["subnet_id"].as_str().map(str::to_owned)).collect();
        if subnets.is_empty() {
            return Err(bad_router("Router port must have at least one fixed IP"));
        }
        for subnet in subnets.iter().filter_map(|id| self.get(SUBNETS.collection, id)) {
            self.check_overlap_of_router(router, subnet)?;
        }
        if addresses(&port).filter(IpAddr::is_ipv4).count() > 1 {
            return Err(bad_router("Cannot have multiple IPv4 subnets on router port"));
        }
        port.body.insert(DEVICE.to_owned(), json!(router.id));
        port.body.insert("device_owner".to_owned(), json!(ROUTER_INTERFACE));
        port.touch(call.now);
        self.put(&PORTS, call.now, port.clone());
        Ok((port, subnets))
    }

    /// A router knows one way to each address: all that its external network has count.
    fn check_overlap_of_router(&self, router: &Item, new: &Item) -> Result<(), Refusal> {
        let outside = self.ports_of(router).filter(|port| port.text("device_owner") == ROUTER_GATEWAY);
        let outside = outside.flat_map(|port| self.subnets_of(port.text(NETWORK)));
        let Some(range) = cidr(new) else { return Ok(()) };
        let overlaps =
            |other: &&Item| cidr(other).is_some_and(|other| other.contains(&range) || range.contains(&other));
        match self.connected(router).chain(outside).find(overlaps) {
            None => Ok(()),
            Some(other) => Err(bad_router(&format!(
                "Cidr {} of subnet {} overlaps with cidr {} of subnet {}",
                new.text("cidr"),
                new.id,
                other.text("cidr"),
                other.id
            ))),
        }
    }

    fn interface_by_port(&self, router: &Item, id: &str, subnet: Option<&str>) -> Result<Item, Refusal> {
        let mut own = self.ports_of(router).filter(|port| port.text("device_owner") == ROUTER_INTERFACE);
        let Some(port) = own.find(|port| port.id == id) else {
            let words = format!("Router {} does not have an interface with id {id}", router.id);
            return Err(Refusal::not_found(words).of_type("RouterInterfaceNotFound"));
        };
        if let Some(subnet) = subnet.filter(|subnet| !is_on(port, subnet)) {
            let words = format!("Subnet on port {id} does not match the requested subnet {subnet}.");
            return Err(Refusal::bad_request(words).of_type("SubnetMismatchForPort"));
        }
        Ok(port.clone())
    }

    fn interface_by_subnet(&self, router: &Item, id: &str) -> Result<Item, Refusal> {
        self.get(SUBNETS.collection, id).ok_or_else(|| missing(&SUBNETS, id))?;
        let mut own = self.ports_of(router).filter(|port| port.text("device_owner") == ROUTER_INTERFACE);
        own.find(|port| is_on(port, id)).cloned().ok_or_else(|| {
            let words = format!("Router {} has no interface on subnet {id}", router.id);
            Refusal::not_found(words).of_type("RouterInterfaceNotFoundForSubnet")
        })
    }

    /// An interface that a floating IP or a route needs stays.
    fn check_use_of_interface(&self, router: &Item, subnet: &str) -> Result<(), Refusal> {
        let Some(range) = self.get(SUBNETS.collection, subnet).and_then(cidr) else { return Ok(()) };
        let is_there = |value: &Value| parsed(value).is_some_and(|address| range.contains(&address));
        let mut floating = self.table(&FLOATING_IPS).by("router_id", &router.id);
        let mut hops = router.body["routes"].as_array().into_iter().flatten();
        let (kind, what) = if floating.any(|floating| is_there(&floating.body["fixed_ip_address"])) {
            ("RouterInterfaceInUseByFloatingIP", "floating IPs")
        } else if hops.any(|route| is_there(&route["nexthop"])) {
            ("RouterInterfaceInUseByRoute", "routes")
        } else {
            return Ok(());
        };
        let words = format!(
            "Router interface for subnet {subnet} on router {} cannot be deleted, as it is required by one or more {what}.",
            router.id
        );
        Err(Refusal::conflict(words).of_type(kind))
    }
}

fn nothing() -> Refusal {
    bad_router("Either subnet_id or port_id must be specified")
}

fn told(router: &Item, port: &Item, subnets: &[String]) -> Answer {
    Answer::ok(&json!({
        "id": router.id, "project_id": router.project_id, "port_id": port.id, "network_id": port.text(NETWORK),
        "subnet_id": subnets.first(), "subnet_ids": subnets,
    }))
}
