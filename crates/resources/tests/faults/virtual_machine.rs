//! The life of a `VirtualMachine`, with the port and the server group that are made for it; its networks, image and flavor are
//! there before it and stay. In the middle of its life it is brought from one network to the other.

use kube::Api;
use kupenstack_api::resources::{Flavor, Image, Network, Port, Subnet, VirtualMachine};
use kupenstack_testkit::sim::Cloud;
use serde_json::{Value, json};

use crate::{
    common::look::disk,
    image,
    object::{ObjectKind, there_is},
    patience::gone,
    point::Phase,
    stage::Stage,
};

impl ObjectKind for VirtualMachine {
    const COUNTED: &'static str = "servers";
    const BESIDE: &'static [(&'static str, usize)] = &[("ports", 1), ("server groups", 1)];
    const CONTROLLERS: &'static [&'static str] =
        &["projects", "image", "flavor", "network", "subnet", "port", "virtualmachine"];

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
        there_is::<Network>(stage, "back", json!({})).await;
        there_is::<Subnet>(stage, "back", json!({"network": "back", "cidr": "10.1.0.0/24"})).await;
        let src = stage.cluster.serve(&disk(image::SIZE)).await;
        there_is::<Image>(stage, "linux", json!({"src": src, "format": "raw"})).await;
        there_is::<Flavor>(stage, &stage.name, json!({"vcpus": 1, "ram": "512Mi", "disk": "1Gi"})).await;
    }

    fn spec((): &(), stage: &Stage) -> Value {
        json!({"image": "linux", "flavor": stage.name, "networks": [{"network": "net", "addresses": [{"ip": "10.0.0.7"}]}],
            "userData": {"inline": "#cloud-config"}, "metadata": {"a": "1", "b": "2"},
            "antiAffinity": {"group": "web"}})
    }

    fn edit() -> Value {
        json!({"description": "second", "metadata": {"a": "9", "b": null}, "powerState": "Stopped", "securityGroups": [],
            "networks": [{"network": "back", "addresses": [{"ip": "10.1.0.7"}]}]})
    }

    async fn parts_gone(stage: &Stage, phase: Phase) {
        let unwanted: &[&str] = match phase {
            Phase::Start | Phase::Create => &[],
            Phase::Update => &["it.net"],
            Phase::Delete => &["it.net", "it.back"],
        };
        for part in unwanted {
            gone(Api::<Port>::namespaced(stage.client.clone(), &stage.name), part).await;
        }
    }

    fn check(cloud: &Cloud, id: &str, phase: Phase) -> Result<(), String> {
        let server = cloud.nova.server(id).ok_or_else(|| format!("the status tells of server {id}"))?;
        let mut ports = cloud.neutron.all("ports").filter(|port| port.text("device_id") == id);
        let port = ports.next().ok_or("the server is at no port")?;
        if let Some(more) = ports.next() {
            return Err(format!("the server is at port {} too", more.id));
        }
        let text = server.description.as_deref().unwrap_or_default().split(' ').next() == Some("second");
        // those that are gone are members for good
        let is_apart = cloud.nova.server_groups().all(|group| group.members.iter().any(|member| member == id));
        let found = json!([server.status(), server.metadata, text, port.body["fixed_ips"][0]["ip_address"], is_apart]);
        let wanted = match phase {
            Phase::Create => json!(["ACTIVE", {"a": "1", "b": "2"}, false, "10.0.0.7", true]),
            _ => json!(["SHUTOFF", {"a": "9"}, true, "10.1.0.7", true]),
        };
        if found == wanted { Ok(()) } else { Err(format!("{found} instead of {wanted}")) }
    }
}
