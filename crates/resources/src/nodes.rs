//! The nodes of the cluster, as far as they matter for what runs on them: their labels, and whether they are out of service.
//!
//! They are watched from when the first asks for them.

use std::{
    collections::{BTreeMap, HashMap},
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, OnceLock},
};

use futures::{StreamExt, stream::BoxStream};
use k8s_openapi::api::core::v1::{Node, NodeSpec};
use kube::{Api, ResourceExt, runtime::watcher};
use kupenstack_runtime::{Context, Failure, ObjectRef, Shared};

/// By this taint an administrator, or whoever switches machines off for him, says that a node is shut down for certain, so that what
/// ran on it may run elsewhere (Kubernetes, "Non-graceful node shutdown").
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// All nodes.
pub(crate) struct Nodes {
    kubernetes: kube::Client,
    store: OnceLock<Arc<Shared<Node>>>,
}

/// What is known of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Presence {
    /// There is such a node.
    There,
    /// There is, and it is said to be shut down.
    OutOfService,
    /// There is no such node.
    Absent,
}

impl Nodes {
    pub(crate) fn new(kubernetes: kube::Client) -> Arc<Self> {
        Arc::new(Self { kubernetes, store: OnceLock::new() })
    }

    /// All nodes; none as long as they are not known.
    fn known(&self) -> Option<&Arc<Shared<Node>>> {
        self.store.get().filter(|nodes| nodes.is_ready())
    }

    /// Whether there are nodes to ask for.
    pub(crate) fn are_known(&self) -> bool {
        self.known().is_some()
    }

    /// The labels of a node, if there is such a one.
    pub(crate) fn labels(&self, name: &str) -> Option<BTreeMap<String, String>> {
        self.known()?.get(&ObjectRef::new(name)).map(|node| node.labels().clone())
    }

    /// Whether there is such a node, and in service; none as long as nodes are not known.
    pub(crate) fn presence(&self, name: &str) -> Option<Presence> {
        Some(self.known()?.get(&ObjectRef::new(name)).map_or(Presence::Absent, |node| presence(&node)))
    }

    /// Waits until all are known. Then tells each time that what `of` reads of a node is otherwise, or that a node comes or goes. Fails
    /// only when the watch has ended.
    pub(crate) async fn watched<T: Hash + 'static>(
        &self,
        context: &Context,
        of: fn(&Node) -> T,
    ) -> Result<BoxStream<'static, ()>, Failure> {
        let start = || {
            let api = Api::all(self.kubernetes.clone());
            Shared::start_lean(api, watcher::Config::default(), context, prune)
        };
        let store = Arc::clone(self.store.get_or_init(start));
        store.ready().await?;
        let fingerprint = move |node: &Node| {
            let mut hasher = DefaultHasher::new();
            of(node).hash(&mut hasher);
            hasher.finish()
        };
        let changes = store.changes(|key: &ObjectRef<Node>, _| vec![key.clone()]);
        let mut known: HashMap<String, u64> =
            store.all().iter().map(|node| (node.name_any(), fingerprint(node))).collect();
        let changes = changes.filter_map(move |key| {
            let now = store.get(&key).map(|node| fingerprint(&node));
            let before = match now {
                Some(now) => known.insert(key.name.clone(), now),
                None => known.remove(&key.name),
            };
            futures::future::ready((before != now).then_some(()))
        });
        Ok(changes.boxed())
    }
}

/// Whether a node is in service.
pub(crate) fn presence(node: &Node) -> Presence {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    if taints.into_iter().any(|taint| taint.key == OUT_OF_SERVICE) { Presence::OutOfService } else { Presence::There }
}

/// Removes what a kubelet tells, mostly of images.
fn prune(node: &mut Node) {
    let taints = node.spec.take().and_then(|spec| spec.taints);
    node.spec = Some(NodeSpec { taints, ..NodeSpec::default() });
    node.status = None;
    node.metadata.annotations = None;
}
