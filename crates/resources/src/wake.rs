//! Wakes objects that wait for the cloud or for the place they are in.

use std::sync::Arc;

use futures::{
    StreamExt,
    stream::{BoxStream, select},
};
use kube::{Api, Resource, ResourceExt, api::ListParams, core::PartialObjectMeta};
use kupenstack_runtime::ObjectRef;

use crate::{
    actuator::Kind,
    cloud::Cloud,
    realm::{Realm, place_of},
};

/// The objects of a kind that have reason to be looked at: all of them when the cloud's standing changes, those of a
/// namespace when its project does or when it is being deleted. They are listed then, which is rare, rather than kept.
pub(crate) fn objects<K: Kind>(
    cloud: &Arc<Cloud>,
    services: &'static [&'static str],
) -> BoxStream<'static, ObjectRef<K>> {
    let everywhere = cloud.turns(|cloud| cloud.standing(services).settled()).map(|_| None).boxed();
    let somewhere = <K as Resource>::Scope::turns(cloud).map(Some).boxed();
    let client = cloud.kubernetes();
    select(everywhere, somewhere)
        .then(move |place| {
            let api: Api<K> = match &place {
                Some(place) => <K as Resource>::Scope::api(client.clone(), place),
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
    let key = ObjectRef::new(&item.name_any());
    match place_of(item) {
        place if place.is_empty() => key,
        place => key.within(&place),
    }
}
