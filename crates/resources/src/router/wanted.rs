//! What the Neutron router of an object has to be, as a pure function of the object.

use kube::ResourceExt;
use kupenstack_api::resources::{ExternalNetwork, HostRoute, Router, RouterInterface, Subnet};
use kupenstack_openstack::{self as openstack, Nullable, Route, RouterAttributes, WantedGateway};

use crate::{
    actuator::Target,
    needs::Needs,
    neutron::{description, differing, sorted},
    subnet::wanted::{declared_route, route},
};

/// The router that an object declares. Of an adopted one, what is not declared is left as it is.
#[derive(Debug)]
pub(super) struct Wanted {
    declared: RouterAttributes,
    /// Set in another request, since Neutron takes none of a new router.
    pub(super) routes: Option<Vec<Route>>,
    pub(super) interfaces: Option<Interfaces>,
}

/// What a router is to be connected to.
#[derive(Debug, Default)]
pub(super) struct Interfaces {
    /// Identifiers of the subnets that are there.
    pub(super) subnets: Vec<String>,
    /// Whether all that are declared are there: else nobody knows whether another one is needless.
    pub(super) is_all: bool,
}

impl Wanted {
    pub(super) fn of(target: &Target<Router>) -> Self {
        Self::declared(&target.object, &target.mark, &target.needs)
    }

    /// A router that can be deleted.
    pub(super) fn nothing() -> Self {
        let interfaces = Interfaces { subnets: Vec::new(), is_all: true };
        Self { declared: RouterAttributes::default(), routes: Some(Vec::new()), interfaces: Some(interfaces) }
    }

    fn declared(object: &Router, mark: &str, needs: &Needs) -> Self {
        let spec = &object.spec;
        let is_made = spec.adopt.is_none();
        let routes = |declared: &Vec<HostRoute>| sorted(declared.iter().map(declared_route).collect());
        // what is declared no more goes back to what a new router has
        let declared = RouterAttributes {
            name: is_made.then(|| object.name_any()),
            description: description(spec.description.as_deref(), mark, is_made),
            admin_state_up: spec.admin_state_up.or(is_made.then_some(true)),
            external_gateway_info: match &spec.external_network {
                Some(name) => needs.id_of::<ExternalNetwork>(name).map(|id| Nullable(Some(way_out(id)))),
                None => is_made.then_some(Nullable(None)),
            },
            routes: None,
        };
        Self {
            declared,
            routes: spec.routes.as_ref().map(routes).or_else(|| is_made.then(Vec::new)),
            interfaces: match &spec.interfaces {
                Some(declared) => Some(Interfaces::of(declared, needs)),
                None => is_made.then(|| Interfaces::of(&[], needs)),
            },
        }
    }

    /// What a new router is to have.
    pub(super) fn attributes(self) -> RouterAttributes {
        self.declared
    }

    /// What has to be set of a router.
    pub(super) fn changes(self, router: &openstack::Router) -> RouterAttributes {
        // of a way out only the network is declared
        let leads_to = router.external_gateway_info.as_ref().map(|gateway| gateway.network_id.as_str());
        let gateway = self
            .declared
            .external_gateway_info
            .filter(|Nullable(wanted)| wanted.as_ref().map(|gateway| gateway.network_id.as_str()) != leads_to);
        RouterAttributes {
            name: self.declared.name.filter(|name| *name != router.name),
            description: differing(self.declared.description, router.description.as_ref()),
            admin_state_up: differing(self.declared.admin_state_up, Some(&router.admin_state_up)),
            external_gateway_info: gateway,
            routes: None,
        }
    }
}

impl Interfaces {
    fn of(declared: &[RouterInterface], needs: &Needs) -> Self {
        let ids = declared.iter().filter_map(|one| needs.id_of::<Subnet>(&one.subnet));
        let subnets: Vec<_> = ids.map(str::to_owned).collect();
        Self { is_all: subnets.len() == declared.len(), subnets }
    }
}

fn way_out(network: &str) -> WantedGateway {
    // what else there is to say of it is an administrator's
    WantedGateway { network_id: network.to_owned(), enable_snat: None, external_fixed_ips: None }
}

/// The routes to set, if they are not as wanted.
pub(super) fn routes_to_set(wanted: Option<Vec<Route>>, router: &openstack::Router) -> Option<Vec<Route>> {
    differing(wanted, Some(&sorted(router.routes.iter().map(route).collect())))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::needs::{Known, Need, When};

    const MARK: &str = "kupenstack:6f2b6a2e-1f0a-4a55-9c58-0d4f3ad0f7a1:u1";

    fn object(spec: &Value) -> Router {
        let meta = json!({"name": "edge", "namespace": "shop"});
        let object = json!({"apiVersion": "kupenstack.io/v1", "kind": "Router", "metadata": meta, "spec": spec});
        serde_json::from_value(object).unwrap()
    }

    /// What a spec declares, while there are subnets `a` and `b` and network `public`.
    fn declared(spec: &Value) -> Wanted {
        let object = object(spec);
        let known = |id: &str| Some(Known { id: Some(Arc::from(id)), is_ready: true, ..Known::default() });
        let of_subnet = |name: &str| Need::of::<Subnet>(&object, name, When::FromTheStart);
        let outside = Need::of::<ExternalNetwork>(&object, "public", When::FromTheStart);
        let needs = vec![(of_subnet("a"), known("s-a")), (of_subnet("b"), known("s-b")), (outside, known("n-public"))];
        Wanted::declared(&object, MARK, &Needs::new(needs))
    }

    /// A router as Neutron shows it, but for some attributes.
    fn seen(but: &Value) -> openstack::Router {
        let mut router = json!({"id": "r", "name": "edge", "description": MARK, "project_id": "p", "status": "ACTIVE",
            "admin_state_up": true, "external_gateway_info": null, "routes": [], "revision_number": 3});
        router.as_object_mut().unwrap().extend(but.as_object().unwrap().clone());
        serde_json::from_value(router).unwrap()
    }

    fn out(network: &str) -> Value {
        json!({"external_gateway_info": {"network_id": network, "enable_snat": true,
            "external_fixed_ips": [{"subnet_id": "s", "ip_address": "203.0.113.7"}]}})
    }

    #[rstest]
    #[case::nothing(json!({}), json!({}), json!({}))]
    #[case::text(json!({"description": "t"}), json!({}), json!({"description": format!("t {MARK}")}))]
    #[case::down(json!({"adminStateUp": false}), json!({}), json!({"admin_state_up": false}))]
    #[case::out(json!({"externalNetwork": "public"}), json!({}), json!({"external_gateway_info": {"network_id": "n-public"}}))]
    #[case::out_already(json!({"externalNetwork": "public"}), out("n-public"), json!({}))]
    #[case::elsewhere(json!({"externalNetwork": "public"}), out("n"), json!({"external_gateway_info": {"network_id": "n-public"}}))]
    #[case::nobody_knows_where(json!({"externalNetwork": "missing"}), out("n"), json!({}))]
    #[case::in_again(json!({}), out("n"), json!({"external_gateway_info": null}))]
    #[case::adopted(json!({"adopt": {"name": "x"}}), out("n"), json!({}))]
    fn only_what_differs_is_sent(#[case] spec: Value, #[case] but: Value, #[case] sent: Value) {
        assert_eq!(json!(declared(&spec).changes(&seen(&but))), sent);
    }

    #[rstest]
    #[case::none(json!({}), json!([[], true]))]
    #[case::all(json!({"interfaces": [{"subnet": "b"}, {"subnet": "a"}]}), json!([["s-b", "s-a"], true]))]
    #[case::one_is_missing(json!({"interfaces": [{"subnet": "a"}, {"subnet": "c"}]}), json!([["s-a"], false]))]
    #[case::left_as_they_are(json!({"adopt": {"name": "x"}}), json!(null))]
    fn interfaces_are_on_subnets_that_are_there(#[case] spec: Value, #[case] wanted: Value) {
        let interfaces = declared(&spec).interfaces.map(|interfaces| json!([interfaces.subnets, interfaces.is_all]));
        assert_eq!(json!(interfaces), wanted);
    }

    #[test]
    fn routes_have_no_order_and_one_way_to_be_written() {
        let route = |destination: &str, hop: &str| json!({"destination": destination, "nextHop": hop});
        let spec = json!({"routes": [route("10.9.0.0/16", "10.0.0.7"), route("2001:DB8::/64", "FD00:0::7")]});
        let there = json!({"routes": [{"destination": "2001:db8::/64", "nexthop": "fd00::7"},
            {"destination": "10.9.0.0/16", "nexthop": "10.0.0.7"}]});
        assert_eq!(routes_to_set(declared(&spec).routes, &seen(&there)), None);
        assert_eq!(routes_to_set(declared(&json!({})).routes, &seen(&there)), Some(Vec::new()));
        assert_eq!(routes_to_set(declared(&json!({"adopt": {"id": "r"}})).routes, &seen(&there)), None);
    }
}
