//! The one cloud, shared by all controllers: where it is, whether it is up, and clients of its users.

mod access;
mod health;
mod standing;

use std::sync::Arc;

use futures::{
    StreamExt,
    future::ready,
    stream::{self, BoxStream},
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, ResourceExt, api::ObjectMeta, core::PartialObjectMeta, runtime::watcher};
use kupenstack_api::cluster::OpenStack;
use kupenstack_openstack::{Client, CloudConfig, Observer, Options};
use kupenstack_runtime::{Context, Failure, ObjectRef, Shared, Told};
use tokio::sync::broadcast;

use self::health::Health;
pub(crate) use self::{
    access::{Access, CLOUDS_YAML, project_secret},
    standing::{Site, Standing},
};
use crate::stop::Stop;

/// Name of the one cloud.
pub(crate) const DEFAULT: &str = "default";

/// A namespace without all that is not metadata.
pub(crate) type NamespaceMeta = PartialObjectMeta<Namespace>;

/// The cloud as this process knows it.
pub(crate) struct Cloud {
    kubernetes: kube::Client,
    operator_namespace: String,
    openstack: Arc<Shared<OpenStack>>,
    namespaces: Arc<Shared<NamespaceMeta>>,
    access: Access,
    refusals: broadcast::Sender<String>,
    raises: broadcast::Sender<String>,
    departures: broadcast::Sender<String>,
    health: Arc<Health>,
}

impl Cloud {
    /// Starts to watch the cloud and the namespaces.
    pub(crate) fn start(context: &Context, operator_namespace: &str) -> Arc<Self> {
        let kubernetes = context.client.clone();
        let health = Arc::new(Health::new(Arc::clone(&context.metrics)));
        let observer: Arc<dyn Observer> = Arc::clone(&health) as Arc<dyn Observer>;
        let options = Options { observer: Some(observer), ..Options::default() };
        let news = || broadcast::channel(64).0;
        let cloud = Arc::new(Self {
            operator_namespace: operator_namespace.to_owned(),
            openstack: Shared::start(Api::all(kubernetes.clone()), watcher::Config::default(), context),
            namespaces: Shared::start(Api::all(kubernetes.clone()), watcher::Config::default(), context),
            access: Access::new(kubernetes.clone(), options),
            kubernetes,
            refusals: news(),
            raises: news(),
            departures: news(),
            health: Arc::clone(&health),
        });
        let look = health::look(Arc::downgrade(&cloud), health);
        tokio::spawn(context.stop.clone().run_until_cancelled_owned(look));
        cloud
    }

    /// Waits until the cloud and the namespaces are known: before that, a cloud that is not seen must not be taken
    /// for one that does not exist.
    pub(crate) async fn known(&self) -> Result<(), Failure> {
        self.openstack.ready().await?;
        self.namespaces.ready().await
    }

    /// The same for a controller, which can't start if they never are.
    pub(crate) async fn known_to(&self, controller: &str) -> bool {
        self.known().await.inspect_err(|error| tracing::info!(controller, %error, "not started")).is_ok()
    }

    /// The Kubernetes client.
    pub(crate) fn kubernetes(&self) -> kube::Client {
        self.kubernetes.clone()
    }

    /// Namespace of the operator.
    pub(crate) fn operator_namespace(&self) -> &str {
        &self.operator_namespace
    }

    /// The declared cloud.
    pub(crate) fn declared(&self) -> Option<Arc<OpenStack>> {
        self.openstack.get(&ObjectRef::new(DEFAULT))
    }

    /// How the cloud stands for what needs these services.
    pub(crate) fn standing(&self, services: &[&str]) -> Standing {
        Standing::of(self.declared().as_deref(), services)
    }

    /// Whether the cloud has a service, be it ready or not.
    pub(crate) fn has(&self, service: &str) -> bool {
        self.declared().is_some_and(|openstack| standing::has(&openstack, service))
    }

    /// Where the cloud is, once it has its identity.
    pub(crate) fn site(&self) -> Option<Site> {
        self.declared().and_then(|openstack| standing::site(&openstack))
    }

    /// A namespace's metadata.
    pub(crate) fn namespace(&self, name: &str) -> Option<Arc<NamespaceMeta>> {
        self.namespaces.get(&ObjectRef::new(name))
    }

    /// All namespaces.
    pub(crate) fn namespaces(&self) -> Vec<Arc<NamespaceMeta>> {
        self.namespaces.all()
    }

    /// A client of the administrator, for cloud-wide work and for reading.
    pub(crate) async fn admin(&self, site: &Site) -> Result<Client, Stop> {
        self.access.admin(site).await.map(|(client, _)| client)
    }

    /// The administrator's settings, from which those of other users are made.
    pub(crate) async fn admin_config(&self, site: &Site) -> Result<CloudConfig, Stop> {
        self.access.admin(site).await.map(|(_, config)| config)
    }

    /// A client of the namespace's own user; none while its credentials do not exist.
    pub(crate) async fn project(&self, site: &Site, namespace: &str) -> Result<Option<Client>, Stop> {
        self.access.project(site, namespace).await
    }

    /// Has the administrator's credentials and token renewed before they are used again.
    pub(crate) fn distrust_admin(&self) {
        self.access.distrust_admin();
    }

    /// Has a namespace's credentials read again before they are used again.
    pub(crate) fn reread_project(&self, namespace: &str) {
        self.access.forget_project(namespace);
    }

    /// Tells that a namespace's credentials are missing or refused: they are read again, and whoever keeps projects
    /// looks after them.
    pub(crate) fn distrust_project(&self, namespace: &str) {
        self.access.forget_project(namespace);
        // without a listener in this process, another one finds it at its next look
        drop(self.refusals.send(namespace.to_owned()));
    }

    /// Namespaces whose credentials are missing or refused.
    pub(crate) fn distrusted(&self) -> BoxStream<'static, ObjectRef<Namespace>> {
        // one that is missed and still true is told again
        heard(&self.refusals).filter_map(|place| ready(place.map(|namespace| ObjectRef::new(&namespace)))).boxed()
    }

    /// Tells that a namespace's project may have more than before, or less.
    pub(crate) fn limits_changed(&self, namespace: &str) {
        // without a listener in this process nobody waits in it
        drop(self.raises.send(namespace.to_owned()));
    }

    /// Namespaces whose project may have more than before, or less.
    pub(crate) fn limit_changes(&self) -> BoxStream<'static, String> {
        // who waits for more looks again before long anyway
        heard(&self.raises).filter_map(ready).boxed()
    }

    /// Tells that objects have changed or gone: those of a namespace that is being deleted may be the last that its project stays for.
    pub(crate) fn stirred<K>(&self, told: &Told<'_, K>) {
        let place = |meta: &ObjectMeta| self.namespace(meta.namespace.as_deref()?);
        let concerned = match told {
            Told::Listing => Vec::new(),
            Told::There(meta, _) | Told::Gone(meta) => names_of_leaving(place(meta)),
            // something may have gone while nobody watched
            Told::Listed => names_of_leaving(self.namespaces()),
        };
        for namespace in concerned {
            // without a listener in this process nobody waits in it
            drop(self.departures.send(namespace));
        }
    }

    /// Namespaces that are being deleted, each time that an object in them may have gone.
    pub(crate) fn departures(self: &Arc<Self>) -> BoxStream<'static, ObjectRef<Namespace>> {
        let cloud = Arc::clone(self);
        heard(&self.departures)
            .flat_map(move |place| {
                let all = || names_of_leaving(cloud.namespaces());
                stream::iter(place.map_or_else(all, |namespace| vec![namespace]))
            })
            .map(|namespace| ObjectRef::new(&namespace))
            .boxed()
    }

    /// Each time that a service of OpenStack which did not answer does so again.
    pub(crate) fn recoveries(&self) -> BoxStream<'static, ()> {
        self.health.recoveries()
    }

    /// Whatever `see` makes of the cloud, each time it is something else than before. `None` is nothing to tell, but
    /// what comes after it is.
    pub(crate) fn turns<T: Clone + PartialEq + Send + 'static>(
        self: &Arc<Self>,
        see: impl Fn(&Self) -> Option<T> + Send + 'static,
    ) -> BoxStream<'static, T> {
        let (cloud, mut last) = (Arc::clone(self), None);
        self.openstack
            .changes(|key: &ObjectRef<OpenStack>, _| vec![key.clone()])
            .filter_map(move |_| {
                let now = see(&cloud);
                let news = now.clone().filter(|now| last.as_ref() != Some(now));
                last = now;
                ready(news)
            })
            .boxed()
    }

    /// Every namespace that was changed or deleted.
    pub(crate) fn namespace_changes(&self) -> BoxStream<'static, ObjectRef<NamespaceMeta>> {
        self.namespaces.changes(|key: &ObjectRef<NamespaceMeta>, _| vec![key.clone()])
    }
}

/// Names of those that are being deleted.
fn names_of_leaving(namespaces: impl IntoIterator<Item = Arc<NamespaceMeta>>) -> Vec<String> {
    let leaving = namespaces.into_iter().filter(|namespace| namespace.metadata.deletion_timestamp.is_some());
    leaving.map(|namespace| namespace.name_any()).collect()
}

/// What is told from now on. Who is slow to listen misses some of it: that is nothing told of none.
fn heard(told: &broadcast::Sender<String>) -> BoxStream<'static, Option<String>> {
    stream::unfold(told.subscribe(), |mut news| async {
        match news.recv().await {
            Ok(namespace) => Some((Some(namespace), news)),
            Err(broadcast::error::RecvError::Lagged(_)) => Some((None, news)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    })
    .boxed()
}
