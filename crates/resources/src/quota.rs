//! `ResourceQuota`s of a namespace become limits of its project.
//!
//! [`keys`] has the table of what can be limited. The limits are Keystone's unified limits, which the services ask for:
//! made by the administrator, one per project and resource, with the namespace's mark in the description. One without
//! that was made by somebody else and is left alone. A `ResourceQuota` is only read: Kubernetes writes its status, and
//! what its author has to know is an event about it.

mod keys;
mod ledger;
mod limits;
mod wanted;

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{
    FutureExt, StreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use k8s_openapi::api::core::v1::{Namespace, ResourceQuota};
use kube::{Api, Resource, ResourceExt, runtime::events::EventType, runtime::watcher};
use kupenstack_api::resources::PROJECT_ID;
use kupenstack_core::{Outcome, reason};
use kupenstack_runtime::{Context, Controller, Events, Failure, ObjectRef, Reconcile, Shared, jittered};
use tokio::time::sleep;

use self::{
    keys::KEYS,
    ledger::Ledger,
    limits::{Limits, Settled},
    wanted::{Fault, Wanted},
};
use crate::{
    cloud::{Cloud, NamespaceMeta, Site, Standing},
    stop::Stop,
    wake,
};

/// Limits are Keystone's.
const SERVICES: &[&str] = &["Keystone"];

/// Runs the controller. A change behind our back is seen within `every`.
pub(crate) async fn run(cloud: Arc<Cloud>, every: Duration, context: Context) {
    let store = Shared::start(Api::all(cloud.kubernetes()), watcher::Config::default(), &context);
    // a quota that is not seen yet must not be taken for one that was deleted
    if let Err(error) = cloud.known().await.and(store.ready().await) {
        tracing::info!(controller = "quotas", %error, "not started");
        return;
    }
    let changed = store.changes(|key: &ObjectRef<ResourceQuota>, _| {
        key.namespace.iter().map(|namespace| ObjectRef::new(namespace)).collect()
    });
    let quotas = Arc::new(Quotas::new(Arc::clone(&cloud), store, &context));
    let controller = Controller::<Namespace>::new("quotas", &context)
        .trigger(changed)
        .trigger(wake::namespaces(&cloud, |cloud| cloud.standing(SERVICES).settled()))
        .trigger(waiting(&quotas))
        .trigger(looks(&quotas, every));
    controller.run(quotas, context).await;
}

/// Namespaces with quotas, when Keystone may be back.
fn waiting(quotas: &Arc<Quotas>) -> BoxStream<'static, ObjectRef<Namespace>> {
    let recoveries = quotas.cloud.recoveries();
    let quotas = Arc::clone(quotas);
    recoveries
        .then(move |()| {
            let quotas = Arc::clone(&quotas);
            async move { wake::one_by_one(quotas.concerned().await) }
        })
        .flatten()
        .boxed()
}

/// Namespaces with quotas, now and then, against a new list of the limits: those that had one a moment ago too, for what
/// lifted its limits may have been told by a list of before. Where nobody has quotas a list is made when a namespace has
/// its turn and the last one is old.
fn looks(quotas: &Arc<Quotas>, every: Duration) -> BoxStream<'static, ObjectRef<Namespace>> {
    stream::unfold(Arc::clone(quotas), move |quotas| async move {
        sleep(jittered(every)).await;
        let concerned = quotas.concerned().await;
        quotas.recent().turn();
        if !concerned.is_empty() {
            quotas.ledger.doubt().await;
        }
        Some((stream::iter(concerned), quotas))
    })
    .flatten()
    .boxed()
}

/// UID of a quota, and what was said about it.
type Told = (Option<String>, String);

struct Quotas {
    cloud: Arc<Cloud>,
    store: Arc<Shared<ResourceQuota>>,
    ledger: Ledger,
    events: Events,
    /// By namespace. What is still so is not told again.
    told: Mutex<HashMap<String, HashSet<Told>>>,
    recent: Mutex<Recent>,
}

/// Namespaces that were seen to have quotas of ours since the last look, and those of the time between the two before.
#[derive(Default)]
struct Recent {
    now: HashSet<String>,
    before: HashSet<String>,
}

impl Recent {
    fn turn(&mut self) {
        self.before = std::mem::take(&mut self.now);
    }

    fn contains(&self, namespace: &str) -> bool {
        self.now.contains(namespace) || self.before.contains(namespace)
    }
}

impl Reconcile<Namespace> for Quotas {
    fn reconcile(&self, namespace: Arc<Namespace>) -> BoxFuture<'_, Result<Outcome, Failure>> {
        async move { self.pass(&namespace).await }.boxed()
    }
}

impl Quotas {
    fn new(cloud: Arc<Cloud>, store: Arc<Shared<ResourceQuota>>, context: &Context) -> Self {
        let events = Events::new(context.client.clone());
        Self { cloud, store, ledger: Ledger::default(), events, told: Mutex::default(), recent: Mutex::default() }
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Namespaces that have quotas of ours or had them a moment ago, or limits from when they had.
    async fn concerned(&self) -> Vec<ObjectRef<Namespace>> {
        let limited: HashSet<_> = self.ledger.limited().await.into_iter().collect();
        let wanted = Wanted::of(&self.store.all()).quotas;
        let declaring: HashSet<_> = wanted.iter().filter_map(|quota| quota.namespace()).collect();
        let is_concerned = |namespace: &Arc<NamespaceMeta>| {
            let name = namespace.name_any();
            declaring.contains(&name)
                || self.recent().contains(&name)
                || namespace.annotations().get(PROJECT_ID).is_some_and(|project| limited.contains(project))
        };
        self.cloud.namespaces().into_iter().filter(is_concerned).map(|namespace| wake::reference(&namespace)).collect()
    }

    async fn pass(&self, namespace: &Namespace) -> Result<Outcome, Failure> {
        let name = namespace.name_any();
        let mut quotas = self.store.all();
        quotas.retain(|quota| quota.metadata.namespace.as_ref() == Some(&name));
        let mut wanted = Wanted::of(&quotas);
        let mut faults = std::mem::take(&mut wanted.faults);
        if !wanted.is_empty() {
            self.recent().now.insert(name.clone());
        }
        let result = self.converge(namespace, &wanted, &mut faults).await.or_else(|stop| {
            if stop.casts_doubt_on_the_token() {
                self.cloud.distrust_admin();
            }
            stop.verdict().result
        });
        if let Ok(Outcome::Blocked { reason, message }) = &result {
            let refused = |quota| Fault { quota, reason, note: message.clone() };
            faults.extend(wanted.quotas.iter().map(Arc::clone).map(refused));
        }
        self.warn(&name, &faults, matches!(result, Ok(Outcome::Done { .. }))).await;
        match result {
            // nothing of the namespace's waits for it, and no limit is to be lifted: no reason to trouble anybody
            Err(failure) if wanted.is_empty() && !self.recent().contains(&name) => {
                Ok(Outcome::waiting(reason::CLOUD_UNAVAILABLE, failure.message()).within(Duration::from_mins(1)))
            }
            result => result,
        }
    }

    async fn converge(&self, namespace: &Namespace, wanted: &Wanted, faults: &mut Vec<Fault>) -> Result<Outcome, Stop> {
        if namespace.metadata.deletion_timestamp.is_some() {
            return Ok(Outcome::ready("the limits go with the project"));
        }
        let site = match self.cloud.standing(SERVICES) {
            Standing::Absent | Standing::Leaving => {
                return Ok(Outcome::ready("there is no cloud to limit anything in"));
            }
            standing => standing.ready().map_err(Stop::Outcome)?.clone(),
        };
        let Some(project) = namespace.annotations().get(PROJECT_ID) else {
            return if wanted.is_empty() {
                Ok(Outcome::ready("neither a project nor a quota"))
            } else {
                // a project that appears wakes the namespace
                let wait = Outcome::waiting(reason::PROJECT_NOT_READY, "the namespace has no project yet");
                Ok(wait.within(Duration::from_mins(10)))
            };
        };
        let mark = site.cluster.mark(&namespace.uid().unwrap_or_default());
        if self.ledger.page(&self.cloud, &site).await?.shows(project, wanted, &mark) {
            return Ok(Outcome::ready("the limits are as declared"));
        }
        self.settle(&namespace.name_any(), &site, project, &mark, wanted, faults).await?;
        Ok(Outcome::ready("the limits are as declared, where they can be"))
    }

    /// Makes the limits true, each of them also if another could not be.
    async fn settle(
        &self,
        namespace: &str,
        site: &Site,
        project: &str,
        mark: &str,
        wanted: &Wanted,
        faults: &mut Vec<Fault>,
    ) -> Result<(), Stop> {
        let identity = self.cloud.admin(site).await?.identity();
        // the annotation can be written by whoever may edit the namespace
        if !identity.get_project(project).await?.is_some_and(|project| project.tags.iter().any(|tag| tag == mark)) {
            let message = format!("project {project} of annotation {PROJECT_ID} does not carry the namespace's mark");
            return Err(Outcome::waiting(reason::PROJECT_NOT_READY, message).into());
        }
        let region = self.cloud.admin_config(site).await?.region;
        let limits = Limits::look(&identity, region, project, mark).await?;
        let (mut changed, mut failed) = (false, None);
        for key in &KEYS {
            match limits.settle(key, wanted.declared(key)).await {
                Ok(Settled::Kept) => {}
                Ok(Settled::Lifted) => changed = true,
                Ok(Settled::Set(limit, quota)) => {
                    changed = true;
                    let note = format!("{key}: limit {} of project {project} is {limit} now", key.resource);
                    self.events.publish(&quota.object_ref(&()), EventType::Normal, "QuotaApplied", &note).await;
                }
                Ok(Settled::Refused(fault)) => faults.push(fault),
                Err(stop) => failed = failed.or(Some(stop)),
            }
        }
        // also after a failure: a request may have been carried out
        if changed || failed.is_some() {
            self.ledger.doubt().await;
        }
        if changed {
            self.cloud.limits_changed(namespace);
        }
        failed.map_or(Ok(()), Err)
    }

    /// Tells what has not been told yet. Those are all faults that there are, or those of a pass that ended early.
    async fn warn(&self, namespace: &str, faults: &[Fault], are_all: bool) {
        for Fault { quota, reason, note } in self.untold(namespace, faults, are_all) {
            self.events.publish(&quota.object_ref(&()), EventType::Warning, reason, note).await;
        }
    }

    fn untold<'a>(&self, namespace: &str, faults: &'a [Fault], are_all: bool) -> Vec<&'a Fault> {
        let note = |fault: &Fault| (fault.quota.uid(), fault.note.clone());
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let before = told.remove(namespace).unwrap_or_default();
        let untold = faults.iter().filter(|fault| !before.contains(&note(fault))).collect();
        let mut now: HashSet<_> = faults.iter().map(note).collect();
        if !are_all {
            now.extend(before);
        }
        if !now.is_empty() {
            told.insert(namespace.to_owned(), now);
        }
        untold
    }
}
