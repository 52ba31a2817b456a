//! The life of a wish: a VM is to be on a node with a label, so there is an aggregate of the label and a flavor that asks for it.
//! The VM itself waits for an image that never comes: its server is another life.

use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use kupenstack_api::resources::{Flavor, PROJECT_ID, VirtualMachine};
use serde_json::{Value, json};

use crate::{
    check::Census,
    common::look,
    life::Life,
    object::there_is,
    patience::{answered, attempt, eventually, gone},
    point::Phase,
    stage::{STAGE, Stage},
};

const NAME: &str = "it";

#[derive(Clone)]
pub(crate) struct PlacementLife;

fn vms(stage: &Stage) -> Api<VirtualMachine> {
    Api::namespaced(stage.client.clone(), &stage.name)
}

async fn patch(stage: &Stage, patch: &Value) {
    let (api, params, patch) = (vms(stage), PatchParams::default(), Patch::Merge(patch));
    attempt(|| async { api.patch(NAME, &params, &patch).await.map(drop) }).await;
}

/// The label that is asked for.
fn label(phase: Phase) -> (&'static str, &'static str) {
    if phase == Phase::Create { ("disk", "ssd") } else { ("zone", "west") }
}

impl Life for PlacementLife {
    const KIND: &'static str = "placement";
    const CONTROLLERS: &'static [&'static str] = &["projects", "aggregates", "flavor", "virtualmachine"];

    async fn prepare(&self, stage: &Stage) {
        stage.sim.cloud().nova.set_hosts(&[&stage.name]);
        let node = json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": stage.name, "labels": {STAGE: stage.name, "disk": "ssd", "zone": "west"}}});
        let (nodes, node) = (Api::<Node>::all(stage.client.clone()), serde_json::from_value(node).unwrap());
        attempt(|| async { nodes.create(&PostParams::default(), &node).await.map(drop) }).await;
        stage.has_a_project().await;
        there_is::<Flavor>(stage, &stage.name, json!({"vcpus": 1, "ram": "512Mi", "extraSpecs": {"a": "1"}})).await;
    }

    async fn create(&self, stage: &Stage) {
        // the token of before ends, so that a login is part of the life
        stage.sim.clock().advance(stage.sim.options().token_life);
        let spec = json!({"clusterImage": "never", "flavor": stage.name, "nodeSelector": {"disk": "ssd"},
            "networks": [{"port": "never"}]});
        let (api, vm) = (vms(stage), look::object(NAME, &spec));
        attempt(|| async { api.create(&PostParams::default(), &vm).await.map(drop) }).await;
    }

    async fn edit(&self, stage: &Stage) {
        patch(stage, &json!({"spec": {"nodeSelector": {"disk": null, "zone": "west"}}})).await;
    }

    async fn delete(&self, stage: &Stage) {
        attempt(|| async { vms(stage).delete(NAME, &DeleteParams::default()).await.map(drop) }).await;
    }

    async fn nudge(&self, stage: &Stage) {
        let number = crate::common::cluster::number().to_string();
        patch(stage, &json!({"metadata": {"annotations": {"test/nudge": number}}})).await;
    }

    /// Nothing of ours says in Kubernetes that it is there.
    async fn settled(&self, stage: &Stage, phase: Phase) {
        if phase == Phase::Delete {
            gone(vms(stage), NAME).await;
        }
        eventually(|| self.check(stage, phase)).await;
    }

    fn adds(&self) -> Census {
        Census::from([("aggregates", 1), ("flavors", 1)])
    }

    async fn check(&self, stage: &Stage, phase: Phase) -> Result<(), String> {
        let api = stage.namespaces();
        let namespace = answered(|| api.get_opt(&stage.name)).await.ok_or("the namespace is gone")?;
        let project = namespace.annotations().get(PROJECT_ID).cloned().unwrap_or_default();
        let cloud = stage.sim.cloud();
        let aggregates = cloud.nova.aggregates().map(|it| json!([it.name, it.hosts, it.metadata]));
        let flavors = cloud.nova.flavors().filter(|flavor| !flavor.is_public);
        let flavors = flavors.map(|it| json!([it.vcpus, it.ram, it.extra_specs, it.projects]));
        let found = json!([aggregates.collect::<Vec<_>>(), flavors.collect::<Vec<_>>()]);
        let ((key, value), cluster) = (label(phase), look::cluster());
        let property = format!("{cluster}.{key}");
        let wanted = if matches!(phase, Phase::Start | Phase::Delete) {
            json!([[], []])
        } else {
            let specs = json!({"a": "1", format!("aggregate_instance_extra_specs:{property}"): value});
            let name = format!("kupenstack:{cluster}:{key}={value}");
            json!([[[name, [stage.name], {property: value}]], [[1, 512, specs, [project]]]])
        };
        if found == wanted { Ok(()) } else { Err(format!("{found} instead of {wanted}")) }
    }

    async fn shown(&self, stage: &Stage) -> String {
        let api = vms(stage);
        serde_json::to_string(&answered(|| api.get_opt(NAME)).await).unwrap()
    }
}
