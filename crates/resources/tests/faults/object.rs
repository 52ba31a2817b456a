//! The life of whatever is one object that stands for something in OpenStack.

use std::fmt::Debug;

use kube::{
    Api, Resource,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use kupenstack_api::resources::ResourceKind;
use kupenstack_core::conditions;
use kupenstack_testkit::sim::Cloud;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    check::Census,
    common::look,
    life::Life,
    patience::{answered, appears, attempt, gone},
    point::Phase,
    stage::Stage,
};

/// A kind of such objects.
pub(crate) trait ObjectKind:
    Resource<DynamicType = ()> + ResourceKind + Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// What there is one more of while it lives.
    const COUNTED: &'static str;
    /// The same of what comes with that.
    const BESIDE: &'static [(&'static str, usize)] = &[];

    /// As [`Life::CONTROLLERS`].
    const CONTROLLERS: &'static [&'static str] = &[];

    /// What its spec tells of that is the same in all lives.
    type Given: Clone + Send + Sync + 'static;

    fn api(stage: &Stage) -> Api<Self>;

    /// Name of the object that lives.
    fn name(stage: &Stage) -> &str;

    /// Makes what has to be there before.
    fn prepare(stage: &Stage) -> impl Future<Output = ()> + Send;

    /// The spec that it begins with.
    fn spec(given: &Self::Given, stage: &Stage) -> Value;

    /// What is changed of the spec.
    fn edit() -> Value;

    /// Waits until of what was made for the object all has gone that it has no use for after a phase, which comes after that.
    fn parts_gone(_: &Stage, _: Phase) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// What is wrong with what the status tells of.
    fn check(cloud: &Cloud, id: &str, phase: Phase) -> Result<(), String>;
}

/// Makes an object and waits until it is as declared.
pub(crate) async fn there_is<K: ObjectKind>(stage: &Stage, name: &str, spec: Value) {
    let (api, object): (_, K) = (K::api(stage), look::object(name, &spec));
    attempt(|| async { api.create(&PostParams::default(), &object).await.map(drop) }).await;
    appears(api, name, |object: &K| look::is_ready(object)).await;
}

#[derive(Clone)]
pub(crate) struct ObjectLife<K: ObjectKind>(K::Given);

impl<K: ObjectKind> ObjectLife<K> {
    pub(crate) fn of(given: K::Given) -> Self {
        Self(given)
    }

    async fn patch(stage: &Stage, patch: Value) {
        let (api, name, params) = (K::api(stage), K::name(stage), PatchParams::default());
        attempt(|| async { api.patch(name, &params, &Patch::Merge(&patch)).await.map(drop) }).await;
    }
}

impl<K: ObjectKind> Life for ObjectLife<K> {
    const KIND: &'static str = K::KIND;
    const CONTROLLERS: &'static [&'static str] = K::CONTROLLERS;

    async fn prepare(&self, stage: &Stage) {
        K::prepare(stage).await;
    }

    async fn create(&self, stage: &Stage) {
        // the token of before ends, so that a login is part of the life
        stage.sim.clock().advance(stage.sim.options().token_life);
        let (api, object): (_, K) = (K::api(stage), look::object(K::name(stage), &K::spec(&self.0, stage)));
        attempt(|| async { api.create(&PostParams::default(), &object).await.map(drop) }).await;
    }

    async fn edit(&self, stage: &Stage) {
        Self::patch(stage, json!({"spec": K::edit()})).await;
    }

    async fn delete(&self, stage: &Stage) {
        let (api, name) = (K::api(stage), K::name(stage));
        attempt(|| async { api.delete(name, &DeleteParams::default()).await.map(drop) }).await;
    }

    async fn nudge(&self, stage: &Stage) {
        let number = crate::common::cluster::number().to_string();
        Self::patch(stage, json!({"metadata": {"annotations": {"test/nudge": number}}})).await;
    }

    async fn settled(&self, stage: &Stage, phase: Phase) {
        let generation = match phase {
            Phase::Start => return,
            Phase::Delete => {
                gone(K::api(stage), K::name(stage)).await;
                return K::parts_gone(stage, phase).await;
            }
            Phase::Create => Some(1),
            Phase::Update => Some(2),
        };
        let is_true = |object: &K| {
            let observed = json!(object.status())["observedGeneration"].as_i64();
            observed == generation && conditions::is_ready(object.conditions(), generation)
        };
        appears(K::api(stage), K::name(stage), |object| object.meta().generation == generation && is_true(object))
            .await;
        K::parts_gone(stage, phase).await;
    }

    fn adds(&self) -> Census {
        [(K::COUNTED, 1)].into_iter().chain(K::BESIDE.iter().copied()).collect()
    }

    async fn check(&self, stage: &Stage, phase: Phase) -> Result<(), String> {
        let (api, name) = (K::api(stage), K::name(stage));
        let object = answered(|| api.get_opt(name)).await.ok_or("the object is gone")?;
        let id = object.status().and_then(K::id).unwrap_or_default();
        K::check(&stage.sim.cloud(), id, phase)
    }

    async fn shown(&self, stage: &Stage) -> String {
        let (api, name) = (K::api(stage), K::name(stage));
        serde_json::to_string(&answered(|| api.get_opt(name)).await).unwrap()
    }
}
