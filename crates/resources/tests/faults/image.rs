//! The life of an `Image`, and of what is like one.

use std::{fmt::Debug, marker::PhantomData};

use kube::{
    Api, Resource,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use kupenstack_api::{
    HasConditions,
    resources::{Image, ImageStatus},
};
use kupenstack_core::conditions;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    check::Census,
    common::look::disk,
    life::Life,
    patience::{answered, appears, attempt, gone},
    point::Phase,
    stage::Stage,
};

const SIZE: usize = 4096;

/// A kind that stands for an image.
pub(crate) trait ImageKind:
    Resource<DynamicType = ()> + HasConditions + Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// Its name in reports.
    const KIND: &'static str;

    fn api(stage: &Stage) -> Api<Self>;

    fn name(stage: &Stage) -> &str;

    fn status(&self) -> Option<&ImageStatus>;

    /// Makes what has to be there before.
    fn prepare(stage: &Stage) -> impl Future<Output = ()> + Send;
}

impl ImageKind for Image {
    const KIND: &'static str = "image";

    fn api(stage: &Stage) -> Api<Self> {
        Api::namespaced(stage.client.clone(), &stage.name)
    }

    fn name(_: &Stage) -> &'static str {
        "disk"
    }

    fn status(&self) -> Option<&ImageStatus> {
        self.status.as_ref()
    }

    async fn prepare(stage: &Stage) {
        stage.has_a_project().await;
    }
}

pub(crate) struct ImageLife<K> {
    /// Where its file is.
    src: String,
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for ImageLife<K> {
    fn clone(&self) -> Self {
        Self { src: self.src.clone(), kind: PhantomData }
    }
}

impl<K: ImageKind> ImageLife<K> {
    pub(crate) fn of(src: &str) -> Self {
        Self { src: src.to_owned(), kind: PhantomData }
    }

    async fn patch(&self, stage: &Stage, patch: Value) {
        let (api, name) = (K::api(stage), K::name(stage));
        attempt(|| async { api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.map(drop) }).await;
    }
}

impl<K: ImageKind> Life for ImageLife<K> {
    const KIND: &'static str = K::KIND;

    async fn prepare(&self, stage: &Stage) {
        K::prepare(stage).await;
    }

    async fn create(&self, stage: &Stage) {
        // the token of before ends, so that a login is part of the life
        stage.sim.clock().advance(stage.sim.options().token_life);
        let image = json!({
            "apiVersion": K::api_version(&()), "kind": <K as Resource>::kind(&()), "metadata": {"name": K::name(stage)},
            "spec": {"src": self.src, "format": "raw", "minDisk": 1, "properties": {"a": "1", "b": "2"}},
        });
        let (api, image): (_, K) = (K::api(stage), serde_json::from_value(image).unwrap());
        attempt(|| async { api.create(&PostParams::default(), &image).await.map(drop) }).await;
    }

    async fn edit(&self, stage: &Stage) {
        self.patch(stage, json!({"spec": {"minDisk": 7, "properties": {"a": "9", "b": null}}})).await;
    }

    async fn delete(&self, stage: &Stage) {
        let (api, name) = (K::api(stage), K::name(stage));
        attempt(|| async { api.delete(name, &DeleteParams::default()).await.map(drop) }).await;
    }

    async fn nudge(&self, stage: &Stage) {
        let number = stage.cluster.number().to_string();
        self.patch(stage, json!({"metadata": {"annotations": {"test/nudge": number}}})).await;
    }

    async fn settled(&self, stage: &Stage, phase: Phase) {
        let generation = match phase {
            Phase::Start => return,
            Phase::Delete => return gone(K::api(stage), K::name(stage)).await,
            Phase::Create => Some(1),
            Phase::Update => Some(2),
        };
        let is_true = |image: &K| {
            let observed = image.status().and_then(|status| status.observed_generation);
            observed == generation && conditions::is_ready(image.conditions(), generation)
        };
        appears(K::api(stage), K::name(stage), |image| image.meta().generation == generation && is_true(image)).await;
    }

    fn adds(&self) -> Census {
        Census::from([("images", 1)])
    }

    async fn check(&self, stage: &Stage, phase: Phase) -> Result<(), String> {
        let object = K::api(stage).get(K::name(stage)).await.map_err(|error| error.to_string())?;
        let id = object.status().and_then(|status| status.id.clone()).unwrap_or_default();
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
        let (api, name) = (K::api(stage), K::name(stage));
        serde_json::to_string(&answered(|| api.get_opt(name)).await).unwrap()
    }
}
