//! Networks.

use serde_json::{Map, Value, json};

use super::{Item, Neutron, invalid, kinds::NETWORKS};
use crate::sim::{http::Refusal, service::Call};

const TYPE: &str = "provider:network_type";
const WIRE: &str = "provider:physical_network";
const SEGMENT: &str = "provider:segmentation_id";

/// The most that a network has room for: what OVN's tunnels leave of 1500 bytes, or all of them on a wire outside.
fn largest_mtu(network: &Item) -> u64 {
    if network.text(WIRE).is_empty() { 1442 } else { 1500 }
}

/// Gives a network the size that its type has room for, unless a smaller one is asked for.
pub(super) fn complete(
    it: &Neutron,
    _: &mut Call<'_>,
    network: &mut Item,
    before: Option<&Item>,
) -> Result<(), Refusal> {
    if before.is_none() && !network.text(WIRE).is_empty() {
        network.body.entry(SEGMENT).or_insert(Value::Null);
        it.check_use_of_wire(network)?;
    }
    let Some(mtu) = network.body.get("mtu").and_then(Value::as_u64) else { return Ok(()) };
    let largest = largest_mtu(network);
    if mtu > largest {
        return Err(invalid(&format!("Requested MTU is too big, maximum is {largest}")));
    }
    let mtu = if mtu == 0 { largest } else { mtu };
    network.body.insert("mtu".to_owned(), json!(mtu));
    Ok(())
}

impl Neutron {
    /// A Neutron that keeps no names has no domains of networks to show.
    pub(super) fn tell_of_domain(&self, shown: &mut Map<String, Value>) {
        if !self.keeps_dns {
            shown.remove("dns_domain");
        }
    }

    /// A wire outside takes one flat network, and one of each VLAN.
    fn check_use_of_wire(&self, new: &Item) -> Result<(), Refusal> {
        let place = [TYPE, WIRE, SEGMENT].map(|part| new.body.get(part));
        let is_there = |other: &Item| [TYPE, WIRE, SEGMENT].map(|part| other.body.get(part)) == place;
        if !self.all(NETWORKS.collection).any(is_there) {
            return Ok(());
        }
        let (wire, segment) = (new.text(WIRE), new.body.get(SEGMENT).and_then(Value::as_u64));
        Err(match segment {
            None => Refusal::conflict(format!("Unable to create the flat network. Physical network {wire} is in use."))
                .of_type("FlatNetworkInUse"),
            Some(vlan) => Refusal::conflict(format!(
                "Unable to create the network. The VLAN {vlan} on physical network {wire} is in use."
            ))
            .of_type("VlanIdInUse"),
        })
    }
}
