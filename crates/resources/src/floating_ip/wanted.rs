//! What the floating IP of an object has to be, as a pure function of the object.

use kupenstack_api::resources::{ExternalNetwork, FloatingIP, Port};
use kupenstack_openstack::{FloatingIp, FloatingIpAttributes, network::Nullable};

use crate::{
    actuator::Target,
    needs::Needs,
    neutron::{description, differing},
};

/// The floating IP that an object declares. Of an adopted one, what is not declared is left as it is.
#[derive(Debug)]
pub(super) struct Wanted {
    declared: FloatingIpAttributes,
    end: Option<End>,
}

/// What it stands for.
#[derive(Debug)]
struct End {
    /// A port's id; none for no port.
    port: Option<String>,
    /// Which of its addresses; any when absent.
    address: Option<String>,
}

impl Wanted {
    pub(super) fn of(target: &Target<FloatingIP>) -> Self {
        Self::declared(&target.object, &target.mark, &target.needs)
    }

    fn declared(object: &FloatingIP, mark: &str, needs: &Needs) -> Self {
        let spec = &object.spec;
        let is_made = spec.adopt.is_none();
        let network = spec.external_network.as_deref().and_then(|name| needs.id_of::<ExternalNetwork>(name));
        let declared = FloatingIpAttributes {
            description: description(spec.description.as_deref(), mark, is_made),
            floating_network_id: network.map(str::to_owned),
            floating_ip_address: spec.address.clone(),
            ..FloatingIpAttributes::default()
        };
        let end = match spec.port.as_deref() {
            // nothing is said of a port that is not there
            Some(name) => needs.id_of::<Port>(name).map(|port| Some(port.to_owned())),
            None => is_made.then_some(None),
        };
        Self { declared, end: end.map(|port| End { port, address: spec.fixed_address.clone() }) }
    }

    /// What a new one is to have. It stands for nothing yet: a port that can't be reached would keep it from being made.
    pub(super) fn attributes(self) -> FloatingIpAttributes {
        self.declared
    }

    /// What has to be set of one, but for what it stands for. What can't be is never declared anew.
    pub(super) fn changes(self, floating: &FloatingIp) -> FloatingIpAttributes {
        let description = differing(self.declared.description, floating.description.as_ref());
        FloatingIpAttributes { description, ..FloatingIpAttributes::default() }
    }

    /// What has to be set for it to stand for what it is to.
    pub(super) fn association(self, floating: &FloatingIp) -> Option<FloatingIpAttributes> {
        let End { port, address } = self.end?;
        let is_address = address.is_none() || address == floating.fixed_ip_address;
        (port != floating.port_id || !is_address).then(|| FloatingIpAttributes {
            port_id: Some(Nullable(port)),
            fixed_ip_address: address,
            ..FloatingIpAttributes::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::{needs::Known, neutron::NeutronKind};

    const MARK: &str = "kupenstack:6f2b6a2e-1f0a-4a55-9c58-0d4f3ad0f7a1:u1";

    fn object(spec: &Value) -> FloatingIP {
        serde_json::from_value(json!({
            "apiVersion": "kupenstack.io/v1", "kind": "FloatingIP", "metadata": {"name": "www"}, "spec": spec,
        }))
        .unwrap()
    }

    /// All that an object needs is there, and has its name for an identifier; but for those of this name.
    fn wanted(spec: &Value, missing: &str) -> Wanted {
        let object = object(spec);
        let needs = object.needs().into_iter().map(|need| {
            let id = Some(Arc::clone(&need.key.name)).filter(|name| &**name != missing);
            (need, Some(Known { id, is_ready: true, ..Known::default() }))
        });
        Wanted::declared(&object, MARK, &Needs::new(needs.collect()))
    }

    /// A floating IP as Neutron shows it, but for some attributes.
    fn seen(but: &Value) -> FloatingIp {
        let mut floating = json!({
            "id": "f1", "description": MARK, "project_id": "p", "floating_network_id": "public",
            "floating_ip_address": "203.0.113.7", "port_id": null, "fixed_ip_address": null, "router_id": null,
            "status": "DOWN", "revision_number": 0,
        });
        floating.as_object_mut().unwrap().extend(but.as_object().unwrap().clone());
        serde_json::from_value(floating).unwrap()
    }

    #[test]
    fn a_new_one_has_its_address_before_its_port() {
        let spec =
            json!({"externalNetwork": "public", "address": "203.0.113.7", "port": "web", "fixedAddress": "10.0.0.7"});
        assert_eq!(
            json!(wanted(&spec, "").attributes()),
            json!({"description": MARK, "floating_network_id": "public", "floating_ip_address": "203.0.113.7"})
        );
        assert_eq!(json!(wanted(&spec, "").changes(&seen(&json!({})))), json!({}));
        let association = wanted(&spec, "").association(&seen(&json!({})));
        assert_eq!(json!(association), json!({"port_id": "web", "fixed_ip_address": "10.0.0.7"}));
    }

    #[rstest]
    #[case::port(json!({"externalNetwork": "public", "port": "web"}), json!({}), json!({"port_id": "web"}))]
    #[case::same_port(json!({"externalNetwork": "public", "port": "web"}), json!({"port_id": "web", "fixed_ip_address": "10.0.0.7"}), json!(null))]
    #[case::another_port(json!({"externalNetwork": "public", "port": "web"}), json!({"port_id": "db"}), json!({"port_id": "web"}))]
    #[case::another_address(json!({"externalNetwork": "public", "port": "web", "fixedAddress": "10.0.0.8"}),
        json!({"port_id": "web", "fixed_ip_address": "10.0.0.7"}), json!({"port_id": "web", "fixed_ip_address": "10.0.0.8"}))]
    #[case::no_port(json!({"externalNetwork": "public"}), json!({"port_id": "web"}), json!({"port_id": null}))]
    #[case::nothing_said_of_an_adopted_one(json!({"adopt": {"id": "f1"}}), json!({"port_id": "web"}), json!(null))]
    #[case::a_port_that_is_gone(json!({"externalNetwork": "public", "port": "gone"}), json!({"port_id": "web"}), json!(null))]
    fn it_stands_for_what_is_declared(#[case] spec: Value, #[case] is: Value, #[case] sent: Value) {
        assert_eq!(json!(wanted(&spec, "gone").association(&seen(&is))), sent);
    }

    #[rstest]
    #[case::text(json!({"externalNetwork": "public", "description": "t"}), json!({"description": format!("t {MARK}")}))]
    #[case::adopted(json!({"adopt": {"id": "f1"}}), json!({}))]
    #[case::adopted_and_described(json!({"adopt": {"id": "f1"}, "description": "t"}), json!({"description": "t"}))]
    fn only_what_differs_is_sent(#[case] spec: Value, #[case] sent: Value) {
        assert_eq!(json!(wanted(&spec, "").changes(&seen(&json!({})))), sent);
    }
}
