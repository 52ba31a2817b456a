//! Where every service stands, for those that depend on it.

use std::{collections::BTreeMap, sync::Arc};

use futures::{StreamExt, future::ready, stream::BoxStream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Api, Resource, ResourceExt, core::DeserializeGuard, core::NamespaceResourceScope, runtime::watcher};
use kupenstack_api::cluster::ServiceResource;
use kupenstack_core::conditions;
use kupenstack_runtime::{Context, Failure, ObjectRef, Shared};
use serde::de::DeserializeOwned;

use crate::{
    config::{Reference, references},
    service::Kind,
    services::typed,
};

/// An object with a spec as it was at some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    uid: Option<String>,
    generation: Option<i64>,
}

impl Version {
    pub(crate) fn of(meta: &ObjectMeta) -> Self {
        Self { uid: meta.uid.clone(), generation: meta.generation }
    }

    /// Whether this was before the other, or of another object of the name.
    pub(crate) fn is_before(&self, other: &Self) -> bool {
        self.uid != other.uid || self.generation < other.generation
    }
}

/// Where one service stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    /// What of the object this is about.
    pub(crate) version: Version,
    /// As declared.
    pub(crate) ready: bool,
    /// Requests are answered, perhaps not by what is declared now.
    pub(crate) available: bool,
    pub(crate) stalled: bool,
    pub(crate) reason: String,
    pub(crate) message: String,
    /// Its URLs for users, by name.
    pub(crate) public_endpoints: BTreeMap<String, String>,
}

impl Standing {
    /// What is left of it once the object has another spec.
    pub(crate) fn changed_just_now(self) -> Self {
        let (reason, message) = ("Pending".to_owned(), "its object was written just now".to_owned());
        Self { ready: false, stalled: false, reason, message, ..self }
    }
}

/// Watches the objects of every service kind in the cloud's namespace.
pub(crate) struct Board {
    watched: Vec<(Kind, Arc<dyn Watched>)>,
}

impl Board {
    pub(crate) fn start(context: &Context, namespace: &str) -> Arc<Self> {
        let watched = Kind::ALL.map(|kind| (kind, typed!(kind, watch(context, namespace)))).into();
        Arc::new(Self { watched })
    }

    /// Waits until all services are known.
    pub(crate) async fn ready(&self) -> Result<(), Failure> {
        for (_, watched) in &self.watched {
            watched.ready().await?;
        }
        Ok(())
    }

    /// Where a service stands; `None` when there is no such object.
    pub(crate) fn standing(&self, kind: Kind) -> Option<Standing> {
        self.watched.iter().find(|(k, _)| *k == kind).and_then(|(k, watched)| watched.standing(k.object()))
    }

    /// Whether a service's configuration names an object.
    pub(crate) fn names(&self, kind: Kind, reference: &Reference) -> bool {
        self.watched.iter().any(|(k, watched)| *k == kind && watched.names(k.object(), reference))
    }

    /// News of any service, as a reference to look at.
    pub(crate) fn changes<M>(&self, concerned: ObjectRef<M>) -> BoxStream<'static, ObjectRef<M>>
    where
        M: Resource<DynamicType = ()> + 'static,
    {
        let all: Vec<_> = self.watched.iter().map(|(_, watched)| watched.news()).collect();
        futures::stream::select_all(all).map(move |()| concerned.clone()).boxed()
    }
}

/// The store of one kind.
trait Watched: Send + Sync {
    fn ready(&self) -> futures::future::BoxFuture<'_, Result<(), Failure>>;
    fn standing(&self, name: &str) -> Option<Standing>;
    fn names(&self, name: &str, reference: &Reference) -> bool;
    fn news(&self) -> BoxStream<'static, ()>;
}

struct Store<K: Resource<DynamicType = ()> + 'static> {
    namespace: String,
    shared: Arc<Shared<DeserializeGuard<K>>>,
}

fn watch<K>(context: &Context, namespace: &str) -> Arc<dyn Watched>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + ServiceResource,
    K: Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
{
    let api = Api::namespaced(context.client.clone(), namespace);
    let shared = Shared::start(api, watcher::Config::default(), context);
    Arc::new(Store::<K> { namespace: namespace.to_owned(), shared })
}

impl<K> Watched for Store<K>
where
    K: Resource<DynamicType = ()> + ServiceResource,
    K: Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
{
    fn ready(&self) -> futures::future::BoxFuture<'_, Result<(), Failure>> {
        Box::pin(self.shared.ready())
    }

    fn standing(&self, name: &str) -> Option<Standing> {
        let object = self.shared.get(&ObjectRef::new(name).within(&self.namespace))?;
        Some(match &object.0 {
            Ok(object) => standing_of(object),
            Err(invalid) => Standing {
                version: Version::of(&invalid.metadata),
                ready: false,
                available: false,
                stalled: true,
                reason: "Undecodable".to_owned(),
                message: invalid.error.clone(),
                public_endpoints: BTreeMap::new(),
            },
        })
    }

    fn names(&self, name: &str, reference: &Reference) -> bool {
        let object = self.shared.get(&ObjectRef::new(name).within(&self.namespace));
        object.is_some_and(|o| o.0.as_ref().is_ok_and(|o| references(o.common()).contains(reference)))
    }

    fn news(&self) -> BoxStream<'static, ()> {
        // the reference does not matter: one namespace holds one object of each kind
        self.shared
            .changes(|_, _| vec![ObjectRef::<k8s_openapi::api::core::v1::Namespace>::new("any")])
            .then(|_| ready(()))
            .boxed()
    }
}

fn standing_of<K: ResourceExt + ServiceResource>(object: &K) -> Standing {
    let all = object.conditions();
    let deleting = object.meta().deletion_timestamp.is_some();
    let (reason, message) = match conditions::find(all, conditions::READY) {
        _ if deleting => ("Deleting".to_owned(), "is being deleted".to_owned()),
        Some(c) => (c.reason.clone(), c.message.clone()),
        None => ("Pending".to_owned(), "not looked at yet".to_owned()),
    };
    let ready = !deleting && conditions::is_ready(all, object.meta().generation);
    Standing {
        version: Version::of(object.meta()),
        ready,
        available: !deleting && (ready || conditions::is_true(all, conditions::AVAILABLE)),
        stalled: conditions::find(all, conditions::STALLED).is_some(),
        reason,
        message,
        public_endpoints: object.status().map(|status| status.public_endpoints.clone()).unwrap_or_default(),
    }
}
