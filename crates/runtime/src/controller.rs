//! The controller wrapper: one watch of the kind, further triggers, a limit, a pace, metrics.

use std::{
    fmt::Debug,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{
    StreamExt,
    future::{BoxFuture, ready},
    stream::{self, BoxStream},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Api, Client, Resource,
    core::{DeserializeGuard, NamespaceResourceScope},
    runtime::{
        controller::{Action, Config},
        events::EventType,
        reflector::{ObjectRef, Store, store::Writer},
        watcher,
    },
};
use kupenstack_core::Outcome;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use crate::{
    Events, Failure,
    metrics::Metrics,
    news::{bare, news, rounds},
    own_writes::OwnWrites,
    pace::{Attempts, growing, jittered},
    watch,
};

/// How often a settled object is looked at.
const ROUND: Duration = Duration::from_mins(10);

/// What happens to an object within this time is one reason for a pass: much of it is what the pass before has written.
const DEBOUNCE: Duration = Duration::from_millis(25);

/// How long a pass waits at most for its watch to show what the one before it has written.
const PUT_OFF: Duration = Duration::from_secs(30);

/// What every controller of the process shares.
#[derive(Clone)]
pub struct Context {
    /// Client of the Kubernetes API.
    pub client: Client,
    /// Metrics of the process.
    pub metrics: Arc<Metrics>,
    /// Cancelled when the process is to stop.
    pub stop: CancellationToken,
    /// How soon a pass that failed is repeated at first. Each further failure doubles it, up to five minutes.
    pub retry: Duration,
}

impl Context {
    /// A context in which a pass that failed is repeated after a second at first.
    pub fn new(client: Client, metrics: Arc<Metrics>, stop: CancellationToken) -> Self {
        Self { client, metrics, stop, retry: Duration::from_secs(1) }
    }

    pub(crate) fn watch_failed<K: Resource>(&self, error: &watcher::Error)
    where
        K::DynamicType: Default,
    {
        let kind = K::kind(&K::DynamicType::default()).into_owned();
        tracing::warn!(kind, %error, "watch interrupted, it is resumed");
        self.metrics.watch_failed(&kind);
    }
}

/// The logic of a controller: one pass over one object.
pub trait Reconcile<K>: Send + Sync + 'static {
    /// Brings the object nearer to what it declares and writes its status.
    fn reconcile(&self, object: Arc<K>) -> BoxFuture<'_, Result<Outcome, Failure>>;
}

/// A controller of one kind.
pub struct Controller<K: Resource<DynamicType = ()> + Clone + 'static> {
    name: &'static str,
    api: Api<DeserializeGuard<K>>,
    writer: Writer<DeserializeGuard<K>>,
    listed: CancellationToken,
    concurrency: u16,
    listener: Listener<K>,
    triggers: Vec<BoxStream<'static, ObjectRef<K>>>,
}

type Listener<K> = Box<dyn FnMut(Told<'_, K>) + Send>;

/// What is told of a controller's objects, before any pass sees it.
pub enum Told<'a, K> {
    /// A list of all of them begins: what it does not show is gone.
    Listing,
    /// One is there or has changed. It is absent when it can't be decoded.
    There(&'a ObjectMeta, Option<&'a K>),
    /// The list is complete.
    Listed,
    /// One is gone.
    Gone(&'a ObjectMeta),
}

impl<'a, K> Told<'a, K> {
    fn of(event: &'a watcher::Event<DeserializeGuard<K>>) -> Self
    where
        K: Resource<DynamicType = ()>,
    {
        match event {
            watcher::Event::Init => Self::Listing,
            watcher::Event::InitDone => Self::Listed,
            watcher::Event::Apply(object) | watcher::Event::InitApply(object) => {
                Self::There(object.meta(), object.0.as_ref().ok())
            }
            watcher::Event::Delete(object) => Self::Gone(object.meta()),
        }
    }
}

impl<K> Controller<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    /// A controller named `name` (a metric label) of all objects of the kind in the cluster.
    pub fn new(name: &'static str, context: &Context) -> Self {
        Self::of(name, Api::all(context.client.clone()))
    }

    /// The same for the objects in one namespace.
    pub fn in_namespace(name: &'static str, context: &Context, namespace: &str) -> Self
    where
        K: Resource<Scope = NamespaceResourceScope>,
    {
        Self::of(name, Api::namespaced(context.client.clone(), namespace))
    }

    fn of(name: &'static str, api: Api<DeserializeGuard<K>>) -> Self {
        Self {
            name,
            api,
            writer: Writer::default(),
            listed: CancellationToken::new(),
            concurrency: 8,
            listener: Box::new(|_| {}),
            triggers: Vec::new(),
        }
    }

    /// What the controller knows of its objects, once it runs.
    pub fn objects(&self) -> Objects<K> {
        Objects { store: self.writer.as_reader(), listed: self.listed.clone() }
    }

    /// How many objects are worked on at once; 8 unless told.
    #[must_use]
    pub fn concurrency(mut self, limit: u16) -> Self {
        self.concurrency = limit;
        self
    }

    /// Has all that happens to the objects told to `listener`. It must not wait for anything.
    #[must_use]
    pub fn listener(mut self, listener: impl FnMut(Told<'_, K>) + Send + 'static) -> Self {
        self.listener = Box::new(listener);
        self
    }

    /// A further stream of objects to look at.
    #[must_use]
    pub fn trigger(mut self, stream: BoxStream<'static, ObjectRef<K>>) -> Self {
        self.triggers.push(stream);
        self
    }

    /// Runs until the context is cancelled; passes under way are finished.
    pub async fn run(self, reconciler: Arc<dyn Reconcile<K>>, context: Context) {
        let pass = Arc::new(Pass {
            name: self.name,
            retry: context.retry,
            attempts: Attempts::new(),
            own_writes: OwnWrites::new(self.writer.as_reader()),
            events: Events::new(context.client.clone()),
            metrics: Arc::clone(&context.metrics),
            reconciler,
        });
        let (forget, caught_up, failed) = (Arc::clone(&pass), Arc::clone(&pass), context.clone());
        let is_called_for = move |object: &_| caught_up.own_writes.is_called_for(object);
        let Self { writer, listed, mut listener, .. } = self;
        let store = writer.as_reader();
        let events = watch::events(self.api, watcher::Config::default()).filter_map(move |event| {
            match &event {
                Ok(watcher::Event::Delete(object)) => forget.forget(&ObjectRef::from(object)),
                Ok(_) => {}
                Err(error) => failed.watch_failed::<K>(error),
            }
            ready(event.ok())
        });
        let config = Config::default().concurrency(self.concurrency).debounce(DEBOUNCE);
        // kube's own trigger remembers the metadata of every object that it has seen
        let mut controller = kube::runtime::Controller::for_stream(stream::pending(), store.clone())
            .with_config(config)
            .reconcile_on(news(writer, listed.clone(), is_called_for, move |event| listener(Told::of(event)), events))
            .reconcile_on(rounds(store, ROUND));
        for trigger in self.triggers {
            controller = controller.reconcile_on(trigger.map(|key| bare(key.into_kind_unchecked(()))));
        }
        let running = controller
            .graceful_shutdown_on(context.stop.clone().cancelled_owned())
            .run(Pass::run, |object, failure, pass| pass.failed(&object, failure), pass)
            .for_each(|result| async move {
                // failures of passes are reported where they happen; a missing object was deleted meanwhile
                if let Err(e @ kube::runtime::controller::Error::QueueError(_)) = result {
                    tracing::warn!(controller = self.name, error = %e, "queue");
                }
            });
        // kube waits for its first list even when it is told to stop before that has come; no pass has begun then
        tokio::select! {
            () = running => {}
            () = unless(listed, context.stop.cancelled()) => {}
        }
    }
}

/// What a controller knows of the objects of its kind.
pub struct Objects<K: Resource<DynamicType = ()> + 'static> {
    store: Store<DeserializeGuard<K>>,
    listed: CancellationToken,
}

impl<K: Resource<DynamicType = ()> + Clone + 'static> Objects<K> {
    /// Waits for the first full list. It never ends if the controller ends before.
    pub async fn known(&self) {
        self.listed.cancelled().await;
    }

    /// Whether the first full list has come.
    pub fn are_known(&self) -> bool {
        self.listed.is_cancelled()
    }

    /// References of the objects that `concerned` picks. It sees every object's metadata, and the object itself unless
    /// that can't be decoded.
    pub fn select(&self, mut concerned: impl FnMut(&ObjectMeta, Option<&K>) -> bool) -> Vec<ObjectRef<K>> {
        let all = self.store.state();
        let picked = all.iter().filter(|object| concerned(object.meta(), object.0.as_ref().ok()));
        picked.map(|object| ObjectRef::from(object.as_ref()).into_kind_unchecked(())).collect()
    }
}

/// Ends with `end`, but never if `first` is cancelled before.
async fn unless(first: CancellationToken, end: impl Future<Output = ()>) {
    if first.run_until_cancelled(end).await.is_none() {
        std::future::pending::<()>().await;
    }
}

struct Pass<K: Resource<DynamicType = ()> + 'static> {
    name: &'static str,
    retry: Duration,
    attempts: Attempts<ObjectRef<DeserializeGuard<K>>>,
    own_writes: OwnWrites<DeserializeGuard<K>>,
    events: Events,
    metrics: Arc<Metrics>,
    reconciler: Arc<dyn Reconcile<K>>,
}

impl<K: Resource<DynamicType = ()> + Clone + Debug + Send + Sync + 'static> Pass<K> {
    /// One pass over one object.
    async fn run(object: Arc<DeserializeGuard<K>>, this: Arc<Self>) -> Result<Action, Failure> {
        let started = Instant::now();
        let key = ObjectRef::from(object.as_ref());
        let decoded = match &object.0 {
            Ok(object) => Arc::new(object.clone()),
            Err(invalid) => return Err(Failure::new("Undecodable", invalid.clone())),
        };
        if this.own_writes.puts_off(&object) {
            // it is called for when that is shown; a watch that begins anew in between may not call
            return Ok(Action::requeue(jittered(PUT_OFF)));
        }
        let running = this.metrics.running(this.name);
        let pass = this.reconciler.reconcile(decoded);
        let outcome = this.own_writes.during(&object, pass).await;
        drop(running);
        this.metrics.reconciled(this.name, started.elapsed(), outcome.as_ref().map(Outcome::reason));
        let outcome = outcome?;
        tracing::debug!(controller = this.name, object = %key, reason = outcome.reason(), message = outcome.message());
        Ok(match outcome {
            // its turn comes round
            Outcome::Done { .. } => {
                this.attempts.forget(&key);
                Action::await_change()
            }
            Outcome::Waiting { after, .. } => {
                this.attempts.forget(&key);
                Action::requeue(jittered(after))
            }
            Outcome::Blocked { .. } => {
                let attempt = this.attempts.next(bare(key));
                Action::requeue(growing(Duration::from_secs(10), attempt, Duration::from_mins(10)))
            }
        })
    }

    /// An object is gone.
    fn forget(&self, key: &ObjectRef<DeserializeGuard<K>>) {
        self.attempts.forget(key);
        self.own_writes.forget(key);
    }

    /// Tells of a failed pass, once per streak as an event, and sets the pace.
    fn failed(&self, object: &DeserializeGuard<K>, failure: &Failure) -> Action {
        let key = ObjectRef::from(object);
        tracing::warn!(controller = self.name, object = %key, reason = failure.reason(), error = %failure, "pass failed");
        let attempt = self.attempts.next(bare(key));
        if attempt == 2 && object.meta().deletion_timestamp.is_none() {
            let (events, reference) = (self.events.clone(), object.object_ref(&()));
            let (reason, message) = (failure.reason(), failure.message());
            tokio::spawn(async move { events.publish(&reference, EventType::Warning, reason, &message).await });
        }
        Action::requeue(growing(self.retry, attempt, Duration::from_mins(5)))
    }
}

#[cfg(test)]
mod tests;
