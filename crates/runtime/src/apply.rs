//! Writing to Kubernetes: server-side apply, status, finalizers. Every write is compared first: an unchanged
//! object costs nothing.

use std::fmt::Debug;

use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

use crate::{Failure, own_writes};

/// Field manager of everything that we write.
const MANAGER: &str = "kupenstack";

/// Parameters of a server-side apply in our name; fields that we set are ours.
pub fn params() -> PatchParams {
    PatchParams::apply(MANAGER).force()
}

/// Parameters of a patch in our name that is no apply.
pub fn patch_params() -> PatchParams {
    PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() }
}

/// Applies an object whose JSON has `apiVersion`, `kind` and `metadata.name`.
pub async fn apply<K>(api: &Api<K>, name: &str, object: &(impl Serialize + Debug)) -> Result<K, Failure>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    Ok(api.patch(name, &params(), &Patch::Apply(object)).await?)
}

/// Writes a status unless it is what the object has already. Returns whether it wrote.
pub async fn status<K, S>(api: &Api<K>, object: &K, old: Option<&S>, new: &S) -> Result<bool, Failure>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    S: Serialize + PartialEq,
{
    if old == Some(new) {
        return Ok(false);
    }
    let patch = json!({
        "apiVersion": K::api_version(&()),
        "kind": K::kind(&()),
        // an object made anew under the same name must not get the old one's status
        "metadata": {"name": object.name_any(), "uid": object.uid()},
        "status": new,
    });
    let written = api.patch_status(&object.name_any(), &params(), &Patch::Apply(&patch)).await?;
    own_writes::note(written.meta());
    Ok(true)
}

/// Creates an object unless one of its name exists. Returns whether it did.
pub async fn create_if_absent<K>(api: &Api<K>, object: &K) -> Result<bool, Failure>
where
    K: Resource + Clone + DeserializeOwned + Serialize + Debug,
{
    match api.create(&PostParams { field_manager: Some(MANAGER.into()), ..PostParams::default() }, object).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(e)) if e.is_already_exists() => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// Whether the object carries the finalizer.
pub fn has_finalizer<K: ResourceExt>(object: &K, finalizer: &str) -> bool {
    object.finalizers().iter().any(|f| f == finalizer)
}

/// Puts the finalizer on the object, if it lacks it. Whether there still is an object: nothing may be made for one that is
/// gone.
pub async fn add_finalizer<K>(api: &Api<K>, object: &K, finalizer: &str) -> Result<bool, Failure>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    if has_finalizer(object, finalizer) {
        return Ok(true);
    }
    let mut finalizers = object.finalizers().to_vec();
    finalizers.push(finalizer.to_owned());
    set_finalizers(api, object, &finalizers).await
}

/// Takes the finalizer off the object. An object that is gone already is fine.
pub async fn remove_finalizer<K>(api: &Api<K>, object: &K, finalizer: &str) -> Result<(), Failure>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let finalizers: Vec<_> = object.finalizers().iter().filter(|f| *f != finalizer).cloned().collect();
    set_finalizers(api, object, &finalizers).await.map(drop)
}

/// A list can't be patched safely without the version it was read at: another controller's finalizer would go.
async fn set_finalizers<K>(api: &Api<K>, object: &K, finalizers: &[String]) -> Result<bool, Failure>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let patch = json!({"metadata": {"resourceVersion": object.resource_version(), "finalizers": finalizers}});
    match api.patch_metadata(&object.name_any(), &patch_params(), &Patch::Merge(&patch)).await {
        Ok(written) => {
            own_writes::note(&written.metadata);
            Ok(true)
        }
        Err(kube::Error::Api(e)) if e.is_not_found() => Ok(false),
        Err(e) => Err(e.into()),
    }
}
