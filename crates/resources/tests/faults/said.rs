//! What is said of objects that are in no namespace. All such events are in one, and for a list of those about one object the API
//! server reads them all: so they are followed once for all stages.

use std::{
    collections::BTreeMap,
    ptr,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use k8s_openapi::api::events::v1::Event;
use kube::{Api, runtime::watcher};
use kupenstack_runtime::{Context, Shared};
use tokio::{runtime::Runtime, sync::OnceCell};
use tokio_util::sync::CancellationToken;

use crate::common::{cluster::Cluster, operator::runtime};

/// The namespace of events about what is in none.
const NOWHERE: &str = "default";

/// Events of one cluster.
pub(crate) type Said = Arc<Shared<Event>>;

/// All that is said on a cluster of objects in no namespace.
pub(crate) async fn of_all_stages(cluster: &'static Cluster) -> Said {
    static CLUSTERS: Mutex<BTreeMap<usize, Arc<OnceCell<Said>>>> = Mutex::new(BTreeMap::new());
    let cell = {
        let mut clusters = CLUSTERS.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(clusters.entry(ptr::from_ref(cluster).addr()).or_default())
    };
    let said = cell.get_or_init(|| follow(cluster)).await;
    said.ready().await.unwrap();
    Arc::clone(said)
}

/// In a runtime of its own: a test's ends with the test.
async fn follow(cluster: &'static Cluster) -> Said {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let begun = RUNTIME.get_or_init(runtime).spawn(async {
        let client = cluster.client().await;
        let context = Context::new(client.clone(), Arc::default(), CancellationToken::new());
        Shared::start(Api::namespaced(client, NOWHERE), watcher::Config::default(), &context)
    });
    begun.await.unwrap()
}
