//! The rollout engine: one flow for every service.
//!
//! dependencies → credentials → values and their hash → (jobs → helm → workloads → jobs) → proof. A pass does what
//! can be done now and returns; the next one finds where things stand from the cluster: Helm's records, Jobs labelled
//! with the plan's hash, workloads. Nothing is remembered that a crash could lose. When the hash is the installed
//! one no helm process is started.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use kube::Client;
use kube::runtime::events::EventType;
use kupenstack_api::cluster::{ServiceStatus, Step};
use kupenstack_core::{Outcome, conditions, reason};
use kupenstack_helm::{Capabilities, ChartRef, Helm, ReleaseRef, UpgradeOptions, Values};
use kupenstack_runtime::{Context, Events};
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::{
    Error, Settings,
    adopt::ByHand,
    board::Board,
    build::{self, Built},
    catalogue::Release,
    checklist::Checklist,
    credentials,
    jobs::{Plan, Progress},
    record::{self, Record, Recovery},
    service::{Kind, Request, Secrets, Service},
    values,
    workloads::{self, Rollout},
};

/// Drives every service.
pub(crate) struct Engine {
    pub(crate) client: Client,
    pub(crate) helm: Arc<dyn Helm>,
    charts: PathBuf,
    pub(crate) board: Arc<Board>,
    events: Events,
    kubernetes: OnceCell<String>,
    /// Digest and version of each chart; charts don't change while the process lives.
    digests: Mutex<HashMap<Kind, String>>,
    /// What the newest plan of each service renders, so that the passes of one rollout render once.
    rendered: Mutex<HashMap<Kind, (String, Arc<Built>)>>,
}

/// Whether a pass goes on.
enum Next {
    Go,
    Stop(Outcome),
}

impl Engine {
    pub(crate) fn new(context: &Context, settings: &Settings, board: Arc<Board>) -> Self {
        Self {
            client: context.client.clone(),
            helm: Arc::clone(&settings.helm),
            charts: settings.charts.clone(),
            board,
            events: Events::new(context.client.clone()),
            kubernetes: OnceCell::new(),
            digests: Mutex::default(),
            rendered: Mutex::default(),
        }
    }

    /// One pass: the outcome and the status to write.
    pub(crate) async fn pass(
        &self,
        service: &dyn Service,
        request: &Request,
    ) -> Result<(Outcome, ServiceStatus), Error> {
        self.board.ready().await?;
        let now = Timestamp::now();
        let mut pass = Pass {
            engine: self,
            service,
            request,
            release: ReleaseRef::new(&request.namespace, service.kind().object()),
            checklist: Checklist::new(&request.status.steps, now),
            status: ServiceStatus { steps: Vec::new(), ..request.status.clone() },
            secrets: Secrets::default(),
        };
        let outcome = pass.run().await?;
        let outcome = pass.secrets.masked(outcome);
        let mut status = pass.status;
        status.steps = pass.checklist.finish().into_iter().map(|s| pass.secrets.masked_step(s)).collect();
        status.observed_generation = request.generation;
        status.conditions = conditions::render(&outcome, request.generation, &request.status.conditions, now);
        Ok((outcome, status))
    }

    fn chart(&self, kind: Kind) -> PathBuf {
        self.charts.join(kind.object())
    }

    fn digest(&self, kind: Kind) -> Result<String, Error> {
        if let Some(known) = self.digests.lock().unwrap_or_else(PoisonError::into_inner).get(&kind) {
            return Ok(known.clone());
        }
        let digest = build::chart_digest(&self.chart(kind))?;
        self.digests.lock().unwrap_or_else(PoisonError::into_inner).insert(kind, digest.clone());
        Ok(digest)
    }

    async fn built(&self, kind: Kind, release: &ReleaseRef, hash: &str, values: &Value) -> Result<Arc<Built>, Error> {
        if let Some((known, built)) = self.rendered.lock().unwrap_or_else(PoisonError::into_inner).get(&kind)
            && known == hash
        {
            return Ok(Arc::clone(built));
        }
        let kubernetes = self
            .kubernetes
            .get_or_try_init(|| async { self.client.apiserver_version().await.map(|v| v.git_version) })
            .await?;
        let capabilities = Capabilities { kube_version: Some(kubernetes.clone()), ..Capabilities::default() };
        let chart = ChartRef::Path(self.chart(kind));
        let values = Values::new(values.clone());
        let rendered = self.helm.template(release, &chart, &values, &capabilities).await.map_err(|e| match e {
            kupenstack_helm::Error::Failed { .. } => Error::Values(e),
            e => e.into(),
        })?;
        let built = Arc::new(build::sort(rendered.objects)?);
        let entry = (hash.to_owned(), Arc::clone(&built));
        self.rendered.lock().unwrap_or_else(PoisonError::into_inner).insert(kind, entry);
        Ok(built)
    }
}

/// One pass over one service.
struct Pass<'a> {
    engine: &'a Engine,
    service: &'a dyn Service,
    request: &'a Request,
    release: ReleaseRef,
    checklist: Checklist<'a>,
    status: ServiceStatus,
    secrets: Secrets,
}

const DEPENDENCIES: &str = "Dependencies";
const CREDENTIALS: &str = "Credentials";
const RELEASE: &str = "Helm release";
const WORKLOADS: &str = "Pods";
const PROOF: &str = "Answers";

fn job_step(name: &str) -> String {
    format!("Job {name}")
}

impl Pass<'_> {
    async fn run(&mut self) -> Result<Outcome, Error> {
        let kind = self.service.kind();
        if self.request.common.paused {
            return Ok(self.paused());
        }
        let release = match Release::find(&self.request.common.release) {
            Ok(release) => release,
            Err(message) => return Ok(Outcome::blocked("UnknownRelease", message)),
        };
        let installed = record::newest(&self.engine.client, &self.release).await?;
        let by_hand = installed.clone().filter(Record::is_by_hand);
        if let (Some(record), false) = (&by_hand, self.request.common.adopt) {
            return self.by_hand(record).refusal(release).await;
        }
        if let Next::Stop(outcome) = self.await_dependencies() {
            return Ok(outcome);
        }
        if let Some(record) = &by_hand
            && let Some(note) = self.by_hand(record).take_over(release).await?
        {
            self.announce("Adopted", &note).await;
        }
        self.secrets = credentials::ensure(&self.engine.client, &self.request.namespace, self.service).await?;
        self.checklist.done(CREDENTIALS);
        let values = values::compute(self.service, self.request, release, &self.secrets);
        if let Some(message) = self.service.refusal(self.request, &values) {
            return Ok(Outcome::blocked(reason::INVALID_SPEC, message));
        }
        let hash = build::content_hash(&self.engine.digest(kind)?, &values);
        if let Next::Stop(outcome) = self.roll_out(&hash, &values, installed).await? {
            return Ok(outcome);
        }
        if let Some((reason, note)) = self.service.upkeep(&self.engine.client, self.request, &values).await? {
            self.announce(reason, &note).await;
        }
        self.prove().await.map(|next| match next {
            Next::Stop(outcome) => outcome,
            Next::Go => {
                self.status.release = Some(release.name.to_owned());
                self.status.hash = Some(hash);
                self.status.endpoint = Some(self.service.endpoint(&self.request.namespace));
                Outcome::ready(format!("release {} runs and answers", release.name))
            }
        })
    }

    fn by_hand<'a>(&'a self, record: &'a Record) -> ByHand<'a> {
        let (client, service, request) = (&self.engine.client, self.service, self.request);
        ByHand { client, service, request, release: &self.release, record }
    }

    async fn announce(&self, reason: &str, note: &str) {
        let note = self.secrets.mask(note);
        self.engine.events.publish(&self.request.reference(), EventType::Normal, reason, &note).await;
    }

    /// Nothing is done and nothing looked at: what was known of it then is said as what it is, old.
    fn paused(&mut self) -> Outcome {
        self.checklist.repeat();
        let before = conditions::find(&self.request.status.conditions, conditions::READY);
        let ready = before.is_some_and(|c| c.status == "True");
        let message = match before {
            Some(c) if c.reason == reason::PAUSED => c.message.clone(),
            _ => {
                let was = if ready { "it was ready then" } else { "it was not ready then" };
                format!("spec.paused is true: it is not looked at since {}; {was}", self.checklist.now())
            }
        };
        if ready {
            Outcome::Done { reason: reason::PAUSED, message }
        } else {
            Outcome::blocked(reason::PAUSED, message)
        }
    }

    fn await_dependencies(&mut self) -> Next {
        let missing: Vec<_> = self
            .service
            .dependencies()
            .iter()
            .filter_map(|kind| match self.engine.board.standing(*kind) {
                Some(standing) if standing.ready => None,
                Some(standing) => Some(format!("{} ({})", kind.name(), standing.reason)),
                None => Some(format!("{} (there is no such object)", kind.name())),
            })
            .collect();
        // a release that is installed already goes on without: a dependency's blip must stop no repair
        if missing.is_empty() || self.status.revision.is_some() {
            self.checklist.done(DEPENDENCIES);
            return Next::Go;
        }
        let message = format!("waits for {}", missing.join(", "));
        self.checklist.running(DEPENDENCIES, &message);
        self.checklist.pending([CREDENTIALS, RELEASE, WORKLOADS, PROOF].map(str::to_owned));
        Next::Stop(Outcome::waiting(reason::DEPENDENCY, message).within(Duration::from_mins(5)))
    }

    /// Brings the release to this content and waits until its pods serve.
    async fn roll_out(&mut self, hash: &str, values: &Value, installed: Option<Record>) -> Result<Next, Error> {
        let engine = self.engine;
        let plan = Plan {
            client: &engine.client,
            namespace: &self.request.namespace,
            kind: self.service.kind(),
            hash,
            owner: &self.request.owner,
        };
        let settled = self.status.hash.as_deref() == Some(hash);
        match installed {
            Some(record) if record.is_deployed(hash) => {
                self.status.revision = Some(i64::from(record.revision));
                if settled {
                    self.recall_jobs(&plan).await?;
                    self.checklist.done(RELEASE);
                    return self.await_workloads(&[]).await;
                }
                // the release is there, so its jobs ran: in an earlier pass
                let built = engine.built(plan.kind, &self.release, hash, values).await?;
                job_steps(&built.pre_jobs).for_each(|step| self.checklist.done(step));
            }
            record => {
                if let Next::Stop(outcome) = self.install(&plan, values, record).await? {
                    return Ok(Next::Stop(outcome));
                }
            }
        }
        self.finish(&plan, values).await
    }

    /// Pre-jobs, then Helm.
    async fn install(&mut self, plan: &Plan<'_>, values: &Value, installed: Option<Record>) -> Result<Next, Error> {
        if let Some(record) = &installed {
            self.recover(record, plan.hash).await?;
        }
        let built = self.engine.built(plan.kind, &self.release, plan.hash, values).await?;
        let rest = [RELEASE, WORKLOADS].map(str::to_owned);
        let after = rest.into_iter().chain(job_steps(&built.post_jobs)).chain([PROOF.to_owned()]).collect();
        if let Next::Stop(outcome) = self.run_jobs(plan, &built.pre_jobs, &built, after).await? {
            return Ok(Next::Stop(outcome));
        }
        let hash = plan.hash.parse().map_err(|_| Error::Rendered {
            what: "content hash",
            source: serde::de::Error::custom("not a label value"),
        })?;
        let chart = ChartRef::Path(self.engine.chart(plan.kind));
        let options = UpgradeOptions::new(hash);
        let status =
            self.engine.helm.upgrade_install(&self.release, &chart, &Values::new(values.clone()), &options).await?;
        self.status.revision = Some(i64::from(status.revision));
        Ok(Next::Go)
    }

    /// After Helm: workloads, post-jobs, removal of the jobs' private copies.
    async fn finish(&mut self, plan: &Plan<'_>, values: &Value) -> Result<Next, Error> {
        let built = self.engine.built(plan.kind, &self.release, plan.hash, values).await?;
        self.checklist.done(RELEASE);
        let post: Vec<_> = job_steps(&built.post_jobs).collect();
        if let Next::Stop(outcome) = self.await_workloads(&post).await? {
            return Ok(Next::Stop(outcome));
        }
        if let Next::Stop(outcome) = self.run_jobs(plan, &built.post_jobs, &built, vec![PROOF.to_owned()]).await? {
            return Ok(Next::Stop(outcome));
        }
        plan.remove_copies().await?;
        Ok(Next::Go)
    }

    async fn recover(&mut self, record: &Record, hash: &str) -> Result<(), Error> {
        match record.recovery(hash) {
            Recovery::None => {}
            Recovery::Drop(revision) => {
                tracing::warn!(release = self.release.name, revision, "an interrupted run is taken up again");
                record::drop(&self.engine.client, &self.release, revision).await?;
            }
            Recovery::RollBack(revision) => {
                tracing::warn!(release = self.release.name, revision, "an interrupted run is rolled back first");
                self.engine.helm.rollback(&self.release, revision).await?;
            }
        }
        Ok(())
    }

    /// Runs jobs one after the other; `after` are the names of the steps that follow.
    async fn run_jobs(
        &mut self,
        plan: &Plan<'_>,
        jobs: &[k8s_openapi::api::batch::v1::Job],
        built: &Built,
        after: Vec<String>,
    ) -> Result<Next, Error> {
        for (i, job) in jobs.iter().enumerate() {
            let step = job_steps(std::slice::from_ref(job)).next().unwrap_or_default();
            let (outcome, failed) = match plan.advance(job, &built.configuration).await? {
                Progress::Done => {
                    self.checklist.done(step);
                    continue;
                }
                Progress::Running(message) => (Outcome::waiting("RunningJobs", format!("{step}: {message}")), false),
                Progress::Failed(message) => (Outcome::waiting("JobFailing", format!("{step}: {message}")), true),
            };
            if failed {
                self.checklist.failed(step, outcome.message());
            } else {
                self.checklist.running(step, "running");
            }
            self.checklist.pending(job_steps(&jobs[i + 1..]).chain(after));
            return Ok(Next::Stop(outcome));
        }
        Ok(Next::Go)
    }

    async fn recall_jobs(&mut self, plan: &Plan<'_>) -> Result<(), Error> {
        for name in plan.existing().await? {
            self.checklist.done(job_step(&name));
        }
        Ok(())
    }

    async fn await_workloads(&mut self, post_jobs: &[String]) -> Result<Next, Error> {
        let rollout = workloads::rollout(&self.engine.client, &self.request.namespace, &self.release.name).await?;
        let (outcome, trouble) = match rollout {
            Rollout::Done => {
                self.checklist.done(WORKLOADS);
                return Ok(Next::Go);
            }
            Rollout::Under(message) => (Outcome::waiting("RollingOut", message), false),
            Rollout::Trouble(message) => (Outcome::waiting("PodsFailing", message), true),
        };
        if trouble {
            self.checklist.failed(WORKLOADS, outcome.message());
        } else {
            self.checklist.running(WORKLOADS, outcome.message());
        }
        self.checklist.pending(post_jobs.iter().cloned().chain([PROOF.to_owned()]));
        Ok(Next::Stop(outcome))
    }

    async fn prove(&mut self) -> Result<Next, Error> {
        if let Some(access) = self.service.admin_access(self.request, &self.secrets) {
            credentials::hand_out(&self.engine.client, &self.request.namespace, self.service.kind(), &access).await?;
        }
        if self.request.replicas.get(self.service.component()) == Some(&0) {
            self.checklist.done("Stopped: no replicas");
            return Ok(Next::Go);
        }
        match self.service.prove(self.request, &self.secrets).await {
            Ok(()) => {
                self.checklist.done(PROOF);
                Ok(Next::Go)
            }
            Err(why) => {
                let message = why.to_string();
                self.checklist.running(PROOF, &message);
                // nothing tells us when an address starts to answer, so this one is asked again soon
                Ok(Next::Stop(Outcome::waiting("NotAnswering", message).within(Duration::from_secs(2))))
            }
        }
    }
}

fn job_steps(jobs: &[k8s_openapi::api::batch::v1::Job]) -> impl Iterator<Item = String> {
    jobs.iter().map(|j| job_step(j.metadata.name.as_deref().unwrap_or_default()))
}

impl Secrets {
    fn masked(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Done { reason, message } => Outcome::Done { reason, message: self.mask(&message) },
            Outcome::Waiting { reason, message, after } => {
                Outcome::Waiting { reason, message: self.mask(&message), after }
            }
            Outcome::Blocked { reason, message } => Outcome::Blocked { reason, message: self.mask(&message) },
        }
    }

    fn masked_step(&self, step: Step) -> Step {
        Step { message: step.message.map(|m| self.mask(&m)), ..step }
    }
}
