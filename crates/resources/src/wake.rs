//! Wakes objects that wait for the cloud or for their namespace's project.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Mutex, PoisonError},
};

use futures::{
    StreamExt,
    future::ready,
    stream::{BoxStream, select},
};
use kube::{Api, ResourceExt, api::ListParams, core::PartialObjectMeta};
use kupenstack_api::resources::PROJECT_ID;
use kupenstack_runtime::ObjectRef;

use crate::{
    actuator::Kind,
    cloud::{Cloud, NamespaceMeta},
};

/// The objects of a kind that have reason to be looked at: all of them when the cloud's standing changes, those of a
/// namespace when its project does or when it is being deleted. They are listed then, which is rare, rather than kept.
pub(crate) fn objects<K: Kind>(
    cloud: &Arc<Cloud>,
    services: &'static [&'static str],
) -> BoxStream<'static, ObjectRef<K>> {
    let everywhere = cloud.turns(|cloud| cloud.standing(services).settled()).map(|_| None).boxed();
    let somewhere = project_changes(cloud).map(Some).boxed();
    let client = cloud.kubernetes();
    select(everywhere, somewhere)
        .then(move |namespace| {
            let api: Api<K> = match &namespace {
                Some(namespace) => Api::namespaced(client.clone(), namespace),
                None => Api::all(client.clone()),
            };
            async move {
                match api.list_metadata(&ListParams::default()).await {
                    Ok(list) => list.items,
                    // they are looked at again at their own pace
                    Err(error) => {
                        tracing::warn!(kind = %K::kind(&()), %error, "objects not woken");
                        Vec::new()
                    }
                }
            }
        })
        .flat_map(|items| futures::stream::iter(items).map(|item: PartialObjectMeta<K>| reference(&item)))
        .boxed()
}

fn reference<K: Kind>(item: &PartialObjectMeta<K>) -> ObjectRef<K> {
    ObjectRef::new(&item.name_any()).within(&item.namespace().unwrap_or_default())
}

/// Names of namespaces whose project appeared or changed, or that are being deleted.
fn project_changes(cloud: &Arc<Cloud>) -> BoxStream<'static, String> {
    let known = Mutex::new(HashMap::new());
    let cloud = Arc::clone(cloud);
    let changes = cloud.namespace_changes();
    changes
        .filter_map(move |key| {
            let now = cloud.namespace(&key.name).and_then(|namespace| news(&namespace));
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            let before = match now {
                Some(now) => known.insert(key.name.clone(), now),
                None => known.remove(&key.name),
            };
            ready((now.is_some() && before != now).then_some(key.name))
        })
        .boxed()
}

/// A fingerprint of what objects in a namespace wait for; `None` while there is nothing of it.
fn news(namespace: &NamespaceMeta) -> Option<u64> {
    let project = namespace.annotations().get(PROJECT_ID);
    let leaving = namespace.metadata.deletion_timestamp.is_some();
    let mut hasher = DefaultHasher::new();
    (project, leaving).hash(&mut hasher);
    (project.is_some() || leaving).then(|| hasher.finish())
}
