//! Networks.

use serde_json::{Value, json};

use super::Item;
use crate::sim::http::Refusal;

/// The most that a network's type has room for: what OVN's tunnels leave of 1500 bytes.
const LARGEST_MTU: u64 = 1442;

/// Gives a network the size that its type has room for, unless a smaller one is asked for.
pub(super) fn complete(network: &mut Item) -> Result<(), Refusal> {
    let Some(mtu) = network.body.get("mtu").and_then(Value::as_u64) else { return Ok(()) };
    if mtu > LARGEST_MTU {
        let words = format!("Invalid input for operation: Requested MTU is too big, maximum is {LARGEST_MTU}.");
        return Err(Refusal::bad_request(words).of_type("InvalidInput"));
    }
    let mtu = if mtu == 0 { LARGEST_MTU } else { mtu };
    network.body.insert("mtu".to_owned(), json!(mtu));
    Ok(())
}
