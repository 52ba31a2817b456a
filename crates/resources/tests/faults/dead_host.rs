//! The life of a death: a host dies with a VM on it, its node is put out of service and then deleted, and it comes back. The VM is
//! made anew elsewhere meanwhile.

use k8s_openapi::api::core::v1::Node;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use kupenstack_api::resources::VirtualMachine;
use kupenstack_testkit::sim::{ComputeService, HostLife};
use serde_json::{Value, json};

use crate::{
    check::Census,
    life::Life,
    object::{ObjectKind, ObjectLife, there_is},
    patience::{answered, attempt, eventually},
    point::Phase,
    stage::Stage,
};

const NAME: &str = "it";
/// The host that lives.
const OTHER: &str = "other";

#[derive(Clone)]
pub(crate) struct DeadHostLife;

fn nodes(stage: &Stage) -> Api<Node> {
    Api::all(stage.client.clone())
}

async fn put_node(stage: &Stage) {
    let node = serde_json::from_value(json!({"metadata": {"name": stage.name}})).unwrap();
    attempt(|| async { nodes(stage).create(&PostParams::default(), &node).await.map(drop) }).await;
}

async fn patch_node(stage: &Stage, patch: Value) {
    let patch = Patch::Merge(patch);
    attempt(|| async { nodes(stage).patch(&stage.name, &PatchParams::default(), &patch).await.map(drop) }).await;
}

fn lives(stage: &Stage, life: HostLife) {
    stage.sim.cloud().nova.edit_service(&stage.name, |service| service.life = life);
}

fn expect(what: &str, found: &Value, wanted: &Value) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("{what}: {found} instead of {wanted}")) }
}

fn is_in_service(stage: &Stage) -> Result<(), String> {
    let service = stage.sim.cloud().nova.service(&stage.name);
    if service == ComputeService::default() { Ok(()) } else { Err(format!("the host is not in service: {service:?}")) }
}

impl Life for DeadHostLife {
    const KIND: &'static str = "dead-host";
    // a second death of the VM would be answered later than its first
    const ENDS_ITS_STAGE: bool = true;
    const CONTROLLERS: &'static [&'static str] =
        &["projects", "image", "flavor", "network", "subnet", "port", "virtualmachine", "fencing"];

    async fn prepare(&self, stage: &Stage) {
        stage.sim.cloud().nova.set_hosts(&[&stage.name, OTHER]);
        put_node(stage).await;
        VirtualMachine::prepare(stage).await;
        let spec = json!({"image": "linux", "flavor": stage.name, "networks": [{"network": "net"}]});
        there_is::<VirtualMachine>(stage, NAME, spec).await;
    }

    async fn create(&self, stage: &Stage) {
        // the token of before ends, so that a login is part of the life
        stage.sim.clock().advance(stage.sim.options().token_life);
        lives(stage, HostLife::Missed);
        let taint =
            json!([{"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}]);
        patch_node(stage, json!({"spec": {"taints": taint}})).await;
    }

    async fn edit(&self, stage: &Stage) {
        attempt(|| async { nodes(stage).delete(&stage.name, &DeleteParams::default()).await.map(drop) }).await;
    }

    async fn delete(&self, stage: &Stage) {
        lives(stage, HostLife::Alive);
        put_node(stage).await;
    }

    async fn nudge(&self, stage: &Stage) {
        ObjectLife::<VirtualMachine>::of(()).nudge(stage).await;
    }

    async fn settled(&self, stage: &Stage, phase: Phase) {
        match phase {
            Phase::Start => {}
            Phase::Create | Phase::Update => eventually(|| self.check(stage, phase)).await,
            Phase::Delete => eventually(async || is_in_service(stage)).await,
        }
    }

    fn adds(&self) -> Census {
        Census::new()
    }

    async fn check(&self, stage: &Stage, _: Phase) -> Result<(), String> {
        let vms = VirtualMachine::api(stage);
        let vm = answered(|| vms.get_opt(NAME)).await.ok_or("the VM is gone")?;
        let status = json!(vm.status);
        let (cloud, id) = (stage.sim.cloud(), status["id"].as_str().unwrap_or_default());
        let server = cloud.nova.server(id).ok_or_else(|| format!("the status tells of server {id}"))?;
        expect("the server", &json!([server.status(), server.host]), &json!(["ACTIVE", OTHER]))?;
        let at = cloud.neutron.all("ports").filter(|port| port.text("device_id") == id).count();
        expect("its ports", &json!(at), &json!(1))?;
        let told = [&status["node"], &status["restarts"], &status["phase"]];
        expect("the status", &json!(told), &json!([OTHER, 1, "Running"]))?;
        let service = cloud.nova.service(&stage.name);
        expect("the host", &json!([service.forced_down, service.is_disabled]), &json!([true, true]))
    }

    async fn shown(&self, stage: &Stage) -> String {
        ObjectLife::<VirtualMachine>::of(()).shown(stage).await
    }
}
