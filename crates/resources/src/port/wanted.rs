//! What the Neutron port of an object has to be, as a pure function of the object.

use kube::ResourceExt;
use kupenstack_api::resources::{Network, Port, PortSpec, SecurityGroup, Subnet};
use kupenstack_openstack::{self as openstack, AddressPair, PortAttributes, WantedIp};

use super::addresses;
use crate::{
    actuator::Target,
    needs::Needs,
    neutron::{canonical, description, differing, sorted},
};

/// The port that an object declares. Of an adopted one, what is not declared is left as it is.
#[derive(Debug)]
pub(super) struct Wanted {
    declared: PortAttributes,
}

impl Wanted {
    pub(super) fn of(target: &Target<Port>) -> Self {
        Self::declared(&target.object, &target.mark, &target.own_id, &target.needs)
    }

    fn declared(object: &Port, mark: &str, own_id: &str, needs: &Needs) -> Self {
        let spec = &object.spec;
        let is_made = spec.adopt.is_none();
        let is_open = spec.port_security == Some(false);
        let named = spec.security_groups.as_ref().and_then(|names| ids_of_groups(names, needs));
        let groups = if is_open { Some(Vec::new()) } else { named };
        // what is declared no more goes back to what a new port has
        let declared = PortAttributes {
            name: is_made.then(|| object.name_any()),
            description: description(spec.description.as_deref(), mark, is_made),
            network_id: spec.network.as_deref().and_then(|name| needs.id_of::<Network>(name)).map(str::to_owned),
            mac_address: is_made.then(|| mac(spec, own_id)).flatten(),
            fixed_ips: wanted_addresses(spec, needs),
            allowed_address_pairs: pairs(spec).or_else(|| is_made.then(Vec::new)),
            security_groups: groups,
            port_security_enabled: spec.port_security,
            admin_state_up: spec.admin_state_up.or(is_made.then_some(true)),
            ..PortAttributes::default()
        };
        Self { declared }
    }

    /// What a new port is to have.
    pub(super) fn attributes(self) -> PortAttributes {
        self.declared
    }

    /// What has to be set of a port. What can't be is never declared anew.
    pub(super) fn changes(self, port: &openstack::Port) -> PortAttributes {
        let own = &port.mac_address;
        let pairs_are = sorted(port.allowed_address_pairs.iter().map(|pair| whole(pair, own)).collect());
        let pairs = self.declared.allowed_address_pairs;
        let pairs = pairs.map(|pairs| sorted(pairs.iter().map(|pair| whole(pair, own)).collect()));
        let groups_are = sorted(port.security_groups.clone());
        PortAttributes {
            name: self.declared.name.filter(|name| *name != port.name),
            description: differing(self.declared.description, port.description.as_ref()),
            fixed_ips: self.declared.fixed_ips.and_then(|wanted| addresses::changed(wanted, port)),
            allowed_address_pairs: differing(pairs, Some(&pairs_are)),
            security_groups: differing(self.declared.security_groups, Some(&groups_are)),
            port_security_enabled: differing(self.declared.port_security_enabled, port.port_security_enabled.as_ref()),
            admin_state_up: differing(self.declared.admin_state_up, Some(&port.admin_state_up)),
            ..PortAttributes::default()
        }
    }
}

/// None as long as one of them is not there: without it, the port would be guarded otherwise than declared.
fn ids_of_groups(names: &[String], needs: &Needs) -> Option<Vec<String>> {
    let ids: Option<Vec<_>> = names.iter().map(|name| needs.id_of::<SecurityGroup>(name).map(str::to_owned)).collect();
    ids.map(sorted)
}

/// None as long as a subnet of theirs is not there.
fn wanted_addresses(spec: &PortSpec, needs: &Needs) -> Option<Vec<WantedIp>> {
    let wanted = spec.addresses.as_ref()?.iter().map(|address| {
        let subnet_id = match address.subnet.as_deref() {
            Some(name) => Some(needs.id_of::<Subnet>(name)?.to_owned()),
            None => None,
        };
        Some(WantedIp { subnet_id, ip_address: address.ip.clone() })
    });
    wanted.collect()
}

/// One that is the object's own, so that a repeated request makes no second port: on one network each is there once. The
/// first six bytes of the object's identifier, as an address that nobody has registered.
fn mac(spec: &PortSpec, own_id: &str) -> Option<String> {
    if let Some(declared) = &spec.mac_address {
        return Some(declared.to_ascii_lowercase());
    }
    let id = uuid::Uuid::parse_str(own_id).ok()?;
    let [first, rest @ ..] = id.into_bytes();
    let rest = rest.iter().take(5).map(|byte| format!(":{byte:02x}"));
    Some(format!("{:02x}{}", first & 0xfc | 0x02, rest.collect::<String>()))
}

fn pairs(spec: &PortSpec) -> Option<Vec<AddressPair>> {
    let declared = spec.allowed_addresses.as_ref()?.iter();
    let pair = |ip: &str, mac: Option<&String>| AddressPair {
        ip_address: canonical(ip),
        mac_address: mac.map(|mac| mac.to_ascii_lowercase()),
    };
    Some(declared.map(|address| pair(&address.ip, address.mac_address.as_ref())).collect())
}

/// A pair with the MAC that counts.
fn whole(pair: &AddressPair, own: &str) -> AddressPair {
    let mac = pair.mac_address.as_deref().unwrap_or(own);
    AddressPair { ip_address: canonical(&pair.ip_address), mac_address: Some(mac.to_ascii_lowercase()) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kupenstack_api::resources::ResourceKind;
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::{needs::Known, neutron::NeutronKind};

    const MARK: &str = "kupenstack:6f2b6a2e-1f0a-4a55-9c58-0d4f3ad0f7a1:u1";
    const OWN: &str = "a1b2c3d4-e5f6-5777-8888-99990000aaaa";

    fn object(but: &Value) -> Port {
        let mut spec = json!({"network": "front"});
        spec.as_object_mut().unwrap().extend(but.as_object().unwrap().clone());
        serde_json::from_value(json!({
            "apiVersion": "kupenstack.io/v1", "kind": "Port", "metadata": {"name": "web"}, "spec": spec,
        }))
        .unwrap()
    }

    /// All that an object needs is there, and has its name for an identifier; but for those of this name.
    fn needs(object: &Port, missing: &str) -> Needs {
        let needs = object.needs().into_iter().map(|need| {
            let id = Some(Arc::clone(&need.key.name)).filter(|name| &**name != missing);
            (need, Some(Known { id, is_ready: true, ..Known::default() }))
        });
        Needs::new(needs.collect())
    }

    fn wanted(spec: &Value, missing: &str) -> Wanted {
        let object = object(spec);
        Wanted::declared(&object, MARK, OWN, &needs(&object, missing))
    }

    /// A port as Neutron shows it, but for some attributes.
    fn seen(but: &Value) -> openstack::Port {
        let mut port = json!({
            "id": "p1", "name": "web", "description": MARK, "project_id": "p", "network_id": "front",
            "mac_address": "a2:b2:c3:d4:e5:f6", "fixed_ips": [{"subnet_id": "s", "ip_address": "10.0.0.7"}],
            "allowed_address_pairs": [], "security_groups": ["default"], "port_security_enabled": true,
            "admin_state_up": true, "status": "DOWN", "device_id": "", "device_owner": "", "revision_number": 1,
        });
        port.as_object_mut().unwrap().extend(but.as_object().unwrap().clone());
        serde_json::from_value(port).unwrap()
    }

    #[test]
    fn a_new_one_has_a_mac_of_its_own_and_what_neutron_gives_it() {
        let sent = json!(wanted(&json!({}), "").attributes());
        assert_eq!(
            sent,
            json!({"name": "web", "description": MARK, "network_id": "front", "mac_address": "a2:b2:c3:d4:e5:f6",
                "allowed_address_pairs": [], "admin_state_up": true})
        );
        assert_eq!(json!(wanted(&json!({}), "").changes(&seen(&json!({})))), json!({}));
    }

    #[rstest]
    #[case::text(json!({"description": "t"}), json!({"description": format!("t {MARK}")}))]
    #[case::groups(json!({"securityGroups": ["web", "db", "web"]}), json!({"security_groups": ["db", "web"]}))]
    #[case::no_groups(json!({"securityGroups": []}), json!({"security_groups": []}))]
    #[case::open(json!({"portSecurity": false}), json!({"port_security_enabled": false, "security_groups": []}))]
    #[case::off(json!({"adminStateUp": false}), json!({"admin_state_up": false}))]
    #[case::address(json!({"addresses": [{"ip": "10.0.0.9"}]}), json!({"fixed_ips": [{"ip_address": "10.0.0.9"}]}))]
    #[case::address_of_a_subnet(json!({"addresses": [{"subnet": "t"}]}), json!({"fixed_ips": [{"subnet_id": "t"}]}))]
    #[case::same_address(json!({"addresses": [{"subnet": "s"}]}), json!({}))]
    #[case::pairs(json!({"allowedAddresses": [{"ip": "10.1.0.0/16", "macAddress": "02:AA:00:00:00:01"}]}),
        json!({"allowed_address_pairs": [{"ip_address": "10.1.0.0/16", "mac_address": "02:aa:00:00:00:01"}]}))]
    fn only_what_differs_is_sent(#[case] spec: Value, #[case] sent: Value) {
        assert_eq!(json!(wanted(&spec, "").changes(&seen(&json!({})))), sent);
    }

    #[rstest]
    #[case::own_mac(json!({"allowedAddresses": [{"ip": "10.9.0.1/32"}]}),
        json!({"allowed_address_pairs": [{"ip_address": "10.9.0.1", "mac_address": "a2:b2:c3:d4:e5:f6"}]}))]
    #[case::order_of_groups(json!({"securityGroups": ["b", "a"]}), json!({"security_groups": ["b", "a"]}))]
    fn what_is_written_in_another_way_is_the_same(#[case] spec: Value, #[case] is: Value) {
        assert_eq!(json!(wanted(&spec, "").changes(&seen(&is))), json!({}));
    }

    /// It keeps the groups that it has, instead of losing one that is made anew.
    #[test]
    fn nothing_is_said_of_what_is_not_there() {
        let spec = json!({"securityGroups": ["web", "gone"], "addresses": [{"subnet": "s"}, {"subnet": "gone"}]});
        assert_eq!(json!(wanted(&spec, "gone").changes(&seen(&json!({"security_groups": ["web"]})))), json!({}));
    }

    #[test]
    fn kinds_that_are_named_are_those_that_are_needed() {
        let spec = json!({"securityGroups": ["web"], "addresses": [{"subnet": "s"}]});
        let named: Vec<_> = object(&spec).needs().into_iter().map(|need| need.key.kind).collect();
        assert_eq!(named, Port::NEEDS);
        assert_eq!(Port::KIND, "Port");
    }
}
