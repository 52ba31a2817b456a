//! Floating IPs: addresses of external networks that stand for those of ports.

use serde_json::{Map, Value, json};

use super::{
    Item, Neutron,
    addresses::{FIXED_IPS, addresses, fixed_ips},
    kinds::{Hooks, Kind, Lists, NETWORK, NETWORKS, StrayMarker, Views, attribute, short_text, text_or_null},
    missing,
    ports::{DEVICE, FLOATING_IP, PORTS, ROUTER_GATEWAY, ROUTER_INTERFACE},
    subnets::cidr,
    values::{self, parsed},
};
use crate::sim::{http::Refusal, service::Call};

const FLOATING_NETWORK: &str = "floating_network_id";
pub(super) const ADDRESS: &str = "floating_ip_address";
const PORT: &str = "port_id";
const FIXED: &str = "fixed_ip_address";
const ROUTER: &str = "router_id";

pub(super) static FLOATING_IPS: Kind = Kind {
    collection: "floatingips",
    member: "floatingip",
    missing: "FloatingIPNotFound",
    called: ["Floating IP", "could not be found"],
    first_revision: 0,
    can_change: true,
    attributes: &[
        attribute("description", short_text),
        attribute(FLOATING_NETWORK, short_text).fixed().required(),
        attribute("subnet_id", text_or_null).fixed(),
        attribute(ADDRESS, values::address_or_null).fixed().for_admins(),
        attribute(PORT, text_or_null),
        attribute(FIXED, values::address_or_null),
    ],
    defaults: || {
        json!({
            "description": "", PORT: null, FIXED: null, ROUTER: null, "status": "DOWN", "port_details": null,
            "dns_domain": "", "dns_name": "", "tags": [],
        })
    },
    views: Views::NONE,
    parts: None,
    lists: Lists {
        no_filters: &["subnet_id", "port_details", "created_at", "updated_at"],
        no_sort_keys: &["subnet_id", PORT, "port_details", "tags", "created_at", "updated_at"],
        stray_marker: StrayMarker::Refused,
        unknown_of_parts: &[],
    },
    hooks: Hooks {
        complete: Neutron::complete_floating_ip,
        created: |it, call, floating| {
            it.add_floating_port(call, floating);
            it.settle_floating_ip(call, floating);
        },
        changed: |it, call, _, floating| it.settle_floating_ip(call, floating),
        deleted: |it, call, floating| it.remove_floating_port(call, floating),
        extend: Neutron::tell_of_port,
        ..Hooks::NONE
    },
};

impl Neutron {
    fn complete_floating_ip(
        &self,
        call: &mut Call<'_>,
        floating: &mut Item,
        before: Option<&Item>,
    ) -> Result<(), Refusal> {
        if before.is_none() {
            self.choose_address(call, floating)?;
        }
        let is_same =
            |attribute: &str| before.is_some_and(|before| before.body.get(attribute) == floating.body.get(attribute));
        if is_same(PORT) && is_same(FIXED) {
            return Ok(());
        }
        let fixed = floating.body.get(FIXED).filter(|_| !is_same(FIXED)).and_then(parsed);
        let Some(id) = floating.body.get(PORT).and_then(Value::as_str) else {
            if fixed.is_some() {
                return Err(bad_floating_ip("fixed_ip_address cannot be specified without a port_id"));
            }
            for attribute in [PORT, FIXED, ROUTER] {
                floating.body.insert(attribute.to_owned(), Value::Null);
            }
            return Ok(());
        };
        let port = self.get(PORTS.collection, id).filter(|port| self.shows(&PORTS, port, &call.caller));
        let port = port.ok_or_else(|| missing(&PORTS, id))?;
        if port.project_id != floating.project_id && !call.caller.is_admin() {
            return Err(bad_floating_ip(&format!(
                "Cannot process floating IP association with Port {id}, since that port is owned by a different project"
            )));
        }
        let inner = inner_address(port, fixed.map(|fixed| fixed.to_string()))?;
        let router = self.router_between(port, &inner, floating.text(FLOATING_NETWORK))?;
        self.check_association(floating, port, &inner)?;
        floating.body.insert(FIXED.to_owned(), inner["ip_address"].clone());
        floating.body.insert(ROUTER.to_owned(), json!(router));
        Ok(())
    }

    fn choose_address(&self, call: &Call<'_>, floating: &mut Item) -> Result<(), Refusal> {
        let id = floating.text(FLOATING_NETWORK).to_owned();
        let network = self.get(NETWORKS.collection, &id).filter(|network| network.is_visible_to(&call.caller));
        if !network.ok_or_else(|| missing(&NETWORKS, &id))?.is("router:external") {
            return Err(bad_floating_ip(&format!("Network {id} is not a valid external network")));
        }
        if !self.subnets_of(&id).filter_map(cidr).any(|range| range.addr().is_ipv4()) {
            return Err(bad_floating_ip(&format!("Network {id} does not contain any IPv4 subnet")));
        }
        let mut port = Item::new(&PORTS, String::new(), "", call.now);
        port.body.insert(NETWORK.to_owned(), json!(id));
        let wanted: Map<String, Value> = [("subnet_id", "subnet_id"), (ADDRESS, "ip_address")]
            .into_iter()
            .filter_map(|(asked, wanted)| Some((wanted.to_owned(), floating.body.get(asked)?.clone())))
            .filter(|(_, value)| !value.is_null())
            .collect();
        let got = if wanted.is_empty() {
            self.any_addresses(&port)?
        } else {
            self.these_addresses(&port, &[Value::Object(wanted)], &[])?
        };
        port.body.insert(FIXED_IPS.to_owned(), got);
        let Some(address) = addresses(&port).find(std::net::IpAddr::is_ipv4) else {
            let words = format!("Unable to find any IP address on external network {id}.");
            return Err(Refusal::bad_request(words).of_type("ExternalIpAddressExhausted"));
        };
        floating.body.remove("subnet_id");
        floating.body.insert(ADDRESS.to_owned(), json!(address));
        Ok(())
    }

    /// The router that leads from an external network to a port's address.
    fn router_between(&self, port: &Item, inner: &Value, outside: &str) -> Result<String, Refusal> {
        let subnet = inner["subnet_id"].as_str().unwrap_or_default();
        let interfaces = self.table(&PORTS).by(NETWORK, port.text(NETWORK)).filter(|interface| {
            interface.text("device_owner") == ROUTER_INTERFACE
                && fixed_ips(interface).iter().any(|fixed| fixed["subnet_id"] == subnet)
        });
        let mut routers = interfaces.map(|interface| interface.text(DEVICE)).filter(|router| {
            self.table(&PORTS)
                .by(DEVICE, router)
                .any(|port| port.text("device_owner") == ROUTER_GATEWAY && port.text(NETWORK) == outside)
        });
        routers.next().map(str::to_owned).ok_or_else(|| {
            let words = format!(
                "External network {outside} is not reachable from subnet {subnet}.  Therefore, cannot associate Port {} \
                 with a Floating IP.",
                port.id
            );
            Refusal::not_found(words).of_type("ExternalGatewayForFloatingIPNotFound")
        })
    }

    /// On each external network, one address stands for one of a port's.
    fn check_association(&self, floating: &Item, port: &Item, inner: &Value) -> Result<(), Refusal> {
        let network = floating.text(FLOATING_NETWORK);
        let mut others = self.table(&FLOATING_IPS).by(PORT, &port.id).filter(|other| {
            other.id != floating.id
                && other.text(FLOATING_NETWORK) == network
                && other.body.get(FIXED) == inner.get("ip_address")
        });
        if others.next().is_none() {
            return Ok(());
        }
        let words = format!(
            "Cannot associate floating IP {} ({}) with port {} using fixed IP {}, as that fixed IP already has a floating \
             IP on external network {network}.",
            floating.text(ADDRESS),
            floating.id,
            port.id,
            inner["ip_address"].as_str().unwrap_or_default()
        );
        Err(Refusal::conflict(words).of_type("FloatingIPPortAlreadyAssociated"))
    }

    /// An address that a floating IP stands for stays with its port.
    pub(super) fn check_use_of_addresses(&self, port: &Item) -> Result<(), Refusal> {
        let has = |address: &Value| fixed_ips(port).iter().any(|fixed| fixed["ip_address"] == *address);
        if self.table(&FLOATING_IPS).by(PORT, &port.id).all(|floating| has(&floating.body[FIXED])) {
            return Ok(());
        }
        let words = format!(
            "Bad port request: Cannot update the fixed_ips of the port {}, because its original fixed_ip has been associated \
             to a floating ip.",
            port.id
        );
        Err(Refusal::bad_request(words).of_type("BadRequest"))
    }

    fn add_floating_port(&mut self, call: &mut Call<'_>, floating: &Item) {
        let network = floating.text(FLOATING_NETWORK);
        let address = floating.body.get(ADDRESS).and_then(parsed);
        let has =
            |subnet: &&Item| address.is_some_and(|address| cidr(subnet).is_some_and(|range| range.contains(&address)));
        let subnet = self.subnets_of(network).find(has).map(|subnet| subnet.id.clone());
        let body = json!({
            NETWORK: network, DEVICE: floating.id, "device_owner": FLOATING_IP, "status": "N/A",
            "mac_address": self.free_mac(call, network), "security_groups": [], "port_security_enabled": false,
            FIXED_IPS: [{"subnet_id": subnet, "ip_address": address}],
        });
        self.put_port(call, "", body);
    }

    fn remove_floating_port(&mut self, call: &Call<'_>, floating: &Item) {
        let ports: Vec<_> = self.table(&PORTS).by(DEVICE, &floating.id).map(|port| port.id.clone()).collect();
        for port in ports {
            self.remove(call.now, PORTS.collection, &port);
        }
    }

    /// OVN tells after the answer that it leads to a port, or no more.
    fn settle_floating_ip(&mut self, call: &Call<'_>, floating: &Item) {
        let status = if floating.text(PORT).is_empty() { "DOWN" } else { "ACTIVE" };
        if floating.text("status") != status {
            self.edit(call.now, FLOATING_IPS.collection, &floating.id, |floating| {
                floating.body.insert("status".to_owned(), json!(status));
            });
        }
    }

    /// What stood for a port that is gone stands for none.
    pub(super) fn release_floating_ips(&mut self, call: &Call<'_>, port: &Item) {
        let own: Vec<_> = self.table(&FLOATING_IPS).by(PORT, &port.id).map(|floating| floating.id.clone()).collect();
        for id in own {
            self.edit(call.now, FLOATING_IPS.collection, &id, |floating| {
                floating
                    .body
                    .extend(super::attributes(json!({PORT: null, FIXED: null, ROUTER: null, "status": "DOWN"})));
            });
        }
    }

    fn tell_of_port(&self, shown: &mut Map<String, Value>) {
        let port = shown.get(PORT).and_then(Value::as_str).and_then(|id| self.get(PORTS.collection, id));
        let Some(port) = port else { return };
        let told = ["name", NETWORK, "mac_address", "admin_state_up", "status", DEVICE, "device_owner"];
        let told: Map<String, Value> =
            told.into_iter().filter_map(|name| Some((name.to_owned(), port.body.get(name)?.clone()))).collect();
        shown.insert("port_details".to_owned(), Value::Object(told));
    }
}

/// The address of a port that is stood for: the one that is asked for, or the only one of IPv4.
fn inner_address(port: &Item, fixed: Option<String>) -> Result<Value, Refusal> {
    let all = fixed_ips(port).iter();
    if let Some(fixed) = fixed {
        let found = all.clone().find(|address| address["ip_address"] == fixed.as_str()).cloned();
        return found.ok_or_else(|| bad_floating_ip(&format!("Port {} does not have fixed ip {fixed}", port.id)));
    }
    let of_v4 = all.filter(|address| parsed(&address["ip_address"]).is_some_and(|address| address.is_ipv4()));
    match of_v4.collect::<Vec<_>>()[..] {
        [one] => Ok(one.clone()),
        [] => Err(bad_floating_ip(&format!(
            "Cannot add floating IP to port {} that has no fixed IPv4 addresses",
            port.id
        ))),
        _ => Err(bad_floating_ip(&format!(
            "Port {} has multiple fixed IPv4 addresses.  Must provide a specific IPv4 address when assigning a floating IP",
            port.id
        ))),
    }
}

fn bad_floating_ip(reason: &str) -> Refusal {
    Refusal::bad_request(format!("Bad floatingip request: {reason}.")).of_type("BadRequest")
}
