//! The life of a `Router`, to a network outside and on subnets that are there before it and stay.

use kube::Api;
use kupenstack_api::resources::{ExternalNetwork, Network, Router, Subnet};
use kupenstack_testkit::sim::Cloud;
use serde_json::{Value, json};

use crate::{
    object::{ObjectKind, there_is},
    point::Phase,
    stage::Stage,
};

impl ObjectKind for Router {
    const COUNTED: &'static str = "routers";
    const CONTROLLERS: &'static [&'static str] = &["projects", "network", "externalnetwork", "subnet", "router"];
    const BESIDE: &'static [(&'static str, usize)] = &[("router interfaces", 1)];

    type Given = ();

    fn api(stage: &Stage) -> Api<Self> {
        Api::namespaced(stage.client.clone(), &stage.name)
    }

    fn name(_: &Stage) -> &'static str {
        "it"
    }

    async fn prepare(stage: &Stage) {
        stage.has_a_project().await;
        let outside = json!({"physicalNetwork": "wire", "subnets": [{"cidr": "203.0.113.0/24"}]});
        there_is::<ExternalNetwork>(stage, &stage.name, outside).await;
        there_is::<Network>(stage, "net", json!({})).await;
        there_is::<Subnet>(stage, "a", json!({"network": "net", "cidr": "10.0.0.0/24"})).await;
        there_is::<Subnet>(stage, "b", json!({"network": "net", "cidr": "10.1.0.0/24"})).await;
    }

    fn spec((): &(), stage: &Stage) -> Value {
        json!({"externalNetwork": stage.name, "interfaces": [{"subnet": "a"}],
            "routes": [{"destination": "10.9.0.0/16", "nextHop": "10.0.0.7"}]})
    }

    fn edit() -> Value {
        json!({"interfaces": [{"subnet": "b"}], "routes": [{"destination": "10.9.0.0/16", "nextHop": "10.1.0.7"}],
            "adminStateUp": false})
    }

    fn check(cloud: &Cloud, id: &str, phase: Phase) -> Result<(), String> {
        let router = cloud.neutron.get("routers", id).ok_or_else(|| format!("the status tells of router {id}"))?;
        let mut ports = cloud.neutron.all("ports").filter(|port| port.text("device_id") == id);
        let interface = ports.find(|port| port.text("device_owner") == "network:router_interface");
        let outside = cloud.neutron.all("networks").find(|network| network.is("router:external"));
        let found = json!([
            router.body["external_gateway_info"]["network_id"],
            interface.map(|port| port.body["fixed_ips"][0]["ip_address"].clone()),
            router.body["routes"][0]["nexthop"],
            router.is("admin_state_up")
        ]);
        let outside = outside.map(|network| network.id.as_str());
        let wanted = match phase {
            Phase::Create => json!([outside, "10.0.0.1", "10.0.0.7", true]),
            _ => json!([outside, "10.1.0.1", "10.1.0.7", false]),
        };
        if found == wanted { Ok(()) } else { Err(format!("{found} instead of {wanted}")) }
    }
}
