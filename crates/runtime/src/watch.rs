//! Watches and stores. Everything kept is pruned first: `managedFields` alone makes a stored object many times
//! larger than what we read of it.

use std::{fmt::Debug, hash::Hash, sync::Arc};

use futures::{Stream, StreamExt, future::ready, stream::BoxStream};
use kube::{
    Api, Resource,
    runtime::{
        WatchStreamExt,
        reflector::{self, ObjectRef, Store, store::Writer},
        watcher,
    },
};
use serde::de::DeserializeOwned;
use tokio::sync::{broadcast, watch};

use crate::Context;

/// kubectl's copy of the applied manifest.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Removes what nobody reads from an object that is to be kept.
pub(crate) fn prune<K: Resource>(object: &mut K) {
    let meta = object.meta_mut();
    meta.managed_fields = None;
    if let Some(annotations) = &mut meta.annotations {
        annotations.remove(LAST_APPLIED);
    }
}

/// A pruned watch with its own back-off, so that one failing watch delays no other.
pub(crate) fn events<K>(
    api: Api<K>,
    config: watcher::Config,
) -> impl Stream<Item = Result<watcher::Event<K>, watcher::Error>> + Send + 'static
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    K::DynamicType: Default,
{
    watcher(api, config.page_size(100)).default_backoff().modify(prune)
}

/// References of objects of `M` that are concerned by changes (or deletions) of objects of `K`. Nothing is kept.
pub fn changes_of<K, M>(
    api: Api<K>,
    config: watcher::Config,
    context: &Context,
    concerned: impl Fn(&K) -> Vec<ObjectRef<M>> + Send + 'static,
) -> BoxStream<'static, ObjectRef<M>>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    K::DynamicType: Default,
    M: Resource + 'static,
    M::DynamicType: Default + Hash + Eq + Clone + Send + Sync,
{
    let context = context.clone();
    events(api, config)
        .touched_objects()
        .flat_map(move |result| {
            let refs = result.inspect_err(|e| context.watch_failed::<K>(e)).map(|k| concerned(&k)).unwrap_or_default();
            futures::stream::iter(refs)
        })
        .boxed()
}

/// Tells any number of waiters when the store has its first full list. The store itself wakes only the one that
/// asked last.
fn known<K>(store: Store<K>) -> watch::Receiver<bool>
where
    K: Resource + Clone + Send + Sync + 'static,
    K::DynamicType: Hash + Eq + Clone + Send + Sync,
{
    let (tell, known) = watch::channel(false);
    tokio::spawn(async move {
        if store.wait_until_ready().await.is_ok() {
            tell.send_replace(true);
        }
    });
    known
}

/// A pruned store of all objects of a kind that several controllers share, with news of its changes.
pub struct Shared<K: Resource + 'static>
where
    K::DynamicType: Hash + Eq,
{
    store: Store<K>,
    news: broadcast::Sender<ObjectRef<K>>,
    known: watch::Receiver<bool>,
}

impl<K> Shared<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Default + Hash + Eq + Clone + Unpin + Send + Sync + Debug,
{
    /// Starts the watch; it ends with the context.
    pub fn start(api: Api<K>, config: watcher::Config, context: &Context) -> Arc<Self> {
        Self::start_lean(api, config, context, |_| {})
    }

    /// The same where `prune` removes more of an object that nobody reads, before it is kept.
    pub fn start_lean(api: Api<K>, config: watcher::Config, context: &Context, prune: fn(&mut K)) -> Arc<Self> {
        let writer = Writer::default();
        let (news, _) = broadcast::channel(1024);
        let store = writer.as_reader();
        let shared = Arc::new(Self { known: known(store.clone()), store, news: news.clone() });
        let (watched, stop) = (context.clone(), context.stop.clone());
        let stream = reflector::reflector(writer, events(api, config).modify(prune))
            .touched_objects()
            .take_until(stop.cancelled_owned());
        tokio::spawn(stream.for_each(move |result| {
            match result {
                // nobody listening is fine: a controller may only read the store
                Ok(object) => drop(news.send(ObjectRef::from(&object))),
                Err(e) => watched.watch_failed::<K>(&e),
            }
            ready(())
        }));
        shared
    }

    /// Waits until the first full list has arrived. Fails only when the watch has ended.
    pub async fn ready(&self) -> Result<(), crate::Failure> {
        let mut known = self.known.clone();
        known.wait_for(|known| *known).await.map(drop).map_err(|e| crate::Failure::new("WatchEnded", e))
    }

    /// Whether the first full list has arrived.
    pub fn is_ready(&self) -> bool {
        *self.known.borrow()
    }

    /// One object.
    pub fn get(&self, key: &ObjectRef<K>) -> Option<Arc<K>> {
        self.store.get(key)
    }

    /// All objects.
    pub fn all(&self) -> Vec<Arc<K>> {
        self.store.state()
    }

    /// References of objects of `M` that are concerned by changes here. `concerned` gets the changed object's
    /// reference and the object, `None` when it is gone. A listener that fell behind is told of every object.
    pub fn changes<M>(
        self: &Arc<Self>,
        concerned: impl Fn(&ObjectRef<K>, Option<&K>) -> Vec<ObjectRef<M>> + Send + Sync + 'static,
    ) -> BoxStream<'static, ObjectRef<M>>
    where
        M: Resource + 'static,
        M::DynamicType: Default + Hash + Eq + Clone + Send + Sync,
    {
        let (shared, news) = (Arc::clone(self), self.news.subscribe());
        futures::stream::unfold(news, |mut news| async {
            match news.recv().await {
                Ok(key) => Some((Some(key), news)),
                Err(broadcast::error::RecvError::Lagged(_)) => Some((None, news)),
                Err(broadcast::error::RecvError::Closed) => None,
            }
        })
        .flat_map(move |news| {
            let keys = match news {
                Some(key) => vec![key],
                None => shared.all().iter().map(|o| ObjectRef::from(o.as_ref())).collect(),
            };
            let refs: Vec<_> = keys.iter().flat_map(|k| concerned(k, shared.get(k).as_deref())).collect();
            futures::stream::iter(refs)
        })
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kupenstack_testkit::within;

    use super::*;

    #[tokio::test]
    async fn every_waiter_hears_of_the_first_list() {
        let mut writer = Writer::<ConfigMap>::default();
        let known = known(writer.as_reader());
        let waiters = (0..3).map(|_| {
            let mut known = known.clone();
            tokio::spawn(async move { known.wait_for(|known| *known).await.map(drop) })
        });
        let waiters: Vec<_> = waiters.collect();
        tokio::task::yield_now().await; // all of them wait by now

        writer.apply_watcher_event(&watcher::Event::Init);
        writer.apply_watcher_event(&watcher::Event::InitDone);

        let results = within(join_all(waiters), "every waiter is woken").await;
        assert!(results.into_iter().all(|joined| joined.unwrap().is_ok()));
    }

    #[tokio::test]
    async fn waiters_hear_that_the_watch_ended() {
        let writer = Writer::<ConfigMap>::default();
        let mut known = known(writer.as_reader());
        drop(writer);
        assert!(within(known.wait_for(|known| *known), "the end").await.is_err());
    }
}
