//! Routers and their ways out.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Value, json};

use super::{
    Item, Neutron,
    addresses::{FIXED_IPS, addresses, fixed_ips},
    convert::{self, python},
    floating_ips::FLOATING_IPS,
    kinds::{Hooks, Kind, Lists, NETWORK, NETWORKS, StrayMarker, Views, attribute, converted, short_text},
    missing,
    ports::{DEVICE, PORTS, ROUTER_GATEWAY, ROUTER_INTERFACE},
    subnets::{SUBNETS, cidr},
    values::{self, parsed},
};
use crate::sim::{
    http::Refusal,
    service::{Call, Caller},
};

const GATEWAY: &str = "external_gateway_info";
/// What of a way out only an administrator chooses.
const CHOICES: [&str; 2] = ["external_fixed_ips", "enable_snat"];

pub(super) static ROUTERS: Kind = Kind {
    collection: "routers",
    member: "router",
    missing: "RouterNotFound",
    called: ["Router", "could not be found"],
    first_revision: 1,
    can_change: true,
    attributes: &[
        attribute("name", short_text),
        attribute("description", short_text),
        converted("admin_state_up", convert::flag),
        attribute(GATEWAY, |_| Ok(())),
        attribute("routes", values::routes).not_of_new(),
    ],
    defaults: || {
        json!({
            "name": "", "description": "", "admin_state_up": true, "status": "ACTIVE", "enable_snat": true,
            GATEWAY: null, "external_gateways": [], "routes": [], "availability_zones": [],
            "availability_zone_hints": [], "enable_default_route_ecmp": false, "enable_default_route_bfd": false,
            "flavor_id": null, "tags": [],
        })
    },
    views: Views { for_admins: || json!({"ha": true}), when_new: || json!({}) },
    parts: None,
    lists: Lists {
        no_filters: &["created_at", "updated_at"],
        no_sort_keys: &[
            GATEWAY,
            "external_gateways",
            "routes",
            "availability_zones",
            "tags",
            "created_at",
            "updated_at",
        ],
        stray_marker: StrayMarker::Empty,
        unknown_of_parts: &[],
    },
    hooks: Hooks {
        complete: Neutron::complete_router,
        created: |it, call, router| it.settle_gateway(call, router),
        changed: |it, call, _, router| it.settle_gateway(call, router),
        check_end: Neutron::check_end_of_router,
        deleted: |it, call, router| it.remove_gateway(call, router),
        ..Hooks::NONE
    },
};

impl Neutron {
    fn complete_router(&self, call: &mut Call<'_>, router: &mut Item, before: Option<&Item>) -> Result<(), Refusal> {
        let had = before.and_then(|before| before.body.get(GATEWAY));
        if router.body.get(GATEWAY) != had {
            self.complete_gateway(&call.caller, router, before)?;
        }
        if before.is_none() && router.body.get(GATEWAY).is_some_and(|gateway| !gateway.is_null()) {
            // its way out is a change of its own
            router.revision += 1;
        }
        if router.body.get("routes").is_some_and(Value::is_null) {
            router.body.insert("routes".to_owned(), json!([]));
        }
        if before.is_some_and(|before| before.body.get("routes") != router.body.get("routes")) {
            self.check_routes(router)?;
        }
        Ok(())
    }

    fn complete_gateway(&self, caller: &Caller, router: &mut Item, before: Option<&Item>) -> Result<(), Refusal> {
        let wanted = router.body.get(GATEWAY).cloned().unwrap_or_default();
        let had = before.map(|before| before.body[GATEWAY].clone()).unwrap_or_default();
        check_policy(caller, &wanted, before.is_none())?;
        if had["network_id"] != wanted["network_id"] {
            self.check_use_of_gateway(router, &had)?;
        }
        let Some(id) = wanted["network_id"].as_str() else {
            set_gateway(router, None);
            return Ok(());
        };
        let network = self.get(NETWORKS.collection, id).filter(|network| network.is_visible_to(caller));
        if !network.ok_or_else(|| missing(&NETWORKS, id))?.is("router:external") {
            return Err(bad_router(&format!("Network {id} is not an external network")));
        }
        let kept = (had["network_id"] == id).then(|| had["external_fixed_ips"].clone());
        let port = self.gateway_port(router, id);
        let addresses = match (wanted["external_fixed_ips"].as_array(), kept) {
            (Some(chosen), _) => self.these_addresses(&port, chosen, fixed_ips(&port))?,
            (None, Some(kept)) => kept,
            (None, None) => self.any_addresses(&port)?,
        };
        let is_snat = wanted["enable_snat"].as_bool().unwrap_or(true);
        set_gateway(router, Some((id, addresses, is_snat)));
        Ok(())
    }

    /// A router's port on an external network: the one it has, or one that could be.
    fn gateway_port(&self, router: &Item, network: &str) -> Item {
        let mut own = self.ports_of(router).filter(|port| port.text("device_owner") == ROUTER_GATEWAY);
        own.find(|port| port.text(NETWORK) == network).cloned().unwrap_or_else(|| {
            let mut port = Item::new(&PORTS, String::new(), "", router.updated_at);
            port.body.extend(super::attributes(json!({NETWORK: network, "device_owner": ROUTER_GATEWAY})));
            port
        })
    }

    /// A router's port is as its way out says.
    fn settle_gateway(&mut self, call: &mut Call<'_>, router: &Item) {
        let wanted = router.body.get(GATEWAY).filter(|wanted| !wanted.is_null()).cloned();
        let is_kept = |port: &Item| {
            wanted.as_ref().is_some_and(|wanted| {
                wanted["network_id"] == port.text(NETWORK)
                    && Some(&wanted["external_fixed_ips"]) == port.body.get(FIXED_IPS)
            })
        };
        let mut own = self.ports_of(router).filter(|port| port.text("device_owner") == ROUTER_GATEWAY);
        if own.any(is_kept) {
            return;
        }
        drop(own);
        self.remove_gateway(call, router);
        let Some(wanted) = wanted else { return };
        let network = wanted["network_id"].as_str().unwrap_or_default();
        let body = json!({
            NETWORK: network, DEVICE: router.id, "device_owner": ROUTER_GATEWAY,
            "mac_address": self.free_mac(call, network), FIXED_IPS: wanted["external_fixed_ips"],
            "security_groups": [], "port_security_enabled": false,
        });
        self.put_port(call, "", body);
    }

    fn remove_gateway(&mut self, call: &Call<'_>, router: &Item) {
        let own = self.ports_of(router).filter(|port| port.text("device_owner") == ROUTER_GATEWAY);
        let own: Vec<_> = own.map(|port| port.id.clone()).collect();
        for port in own {
            self.remove(call.now, PORTS.collection, &port);
        }
    }

    /// A way out that a floating IP needs stays.
    fn check_use_of_gateway(&self, router: &Item, had: &Value) -> Result<(), Refusal> {
        if had.is_null() || self.table(&FLOATING_IPS).by("router_id", &router.id).next().is_none() {
            return Ok(());
        }
        let words = format!(
            "Gateway cannot be updated for router {}, since a gateway to external network {} is required by one or more \
             floating IPs.",
            router.id,
            had["network_id"].as_str().unwrap_or_default()
        );
        Err(Refusal::conflict(words).of_type("RouterExternalGatewayInUseByFloatingIp"))
    }

    /// A route leads to where the router is connected, and not to the router.
    fn check_routes(&self, router: &Item) -> Result<(), Refusal> {
        let own: Vec<IpAddr> = self.ports_of(router).flat_map(|port| addresses(port).collect::<Vec<_>>()).collect();
        let ranges: Vec<IpNet> = self.connected(router).filter_map(cidr).collect();
        let all = &router.body["routes"];
        for route in all.as_array().into_iter().flatten() {
            let Some(hop) = parsed(&route["nexthop"]) else { continue };
            let reason = if !ranges.iter().any(|range| range.contains(&hop)) {
                "the nexthop is not connected with router"
            } else if own.contains(&hop) {
                "the nexthop is used by router"
            } else {
                continue;
            };
            let words = format!("Invalid format for routes: {}, {reason}", python(all));
            return Err(Refusal::bad_request(words).of_type("InvalidRoutes"));
        }
        Ok(())
    }

    /// The subnets that a router has addresses of.
    pub(super) fn connected(&self, router: &Item) -> impl Iterator<Item = &Item> {
        let fixed = self.ports_of(router).flat_map(fixed_ips);
        fixed.filter_map(|fixed| self.get(SUBNETS.collection, fixed["subnet_id"].as_str()?))
    }

    /// A router's ports.
    pub(super) fn ports_of(&self, router: &Item) -> impl Iterator<Item = &Item> {
        self.table(&PORTS).by(DEVICE, &router.id).map(|port| &**port)
    }

    fn check_end_of_router(&self, _: &Call<'_>, router: &Item) -> Result<(), Refusal> {
        let ports = self.ports_of(router).filter(|port| port.text("device_owner") == ROUTER_INTERFACE);
        let ports: Vec<&str> = ports.map(|port| port.id.as_str()).collect();
        if ports.is_empty() {
            return Ok(());
        }
        let words = format!("Router {} has ports still attached: {}", router.id, ports.join(", "));
        Err(Refusal::conflict(words).of_type("RouterInUse"))
    }
}

/// A request for a router that can't be carried out.
pub(super) fn bad_router(reason: &str) -> Refusal {
    Refusal::bad_request(format!("Bad router request: {reason}.")).of_type("BadRequest")
}

fn set_gateway(router: &mut Item, gateway: Option<(&str, Value, bool)>) {
    let (info, all, is_snat) = match gateway {
        None => (Value::Null, json!([]), true),
        Some((network, addresses, is_snat)) => (
            json!({"network_id": network, "external_fixed_ips": addresses, "enable_snat": is_snat}),
            json!([{"network_id": network, "external_fixed_ips": addresses}]),
            is_snat,
        ),
    };
    router.body.insert(GATEWAY.to_owned(), info);
    router.body.insert("external_gateways".to_owned(), all);
    router.body.insert("enable_snat".to_owned(), json!(is_snat));
}

fn check_policy(caller: &Caller, wanted: &Value, is_new: bool) -> Result<(), Refusal> {
    let chosen: Vec<&str> = CHOICES.into_iter().filter(|choice| wanted.get(choice).is_some()).collect();
    if chosen.is_empty() || caller.is_admin() {
        return Ok(());
    }
    let action = if is_new { "create_router" } else { "update_router" };
    let rule = |of: &str| format!("rule:{action}:{GATEWAY}:{of}");
    let all: Vec<String> = ["network_id"].into_iter().chain(chosen).map(rule).collect();
    let words =
        format!("(rule:{action} and (rule:{action}:{GATEWAY} and ({}))) is disallowed by policy", all.join(" and "));
    Err(Refusal::forbidden(words).of_type("PolicyNotAuthorized"))
}
