//! What the Neutron network of an object has to be, as a pure function of the object.

use kube::ResourceExt;
use kupenstack_api::resources::Network;
use kupenstack_openstack::{self as openstack, NetworkAttributes};

use crate::{
    actuator::Target,
    neutron::{description, differing},
};

/// The network that an object declares. Of an adopted one, what is not declared is left as it is.
#[derive(Debug)]
pub(super) struct Wanted {
    declared: NetworkAttributes,
    is_made: bool,
}

impl Wanted {
    pub(super) fn of(target: &Target<Network>) -> Self {
        Self::declared(&target.object, &target.mark)
    }

    fn declared(object: &Network, mark: &str) -> Self {
        let spec = &object.spec;
        let is_made = spec.adopt.is_none();
        let declared = NetworkAttributes {
            name: is_made.then(|| object.name_any()),
            description: description(spec.description.as_deref(), mark, is_made),
            admin_state_up: spec.admin_state_up.or(is_made.then_some(true)),
            // the definition's bounds keep it within; what is beyond is Neutron's to refuse
            mtu: spec.mtu.map(|mtu| u32::try_from(mtu).unwrap_or(u32::MAX)),
            dns_domain: spec.dns_domain.clone(),
            port_security_enabled: spec.port_security,
            ..NetworkAttributes::default()
        };
        Self { declared, is_made }
    }

    /// What a new network is to have.
    pub(super) fn attributes(self) -> NetworkAttributes {
        self.declared
    }

    /// Whether a domain is declared for a network that has none: Neutron takes it and forgets it where it keeps no DNS names.
    pub(super) fn has_lost_domain(&self, network: &openstack::Network) -> bool {
        let declared = self.declared.dns_domain.as_deref().unwrap_or_default();
        !declared.is_empty() && network.dns_domain.is_none()
    }

    /// What has to be set of a network.
    pub(super) fn changes(self, network: &openstack::Network) -> NetworkAttributes {
        // what is declared no more goes back to what a new network has, where Neutron has such a thing at all
        let domain = self.declared.dns_domain.or_else(|| self.is_made.then(String::new));
        let domain = domain.filter(|_| network.dns_domain.is_some());
        let secured = self.declared.port_security_enabled;
        let secured = secured.or(network.port_security_enabled.filter(|_| self.is_made).map(|_| true));
        NetworkAttributes {
            name: self.declared.name.filter(|name| *name != network.name),
            description: differing(self.declared.description, network.description.as_ref()),
            admin_state_up: differing(self.declared.admin_state_up, Some(&network.admin_state_up)),
            mtu: differing(self.declared.mtu, network.mtu.as_ref()),
            dns_domain: differing(domain, network.dns_domain.as_ref()),
            port_security_enabled: differing(secured, network.port_security_enabled.as_ref()),
            ..NetworkAttributes::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    const MARK: &str = "kupenstack:6f2b6a2e-1f0a-4a55-9c58-0d4f3ad0f7a1:u1";

    fn object(spec: &Value) -> Network {
        serde_json::from_value(json!({
            "apiVersion": "kupenstack.io/v1", "kind": "Network", "metadata": {"name": "front"}, "spec": spec,
        }))
        .unwrap()
    }

    /// A network as Neutron shows it, but for some attributes.
    fn seen(but: Value) -> openstack::Network {
        let mut network = json!({
            "id": "n1", "name": "front", "description": MARK, "project_id": "p", "status": "ACTIVE", "mtu": 1442,
            "admin_state_up": true, "dns_domain": "", "port_security_enabled": true, "revision_number": 3,
        });
        let Value::Object(but) = but else { panic!() };
        network.as_object_mut().unwrap().extend(but);
        serde_json::from_value(network).unwrap()
    }

    fn changes(spec: &Value, but: Value) -> Value {
        json!(Wanted::declared(&object(spec), MARK).changes(&seen(but)))
    }

    #[test]
    fn a_minimal_one_leaves_to_neutron_what_neutron_may_not_know() {
        let made = json!(Wanted::declared(&object(&json!({})), MARK).attributes());
        assert_eq!(made, json!({"name": "front", "description": MARK, "admin_state_up": true}));
        assert_eq!(changes(&json!({}), json!({})), json!({}));
        // without the extensions
        assert_eq!(
            changes(&json!({}), json!({"dns_domain": null, "port_security_enabled": null, "mtu": null})),
            json!({})
        );
    }

    #[rstest]
    #[case::text(json!({"description": "t"}), json!({}), json!({"description": format!("t {MARK}")}))]
    #[case::renamed(json!({}), json!({"name": "x"}), json!({"name": "front"}))]
    #[case::unmarked(json!({}), json!({"description": ""}), json!({"description": MARK}))]
    #[case::down(json!({"adminStateUp": false}), json!({}), json!({"admin_state_up": false}))]
    #[case::up_again(json!({}), json!({"admin_state_up": false}), json!({"admin_state_up": true}))]
    #[case::mtu(json!({"mtu": 1280}), json!({}), json!({"mtu": 1280}))]
    #[case::mtu_of_others(json!({}), json!({"mtu": 1280}), json!({}))]
    #[case::domain(json!({"dnsDomain": "a."}), json!({}), json!({"dns_domain": "a."}))]
    #[case::no_domain(json!({}), json!({"dns_domain": "a."}), json!({"dns_domain": ""}))]
    #[case::forgotten(json!({"dnsDomain": "a."}), json!({"dns_domain": null}), json!({}))]
    #[case::insecure(json!({"portSecurity": false}), json!({}), json!({"port_security_enabled": false}))]
    #[case::secure_again(json!({}), json!({"port_security_enabled": false}), json!({"port_security_enabled": true}))]
    fn only_what_differs_is_sent(#[case] spec: Value, #[case] but: Value, #[case] sent: Value) {
        assert_eq!(changes(&spec, but), sent);
    }

    #[test]
    fn an_adopted_one_is_changed_where_something_is_declared() {
        let adopt = json!({"adopt": {"name": "old"}, "mtu": 1300});
        let others =
            json!({"name": "old", "description": "d", "admin_state_up": false, "port_security_enabled": false});
        assert_eq!(changes(&adopt, others), json!({"mtu": 1300}));
    }
}
