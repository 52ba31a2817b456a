//! The life of an `Image`.

use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use kupenstack_api::resources::{Image, PROJECT_ID};
use serde_json::json;

use crate::{
    check::Census,
    common::look::{disk, is_ready},
    life::Life,
    patience::{appears, attempt, gone},
    point::Phase,
    stage::Stage,
};

const NAME: &str = "disk";
const SIZE: usize = 4096;

#[derive(Clone)]
pub(crate) struct ImageLife {
    /// Where its file is.
    pub(crate) src: String,
}

fn images(stage: &Stage) -> Api<Image> {
    Api::namespaced(stage.client.clone(), &stage.name)
}

async fn patch(stage: &Stage, patch: serde_json::Value) {
    attempt(|| async { images(stage).patch(NAME, &PatchParams::default(), &Patch::Merge(&patch)).await.map(drop) })
        .await;
}

impl Life for ImageLife {
    const KIND: &'static str = "image";

    async fn prepare(&self, stage: &Stage) {
        let namespace = serde_json::from_value(json!({"metadata": {"name": stage.name}})).unwrap();
        attempt(|| async { stage.namespaces().create(&PostParams::default(), &namespace).await.map(drop) }).await;
        appears(stage.namespaces(), &stage.name, |namespace| {
            namespace.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(PROJECT_ID))
        })
        .await;
    }

    async fn create(&self, stage: &Stage) {
        // the token of before ends, so that a login is part of the life
        stage.sim.clock().advance(stage.sim.options().token_life);
        let image = json!({
            "apiVersion": "kupenstack.io/v1", "kind": "Image", "metadata": {"name": NAME},
            "spec": {"src": self.src, "format": "raw", "minDisk": 1, "properties": {"a": "1", "b": "2"}},
        });
        let image: Image = serde_json::from_value(image).unwrap();
        attempt(|| async { images(stage).create(&PostParams::default(), &image).await.map(drop) }).await;
    }

    async fn edit(&self, stage: &Stage) {
        patch(stage, json!({"spec": {"minDisk": 7, "properties": {"a": "9", "b": null}}})).await;
    }

    async fn delete(&self, stage: &Stage) {
        attempt(|| async { images(stage).delete(NAME, &DeleteParams::default()).await.map(drop) }).await;
    }

    async fn nudge(&self, stage: &Stage) {
        patch(stage, json!({"metadata": {"annotations": {"test/nudge": stage.cluster.number().to_string()}}})).await;
    }

    async fn settled(&self, stage: &Stage, phase: Phase) {
        match phase {
            Phase::Start => {}
            Phase::Delete => gone(images(stage), NAME).await,
            Phase::Create | Phase::Update => {
                let is_true = |image: &Image| {
                    let status = image.status.as_ref();
                    is_ready(image) && status.is_some_and(|s| s.observed_generation == image.metadata.generation)
                };
                let generation = if phase == Phase::Create { 1 } else { 2 };
                appears(images(stage), NAME, |image| is_true(image) && image.metadata.generation == Some(generation))
                    .await;
            }
        }
    }

    fn adds(&self) -> Census {
        Census::from([("images", 1)])
    }

    async fn check(&self, stage: &Stage, phase: Phase) -> Result<(), String> {
        let object = images(stage).get(NAME).await.map_err(|error| error.to_string())?;
        let id = object.status.and_then(|status| status.id).unwrap_or_default();
        let cloud = stage.sim.cloud();
        let image = cloud.glance.image(&id).ok_or_else(|| format!("the status tells of image {id}"))?;
        if image.status != "active" || image.data.as_deref() != Some(disk(SIZE).as_slice()) {
            return Err(format!("not the file, and all of it: {image:?}"));
        }
        let property = |name: &str| image.properties.get(name).map(String::as_str);
        let found = (image.min_disk, property("a"), property("b"));
        let wanted = if phase == Phase::Create { (1, Some("1"), Some("2")) } else { (7, Some("9"), None) };
        if found == wanted { Ok(()) } else { Err(format!("{found:?} instead of {wanted:?}")) }
    }

    async fn shown(&self, stage: &Stage) -> String {
        let object = images(stage).get_opt(NAME).await.unwrap();
        serde_json::to_string(&object).unwrap()
    }
}
