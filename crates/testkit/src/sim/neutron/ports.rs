//! Ports.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    Item, Neutron,
    addresses::{FIXED_IPS, fixed_ips},
    broken,
    convert::{self, Converted, plain},
    floating_ips::FLOATING_IPS,
    kinds::{GROUPS, Hooks, Kind, Lists, NETWORK, NETWORKS, StrayMarker, Views, attribute, converted, short_text},
    missing,
    routers::ROUTERS,
    values,
};
use crate::sim::{
    http::Refusal,
    service::{Call, Caller},
};

/// The owner of a router's ports on its subnets.
pub(super) const ROUTER_INTERFACE: &str = "network:router_interface";
/// The owner of a router's port on an external network.
pub(super) const ROUTER_GATEWAY: &str = "network:router_gateway";
/// The owner of a floating IP's port on its external network.
pub(super) const FLOATING_IP: &str = "network:floatingip";
/// The attribute that tells whose a port is.
pub(super) const DEVICE: &str = "device_id";
/// The attribute that tells which groups guard a port.
pub(super) const PORT_GROUPS: &str = "security_groups";
const PAIRS: &str = "allowed_address_pairs";
pub(super) const MAC: &str = "mac_address";
pub(super) const SECURITY: &str = "port_security_enabled";
pub(super) const HOST: &str = "binding:host_id";

/// As many as Neutron allows unless it is configured otherwise.
const MOST_PAIRS: usize = 10;

pub(super) static PORTS: Kind = Kind {
    collection: "ports",
    member: "port",
    missing: "PortNotFound",
    called: ["Port", "could not be found."],
    first_revision: 1,
    can_change: true,
    attributes: &[
        attribute("name", short_text),
        attribute("description", short_text),
        attribute(NETWORK, short_text).fixed().required(),
        converted("admin_state_up", convert::flag),
        attribute(MAC, values::mac).converted(values::lower_mac).changed_by_admins(),
        attribute(FIXED_IPS, values::fixed_ips),
        attribute(DEVICE, short_text),
        attribute("device_owner", short_text),
        attribute(PORT_GROUPS, groups),
        converted(SECURITY, convert::flag),
        converted(PAIRS, pairs),
        attribute("binding:vnic_type", values::vnic_type),
        attribute(HOST, short_text).for_admins(),
        attribute("binding:profile", |_| Ok(())).for_admins(),
    ],
    // addresses, groups and the like are what Neutron makes of what is asked for
    defaults: || {
        json!({
            "name": "", "description": "", "admin_state_up": true, "status": "DOWN", DEVICE: "", "device_owner": "",
            PAIRS: [], "extra_dhcp_opts": [], "binding:vnic_type": "normal", "tags": [],
        })
    },
    views: Views {
        for_admins: || json!({HOST: "", "binding:profile": {}, "binding:vif_type": "unbound", "binding:vif_details": {}}),
        when_new: || json!({}),
    },
    parts: None,
    lists: Lists {
        no_filters: &[PAIRS, "extra_dhcp_opts", "created_at", "updated_at"],
        no_sort_keys: &[FIXED_IPS, PORT_GROUPS, PAIRS, "extra_dhcp_opts", "tags", "created_at", "updated_at"],
        stray_marker: StrayMarker::Refused,
        unknown_of_parts: &[],
    },
    hooks: Hooks {
        creating: Neutron::ensure_default_group,
        complete: Neutron::complete_port,
        is_shared: Neutron::is_on_own_network,
        created: |it, call, port| it.settle_port(call, port),
        changed: |it, call, _, port| it.settle_port(call, port),
        check_end: Neutron::check_end_of_port,
        deleted: |it, call, port| it.release_floating_ips(call, port),
        ..Hooks::NONE
    },
};

impl Neutron {
    fn complete_port(&self, call: &mut Call<'_>, port: &mut Item, before: Option<&Item>) -> Result<(), Refusal> {
        if port.body.get(PORT_GROUPS).is_some_and(Value::is_null) {
            port.body.insert(PORT_GROUPS.to_owned(), json!([]));
        }
        match before {
            None => self.complete_new_port(call, port),
            Some(before) => self.complete_changed_port(call, port, before),
        }
    }

    fn complete_new_port(&self, call: &mut Call<'_>, port: &mut Item) -> Result<(), Refusal> {
        let network = self.network_for_port(&call.caller, port.text(NETWORK))?;
        // what Neutron itself is connected with is guarded by nothing
        let is_trusted = port.text("device_owner").starts_with("network:");
        if is_trusted && !call.caller.is_admin() {
            return Err(broken());
        }
        let asked = port.body.get(SECURITY).and_then(Value::as_bool);
        let is_secured = !is_trusted && asked.unwrap_or_else(|| network.is(SECURITY));
        port.body.insert(SECURITY.to_owned(), json!(is_secured));
        if !is_secured && !list(port, PAIRS).is_empty() {
            return Err(pairs_without_security());
        }
        if !is_secured && !list(port, PORT_GROUPS).is_empty() {
            return Err(groups_without_security());
        }
        if !port.body.contains_key(PORT_GROUPS) {
            let default = self.default_group(&port.project_id).filter(|_| is_secured).map(|group| &group.id);
            port.body.insert(PORT_GROUPS.to_owned(), json!(default.into_iter().collect::<Vec<_>>()));
        }
        self.check_groups(&call.caller, port)?;
        if port.text(MAC).is_empty() {
            let mac = self.free_mac(call, port.text(NETWORK));
            port.body.insert(MAC.to_owned(), json!(mac));
        }
        self.check_mac(port)?;
        fill_pairs(port);
        let addresses = match port.body.get(FIXED_IPS).and_then(Value::as_array) {
            None => self.any_addresses(port)?,
            Some(wanted) => self.these_addresses(port, wanted, &[])?,
        };
        port.body.insert(FIXED_IPS.to_owned(), addresses);
        Ok(())
    }

    fn complete_changed_port(&self, call: &Call<'_>, port: &mut Item, before: &Item) -> Result<(), Refusal> {
        if port.text(MAC) != before.text(MAC) {
            let vif = port.text("binding:vif_type");
            if !["", "unbound"].contains(&vif) {
                let words = format!(
                    "Unable to complete operation on port {}, port is already bound, port type: {vif}, old_mac {}, \
                     new_mac {}.",
                    port.id,
                    before.text(MAC),
                    port.text(MAC)
                );
                return Err(Refusal::conflict(words).of_type("PortBound"));
            }
            self.check_mac(port)?;
        }
        fill_pairs(port);
        for attribute in [PAIRS, PORT_GROUPS] {
            keep_order(port, before, attribute);
        }
        let moved = |attribute: &str| port.body.get(attribute) != before.body.get(attribute);
        if !port.is(SECURITY) {
            match (list(port, PAIRS).is_empty(), list(port, PORT_GROUPS).is_empty()) {
                (true, true) => {}
                (false, _) => return Err(pairs_without_security()),
                (true, false) if moved(PORT_GROUPS) => return Err(groups_without_security()),
                (true, false) => {
                    let words = "Port has security group associated. Cannot disable port security or IP address until \
                                 security group is removed.";
                    return Err(Refusal::conflict(words).of_type("PortSecurityPortHasSecurityGroup"));
                }
            }
        }
        if moved(PORT_GROUPS) {
            self.check_groups(&call.caller, port)?;
        }
        if moved(FIXED_IPS) {
            self.check_use_of_addresses(port)?;
            let addresses = self.these_addresses(port, fixed_ips(port), fixed_ips(before))?;
            port.body.insert(FIXED_IPS.to_owned(), addresses);
        }
        Ok(())
    }

    /// A network that the caller may connect something to.
    fn network_for_port(&self, caller: &Caller, id: &str) -> Result<&Item, Refusal> {
        let network = self.get(NETWORKS.collection, id).filter(|network| network.is_visible_to(caller));
        let network = network.ok_or_else(|| missing(&NETWORKS, id))?;
        if network.is_changeable_by(caller) || network.is("shared") {
            return Ok(network);
        }
        let words = "rule:create_port is disallowed by policy";
        Err(Refusal::forbidden(words).of_type("PolicyNotAuthorized"))
    }

    /// Whoever has a network sees what is connected to it.
    fn is_on_own_network(&self, caller: &Caller, port: &Item) -> bool {
        let network = self.get(NETWORKS.collection, port.text(NETWORK));
        network.is_some_and(|network| network.is_changeable_by(caller))
    }

    fn check_groups(&self, caller: &Caller, port: &Item) -> Result<(), Refusal> {
        let is_known = |id: &str| {
            let group = self.get(GROUPS.collection, id);
            group.is_some_and(|group| caller.is_admin() || group.project_id == port.project_id)
        };
        let unknown: Vec<_> = list(port, PORT_GROUPS).iter().map(plain).filter(|id| !is_known(id)).collect();
        if unknown.is_empty() { Ok(()) } else { Err(missing(&GROUPS, &unknown.join(", "))) }
    }

    fn check_mac(&self, port: &Item) -> Result<(), Refusal> {
        let (network, mac) = (port.text(NETWORK), port.text(MAC));
        let mut others = self.table(&PORTS).by(NETWORK, network).filter(|other| other.id != port.id);
        if others.any(|other| other.text(MAC) == mac) {
            let words = format!("Unable to complete operation for network {network}. The mac address {mac} is in use.");
            return Err(Refusal::conflict(words).of_type("MacAddressInUse"));
        }
        Ok(())
    }

    /// A MAC that nothing on a network has.
    pub(super) fn free_mac(&self, call: &mut Call<'_>, network: &str) -> String {
        let taken: BTreeSet<&str> = self.table(&PORTS).by(NETWORK, network).map(|port| port.text(MAC)).collect();
        loop {
            let random = call.ids.uuid().into_bytes();
            let mac = format!("fa:16:3e:{:02x}:{:02x}:{:02x}", random[0], random[1], random[2]);
            if !taken.contains(mac.as_str()) {
                return mac;
            }
        }
    }

    /// What is connected comes up after the answer.
    pub(super) fn settle_port(&mut self, call: &Call<'_>, port: &Item) {
        let is_bound = !port.text(HOST).is_empty();
        let is_up = (is_bound || port.text("device_owner") == ROUTER_INTERFACE) && port.is("admin_state_up");
        let status = if is_up { "ACTIVE" } else { "DOWN" };
        let vif = if is_bound { "ovs" } else { "unbound" };
        let settled = port.text("status") == status && [vif, ""].contains(&port.text("binding:vif_type"));
        if port.text("device_owner") == FLOATING_IP || settled && !is_bound {
            return;
        }
        self.edit(call.now, PORTS.collection, &port.id, |port| {
            port.body.insert("status".to_owned(), json!(status));
            port.body.insert("binding:vif_type".to_owned(), json!(vif));
        });
    }

    /// What a router or a floating IP is connected with goes with it.
    fn is_needed_by_device(&self, port: &Item) -> bool {
        let device = port.text(DEVICE);
        match port.text("device_owner") {
            ROUTER_INTERFACE | ROUTER_GATEWAY => self.get(ROUTERS.collection, device).is_some(),
            FLOATING_IP => self.get(FLOATING_IPS.collection, device).is_some(),
            _ => false,
        }
    }

    fn check_end_of_port(&self, call: &Call<'_>, port: &Item) -> Result<(), Refusal> {
        let owner = port.text("device_owner");
        if owner.starts_with("compute:") && !call.caller.is_admin() {
            let words = "rule:delete_port is disallowed by policy";
            return Err(Refusal::forbidden(words).of_type("PolicyNotAuthorized"));
        }
        if !self.is_needed_by_device(port) {
            return Ok(());
        }
        let words = format!("Port {} cannot be deleted directly via the port API: has device owner {owner}.", port.id);
        Err(Refusal::conflict(words).of_type("ServicePortInUse"))
    }

    /// Puts a port of Neutron's own there.
    pub(super) fn put_port(&mut self, call: &mut Call<'_>, project: &str, body: Value) -> Item {
        let mut port = Item::new(&PORTS, call.ids.uuid().to_string(), project, call.now);
        port.body.extend(super::attributes(body));
        self.put(&PORTS, call.now, port.clone());
        port
    }
}

fn list<'a>(port: &'a Item, attribute: &str) -> &'a [Value] {
    port.body.get(attribute).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The same elements in another order are no change.
fn keep_order(port: &mut Item, before: &Item, attribute: &str) {
    let (now, then) = (list(port, attribute), list(before, attribute));
    if now.len() == then.len() && now.iter().all(|one| then.contains(one)) {
        port.body.insert(attribute.to_owned(), json!(then));
    }
}

/// A pair without a MAC has the port's.
fn fill_pairs(port: &mut Item) {
    let mac = json!(port.text(MAC));
    for pair in port.body.get_mut(PAIRS).and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(pair) = pair.as_object_mut() {
            pair.entry(MAC).or_insert_with(|| mac.clone());
        }
    }
}

fn pairs_without_security() -> Refusal {
    let words = "Port Security must be enabled in order to have allowed address pairs on a port.";
    Refusal::conflict(words).of_type("AddressPairAndPortSecurityRequired")
}

fn groups_without_security() -> Refusal {
    let words = "Port security must be enabled and port must have an IP address in order to use security groups.";
    Refusal::bad_request(words).of_type("PortSecurityAndIPRequiredForSecurityGroups")
}

fn groups(value: &Value) -> Result<(), String> {
    match value {
        Value::Null => Ok(()),
        Value::Array(groups) if groups.iter().all(Value::is_string) => Ok(()),
        other => Err(format!("'{}' is not an iterable", plain(other))),
    }
}

fn pairs(value: &Value) -> Converted {
    let pairs = match value {
        Value::Null => return Ok(json!([])),
        Value::Array(pairs) => pairs,
        _ => return Err(Refusal::bad_request("Allowed address pairs must be a list.")),
    };
    if pairs.len() > MOST_PAIRS {
        let words = format!("The number of allowed address pair exceeds the maximum {MOST_PAIRS}.");
        return Err(Refusal::bad_request(words).of_type("AllowedAddressPairExhausted"));
    }
    for (index, pair) in pairs.iter().enumerate() {
        let Some(address) = pair["ip_address"].as_str() else {
            let words = "AllowedAddressPair must contain ip_address";
            return Err(Refusal::bad_request(words).of_type("AllowedAddressPairsMissingIP"));
        };
        let is_range = address.contains('/');
        if is_range && values::range(&pair["ip_address"]).is_none() {
            return Err(Refusal::bad_request(format!("'{address}' is not a valid IP subnet")));
        }
        if !is_range {
            values::address(&pair["ip_address"]).map_err(Refusal::bad_request)?;
        }
        values::or_null(&pair[MAC], values::mac).map_err(Refusal::bad_request)?;
        if pairs[..index].contains(pair) {
            let mac = plain(&pair[MAC]);
            let words = format!("Request contains duplicate address pair: mac_address {mac} ip_address {address}.");
            return Err(Refusal::bad_request(words).of_type("DuplicateAddressPairInRequest"));
        }
    }
    Ok(value.clone())
}
