//! What Nova does with ports.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{
    Item, Neutron,
    addresses::fixed_ips,
    floating_ips::{ADDRESS, FLOATING_IPS},
    kinds::{GROUPS, NETWORK, NETWORKS},
    ports::{DEVICE, HOST, MAC, PORT_GROUPS, PORTS},
};

/// The owner of servers' ports; what is behind the colon is the availability zone.
const SERVER: &str = "compute:nova";

impl Neutron {
    /// A port by its id.
    pub(in crate::sim) fn port(&self, id: &str) -> Option<&Item> {
        self.get(PORTS.collection, id)
    }

    /// The ports that a server is connected by, the oldest first.
    pub(in crate::sim) fn ports_of_server(&self, server: &str) -> impl Iterator<Item = &Item> {
        self.table(&PORTS).by(DEVICE, server).map(|port| &**port)
    }

    /// Connects a server on this host by a port.
    pub(in crate::sim) fn connect(&mut self, now: Timestamp, port: &str, server: &str, host: &str) {
        self.edit(now, PORTS.collection, port, |port| {
            let status = if port.is("admin_state_up") { "ACTIVE" } else { "DOWN" };
            port.body.extend(super::attributes(json!({
                DEVICE: server, "device_owner": SERVER, HOST: host, "binding:vif_type": "ovs", "status": status,
            })));
        });
    }

    /// Nothing is connected by a port any more.
    pub(in crate::sim) fn disconnect(&mut self, now: Timestamp, port: &str) {
        self.edit(now, PORTS.collection, port, |port| {
            port.body.extend(super::attributes(json!({
                DEVICE: "", "device_owner": "", HOST: "", "binding:vif_type": "unbound", "status": "DOWN",
            })));
        });
    }

    /// The addresses of a server by the names of its networks, as Nova shows them. Some answers have less of each.
    pub(in crate::sim) fn addresses_of_server(&self, server: &str, is_whole: bool) -> Value {
        let mut networks: Map<String, Value> = Map::new();
        for port in self.ports_of_server(server) {
            let fixed = fixed_ips(port).iter().filter_map(|fixed| fixed["ip_address"].as_str());
            let fixed = fixed.map(|address| (address, "fixed"));
            let floating = self.table(&FLOATING_IPS).by("port_id", &port.id);
            let floating = floating.map(|floating| (floating.text(ADDRESS), "floating"));
            let shown = fixed.chain(floating).map(|(address, kind)| {
                let mut shown = json!({"addr": address, "version": if address.contains(':') { 6 } else { 4 }});
                if is_whole {
                    shown["OS-EXT-IPS:type"] = json!(kind);
                    shown["OS-EXT-IPS-MAC:mac_addr"] = json!(port.text(MAC));
                }
                shown
            });
            let network = self.get(NETWORKS.collection, port.text(NETWORK)).map(|network| network.text("name"));
            let all = networks.entry(network.unwrap_or_default()).or_insert_with(|| json!([]));
            if let Some(all) = all.as_array_mut() {
                all.extend(shown);
            }
        }
        networks.into()
    }

    /// The names of the groups that guard a server's ports; ids of those without.
    pub(in crate::sim) fn groups_of_server(&self, server: &str) -> BTreeSet<&str> {
        let ports = self.ports_of_server(server);
        let groups = ports.filter_map(|port| port.body.get(PORT_GROUPS)?.as_array()).flatten();
        let groups = groups.filter_map(|id| self.get(GROUPS.collection, id.as_str()?));
        groups.map(|group| if group.text("name").is_empty() { group.id.as_str() } else { group.text("name") }).collect()
    }

    /// A server's port as Nova shows it.
    pub(in crate::sim) fn attachment(port: &Item) -> Value {
        json!({
            "port_id": port.id, "net_id": port.text(NETWORK), "mac_addr": port.text(MAC),
            "port_state": port.text("status"), "fixed_ips": fixed_ips(port),
        })
    }
}
