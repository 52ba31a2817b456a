//! Removes configuration that nothing can mount any more.
//!
//! The built-in charts name configuration by its content and tell Helm to keep it: pods of the former revision mount
//! it, and a rollback needs it. It goes when neither a `ReplicaSet`, a `ControllerRevision` nor a kept Helm revision names
//! it.

use k8s_openapi::api::{
    apps::v1::{ControllerRevision, ReplicaSet},
    core::v1::{ConfigMap, Secret},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams},
    core::NamespaceResourceScope,
};
use kupenstack_helm::ReleaseRef;
use serde::{Serialize, de::DeserializeOwned};

use crate::{Error, applied::Applied, record::History, removal::delete_this, service::Kind};

/// Label on hash-named configuration of a chart; the value is the service.
pub(crate) const CONFIG: &str = "kupenstack.io/config";

/// Deletes what is not needed any more. Names carry a hash, so that a text which has the name means the object.
pub(crate) async fn collect(
    client: &Client,
    release: &ReleaseRef,
    service: Kind,
    history: &History,
) -> Result<(), Error> {
    let namespace = &release.namespace;
    let secrets = found::<Secret>(client, namespace, service).await?;
    let maps = found::<ConfigMap>(client, namespace, service).await?;
    let mut texts = Vec::new();
    for revision in history.numbers() {
        let applied = Applied::read(client, release, revision).await?;
        texts.extend(applied.iter().flat_map(Applied::all).map(|o| o.to_string()));
    }
    let of_release = format!("release_group={}", release.name);
    texts.extend(contents::<ReplicaSet>(client, namespace, &of_release).await?);
    texts.extend(contents::<ControllerRevision>(client, namespace, &of_release).await?);
    let unused = |name: &str| !texts.iter().any(|text| text.contains(name));
    remove::<Secret>(client, namespace, secrets, unused).await?;
    remove::<ConfigMap>(client, namespace, maps, unused).await
}

/// Name and UID of the service's hash-named objects.
async fn found<K>(client: &Client, namespace: &str, service: Kind) -> Result<Vec<(String, Option<String>)>, Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    let selector = ListParams::default().labels(&format!("{CONFIG}={}", service.object()));
    Ok(api.list_metadata(&selector).await?.iter().map(|o| (o.name_any(), o.uid())).collect())
}

async fn contents<K>(client: &Client, namespace: &str, selector: &str) -> Result<Vec<String>, Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + std::fmt::Debug,
    K: Serialize,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    let all = api.list(&ListParams::default().labels(selector)).await?;
    Ok(all.iter().filter_map(|object| serde_json::to_string(object).ok()).collect())
}

async fn remove<K>(
    client: &Client,
    namespace: &str,
    objects: Vec<(String, Option<String>)>,
    unused: impl Fn(&str) -> bool,
) -> Result<(), Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    for (name, uid) in objects.into_iter().filter(|(name, _)| unused(name)) {
        delete_this(&api, &name, uid).await?;
        tracing::info!(namespace, name, "configuration that nothing mounts any more is removed");
    }
    Ok(())
}

/// Removes all Secrets and `ConfigMaps` that a selector names.
pub(crate) async fn remove_labelled(client: &Client, namespace: &str, selector: &str) -> Result<(), Error> {
    let selector = ListParams::default().labels(selector);
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    secrets.delete_collection(&DeleteParams::default(), &selector).await?;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    maps.delete_collection(&DeleteParams::default(), &selector).await?;
    Ok(())
}
