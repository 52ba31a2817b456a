//! The life of a `FloatingIP`, of an external network and for two ports behind a router, which are there before it and stay.

use kube::{Api, api::PostParams};
use kupenstack_api::resources::{ExternalNetwork, FloatingIP, Network, Port, Subnet};
use kupenstack_testkit::sim::Cloud;
use serde_json::{Value, json};

use crate::{
    common::look,
    object::{ObjectKind, there_is},
    patience::{appears, attempt},
    point::Phase,
    stage::Stage,
};

impl ObjectKind for FloatingIP {
    const COUNTED: &'static str = "floating IPs";
    const CONTROLLERS: &'static [&'static str] =
        &["projects", "network", "externalnetwork", "subnet", "port", "floatingip"];

    type Given = ();

    fn api(stage: &Stage) -> Api<Self> {
        Api::namespaced(stage.client.clone(), &stage.name)
    }

    fn name(_: &Stage) -> &'static str {
        "it"
    }

    async fn prepare(stage: &Stage) {
        stage.has_a_project().await;
        outside(stage);
        let networks = Api::<ExternalNetwork>::all(stage.client.clone());
        let adopting = look::object(&stage.name, &json!({"adopt": {"id": "outside"}}));
        attempt(|| async { networks.create(&PostParams::default(), &adopting).await.map(drop) }).await;
        appears(networks, &stage.name, |network: &ExternalNetwork| look::is_ready(network)).await;
        there_is::<Network>(stage, "net", json!({})).await;
        there_is::<Subnet>(stage, "sub", json!({"network": "net", "cidr": "10.0.0.0/24"})).await;
        for (name, ip) in [("web", "10.0.0.7"), ("db", "10.0.0.9")] {
            there_is::<Port>(stage, name, json!({"network": "net", "addresses": [{"ip": ip}]})).await;
        }
        lead_out(stage);
    }

    fn spec((): &(), stage: &Stage) -> Value {
        json!({"externalNetwork": stage.name, "description": "front", "port": "web"})
    }

    fn edit() -> Value {
        json!({"description": "back", "port": "db"})
    }

    fn check(cloud: &Cloud, id: &str, phase: Phase) -> Result<(), String> {
        let floating = cloud.neutron.get("floatingips", id);
        let floating = floating.ok_or_else(|| format!("the status tells of floating IP {id}"))?;
        let found =
            [floating.text("description").split(' ').next().unwrap_or_default(), floating.text("fixed_ip_address")];
        let wanted = if phase == Phase::Create { ["front", "10.0.0.7"] } else { ["back", "10.0.0.9"] };
        if found == wanted { Ok(()) } else { Err(format!("{found:?} instead of {wanted:?}")) }
    }
}

/// A network outside, of the administrator.
fn outside(stage: &Stage) {
    let now = stage.sim.clock().now();
    let mut cloud = stage.sim.cloud();
    let admin = cloud.keystone.find("projects", "admin").unwrap().id.clone();
    let network = json!({"name": "outside", "router:external": true});
    cloud.neutron.add(now, "networks", "outside", &admin, network);
    let pools = json!([{"start": "203.0.113.10", "end": "203.0.113.99"}]);
    let subnet = json!({"network_id": "outside", "ip_version": 4, "cidr": "203.0.113.0/24", "allocation_pools": pools});
    cloud.neutron.add(now, "subnets", "outside-range", &admin, subnet);
}

/// A router of somebody else's between the network outside and that inside.
fn lead_out(stage: &Stage) {
    let now = stage.sim.clock().now();
    let mut cloud = stage.sim.cloud();
    let inside = cloud.neutron.all("subnets").find(|subnet| subnet.text("name") == "sub").cloned().unwrap();
    for (id, network, subnet, address, owner) in [
        ("in", inside.text("network_id"), inside.id.as_str(), "10.0.0.1", "network:router_interface"),
        ("out", "outside", "outside-range", "203.0.113.10", "network:router_gateway"),
    ] {
        let port = json!({"network_id": network, "device_id": "router", "device_owner": owner,
            "fixed_ips": [{"subnet_id": subnet, "ip_address": address}]});
        cloud.neutron.add(now, "ports", id, &inside.project_id, port);
    }
}
