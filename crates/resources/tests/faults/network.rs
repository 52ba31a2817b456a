//! The life of a `Network`.

use kupenstack_api::resources::Network;
use serde_json::{Value, json};

use crate::{neutron::NeutronKind, point::Phase};

impl NeutronKind for Network {
    const KIND: &'static str = "network";
    const COLLECTION: &'static str = "networks";

    fn spec() -> Value {
        json!({"mtu": 1400, "dnsDomain": "a.example."})
    }

    fn edit() -> Value {
        json!({"mtu": 1300, "dnsDomain": null, "adminStateUp": false})
    }

    fn wanted(phase: Phase) -> Value {
        match phase {
            Phase::Create => json!({"name": "it", "mtu": 1400, "dns_domain": "a.example.", "admin_state_up": true}),
            _ => json!({"name": "it", "mtu": 1300, "dns_domain": "", "admin_state_up": false}),
        }
    }
}
