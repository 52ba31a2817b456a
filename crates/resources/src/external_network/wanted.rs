//! What the external network of an object has to be, as a pure function of the object.

use kube::ResourceExt;
use kupenstack_api::resources::{ExternalNetwork, ExternalNetworkType};
use kupenstack_openstack::{Network, NetworkAttributes};

use crate::{
    actuator::Target,
    neutron::{description, differing},
};

/// The network that an object declares. Of an adopted one, what is not declared is left as it is.
#[derive(Debug)]
pub(super) struct Wanted {
    declared: NetworkAttributes,
}

impl Wanted {
    pub(super) fn of(target: &Target<ExternalNetwork>) -> Self {
        Self::declared(&target.object, &target.mark)
    }

    fn declared(object: &ExternalNetwork, mark: &str) -> Self {
        let spec = &object.spec;
        let is_made = spec.adopt.is_none();
        // the definition's bounds keep numbers within; what is beyond is Neutron's to refuse
        let number = |number: i64| u32::try_from(number).unwrap_or(u32::MAX);
        let declared = NetworkAttributes {
            name: is_made.then(|| object.name_any()),
            description: description(spec.description.as_deref(), mark, is_made),
            admin_state_up: spec.admin_state_up.or(is_made.then_some(true)),
            external: is_made.then_some(true),
            network_type: is_made.then(|| type_word(spec.network_type.unwrap_or_default()).to_owned()),
            physical_network: spec.physical_network.clone(),
            segmentation_id: spec.segmentation_id.map(number),
            mtu: spec.mtu.map(number),
            ..NetworkAttributes::default()
        };
        Self { declared }
    }

    /// What a new network is to have.
    pub(super) fn attributes(self) -> NetworkAttributes {
        self.declared
    }

    /// What has to be set of a network. Where it is outside can't be, and is never declared anew.
    pub(super) fn changes(self, network: &Network) -> NetworkAttributes {
        NetworkAttributes {
            name: self.declared.name.filter(|name| *name != network.name),
            description: differing(self.declared.description, network.description.as_ref()),
            admin_state_up: differing(self.declared.admin_state_up, Some(&network.admin_state_up)),
            external: differing(self.declared.external, Some(&network.external)),
            mtu: differing(self.declared.mtu, network.mtu.as_ref()),
            ..NetworkAttributes::default()
        }
    }
}

fn type_word(network_type: ExternalNetworkType) -> &'static str {
    match network_type {
        ExternalNetworkType::Flat => "flat",
        ExternalNetworkType::Vlan => "vlan",
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    const MARK: &str = "kupenstack:6f2b6a2e-1f0a-4a55-9c58-0d4f3ad0f7a1:u1";

    fn declared(spec: &Value) -> Wanted {
        let object = json!({"apiVersion": "kupenstack.io/v1", "kind": "ExternalNetwork", "metadata": {"name": "public"},
            "spec": spec});
        Wanted::declared(&serde_json::from_value(object).unwrap(), MARK)
    }

    /// A network as Neutron shows it, but for some attributes.
    fn seen(but: Value) -> Network {
        let mut network = json!({
            "id": "n1", "name": "public", "description": MARK, "project_id": "p", "status": "ACTIVE", "mtu": 1500,
            "admin_state_up": true, "router:external": true, "revision_number": 3,
            "provider:network_type": "flat", "provider:physical_network": "wire",
        });
        let Value::Object(but) = but else { panic!() };
        network.as_object_mut().unwrap().extend(but);
        serde_json::from_value(network).unwrap()
    }

    #[rstest]
    #[case::flat(json!({"physicalNetwork": "wire"}),
        json!({"provider:network_type": "flat", "provider:physical_network": "wire"}))]
    #[case::vlan(json!({"physicalNetwork": "wire", "networkType": "VLAN", "segmentationId": 7, "mtu": 9000}),
        json!({"provider:network_type": "vlan", "provider:physical_network": "wire", "provider:segmentation_id": 7,
            "mtu": 9000}))]
    fn a_new_one_is_external_and_where_it_is_declared(#[case] spec: Value, #[case] and: Value) {
        let mut made = json!({"name": "public", "description": MARK, "admin_state_up": true, "router:external": true});
        made.as_object_mut().unwrap().extend(and.as_object().unwrap().clone());
        assert_eq!(json!(declared(&spec).attributes()), made);
    }

    #[rstest]
    #[case::nothing(json!({}), json!({}), json!({}))]
    #[case::text(json!({"description": "t"}), json!({}), json!({"description": format!("t {MARK}")}))]
    #[case::down(json!({"adminStateUp": false}), json!({}), json!({"admin_state_up": false}))]
    #[case::mtu(json!({"mtu": 1400}), json!({}), json!({"mtu": 1400}))]
    #[case::mtu_of_others(json!({}), json!({"mtu": 1400}), json!({}))]
    #[case::not_external(json!({}), json!({"router:external": false}), json!({"router:external": true}))]
    #[case::elsewhere(json!({}), json!({"provider:physical_network": "other"}), json!({}))]
    fn only_what_differs_is_sent(#[case] spec: Value, #[case] but: Value, #[case] sent: Value) {
        let mut whole = json!({"physicalNetwork": "wire"});
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        assert_eq!(json!(declared(&whole).changes(&seen(but))), sent);
    }

    #[test]
    fn an_adopted_one_is_changed_where_something_is_declared() {
        let others = json!({"name": "old", "description": "d", "admin_state_up": false});
        assert_eq!(json!(declared(&json!({"adopt": {"id": "n1"}})).changes(&seen(others))), json!({}));
    }
}
