//! The life of whatever is in Neutron and in a namespace.

use std::{fmt::Debug, marker::PhantomData};

use kube::{
    Api, Resource,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    core::NamespaceResourceScope,
};
use kupenstack_api::resources::ResourceKind;
use kupenstack_core::conditions;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    check::Census,
    life::Life,
    patience::{answered, appears, attempt, gone},
    point::Phase,
    stage::Stage,
};

/// Name of the object that lives.
const NAME: &str = "it";

/// A kind that stands for something in Neutron.
pub(crate) trait NeutronKind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + ResourceKind
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    /// Its name in reports.
    const KIND: &'static str;
    /// What it is one of in Neutron.
    const COLLECTION: &'static str;

    /// The spec that it begins with.
    fn spec() -> Value;

    /// What is changed of the spec.
    fn edit() -> Value;

    /// What Neutron is to show then.
    fn wanted(phase: Phase) -> Value;
}

pub(crate) struct NeutronLife<K>(PhantomData<fn() -> K>);

impl<K> Clone for NeutronLife<K> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<K> Default for NeutronLife<K> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

fn api<K: NeutronKind>(stage: &Stage) -> Api<K> {
    Api::namespaced(stage.client.clone(), &stage.name)
}

async fn patch<K: NeutronKind>(stage: &Stage, patch: Value) {
    let (api, params) = (api::<K>(stage), PatchParams::default());
    attempt(|| async { api.patch(NAME, &params, &Patch::Merge(&patch)).await.map(drop) }).await;
}

impl<K: NeutronKind> Life for NeutronLife<K> {
    const KIND: &'static str = K::KIND;

    async fn prepare(&self, stage: &Stage) {
        stage.has_a_project().await;
    }

    async fn create(&self, stage: &Stage) {
        // the token of before ends, so that a login is part of the life
        stage.sim.clock().advance(stage.sim.options().token_life);
        let object = json!({
            "apiVersion": K::api_version(&()), "kind": <K as Resource>::kind(&()), "metadata": {"name": NAME},
            "spec": K::spec(),
        });
        let (api, object): (_, K) = (api::<K>(stage), serde_json::from_value(object).unwrap());
        attempt(|| async { api.create(&PostParams::default(), &object).await.map(drop) }).await;
    }

    async fn edit(&self, stage: &Stage) {
        patch::<K>(stage, json!({"spec": K::edit()})).await;
    }

    async fn delete(&self, stage: &Stage) {
        let api = api::<K>(stage);
        attempt(|| async { api.delete(NAME, &DeleteParams::default()).await.map(drop) }).await;
    }

    async fn nudge(&self, stage: &Stage) {
        let number = stage.cluster.number().to_string();
        patch::<K>(stage, json!({"metadata": {"annotations": {"test/nudge": number}}})).await;
    }

    async fn settled(&self, stage: &Stage, phase: Phase) {
        let generation = match phase {
            Phase::Start => return,
            Phase::Delete => return gone(api::<K>(stage), NAME).await,
            Phase::Create => Some(1),
            Phase::Update => Some(2),
        };
        let is_true = |object: &K| conditions::is_ready(object.conditions(), generation);
        appears(api::<K>(stage), NAME, |object| object.meta().generation == generation && is_true(object)).await;
    }

    fn adds(&self) -> Census {
        Census::from([(K::COLLECTION, 1)])
    }

    async fn check(&self, stage: &Stage, phase: Phase) -> Result<(), String> {
        let object = api::<K>(stage).get(NAME).await.map_err(|error| error.to_string())?;
        let id = object.status().and_then(K::id).unwrap_or_default();
        let cloud = stage.sim.cloud();
        let item = cloud.neutron.get(K::COLLECTION, id).ok_or_else(|| format!("the status tells of {id}"))?;
        let wanted = K::wanted(phase);
        let differs = |(name, value): &(&String, &Value)| item.body.get(*name) != Some(*value);
        match wanted.as_object().into_iter().flatten().find(differs) {
            None => Ok(()),
            Some((name, value)) => Err(format!("{name} is not {value}: {:?}", item.body)),
        }
    }

    async fn shown(&self, stage: &Stage) -> String {
        let api = api::<K>(stage);
        serde_json::to_string(&answered(|| api.get_opt(NAME)).await).unwrap()
    }
}
