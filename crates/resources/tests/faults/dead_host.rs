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
    stage::{STAGE, Stage},
};

const NAME: &str = "it";

#[derive(Clone)]
pub(crate) struct DeadHostLife;

fn nodes(stage: &Stage) -> Api<Node> {
    Api::all(stage.client.clone())
}

/// The host that lives.
fn other(stage: &Stage) -> String {
    format!("{}-other", stage.name)
}

async fn put_node(stage: &Stage, name: &str) {
    let node = serde_json::from_value(json!({"metadata": {"name": name, "labels": {STAGE: stage.name}}})).unwrap();
    attempt(|| async { nodes(stage).create(&PostParams::default(), &node).await.map(drop) }).await;
}

async fn patch_node(stage: &Stage, patch: Value) {
    let patch = Patch::Merge(patch);
    attempt(|| async { nodes(stage).patch(&stage.name, &PatchParams::default(), &patch).await.map(drop) }).await;
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
        {
            let mut cloud = stage.sim.cloud();
            cloud.nova.set_hosts(&[&stage.name, &other(stage)]);
            cloud.neutron.set_agents(&[&stage.name, &other(stage)]);
        }
        // were both without one, it would be said that nodes are not seen
        for node in [&stage.name, &other(stage)] {
            put_node(stage, node).await;
        }
        VirtualMachine::prepare(stage).await;
        let spec = json!({"image": "linux", "flavor": stage.name, "networks": [{"network": "net"}]});
        there_is::<VirtualMachine>(stage, NAME, spec).await;
    }

    async fn create(&self, stage: &Stage) {
        // the token of before ends, so that a login is part of the life
        stage.sim.clock().advance(stage.sim.options().token_life);
        {
            let mut cloud = stage.sim.cloud();
            cloud.nova.edit_service(&stage.name, |service| service.life = HostLife::Missed);
            cloud.neutron.end_agents(&stage.name);
        }
        let taint =
            json!([{"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}]);
        patch_node(stage, json!({"spec": {"taints": taint}})).await;
    }

    async fn edit(&self, stage: &Stage) {
        attempt(|| async { nodes(stage).delete(&stage.name, &DeleteParams::default()).await.map(drop) }).await;
    }

    async fn delete(&self, stage: &Stage) {
        // one that was forgotten is a new host
        stage.sim.cloud().nova.edit_service(&stage.name, |service| *service = ComputeService::default());
        put_node(stage, &stage.name).await;
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

    async fn check(&self, stage: &Stage, phase: Phase) -> Result<(), String> {
        let vms = VirtualMachine::api(stage);
        let vm = answered(|| vms.get_opt(NAME)).await.ok_or("the VM is gone")?;
        let status = json!(vm.status);
        let (cloud, id) = (stage.sim.cloud(), status["id"].as_str().unwrap_or_default());
        let server = cloud.nova.server(id).ok_or_else(|| format!("the status tells of server {id}"))?;
        expect("the server", &json!([server.status(), server.host]), &json!(["ACTIVE", other(stage)]))?;
        let at = cloud.neutron.all("ports").filter(|port| port.text("device_id") == id).count();
        expect("its ports", &json!(at), &json!(1))?;
        let told = [&status["node"], &status["restarts"], &status["phase"]];
        expect("the status", &json!(told), &json!([other(stage), 1, "Running"]))?;
        let service = cloud.nova.service(&stage.name);
        expect("the host", &json!([service.forced_down, service.is_disabled]), &json!([true, true]))?;
        // without a node it does not come back
        let is_gone = phase == Phase::Update;
        expect("whether it is forgotten", &json!(service.is_forgotten), &json!(is_gone))?;
        let agents = cloud.neutron.agents().iter().filter(|agent| agent.host == stage.name).count();
        expect("its agents", &json!(agents), &json!(if is_gone { 0 } else { 2 }))
    }

    async fn shown(&self, stage: &Stage) -> String {
        ObjectLife::<VirtualMachine>::of(()).shown(stage).await
    }
}
