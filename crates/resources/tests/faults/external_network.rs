//! The life of an `ExternalNetwork`, with its subnets.

use kube::Api;
use kupenstack_api::resources::ExternalNetwork;
use kupenstack_testkit::sim::Cloud;
use serde_json::{Value, json};

use crate::{object::ObjectKind, point::Phase, stage::Stage};

impl ObjectKind for ExternalNetwork {
    const COUNTED: &'static str = "networks";
    const CONTROLLERS: &'static [&'static str] = &["projects", "externalnetwork"];
    const BESIDE: &'static [(&'static str, usize)] = &[("subnets", 2)];

    type Given = ();

    fn api(stage: &Stage) -> Api<Self> {
        Api::all(stage.client.clone())
    }

    fn name(stage: &Stage) -> &str {
        &stage.name
    }

    async fn prepare(_: &Stage) {}

    fn spec((): &(), _: &Stage) -> Value {
        json!({"physicalNetwork": "wire", "subnets": [
            {"cidr": "203.0.113.0/24", "gateway": "203.0.113.1"},
            {"cidr": "198.51.100.0/24"},
        ]})
    }

    fn edit() -> Value {
        json!({"mtu": 1400, "subnets": [
            {"cidr": "203.0.113.0/24", "gateway": "None"},
            {"cidr": "192.0.2.0/24"},
        ]})
    }

    fn check(cloud: &Cloud, id: &str, phase: Phase) -> Result<(), String> {
        let network = cloud.neutron.get("networks", id).ok_or_else(|| format!("the status tells of network {id}"))?;
        let mut subnets: Vec<_> = cloud
            .neutron
            .all("subnets")
            .filter(|subnet| subnet.text("network_id") == id)
            .map(|subnet| (subnet.text("cidr"), subnet.body["gateway_ip"].clone()))
            .collect();
        subnets.sort_by_key(|(range, _)| *range);
        let found = json!([network.is("router:external"), network.body["mtu"], subnets]);
        let wanted = match phase {
            Phase::Create => {
                json!([true, 1500, [["198.51.100.0/24", "198.51.100.1"], ["203.0.113.0/24", "203.0.113.1"]]])
            }
            _ => json!([true, 1400, [["192.0.2.0/24", "192.0.2.1"], ["203.0.113.0/24", null]]]),
        };
        if found == wanted { Ok(()) } else { Err(format!("{found} instead of {wanted}")) }
    }
}
