//! What a server is connected by, brought to what is declared while it runs.
//!
//! Which ports it has tell the MACs of its addresses, without a request. It is looked at before anything is done.

use std::collections::BTreeSet;

use futures::{FutureExt, future::ready};
use kupenstack_api::resources::{Port, VirtualMachine};
use kupenstack_core::{Outcome, reason};
use kupenstack_openstack::Server;

use super::wanted;
use crate::{
    actuator::{Step, Target},
    stop::Stop,
};

/// Reason of a VM whose ports can't be changed as it is.
const NOT_NOW: &str = "NetworksDiffer";

/// A port that a server is to have.
#[derive(Debug)]
struct Wanted {
    /// Name of the object.
    name: String,
    id: Option<String>,
    /// None as long as it has no address: Nova then shows nothing of it.
    mac: Option<String>,
}

/// What is to be done about a server's ports, if anything.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// It has what it is to have, as far as that is there.
    Same,
    /// Some have to be connected or disconnected.
    Differs,
    /// The port of this name has no address, without which it can't be connected.
    Bare(String),
}

/// The step that connects and disconnects what has to be.
pub(super) fn step<'a>(target: &'a Target<VirtualMachine>, server: &'a Server) -> Option<Step<'a, ()>> {
    let is_left = target.object.spec.networks.is_empty();
    if is_left
        || server.task_state.is_some()
        || !["ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED"].contains(&server.status.as_str())
    {
        return None;
    }
    let wanted = wanted(target);
    let wait = |word, message: String| Some(ready(Err(Outcome::waiting(word, message).into())).boxed());
    match verdict(&wanted, server) {
        Verdict::Same => None,
        Verdict::Bare(name) => wait(reason::DEPENDENCY, format!("Port {name} has no address yet")),
        Verdict::Differs if server.status == "SUSPENDED" => {
            let message = "it is suspended, and its networks can be changed while it runs or is stopped";
            wait(NOT_NOW, message.to_owned())
        }
        Verdict::Differs => Some(bring(target, server, wanted).boxed()),
    }
}

fn wanted(target: &Target<VirtualMachine>) -> Vec<Wanted> {
    let wanted = |name: String| Wanted {
        id: target.needs.id_of::<Port>(&name).map(str::to_owned),
        mac: target.needs.told_of::<Port>(&name).map(str::to_lowercase),
        name,
    };
    wanted::ports(&target.object).map(wanted).collect()
}

fn verdict(wanted: &[Wanted], server: &Server) -> Verdict {
    let attached: BTreeSet<String> =
        server.addresses.values().flatten().map(|address| address.mac_address.to_lowercase()).collect();
    let macs: BTreeSet<&String> = wanted.iter().filter_map(|port| port.mac.as_ref()).collect();
    if attached.contains("") {
        // it does not say whose an address is
        return Verdict::Same;
    }
    if let Some(bare) = wanted.iter().find(|port| port.id.is_some() && port.mac.is_none()) {
        return Verdict::Bare(bare.name.clone());
    }
    // as long as not all are there, what seems to be too much may be one of them
    let all_known = macs.len() == wanted.len();
    let lacks = macs.iter().any(|mac| !attached.contains(*mac));
    let has_more = all_known && attached.iter().any(|mac| !macs.contains(mac));
    if lacks || has_more { Verdict::Differs } else { Verdict::Same }
}

/// Connects first, so that it is never without any.
async fn bring(target: &Target<VirtualMachine>, server: &Server, wanted: Vec<Wanted>) -> Result<(), Stop> {
    let compute = target.client.compute();
    let attached = compute.attached_ports(&server.id).await?;
    let ids: Vec<&String> = wanted.iter().filter_map(|port| port.id.as_ref()).collect();
    for id in ids.iter().filter(|id| !attached.contains(id)) {
        compute.attach_port(&server.id, id).await?;
    }
    if ids.len() == wanted.len() {
        for id in attached.iter().filter(|id| !ids.contains(id)) {
            compute.detach_port(&server.id, id).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn server(addresses: &Value) -> Server {
        serde_json::from_value(json!({"id": "s1", "name": "web", "tenant_id": "p1", "status": "ACTIVE", "image": "",
            "created": "2026-01-01T00:00:00Z", "addresses": addresses,
            "flavor": {"original_name": "small", "vcpus": 1, "ram": 512, "disk": 1}}))
        .unwrap()
    }

    fn address(mac: &str) -> Value {
        json!({"addr": "10.0.0.2", "OS-EXT-IPS:type": "fixed", "OS-EXT-IPS-MAC:mac_addr": mac})
    }

    /// A port with this MAC; `-` for one that has no address, nothing for one that is not there.
    fn port(mac: &str) -> Wanted {
        let known = !mac.is_empty();
        let id = known.then(|| format!("port {mac}"));
        Wanted { name: "port".to_owned(), id, mac: Some(mac.to_owned()).filter(|mac| known && mac != "-") }
    }

    #[rstest]
    #[case::as_declared(&["a", "b"], &["a", "b"], Verdict::Same)]
    #[case::in_another_order(&["b", "a"], &["a", "b"], Verdict::Same)]
    #[case::two_addresses_of_one(&["a"], &["a", "a"], Verdict::Same)]
    #[case::written_otherwise(&["a"], &["A"], Verdict::Same)]
    #[case::too_few(&["a", "b"], &["a"], Verdict::Differs)]
    #[case::none(&["a"], &[], Verdict::Differs)]
    #[case::too_many(&["a"], &["a", "b"], Verdict::Differs)]
    #[case::another(&["a"], &["b"], Verdict::Differs)]
    #[case::one_is_not_there(&["a", ""], &["a", "b"], Verdict::Same)]
    #[case::one_is_not_there_and_one_lacks(&["a", ""], &["b"], Verdict::Differs)]
    #[case::one_has_no_address(&["a", "-"], &["a"], Verdict::Bare("port".to_owned()))]
    #[case::whose_is_not_told(&["a"], &[""], Verdict::Same)]
    fn the_macs_tell_what_differs(#[case] wanted: &[&str], #[case] is: &[&str], #[case] expected: Verdict) {
        let wanted: Vec<Wanted> = wanted.iter().map(|mac| port(mac)).collect();
        let addresses: Vec<Value> = is.iter().map(|mac| address(mac)).collect();
        assert_eq!(verdict(&wanted, &server(&json!({"net": addresses}))), expected);
    }
}
