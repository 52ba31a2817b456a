//! The subnets of an external network, which are declared with it. On one network each range is there once, so that a
//! subnet is told by its range.

use std::collections::HashSet;

use futures::{FutureExt, TryStreamExt};
use kube::ResourceExt;
use kupenstack_api::resources::ExternalNetwork;
use kupenstack_openstack::{Client, ErrorKind, Subnet, SubnetAttributes};

use crate::{
    actuator::{Step, Target},
    network::WholeNetwork,
    stop::Stop,
    subnet::wanted::Wanted,
};

/// What makes them as declared. What is needless goes first, since ranges may not overlap.
pub(super) fn steps<'a>(target: &'a Target<ExternalNetwork>, network: &'a WholeNetwork) -> Vec<Step<'a, ()>> {
    let Plan { needless, missing, changed } = Plan::of(&target.object, network);
    let removals = needless.into_iter().map(|id| remove(&target.client, id).boxed());
    let additions = missing.into_iter().map(|new| add(&target.client, &network.network.id, new).boxed());
    let changes = changed.into_iter().map(|(subnet, changes)| change(&target.client, subnet, changes).boxed());
    removals.chain(additions).chain(changes).collect()
}

/// What has to be done, as a pure function.
struct Plan<'a> {
    needless: Vec<&'a str>,
    missing: Vec<SubnetAttributes>,
    changed: Vec<(&'a Subnet, SubnetAttributes)>,
}

impl<'a> Plan<'a> {
    fn of(object: &ExternalNetwork, network: &'a WholeNetwork) -> Self {
        let mut plan = Self { needless: Vec::new(), missing: Vec::new(), changed: Vec::new() };
        let Some(declared) = &object.spec.subnets else { return plan };
        let is_made = object.spec.adopt.is_none();
        let mut ranges = HashSet::new();
        for declared in declared {
            let Some(wanted) = Wanted::of_external(declared, is_made) else { continue };
            let range = wanted.range().to_owned();
            if let Some(subnet) = network.subnets.iter().find(|subnet| subnet.cidr == range) {
                let changes = wanted.changes(subnet);
                plan.changed.extend((changes != SubnetAttributes::default()).then_some((subnet, changes)));
            } else {
                let new = wanted.attributes();
                plan.missing.push(SubnetAttributes {
                    name: Some(object.name_any()),
                    network_id: Some(network.network.id.clone()),
                    enable_dhcp: Some(new.enable_dhcp.unwrap_or_default()),
                    ..new
                });
            }
            ranges.insert(range);
        }
        if is_made {
            let needless = network.subnets.iter().filter(|subnet| !ranges.contains(&subnet.cidr));
            plan.needless = needless.map(|subnet| subnet.id.as_str()).collect();
        }
        plan
    }
}

async fn remove(client: &Client, id: &str) -> Result<(), Stop> {
    Ok(client.network().subnets().delete(id).await.map(drop)?)
}

/// One that a request made of which no answer came is refused as overlapping with itself.
async fn add(client: &Client, network: &str, new: SubnetAttributes) -> Result<(), Stop> {
    let all = client.network().subnets();
    let Err(refusal) = all.create(&new).await else { return Ok(()) };
    if refusal.kind() == ErrorKind::BadRequest {
        let there: Vec<Subnet> = all.of_networks(&[network]).try_collect().await?;
        if there.iter().any(|subnet| Some(&subnet.cidr) == new.cidr.as_ref()) {
            return Ok(());
        }
    }
    Err(refusal.into())
}

async fn change(client: &Client, subnet: &Subnet, changes: SubnetAttributes) -> Result<(), Stop> {
    Ok(client.network().subnets().update(subnet, &changes).await.map(drop)?)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn object(spec: &Value) -> ExternalNetwork {
        let object = json!({"apiVersion": "kupenstack.io/v1", "kind": "ExternalNetwork", "metadata": {"name": "public"},
            "spec": spec});
        serde_json::from_value(object).unwrap()
    }

    /// A network with one subnet.
    fn seen() -> WholeNetwork {
        let network = json!({"id": "n", "name": "public", "project_id": "p", "status": "ACTIVE", "admin_state_up": true,
            "router:external": true, "revision_number": 3});
        let subnet = json!({"id": "s", "name": "theirs", "project_id": "p", "network_id": "n", "ip_version": 4,
            "cidr": "203.0.113.0/24", "gateway_ip": "203.0.113.1", "enable_dhcp": true,
            "allocation_pools": [{"start": "203.0.113.2", "end": "203.0.113.254"}], "revision_number": 0});
        serde_json::from_value(json!({"network": network, "subnets": [subnet]})).unwrap()
    }

    #[rstest]
    #[case::left_to_others(json!({"physicalNetwork": "w"}), json!([[], [], []]))]
    #[case::none(json!({"physicalNetwork": "w", "subnets": []}), json!([["s"], [], []]))]
    #[case::none_more_of_an_adopted_one(json!({"adopt": {"name": "x"}, "subnets": []}), json!([[], [], []]))]
    #[case::as_it_is_but_for_dhcp(json!({"physicalNetwork": "w", "subnets": [{"cidr": "203.0.113.0/24"}]}),
        json!([[], [], [{"enable_dhcp": false}]]))]
    #[case::as_it_is_in_an_adopted_one(json!({"adopt": {"name": "x"}, "subnets": [{"cidr": "203.0.113.0/24"}]}),
        json!([[], [], []]))]
    #[case::gateway_and_pools(
        json!({"adopt": {"name": "x"}, "subnets": [{"cidr": "203.0.113.0/24", "gateway": "None",
            "allocationPools": [{"start": "203.0.113.8", "end": "203.0.113.9"}]}]}),
        json!([[], [], [{"gateway_ip": null, "allocation_pools": [{"start": "203.0.113.8", "end": "203.0.113.9"}]}]]))]
    #[case::another(json!({"physicalNetwork": "w", "subnets": [{"cidr": "2001:DB8:0::/64"}]}),
        json!([["s"], [{"name": "public", "network_id": "n", "ip_version": 6, "cidr": "2001:db8::/64",
            "enable_dhcp": false}], []]))]
    fn only_what_differs_is_done(#[case] spec: Value, #[case] done: Value) {
        let seen = seen();
        let plan = Plan::of(&object(&spec), &seen);
        let changed: Vec<_> = plan.changed.iter().map(|(_, changes)| changes).collect();
        assert_eq!(json!([plan.needless, plan.missing, changed]), done);
    }
}
