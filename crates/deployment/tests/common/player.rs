//! A player of the kubelet and of the job controller: pods start, jobs finish, as their dependencies, mounts and the
//! test's wishes allow. Workloads have their real controllers.
//!
//! It keeps to what a node would do: a pod waits for every ConfigMap and Secret it mounts, and its init container for
//! the jobs and services it names. What happened, in which order, is in the [`Ledger`].

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fmt::Debug,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{FutureExt, StreamExt, future::ready, stream::BoxStream};
use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    batch::v1::Job,
    core::v1::{ConfigMap, Pod, PodSpec, PodTemplateSpec, Secret, Service},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{Patch, PatchParams, PostParams},
    core::NamespaceResourceScope,
    runtime::{
        WatchStreamExt,
        reflector::{self, Store, store::Writer},
        watcher,
    },
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::{sync::Notify, task::JoinHandle};

use super::{eventually, pod::Needs};

/// Label with the hash of the plan that a job was run for.
const PLAN: &str = "kupenstack.io/plan";

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    /// A job was made: its name, the plan that the engine made it for (empty when Helm did), its uid.
    JobMade { job: String, plan: String, uid: String },
    /// A job completed.
    JobDone { job: String, plan: String },
    /// A workload got another pod template.
    Rolled { workload: String },
    /// A pod of a workload serves.
    PodReady { workload: String, pod: String },
    /// A pod of a workload keeps crashing.
    PodCrashed { workload: String, pod: String },
}

/// All that happened so far, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) all: Vec<Happened>,
    templates: BTreeMap<String, Value>,
    jobs: HashSet<String>,
}

impl Ledger {
    /// How often each job was run for each plan.
    pub(crate) fn runs(&self) -> BTreeMap<(String, String), usize> {
        let mut runs = BTreeMap::new();
        for happened in &self.all {
            if let Happened::JobMade { job, plan, .. } = happened {
                *runs.entry((job.clone(), plan.clone())).or_default() += 1;
            }
        }
        runs
    }

    /// How often a job was run for whatever plan.
    pub(crate) fn runs_of(&self, name: &str) -> usize {
        self.count(|h| matches!(h, Happened::JobMade { job, .. } if job == name))
    }

    /// How many pod templates a workload had, one after the other.
    pub(crate) fn rollouts(&self, name: &str) -> usize {
        self.count(|h| matches!(h, Happened::Rolled { workload } if workload == name))
    }

    /// How many pods of a workload came to serve.
    pub(crate) fn pods(&self, name: &str) -> usize {
        self.count(|h| matches!(h, Happened::PodReady { workload, .. } if workload == name))
    }

    fn count(&self, fits: impl Fn(&Happened) -> bool) -> usize {
        self.all.iter().filter(|h| fits(h)).count()
    }

    /// Place of the last thing that fits.
    pub(crate) fn last(&self, fits: impl Fn(&Happened) -> bool) -> Option<usize> {
        self.all.iter().rposition(fits)
    }
}

/// What the test wants to happen.
#[derive(Default)]
struct Wishes {
    /// Pods of workloads crash that run from, or mount, something with this text in it.
    crash_on: BTreeSet<String>,
    /// Jobs of these names crash that run from, or mount, something with this text in it.
    failing: BTreeMap<String, String>,
    /// Jobs of these names run for ever.
    hanging: BTreeSet<String>,
    /// Services that serve although there is no such object.
    elsewhere: BTreeSet<String>,
}

/// What becomes of a pod now.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Fate {
    Waits,
    Runs,
    Crashes,
}

pub(crate) struct Player {
    stage: Arc<Scene>,
    task: JoinHandle<()>,
}

struct Scene {
    client: Client,
    namespace: String,
    ledger: Mutex<Ledger>,
    wishes: Mutex<Wishes>,
    wake: Notify,
    happened: Notify,
    pods: Store<Pod>,
    jobs: Store<Job>,
    services: Store<Service>,
    maps: Store<ConfigMap>,
    secrets: Store<Secret>,
    deployments: Store<Deployment>,
    sets: Store<StatefulSet>,
}

/// Whether the object was still there.
fn unless_gone<T>(result: kube::Result<T>) -> kube::Result<bool> {
    match result {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(e)) if e.is_not_found() => Ok(false),
        Err(e) => Err(e),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Player {
    /// Plays in a namespace until it is dropped.
    pub(crate) fn start(client: &Client, namespace: &str) -> Self {
        let mut news = Vec::new();
        let scene = Scene {
            pods: watch(client, namespace, &mut news),
            jobs: watch(client, namespace, &mut news),
            services: watch(client, namespace, &mut news),
            maps: watch(client, namespace, &mut news),
            secrets: watch(client, namespace, &mut news),
            deployments: watch(client, namespace, &mut news),
            sets: watch(client, namespace, &mut news),
            client: client.clone(),
            namespace: namespace.to_owned(),
            ledger: Mutex::default(),
            wishes: Mutex::default(),
            wake: Notify::new(),
            happened: Notify::new(),
        };
        let stage = Arc::new(scene);
        let playing = Arc::clone(&stage);
        let task = tokio::spawn(async move { playing.play(futures::stream::select_all(news).boxed()).await });
        Self { stage, task }
    }

    /// What happened so far.
    pub(crate) fn ledger(&self) -> Ledger {
        lock(&self.stage.ledger).clone()
    }

    /// Waits until the ledger has what `fits`.
    pub(crate) async fn until(&self, what: &str, fits: impl Fn(&Ledger) -> bool) {
        let waiting = async {
            loop {
                let happened = self.stage.happened.notified();
                if fits(&lock(&self.stage.ledger)) {
                    return;
                }
                happened.await;
            }
        };
        eventually(what, waiting).await;
    }

    /// Services that are somewhere else and serve.
    pub(crate) fn elsewhere(&self, services: &[&str]) {
        self.wish(|w| w.elsewhere.extend(services.iter().map(|&s| s.to_owned())));
    }

    /// From now on pods of workloads crash whose image or configuration holds this text.
    pub(crate) fn crash_on(&self, text: &str) {
        self.wish(|w| w.crash_on.extend([text.to_owned()]));
    }

    /// From now on this job fails when its image or configuration holds this text.
    pub(crate) fn fail(&self, job: &str, text: &str) {
        self.wish(|w| w.failing.extend([(job.to_owned(), text.to_owned())]));
    }

    /// From now on this job does not end.
    pub(crate) fn hang(&self, job: &str) {
        self.wish(|w| w.hanging.extend([job.to_owned()]));
    }

    /// Nothing crashes, fails or hangs any more.
    pub(crate) fn heal(&self) {
        self.wish(|w| *w = Wishes { elsewhere: std::mem::take(&mut w.elsewhere), ..Wishes::default() });
    }

    fn wish(&self, change: impl FnOnce(&mut Wishes)) {
        change(&mut lock(&self.stage.wishes));
        self.stage.wake.notify_one();
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A store of all objects of a kind, kept up to date while the news are read.
fn watch<K>(client: &Client, namespace: &str, news: &mut Vec<BoxStream<'static, ()>>) -> Store<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    K: Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let writer = Writer::default();
    let store = writer.as_reader();
    let events = watcher(Api::<K>::namespaced(client.clone(), namespace), watcher::Config::default());
    news.push(reflector::reflector(writer, events.default_backoff()).then(|_| ready(())).boxed());
    store
}

impl Scene {
    async fn play(&self, mut news: BoxStream<'static, ()>) {
        // what is done to an object shows in the store a little later only
        let mut done = HashSet::new();
        let mut refused = false;
        loop {
            tokio::select! {
                next = news.next() => if next.is_none() { return },
                () = self.wake.notified() => {}
                // the API server may be gone for a moment
                () = tokio::time::sleep(Duration::from_millis(200)), if refused => {}
            }
            while news.next().now_or_never().flatten().is_some() {}
            self.note_templates();
            refused = false;
            for job in self.jobs.state() {
                refused |= self.play_job(&job, &mut done).await.is_err();
            }
            for pod in self.pods.state() {
                refused |= self.play_pod(&pod, &mut done).await.is_err();
            }
            self.happened.notify_waiters();
        }
    }

    fn note(&self, happened: Happened) {
        lock(&self.ledger).all.push(happened);
    }

    fn note_templates(&self) {
        let deployments = self.deployments.state();
        let sets = self.sets.state();
        let templates = deployments
            .iter()
            .map(|d| (d.name_any(), d.uid(), json!(d.spec.as_ref().map(|s| &s.template))))
            .chain(sets.iter().map(|s| (s.name_any(), s.uid(), json!(s.spec.as_ref().map(|s| &s.template)))));
        let mut ledger = lock(&self.ledger);
        for (workload, uid, template) in templates {
            let template = json!([uid, template]);
            if ledger.templates.get(&workload) != Some(&template) {
                ledger.templates.insert(workload.clone(), template);
                ledger.all.push(Happened::Rolled { workload });
            }
        }
    }

    async fn play_job(&self, job: &Job, done: &mut HashSet<(String, Fate)>) -> kube::Result<()> {
        let (name, uid) = (job.name_any(), job.uid().unwrap_or_default());
        let plan = job.labels().get(PLAN).cloned().unwrap_or_default();
        if lock(&self.ledger).jobs.insert(uid.clone()) {
            self.note(Happened::JobMade { job: name.clone(), plan: plan.clone(), uid: uid.clone() });
        }
        let ended = job.status.iter().flat_map(|s| s.conditions.iter().flatten()).any(|c| c.status == "True");
        let Some(spec) = job.spec.as_ref().filter(|_| !ended && job.metadata.deletion_timestamp.is_none()) else {
            return Ok(());
        };
        let fate = {
            let wishes = lock(&self.wishes);
            // configuration that a server crashes on is none of a job's business
            let poison = wishes.failing.get(&name);
            if wishes.hanging.contains(&name) {
                Fate::Waits
            } else {
                self.fate(spec.template.spec.as_ref(), &wishes, poison.into_iter())
            }
        };
        if fate == Fate::Waits || done.contains(&(uid.clone(), fate)) {
            return Ok(());
        }
        self.job_pod(job, &spec.template, fate).await?;
        if fate == Fate::Runs {
            let jobs: Api<Job> = Api::namespaced(self.client.clone(), &self.namespace);
            let status = Patch::Merge(super::pod::completed());
            if unless_gone(jobs.patch_status(&name, &PatchParams::default(), &status).await)? {
                self.note(Happened::JobDone { job: name, plan });
            }
        }
        done.insert((uid, fate));
        Ok(())
    }

    /// The job's pod, with what became of it.
    async fn job_pod(&self, job: &Job, template: &PodTemplateSpec, fate: Fate) -> kube::Result<()> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let name = format!("{}-{}", job.name_any(), &job.uid().unwrap_or_default()[..5]);
        let mut pod = json!({"metadata": template.metadata.clone().unwrap_or_default(), "spec": template.spec});
        pod["metadata"]["name"] = json!(name);
        pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] = json!(job.name_any());
        pod["metadata"]["ownerReferences"] = json!([job.controller_owner_ref(&())]);
        let pod: Pod = serde_json::from_value(pod).unwrap();
        match pods.create(&PostParams::default(), &pod).await {
            Err(kube::Error::Api(e)) if e.is_already_exists() => {}
            result => drop(result?),
        }
        let status = super::pod::status(&pod, if fate == Fate::Runs { "Succeeded" } else { "Crashing" });
        unless_gone(pods.patch_status(&name, &PatchParams::default(), &Patch::Merge(&status)).await)?;
        Ok(())
    }

    async fn play_pod(&self, pod: &Pod, done: &mut HashSet<(String, Fate)>) -> kube::Result<()> {
        let of_job = pod.labels().contains_key("batch.kubernetes.io/job-name");
        if of_job || super::pod::is_ready(pod) || pod.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let fate = {
            let wishes = lock(&self.wishes);
            self.fate(pod.spec.as_ref(), &wishes, wishes.crash_on.iter())
        };
        let key = (pod.uid().unwrap_or_default(), fate);
        // one that crashed hears of another Secret of the same name a minute later, when it mostly is gone
        let is_down = !lock(&self.wishes).crash_on.is_empty() && done.contains(&(key.0.clone(), Fate::Crashes));
        if fate == Fate::Waits || is_down || done.contains(&key) {
            return Ok(());
        }
        let status = super::pod::status(pod, if fate == Fate::Runs { "Running" } else { "Crashing" });
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let patched = pods.patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Merge(&status)).await;
        if unless_gone(patched)? {
            let (workload, pod) = (super::pod::workload(pod), pod.name_any());
            self.note(match fate {
                Fate::Runs => Happened::PodReady { workload, pod },
                _ => Happened::PodCrashed { workload, pod },
            });
        }
        done.insert(key);
        Ok(())
    }

    fn fate<'a>(&self, spec: Option<&PodSpec>, wishes: &Wishes, mut poisons: impl Iterator<Item = &'a String>) -> Fate {
        let Some(spec) = spec else { return Fate::Waits };
        let needs = Needs::of(spec);
        let maps = self.maps.state();
        let secrets = self.secrets.state();
        let mut texts: Vec<String> = spec.containers.iter().filter_map(|c| c.image.clone()).collect();
        for name in &needs.maps {
            let Some(map) = maps.iter().find(|m| m.name_any() == *name) else { return Fate::Waits };
            texts.extend(map.data.iter().flat_map(BTreeMap::values).cloned());
        }
        for name in &needs.secrets {
            let Some(secret) = secrets.iter().find(|s| s.name_any() == *name) else { return Fate::Waits };
            let data = secret.data.iter().flat_map(BTreeMap::values);
            texts.extend(data.map(|bytes| String::from_utf8_lossy(&bytes.0).into_owned()));
        }
        let met = needs.jobs.iter().all(|job| self.is_complete(job))
            && needs.services.iter().all(|s| wishes.elsewhere.contains(s) || self.serves(s));
        if !met {
            return Fate::Waits;
        }
        if poisons.any(|poison| texts.iter().any(|text| text.contains(poison))) { Fate::Crashes } else { Fate::Runs }
    }

    fn is_complete(&self, name: &str) -> bool {
        let job = self.jobs.find(|j| j.name_any() == name);
        job.and_then(|j| j.status.clone()?.conditions)
            .is_some_and(|all| all.iter().any(|c| c.type_ == "Complete" && c.status == "True"))
    }

    /// Whether the Service has endpoints.
    fn serves(&self, name: &str) -> bool {
        let service = self.services.find(|s| s.name_any() == name);
        let Some(selector) = service.and_then(|s| s.spec.clone()?.selector) else { return false };
        let fits = |pod: &Pod| selector.iter().all(|(k, v)| pod.labels().get(k) == Some(v));
        self.pods.state().iter().any(|pod| super::pod::is_ready(pod) && fits(pod))
    }
}
