//! The life of a `Flavor`.

use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use kupenstack_api::{HasConditions, resources::Flavor};
use kupenstack_core::conditions;
use serde_json::{Value, json};

use crate::{
    check::Census,
    life::Life,
    patience::{answered, appears, attempt, gone},
    point::Phase,
    stage::Stage,
};

#[derive(Clone)]
pub(crate) struct FlavorLife;

fn api(stage: &Stage) -> Api<Flavor> {
    Api::all(stage.client.clone())
}

async fn patch(stage: &Stage, patch: Value) {
    let api = api(stage);
    attempt(|| async { api.patch(&stage.name, &PatchParams::default(), &Patch::Merge(&patch)).await.map(drop) }).await;
}

impl Life for FlavorLife {
    const KIND: &'static str = "flavor";

    async fn prepare(&self, _: &Stage) {}

    async fn create(&self, stage: &Stage) {
        // the token of before ends, so that a login is part of the life
        stage.sim.clock().advance(stage.sim.options().token_life);
        let flavor = json!({
            "apiVersion": "kupenstack.io/v1", "kind": "Flavor", "metadata": {"name": stage.name},
            "spec": {"vcpus": 2, "ram": "2Gi", "disk": "20Gi", "description": "first", "extraSpecs": {"a": "1", "b": "2"}},
        });
        let (api, flavor) = (api(stage), serde_json::from_value(flavor).unwrap());
        attempt(|| async { api.create(&PostParams::default(), &flavor).await.map(drop) }).await;
    }

    async fn edit(&self, stage: &Stage) {
        patch(stage, json!({"spec": {"description": "second", "extraSpecs": {"a": "9", "b": null}}})).await;
    }

    async fn delete(&self, stage: &Stage) {
        let api = api(stage);
        attempt(|| async { api.delete(&stage.name, &DeleteParams::default()).await.map(drop) }).await;
    }

    async fn nudge(&self, stage: &Stage) {
        let number = stage.cluster.number().to_string();
        patch(stage, json!({"metadata": {"annotations": {"test/nudge": number}}})).await;
    }

    async fn settled(&self, stage: &Stage, phase: Phase) {
        let generation = match phase {
            Phase::Start => return,
            Phase::Delete => return gone(api(stage), &stage.name).await,
            Phase::Create => Some(1),
            Phase::Update => Some(2),
        };
        let is_true = |flavor: &Flavor| {
            let observed = flavor.status.as_ref().and_then(|status| status.observed_generation);
            observed == generation && conditions::is_ready(flavor.conditions(), generation)
        };
        let fits = |flavor: &Flavor| flavor.metadata.generation == generation && is_true(flavor);
        appears(api(stage), &stage.name, fits).await;
    }

    fn adds(&self) -> Census {
        Census::from([("flavors", 1)])
    }

    async fn check(&self, stage: &Stage, phase: Phase) -> Result<(), String> {
        let object = api(stage).get(&stage.name).await.map_err(|error| error.to_string())?;
        let id = object.status.and_then(|status| status.id).unwrap_or_default();
        let cloud = stage.sim.cloud();
        let flavor = cloud.nova.flavor(&id).ok_or_else(|| format!("the status tells of flavor {id}"))?;
        let spec = |name: &str| flavor.extra_specs.get(name).map(String::as_str);
        let text = flavor.description.as_deref().unwrap_or_default().split(' ').next();
        let found = (flavor.vcpus, flavor.ram, flavor.disk, text, spec("a"), spec("b"));
        let (text, a, b) =
            if phase == Phase::Create { ("first", Some("1"), Some("2")) } else { ("second", Some("9"), None) };
        let wanted = (2, 2048, 20, Some(text), a, b);
        if found == wanted { Ok(()) } else { Err(format!("{found:?} instead of {wanted:?}")) }
    }

    async fn shown(&self, stage: &Stage) -> String {
        let api = api(stage);
        serde_json::to_string(&answered(|| api.get_opt(&stage.name)).await).unwrap()
    }
}
