//! What ports keep from being deleted, and the port that every network has.

use serde_json::{Value, json};

use super::{
    Item, Neutron,
    addresses::{FIXED_IPS, addresses, fixed_ips, is_on},
    kinds::NETWORK,
    ports::{DEVICE, MAC, PORT_GROUPS, PORTS, ROUTER_INTERFACE, SECURITY},
    subnets::{gateway, is_automatic},
};
use crate::sim::{http::Refusal, service::Call};

/// The owner of the port from which OVN answers on every node.
const DISTRIBUTED: &str = "network:distributed";
/// The owners of ports that go with their network.
const PASSING: [&str; 3] = ["network:dhcp", DISTRIBUTED, "network:floatingip_agent_gateway"];

impl Neutron {
    /// A group that guards a port stays.
    pub(super) fn check_use_of_group(&self, group: &Item) -> Result<(), Refusal> {
        if self.table(&PORTS).by(PORT_GROUPS, &group.id).next().is_none() {
            return Ok(());
        }
        Err(Refusal::conflict(format!("Security Group {} in use.", group.id)).of_type("SecurityGroupInUse"))
    }

    /// A subnet of which a port has an address stays. One that follows from a MAC keeps it only if it is a router's.
    pub(super) fn check_use_of_subnet(&self, subnet: &Item) -> Result<(), Refusal> {
        let ports = self.table(&PORTS).by(NETWORK, subnet.text(NETWORK)).filter(|port| is_on(port, &subnet.id));
        let mut holding = ports
            .map(|port| port.text("device_owner"))
            .filter(|owner| *owner == ROUTER_INTERFACE || !is_automatic(subnet) && !PASSING.contains(owner));
        if holding.next().is_none() {
            return Ok(());
        }
        let words = format!(
            "Unable to complete operation on subnet {}: One or more ports have an IP allocation from this subnet.",
            subnet.id
        );
        Err(Refusal::conflict(words).of_type("SubnetInUse"))
    }

    /// The addresses of a subnet that is gone go from the ports that are left.
    pub(super) fn drop_addresses(&mut self, call: &Call<'_>, subnet: &Item) {
        for port in self.ports_on(subnet) {
            self.edit(call.now, PORTS.collection, &port, |port| {
                let left: Vec<_> =
                    fixed_ips(port).iter().filter(|fixed| fixed["subnet_id"] != subnet.id.as_str()).cloned().collect();
                port.body.insert(FIXED_IPS.to_owned(), json!(left));
            });
        }
    }

    fn ports_on(&self, subnet: &Item) -> Vec<String> {
        let ports = self.table(&PORTS).by(NETWORK, subnet.text(NETWORK));
        ports.filter(|port| is_on(port, &subnet.id)).map(|port| port.id.clone()).collect()
    }

    /// A network that something is connected to stays.
    pub(super) fn check_use_of_network(&self, network: &Item) -> Result<(), Refusal> {
        let ports = self.table(&PORTS).by(NETWORK, &network.id);
        let holding = ports.filter(|port| !PASSING.contains(&port.text("device_owner")));
        let holding: Vec<&str> = holding.map(|port| port.id.as_str()).collect();
        if holding.is_empty() {
            return Ok(());
        }
        let words = format!(
            "Unable to complete operation on network {}. There are one or more ports still in use on the network, id for \
             these ports is: {}.",
            network.id,
            holding.join(",")
        );
        Err(Refusal::conflict(words).of_type("NetworkInUse"))
    }

    /// What only the network itself needed goes with it.
    pub(super) fn remove_passing_ports(&mut self, call: &Call<'_>, network: &Item) {
        let ports: Vec<_> = self.table(&PORTS).by(NETWORK, &network.id).map(|port| port.id.clone()).collect();
        for port in ports {
            self.remove(call.now, PORTS.collection, &port);
        }
    }

    /// Every network has a port from which OVN tells servers of themselves.
    pub(super) fn add_metadata_port(&mut self, call: &mut Call<'_>, network: &Item) {
        let body = json!({
            NETWORK: network.id, "device_owner": DISTRIBUTED, DEVICE: format!("ovnmeta-{}", network.id),
            MAC: self.free_mac(call, &network.id), FIXED_IPS: [], PORT_GROUPS: [], SECURITY: false,
        });
        self.put_port(call, &network.project_id, body);
    }

    /// It has an address wherever it tells addresses.
    pub(super) fn readdress_metadata_port(&mut self, call: &Call<'_>, subnet: &Item) {
        let port =
            self.table(&PORTS).by(NETWORK, subnet.text(NETWORK)).find(|port| port.text("device_owner") == DISTRIBUTED);
        let Some(port) = port.cloned() else { return };
        let mut wanted: Vec<Value> =
            fixed_ips(&port).iter().filter(|fixed| fixed["subnet_id"] != subnet.id.as_str()).cloned().collect();
        if subnet.is("enable_dhcp") && subnet.text("cidr").contains('.') {
            wanted.push(json!({"subnet_id": subnet.id}));
        }
        // of a subnet that has no address left, it has none
        let Ok(addresses) = self.these_addresses(&port, &wanted, fixed_ips(&port)) else { return };
        if port.body.get(FIXED_IPS) != Some(&addresses) {
            self.edit(call.now, PORTS.collection, &port.id, |port| {
                port.body.insert(FIXED_IPS.to_owned(), addresses);
            });
        }
    }

    /// A gateway that is a router stays.
    pub(super) fn check_use_of_gateway_ip(&self, subnet: &Item, before: &Item) -> Result<(), Refusal> {
        let is_kept = subnet.body.get("gateway_ip") == before.body.get("gateway_ip");
        let Some(gateway) = gateway(before).filter(|_| !is_kept) else { return Ok(()) };
        let mut ports = self.table(&PORTS).by(NETWORK, subnet.text(NETWORK));
        let is_it = |port: &Item| addresses(port).any(|address| address == gateway);
        match ports.find(|port| port.text("device_owner") == ROUTER_INTERFACE && is_it(port)) {
            None => Ok(()),
            Some(port) => {
                let words =
                    format!("Current gateway ip {gateway} already in use by port {}. Unable to update.", port.id);
                Err(Refusal::conflict(words).of_type("GatewayIpInUse"))
            }
        }
    }
}
