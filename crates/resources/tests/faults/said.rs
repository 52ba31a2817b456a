//! What is said of objects that are in no namespace. All such events are in one, and for a list of those about one object the API
//! server reads them all: so they are followed once for all stages.

use std::{
    collections::BTreeMap,
    future::ready,
    ptr,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use futures::StreamExt;
use k8s_openapi::api::events::v1::Event;
use kube::{
    Api,
    runtime::{
        WatchStreamExt,
        reflector::{self, Store},
        watcher,
    },
};
use tokio::{runtime::Runtime, sync::OnceCell};

use crate::common::{cluster::Cluster, operator::runtime};

/// The namespace of events about what is in none.
const NOWHERE: &str = "default";

/// All that is said on a cluster of objects in no namespace.
pub(crate) async fn of_all_stages(cluster: &'static Cluster) -> Store<Event> {
    static CLUSTERS: Mutex<BTreeMap<usize, Arc<OnceCell<Store<Event>>>>> = Mutex::new(BTreeMap::new());
    let cell = {
        let mut clusters = CLUSTERS.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(clusters.entry(ptr::from_ref(cluster).addr()).or_default())
    };
    cell.get_or_init(|| follow(cluster)).await.clone()
}

/// In a runtime of its own: a test's ends with the test.
async fn follow(cluster: &'static Cluster) -> Store<Event> {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let (store, writer) = reflector::store();
    RUNTIME.get_or_init(runtime).spawn(async move {
        let events = Api::<Event>::namespaced(cluster.client().await, NOWHERE);
        let news = reflector::reflector(writer, watcher(events, watcher::Config::default()));
        news.default_backoff().for_each(|_| ready(())).await;
    });
    // of several who wait for it, kube wakes one only
    store.wait_until_ready().await.unwrap();
    store
}
