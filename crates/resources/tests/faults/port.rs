//! The life of a `Port`, on a network with a subnet and with a security group, which are there before it and stay.

use kube::Api;
use kupenstack_api::resources::{Network, Port, SecurityGroup, Subnet};
use kupenstack_testkit::sim::Cloud;
use serde_json::{Value, json};

use crate::{
    object::{ObjectKind, there_is},
    point::Phase,
    stage::Stage,
};

impl ObjectKind for Port {
    const COUNTED: &'static str = "ports";
    const CONTROLLERS: &'static [&'static str] = &["projects", "network", "subnet", "securitygroup", "port"];

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
        there_is::<Subnet>(stage, "sub", json!({"network": "net", "cidr": "10.0.0.0/24"})).await;
        there_is::<SecurityGroup>(stage, "web", json!({})).await;
    }

    fn spec((): &(), _: &Stage) -> Value {
        json!({"network": "net", "addresses": [{"subnet": "sub", "ip": "10.0.0.7"}], "securityGroups": ["web"]})
    }

    fn edit() -> Value {
        json!({"addresses": [{"ip": "10.0.0.8"}], "securityGroups": [], "adminStateUp": false,
            "allowedAddresses": [{"ip": "10.9.0.0/16"}]})
    }

    fn check(cloud: &Cloud, id: &str, phase: Phase) -> Result<(), String> {
        let port = cloud.neutron.get("ports", id).ok_or_else(|| format!("the status tells of port {id}"))?;
        let group = cloud.neutron.all("security-groups").find(|group| group.text("name") == "web");
        let group = group.map(|group| group.id.clone());
        let found = json!([
            port.body["fixed_ips"][0]["ip_address"],
            port.body["security_groups"],
            port.body["admin_state_up"],
            port.body["allowed_address_pairs"].as_array().map(Vec::len)
        ]);
        let wanted = match phase {
            Phase::Create => json!(["10.0.0.7", [group], true, 0]),
            _ => json!(["10.0.0.8", [], false, 1]),
        };
        if found == wanted { Ok(()) } else { Err(format!("{found} instead of {wanted}")) }
    }
}
