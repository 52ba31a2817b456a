//! Wakes objects and namespaces that wait for the cloud, for the place they are in, or for a service that did not answer.

use std::{sync::Arc, time::Duration};

use futures::{
    StreamExt,
    stream::{self, BoxStream, select},
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Resource, ResourceExt, api::ObjectMeta};
use kupenstack_core::conditions;
use kupenstack_runtime::{ObjectRef, Objects};
use rand::{Rng, seq::SliceRandom};
use tokio::time::sleep;

use crate::{
    actuator::Kind,
    cloud::{Cloud, NamespaceMeta},
    realm::Realm,
};

/// How many are woken at once.
const GROUP: usize = 16;
/// Between two groups. A pass takes longer, so this is no brake: it keeps what all began to wait at the same moment
/// from being asked for at the same moment.
const GAP: Duration = Duration::from_millis(50);

/// The objects of a kind that have reason to be looked at: all of them when the cloud's standing changes, those of a
/// place when something about that does.
pub(crate) fn objects<K: Kind>(
    cloud: &Arc<Cloud>,
    services: &'static [&'static str],
    objects: Objects<K>,
) -> BoxStream<'static, ObjectRef<K>> {
    let everywhere = cloud.turns(|cloud| cloud.standing(services).settled()).map(|_| None).boxed();
    let somewhere = <K as Resource>::Scope::turns(cloud).map(Some).boxed();
    let concerned = move |place: Option<String>| {
        // what is not known yet is looked at anyway as soon as it is
        let is_there = |meta: &ObjectMeta| place.is_none() || meta.namespace == place;
        stream::iter(objects.select(|meta, _| is_there(meta)))
    };
    select(everywhere, somewhere).flat_map(concerned).boxed()
}

/// All namespaces, each time that `see` makes something else of the cloud than before.
pub(crate) fn namespaces<T: Clone + PartialEq + Send + 'static>(
    cloud: &Arc<Cloud>,
    see: impl Fn(&Cloud) -> Option<T> + Send + 'static,
) -> BoxStream<'static, ObjectRef<Namespace>> {
    let turns = cloud.turns(see);
    let cloud = Arc::clone(cloud);
    turns.flat_map(move |_| stream::iter(cloud.namespaces())).map(|namespace| reference(&namespace)).boxed()
}

/// What a namespace is to a controller of namespaces.
pub(crate) fn reference(namespace: &NamespaceMeta) -> ObjectRef<Namespace> {
    ObjectRef::new(&namespace.name_any())
}

/// Objects that may have waited for a service which is back, or for their project to be allowed more: whatever is not as
/// declared, or is being deleted.
pub(crate) fn waiting<K: Kind>(cloud: &Cloud, objects: Objects<K>) -> BoxStream<'static, ObjectRef<K>> {
    let everywhere = cloud.recoveries().map(|()| None);
    let somewhere = cloud.limit_changes().map(Some);
    let waiting = move |place: Option<String>| {
        objects.select(|meta, object| {
            let ready = object.is_some_and(|object| conditions::is_ready(object.conditions(), meta.generation));
            let is_there = place.is_none() || meta.namespace == place;
            is_there && (!ready || meta.deletion_timestamp.is_some())
        })
    };
    select(everywhere, somewhere).flat_map(move |place| one_by_one(waiting(place))).boxed()
}

/// All of them, in any order and not all at once: a service that has just come back is not to be knocked over.
pub(crate) fn one_by_one<T: Send + 'static>(mut all: Vec<T>) -> BoxStream<'static, T> {
    all.shuffle(&mut rand::rng());
    stream::iter(all)
        .chunks(GROUP)
        .then(|group| async {
            let jitter = rand::rng().random_range(0.5..1.5);
            sleep(GAP.mul_f64(jitter)).await;
            stream::iter(group)
        })
        .flatten()
        .boxed()
}
