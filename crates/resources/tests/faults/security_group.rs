//! The life of a `SecurityGroup`.

use kube::Api;
use kupenstack_api::resources::SecurityGroup;
use kupenstack_testkit::sim::Cloud;
use serde_json::{Value, json};

use crate::{object::ObjectKind, point::Phase, stage::Stage};

impl ObjectKind for SecurityGroup {
    const COUNTED: &'static str = "security groups";
    const CONTROLLERS: &'static [&'static str] = &["projects", "securitygroup"];

    type Given = ();

    fn api(stage: &Stage) -> Api<Self> {
        Api::namespaced(stage.client.clone(), &stage.name)
    }

    fn name(_: &Stage) -> &'static str {
        "web"
    }

    async fn prepare(stage: &Stage) {
        stage.has_a_project().await;
    }

    fn spec((): &(), _: &Stage) -> Value {
        json!({"ingress": [{"protocol": "TCP", "port": 80, "ipFamily": "IPv4"}, {"group": "web", "ipFamily": "IPv4"}]})
    }

    /// One rule goes, one comes, and nothing goes out any more.
    fn edit() -> Value {
        json!({"description": "new", "egress": [],
            "ingress": [{"protocol": "TCP", "port": 443, "ipFamily": "IPv4"}, {"group": "web", "ipFamily": "IPv4"}]})
    }

    fn check(cloud: &Cloud, id: &str, phase: Phase) -> Result<(), String> {
        cloud.neutron.get("security-groups", id).ok_or_else(|| format!("the status tells of group {id}"))?;
        let rules = cloud.neutron.all("security-group-rules").filter(|rule| rule.text("security_group_id") == id);
        let of = |name: &str, rule: &kupenstack_testkit::sim::Item| rule.body.get(name).cloned().unwrap_or_default();
        let mut found: Vec<String> = rules
            .map(|rule| {
                let parts = ["direction", "ethertype", "port_range_min", "remote_group_id"].map(|name| of(name, rule));
                json!(parts).to_string()
            })
            .collect();
        found.sort();
        let port = if phase == Phase::Create { 80 } else { 443 };
        let mut wanted =
            vec![json!(["ingress", "IPv4", port, null]).to_string(), json!(["ingress", "IPv4", null, id]).to_string()];
        if phase == Phase::Create {
            wanted.extend(["IPv4", "IPv6"].map(|family| json!(["egress", family, null, null]).to_string()));
        }
        wanted.sort();
        if found == wanted { Ok(()) } else { Err(format!("{found:?} instead of {wanted:?}")) }
    }
}
