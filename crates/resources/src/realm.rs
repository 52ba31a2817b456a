//! Whose the resources of a kind are, told by the kind's scope: what is in a namespace belongs to the namespace's
//! project and is made by its user, what is in none belongs to the whole cloud and is made by its administrator.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Mutex, PoisonError},
};

use futures::{
    FutureExt, StreamExt, TryFutureExt,
    future::{BoxFuture, ready},
    stream::{self, BoxStream},
};
use kube::{
    Api, Resource, ResourceExt,
    core::{ClusterResourceScope, NamespaceResourceScope},
};
use kupenstack_api::resources::{PROJECT, PROJECT_ID};
use kupenstack_core::{Outcome, reason};
use kupenstack_openstack::Client;

use crate::{
    cloud::{Cloud, NamespaceMeta, Site},
    stop::Stop,
};

/// A scope of kinds. A *place* in it is a namespace; the one place outside all namespaces has an empty name.
pub(crate) trait Realm: Sized + Send + Sync + 'static {
    /// The objects of a kind in a place.
    fn api<K>(kubernetes: kube::Client, place: &str) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = Self>;

    /// Where the objects are that something in a place calls by their name alone.
    fn beside(place: &str) -> &str;

    /// Our mark on what the objects in a place share; none where no place is known.
    fn mark(cloud: &Cloud, site: &Site, place: &str) -> Option<String>;

    /// Whether resources can be made for what is in a place, or what they wait for.
    fn open(cloud: &Cloud, place: &str) -> Result<(), Outcome>;

    /// Who makes, keeps and deletes what is declared in a place; none while its credentials are missing.
    fn maker<'a>(cloud: &'a Cloud, site: &'a Site, place: &'a str) -> BoxFuture<'a, Result<Option<Worker>, Stop>>;

    /// Who knows whose it is, and only looks at it: the administrator, of whom nothing is asked for that.
    fn onlooker<'a>(cloud: &'a Cloud, site: &'a Site, place: &'a str) -> BoxFuture<'a, Result<Worker, Stop>>;

    /// Who deletes what has lost its maker.
    fn heir<'a>(cloud: &'a Cloud, site: &'a Site) -> BoxFuture<'a, Result<Worker, Stop>>;

    /// Has the missing credentials of a place made anew, and says what is waited for.
    fn bereft(cloud: &Cloud, place: &str) -> Outcome;

    /// Whether Kubernetes takes events about what is in a place.
    fn takes_events(cloud: &Cloud, place: &str) -> bool;

    /// Places whose objects have reason to be looked at.
    fn turns(cloud: &Arc<Cloud>) -> BoxStream<'static, String>;
}

/// The place that an object is in.
pub(crate) fn place_of(object: &impl ResourceExt) -> String {
    object.namespace().unwrap_or_default()
}

/// Who works for an object.
pub(crate) struct Worker {
    /// The user's client.
    pub(crate) client: Client,
    /// The project that everything it makes belongs to. Unknown to who only deletes what others have made.
    pub(crate) owner: Option<String>,
    /// The namespace whose user it is; the administrator's is none.
    namespace: Option<String>,
}

impl Worker {
    /// The namespace's user; none while its credentials are missing.
    async fn of_namespace(cloud: &Cloud, site: &Site, namespace: &str) -> Result<Option<Self>, Stop> {
        let Some(client) = cloud.project(site, namespace).await? else { return Ok(None) };
        let worker = Self { client, owner: None, namespace: Some(namespace.to_owned()) };
        worker.in_own_project(cloud).await.map(Some)
    }

    /// The administrator in a project of its own.
    async fn admin(cloud: &Cloud, site: &Site) -> Result<Self, Stop> {
        Self::stranger(cloud, site).await?.in_own_project(cloud).await
    }

    /// The administrator, where it deletes what belongs to others.
    pub(crate) async fn stranger(cloud: &Cloud, site: &Site) -> Result<Self, Stop> {
        Ok(Self { client: cloud.admin(site).await?, owner: None, namespace: None })
    }

    async fn in_own_project(self, cloud: &Cloud) -> Result<Self, Stop> {
        match self.client.project_id().await.map_err(Stop::from) {
            Ok(owner) => Ok(Self { owner, ..self }),
            Err(stop) => {
                self.doubt(cloud, &stop);
                Err(stop)
            }
        }
    }

    /// Has the credentials looked after when they may be to blame for a stop.
    pub(crate) fn doubt(&self, cloud: &Cloud, stop: &Stop) {
        match &self.namespace {
            Some(namespace) if stop.is_unauthorized() => cloud.distrust_project(namespace),
            None if stop.casts_doubt_on_the_token() => cloud.distrust_admin(),
            _ => {}
        }
    }
}

impl Realm for NamespaceResourceScope {
    fn api<K>(kubernetes: kube::Client, place: &str) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = Self>,
    {
        Api::namespaced(kubernetes, place)
    }

    fn beside(place: &str) -> &str {
        place
    }

    fn mark(cloud: &Cloud, site: &Site, place: &str) -> Option<String> {
        Some(site.cluster.mark(&cloud.namespace(place)?.uid()?))
    }

    fn open(cloud: &Cloud, place: &str) -> Result<(), Outcome> {
        let wait = |message: String| Err(Outcome::waiting(reason::PROJECT_NOT_READY, message));
        let Some(namespace) = cloud.namespace(place) else {
            return wait(format!("namespace {place} is not known yet"));
        };
        if namespace.metadata.deletion_timestamp.is_some() {
            return wait(format!("namespace {place} is being deleted"));
        }
        if namespace.annotations().contains_key(PROJECT_ID) {
            return Ok(());
        }
        if namespace.annotations().get(PROJECT).is_some_and(|value| value == "ignore") {
            return wait(format!("namespace {place} has no project: its annotation {PROJECT} says ignore"));
        }
        wait(format!("namespace {place} has no project yet"))
    }

    fn maker<'a>(cloud: &'a Cloud, site: &'a Site, place: &'a str) -> BoxFuture<'a, Result<Option<Worker>, Stop>> {
        Worker::of_namespace(cloud, site, place).boxed()
    }

    fn onlooker<'a>(cloud: &'a Cloud, site: &'a Site, place: &'a str) -> BoxFuture<'a, Result<Worker, Stop>> {
        let project = cloud.namespace(place).and_then(|namespace| namespace.annotations().get(PROJECT_ID).cloned());
        Worker::stranger(cloud, site).map_ok(|admin| Worker { owner: project, ..admin }).boxed()
    }

    fn heir<'a>(cloud: &'a Cloud, site: &'a Site) -> BoxFuture<'a, Result<Worker, Stop>> {
        Worker::stranger(cloud, site).boxed()
    }

    fn bereft(cloud: &Cloud, place: &str) -> Outcome {
        cloud.distrust_project(place);
        let message = format!("the credentials of namespace {place} are missing, they are made anew");
        Outcome::waiting(reason::PROJECT_NOT_READY, message)
    }

    fn takes_events(cloud: &Cloud, place: &str) -> bool {
        cloud.namespace(place).is_some_and(|namespace| namespace.metadata.deletion_timestamp.is_none())
    }

    /// Namespaces whose project appeared or changed, or that are being deleted.
    fn turns(cloud: &Arc<Cloud>) -> BoxStream<'static, String> {
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
}

/// A fingerprint of what objects in a namespace wait for; `None` while there is nothing of it.
fn news(namespace: &NamespaceMeta) -> Option<u64> {
    let project = namespace.annotations().get(PROJECT_ID);
    let leaving = namespace.metadata.deletion_timestamp.is_some();
    let mut hasher = DefaultHasher::new();
    (project, leaving).hash(&mut hasher);
    (project.is_some() || leaving).then(|| hasher.finish())
}

impl Realm for ClusterResourceScope {
    fn api<K>(kubernetes: kube::Client, _: &str) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = Self>,
    {
        Api::all(kubernetes)
    }

    fn beside(_: &str) -> &'static str {
        ""
    }

    fn mark(_: &Cloud, _: &Site, _: &str) -> Option<String> {
        None
    }

    fn open(_: &Cloud, _: &str) -> Result<(), Outcome> {
        Ok(())
    }

    fn maker<'a>(cloud: &'a Cloud, site: &'a Site, _: &'a str) -> BoxFuture<'a, Result<Option<Worker>, Stop>> {
        Worker::admin(cloud, site).map_ok(Some).boxed()
    }

    fn onlooker<'a>(cloud: &'a Cloud, site: &'a Site, _: &'a str) -> BoxFuture<'a, Result<Worker, Stop>> {
        Worker::admin(cloud, site).boxed()
    }

    fn heir<'a>(cloud: &'a Cloud, site: &'a Site) -> BoxFuture<'a, Result<Worker, Stop>> {
        Worker::admin(cloud, site).boxed()
    }

    fn bereft(_: &Cloud, _: &str) -> Outcome {
        Outcome::waiting(reason::CLOUD_UNAVAILABLE, "the administrator's credentials are missing")
    }

    fn takes_events(_: &Cloud, _: &str) -> bool {
        true
    }

    fn turns(_: &Arc<Cloud>) -> BoxStream<'static, String> {
        stream::empty().boxed()
    }
}
