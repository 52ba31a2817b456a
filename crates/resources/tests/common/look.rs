//! How to look at objects, and wait for what is to come of them.

use std::fmt::Debug;

use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, Patch, PatchParams},
    runtime::wait::await_condition,
};
use kupenstack_api::{HasConditions, resources::ResourceKind};
use kupenstack_core::{
    conditions::{self, READY, STALLED},
    ownership::ClusterId,
};
use kupenstack_testkit::PATIENCE;
pub(crate) use kupenstack_testkit::{eventually, within};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::cluster::{CLUSTER, number};

/// An object with this spec.
pub(crate) fn object<K: Resource<DynamicType = ()> + DeserializeOwned>(name: &str, spec: &Value) -> K {
    let (version, kind) = (K::api_version(&()), K::kind(&()));
    let object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec});
    serde_json::from_value(object).unwrap()
}

/// Waits for an object that fits, and shows the last one when none does.
pub(crate) async fn until<K>(api: Api<K>, name: &str, fits: impl Fn(&K) -> bool + Send + Sync) -> K
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let fitting = await_condition(api.clone(), name, |object: Option<&K>| object.is_some_and(&fits));
    let Ok(object) = timeout(PATIENCE, fitting).await else {
        panic!("{name} never came to fit: {:#?}", api.get_opt(name).await);
    };
    object.unwrap().unwrap()
}

/// Waits until there is no object of the name.
pub(crate) async fn gone<K>(api: Api<K>, name: &str)
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let gone = await_condition(api, name, |object: Option<&K>| object.is_none());
    within(gone, &format!("the end of {name}")).await.unwrap();
}

/// Deletes an object and waits until it is gone.
pub(crate) async fn delete<K>(api: Api<K>, name: &str)
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    api.delete(name, &DeleteParams::default()).await.unwrap();
    gone(api, name).await;
}

/// Has an object looked at now, unless it has just gone: a change of its annotations makes a pass.
pub(crate) async fn nudge<K>(api: Api<K>, name: &str)
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let patch = Patch::Merge(json!({"metadata": {"annotations": {"test/nudge": number().to_string()}}}));
    match api.patch_metadata(name, &PatchParams::default(), &patch).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => {}
        result => drop(result.unwrap()),
    }
}

/// Content that looks like a disk: not all of it is text.
pub(crate) fn disk(size: usize) -> Vec<u8> {
    (0..size).map(|index| u8::try_from(index % 251).unwrap()).collect()
}

pub(crate) fn is_ready<K: HasConditions + Resource>(object: &K) -> bool {
    conditions::is_ready(object.conditions(), object.meta().generation)
}

pub(crate) fn is_stalled(object: &impl HasConditions) -> bool {
    conditions::find(object.conditions(), STALLED).is_some()
}

/// Reason and message of `Ready`.
pub(crate) fn shown(object: &impl HasConditions) -> (&str, &str) {
    conditions::find(object.conditions(), READY).map_or(("", ""), |ready| (&ready.reason, &ready.message))
}

/// The identifier in the status.
pub(crate) fn id<K: ResourceKind>(object: &K) -> String {
    object.status().and_then(K::id).unwrap_or_default().to_owned()
}

pub(crate) fn cluster() -> ClusterId {
    CLUSTER.parse().unwrap()
}

/// The identifier that an object gives where it may choose one.
pub(crate) fn own_id(object: &impl Resource) -> String {
    cluster().resource_id(&object.uid().unwrap())
}

/// What tells in OpenStack that something is an object's.
pub(crate) fn mark(object: &impl Resource) -> String {
    cluster().mark(&object.uid().unwrap())
}
