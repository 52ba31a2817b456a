//! Networks.

use serde_json::{Value, json};

use super::{Item, Neutron, invalid};
use crate::sim::{http::Refusal, service::Call};

/// The most that a network's type has room for: what OVN's tunnels leave of 1500 bytes.
const LARGEST_MTU: u64 = 1442;

/// Gives a network the size that its type has room for, unless a smaller one is asked for.
pub(super) fn complete(_: &Neutron, _: &mut Call<'_>, network: &mut Item, _: Option<&Item>) -> Result<(), Refusal> {
    let Some(mtu) = network.body.get("mtu").and_then(Value::as_u64) else { return Ok(()) };
    if mtu > LARGEST_MTU {
        return Err(invalid(&format!("Requested MTU is too big, maximum is {LARGEST_MTU}")));
    }
    let mtu = if mtu == 0 { LARGEST_MTU } else { mtu };
    network.body.insert("mtu".to_owned(), json!(mtu));
    Ok(())
}
