//! The life of a `Network`.

use kube::Api;
use kupenstack_api::resources::Network;
use kupenstack_testkit::sim::Cloud;
use serde_json::{Value, json};

use crate::{object::ObjectKind, point::Phase, stage::Stage};

impl ObjectKind for Network {
    const COUNTED: &'static str = "networks";
    const CONTROLLERS: &'static [&'static str] = &["projects", "network"];

    type Given = ();

    fn api(stage: &Stage) -> Api<Self> {
        Api::namespaced(stage.client.clone(), &stage.name)
    }

    fn name(_: &Stage) -> &'static str {
        "it"
    }

    async fn prepare(stage: &Stage) {
        stage.has_a_project().await;
    }

    fn spec((): &(), _: &Stage) -> Value {
        json!({"mtu": 1400, "dnsDomain": "a.example."})
    }

    fn edit() -> Value {
        json!({"mtu": 1300, "dnsDomain": null, "adminStateUp": false})
    }

    fn check(cloud: &Cloud, id: &str, phase: Phase) -> Result<(), String> {
        let network = cloud.neutron.get("networks", id).ok_or_else(|| format!("the status tells of network {id}"))?;
        let found = ["name", "mtu", "dns_domain", "admin_state_up"].map(|name| network.body.get(name));
        let wanted = match phase {
            Phase::Create => [json!("it"), json!(1400), json!("a.example."), json!(true)],
            _ => [json!("it"), json!(1300), json!(""), json!(false)],
        };
        if found == wanted.each_ref().map(Some) { Ok(()) } else { Err(format!("{found:?} instead of {wanted:?}")) }
    }
}
