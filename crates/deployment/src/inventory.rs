//! The objects of all releases in the cloud's namespace, as metadata: what tells that one of them was touched.

use std::sync::Arc;

use futures::{StreamExt, future::BoxFuture, stream::BoxStream};
use k8s_openapi::api::{
    apps::v1::{DaemonSet, Deployment, StatefulSet},
    core::v1::{ConfigMap, PersistentVolumeClaim, Secret, Service, ServiceAccount},
    policy::v1::PodDisruptionBudget,
    rbac::v1::{Role, RoleBinding},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ApiResource, DynamicObject},
    core::{NamespaceResourceScope, PartialObjectMeta},
    runtime::watcher,
};
use kupenstack_runtime::{Context, Failure, ObjectRef, Shared};
use serde::de::DeserializeOwned;

/// Helm puts this label on everything that it applies.
const OF_HELM: &str = "app.kubernetes.io/managed-by=Helm";
/// Helm's annotation with the name of the release that an object belongs to.
pub(crate) const RELEASE_NAME: &str = "meta.helm.sh/release-name";

/// What changes when an object is written: its UID, with its generation, or its version where Kubernetes counts no
/// generations (those kinds have no status that moves it).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark(String);

impl Mark {
    pub(crate) fn of(object: &impl ResourceExt) -> Self {
        let meta = object.meta();
        let (uid, version) = (meta.uid.as_deref().unwrap_or_default(), meta.resource_version.as_deref());
        Self(match meta.generation {
            Some(generation) => format!("{uid}/generation/{generation}"),
            None => format!("{uid}/version/{}", version.unwrap_or_default()),
        })
    }
}

/// Watches the objects of releases, kind by kind.
pub(crate) struct Inventory {
    client: Client,
    namespace: String,
    kinds: Vec<(ApiResource, Arc<dyn Watched>)>,
}

impl Inventory {
    pub(crate) fn start(context: &Context, namespace: &str) -> Arc<Self> {
        let kinds = vec![
            watch::<Deployment>(context, namespace),
            watch::<StatefulSet>(context, namespace),
            watch::<DaemonSet>(context, namespace),
            watch::<ConfigMap>(context, namespace),
            watch::<Secret>(context, namespace),
            watch::<Service>(context, namespace),
            watch::<ServiceAccount>(context, namespace),
            watch::<PersistentVolumeClaim>(context, namespace),
            watch::<PodDisruptionBudget>(context, namespace),
            watch::<Role>(context, namespace),
            watch::<RoleBinding>(context, namespace),
        ];
        Arc::new(Self { client: context.client.clone(), namespace: namespace.to_owned(), kinds })
    }

    /// Waits until all objects are known.
    pub(crate) async fn ready(&self) -> Result<(), Failure> {
        for (_, watched) in &self.kinds {
            watched.ready().await?;
        }
        Ok(())
    }

    /// Where objects of a kind are, if it is one of those that are watched; others are not looked after.
    pub(crate) fn of_kind(&self, kind: &str) -> Option<Shelf<'_>> {
        let (resource, watched) = self.kinds.iter().find(|(resource, _)| resource.kind == kind)?;
        let api = Api::namespaced_with(self.client.clone(), &self.namespace, resource);
        Some(Shelf { api, watched: watched.as_ref() })
    }

    /// Where the objects of every kind are.
    pub(crate) fn apis(&self) -> impl Iterator<Item = Api<DynamicObject>> {
        let api = |resource| Api::namespaced_with(self.client.clone(), &self.namespace, resource);
        self.kinds.iter().map(move |(resource, _)| api(resource))
    }

    /// News of a release's objects, as a reference to look at.
    pub(crate) fn changes<M>(&self, release: &'static str, concerned: &ObjectRef<M>) -> BoxStream<'static, ObjectRef<M>>
    where
        M: Resource<DynamicType = ()> + 'static,
    {
        let all: Vec<_> = self.kinds.iter().map(|(_, watched)| watched.news(release)).collect();
        let concerned = concerned.clone();
        futures::stream::select_all(all).map(move |()| concerned.clone()).boxed()
    }
}

/// The objects of one kind.
pub(crate) struct Shelf<'a> {
    pub(crate) api: Api<DynamicObject>,
    watched: &'a dyn Watched,
}

impl Shelf<'_> {
    /// The mark of an object as the watch saw it last; `None` when it saw none.
    pub(crate) fn mark(&self, name: &str) -> Option<Mark> {
        self.watched.mark(name)
    }
}

trait Watched: Send + Sync {
    fn ready(&self) -> BoxFuture<'_, Result<(), Failure>>;
    fn mark(&self, name: &str) -> Option<Mark>;
    fn news(&self, release: &'static str) -> BoxStream<'static, ()>;
}

struct Store<K: Resource<DynamicType = ()> + 'static> {
    namespace: String,
    shared: Arc<Shared<PartialObjectMeta<K>>>,
}

fn watch<K>(context: &Context, namespace: &str) -> (ApiResource, Arc<dyn Watched>)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    K: Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
{
    let api: Api<PartialObjectMeta<K>> = Api::namespaced(context.client.clone(), namespace);
    let shared = Shared::start(api, watcher::Config::default().labels(OF_HELM), context);
    (ApiResource::erase::<K>(&()), Arc::new(Store { namespace: namespace.to_owned(), shared }))
}

impl<K> Watched for Store<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
{
    fn ready(&self) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(self.shared.ready())
    }

    fn mark(&self, name: &str) -> Option<Mark> {
        self.shared.get(&ObjectRef::new(name).within(&self.namespace)).map(|object| Mark::of(object.as_ref()))
    }

    fn news(&self, release: &'static str) -> BoxStream<'static, ()> {
        let of_release = move |_: &ObjectRef<_>, object: Option<&PartialObjectMeta<K>>| {
            // an object that is gone can't say whose it was: everybody looks
            let concerned = object.is_none_or(|o| o.annotations().get(RELEASE_NAME).is_some_and(|r| r == release));
            if concerned { vec![ObjectRef::<k8s_openapi::api::core::v1::Namespace>::new("any")] } else { Vec::new() }
        };
        self.shared.changes(of_release).map(|_| ()).boxed()
    }
}
