//! The life of a `Subnet`, on a network that is there before it and stays.

use kube::Api;
use kupenstack_api::resources::{Network, Subnet};
use kupenstack_testkit::sim::Cloud;
use serde_json::{Value, json};

use crate::{
    object::{ObjectKind, there_is},
    point::Phase,
    stage::Stage,
};

impl ObjectKind for Subnet {
    const COUNTED: &'static str = "subnets";
    const CONTROLLERS: &'static [&'static str] = &["projects", "network", "subnet"];

    type Given = ();

    fn api(stage: &Stage) -> Api<Self> {
        Api::namespaced(stage.client.clone(), &stage.name)
    }

    fn name(_: &Stage) -> &'static str {
        "it"
    }

    async fn prepare(stage: &Stage) {
        stage.has_a_project().await;
        there_is::<Network>(stage, "net", json!({})).await;
    }

    fn spec((): &(), _: &Stage) -> Value {
        json!({"network": "net", "cidr": "10.0.0.0/24", "dnsServers": ["10.9.9.9"]})
    }

    fn edit() -> Value {
        json!({"gateway": "None", "dnsServers": null, "dhcp": false})
    }

    fn check(cloud: &Cloud, id: &str, phase: Phase) -> Result<(), String> {
        let subnet = cloud.neutron.get("subnets", id).ok_or_else(|| format!("the status tells of subnet {id}"))?;
        let networks: Vec<_> = cloud.neutron.all("networks").filter(|network| network.text("name") == "net").collect();
        let [network] = networks[..] else { return Err(format!("{} networks", networks.len())) };
        let found = ["network_id", "cidr", "gateway_ip", "dns_nameservers", "enable_dhcp"];
        let found = found.map(|name| subnet.body.get(name).cloned().unwrap_or_default());
        let (on, range) = (json!(network.id), json!("10.0.0.0/24"));
        let wanted = match phase {
            Phase::Create => [on, range, json!("10.0.0.1"), json!(["10.9.9.9"]), json!(true)],
            _ => [on, range, json!(null), json!([]), json!(false)],
        };
        if found == wanted { Ok(()) } else { Err(format!("{found:?} instead of {wanted:?}")) }
    }
}
