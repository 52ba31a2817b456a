//! One pass over one service.
//!
//! dependencies → credentials → values and their hash → (jobs → helm → workloads → jobs) → proof. A pass does what
//! can be done now and returns; the next one finds where things stand from the cluster: Helm's records, Jobs labelled
//! with the plan's hash, workloads. Nothing is remembered that a crash could lose. When the hash is the installed
//! one and every object is as it was applied, no helm process is started.

use std::time::Duration;

use jiff::Timestamp;
use kupenstack_api::cluster::{ServiceStatus, Step};
use kupenstack_core::{Outcome, conditions, reason};
use kupenstack_helm::ReleaseRef;
use serde_json::Value;

use crate::{
    Error,
    adopt::ByHand,
    build,
    catalogue::Release,
    checklist::Checklist,
    config::{self, Resolved},
    credentials,
    engine::{Engine, Note, Passed},
    exposure,
    record::{History, Revision},
    service::{Request, Scene, Secrets, Service},
    target::{Content, Target, Trouble, taken_back},
    values, workloads,
};

/// Whether a pass goes on.
pub(crate) enum Next {
    Go,
    Stop(Outcome),
}

/// The state of a pass.
pub(crate) struct Pass<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) service: &'a dyn Service,
    pub(crate) request: &'a Request,
    pub(crate) release: ReleaseRef,
    pub(crate) now: Timestamp,
    pub(crate) status: ServiceStatus,
    /// What went wrong, if anything did: it may be a reason to take a change back.
    pub(crate) trouble: Option<Trouble>,
    pub(crate) checklist: Checklist<'a>,
    secrets: Secrets,
    notes: Vec<Note>,
    /// Options that the service does not have; `None` as long as that is not known.
    unknown: Option<Vec<String>>,
    /// Whether the pods serve, when that was looked at.
    pub(crate) serving: Option<bool>,
    /// What is told of the pods once they are rolled out.
    pub(crate) workloads: workloads::Done,
}

/// Names of steps, in their order.
pub(crate) const DEPENDENCIES: &str = "Dependencies";
pub(crate) const CREDENTIALS: &str = "Credentials";
pub(crate) const CONFIGURATION: &str = "Configuration";
pub(crate) const RELEASE: &str = "Helm release";
pub(crate) const WORKLOADS: &str = "Pods";
pub(crate) const PROOF: &str = "Answers";

impl<'a> Pass<'a> {
    pub(crate) fn new(engine: &'a Engine, service: &'a dyn Service, request: &'a Request, now: Timestamp) -> Self {
        Self {
            engine,
            service,
            request,
            release: ReleaseRef::new(&request.namespace, service.kind().object()),
            now,
            status: ServiceStatus { steps: Vec::new(), ..request.status.clone() },
            trouble: None,
            checklist: Checklist::new(&request.status.steps, now),
            secrets: Secrets::default(),
            notes: Vec::new(),
            unknown: None,
            serving: None,
            workloads: workloads::Done::default(),
        }
    }

    /// The pass and its account.
    pub(crate) async fn whole(mut self) -> Result<Passed, Error> {
        let outcome = self.run().await?;
        let available = self.available(&outcome).await?;
        let Self { mut status, mut notes, secrets, request, now, .. } = self;
        let before = &request.status.conditions;
        let outcome = secrets.masked(outcome);
        status.steps = self.checklist.finish().into_iter().map(|s| secrets.masked_step(s)).collect();
        if let Some(failed) = &mut status.failed_change {
            failed.message = secrets.mask(&failed.message);
        }
        config::shown(&mut status.configuration, &secrets);
        status.observed_generation = request.generation;
        status.conditions = conditions::render(&outcome, request.generation, before, now);
        status.conditions.extend(available);
        status.conditions.extend(config::warning(self.unknown.as_deref(), request.generation, before, now));
        if let Some(message) = config::news(before, &status.conditions) {
            notes.push(Note::warning(config::UNKNOWN_OPTIONS, message));
        }
        for note in &mut notes {
            note.message = secrets.mask(&note.message);
        }
        Ok(Passed { outcome, status, notes })
    }

    async fn run(&mut self) -> Result<Outcome, Error> {
        let kind = self.service.kind();
        if self.request.common.paused {
            return Ok(self.paused());
        }
        let release = match Release::find(&self.request.common.release) {
            Ok(release) => release,
            Err(message) => return Ok(Outcome::blocked("UnknownRelease", message)),
        };
        let configuration = match self.configure(release).await? {
            Ok(configuration) => configuration,
            Err(outcome) => return Ok(outcome),
        };
        let history = History::read(&self.engine.client, &self.release).await?;
        let by_hand = history.newest().filter(|newest| newest.is_by_hand());
        let values = |secrets: &Secrets| values::compute(self.service, self.request, release, secrets, &configuration);
        if let Some(outcome) = by_hand.and_then(|revision| self.by_hand(revision).busy()) {
            return Ok(outcome);
        }
        if let (Some(revision), false) = (by_hand, self.request.common.adopt) {
            return self.by_hand(revision).refusal(&values(&self.secrets)).await;
        }
        if let Next::Stop(outcome) = self.await_dependencies() {
            return Ok(outcome);
        }
        if let Some(revision) = by_hand
            && let Some(note) = self.by_hand(revision).take_over(&values(&self.secrets)).await?
        {
            self.notes.push(Note::normal("Adopted", &note));
        }
        let credentials = credentials::ensure(&self.engine.client, &self.request.namespace, self.service).await?;
        self.secrets.extend(credentials);
        self.checklist.done(CREDENTIALS);
        let values = values::compute(self.service, self.request, release, &self.secrets, &configuration);
        if let Some(message) = self.service.refusal(self.request, &values) {
            return Ok(Outcome::blocked(reason::INVALID_SPEC, message));
        }
        let hash = build::content_hash(&self.engine.digest(kind)?, &values);
        let target = self.target(hash, &values, &history);
        let next = match self.reach(&target, &history).await? {
            Next::Go => {
                self.keep_up(&values).await?;
                self.prove().await?
            }
            stop @ Next::Stop(_) => stop,
        };
        match next {
            Next::Stop(outcome) => Ok(self.take_back_or(&target, &history, outcome)),
            Next::Go => {
                let arrived = self.arrived(target, release);
                self.replaced_or(arrived).await
            }
        }
    }

    /// The configuration that the spec asks for, or what stands in its way.
    async fn configure(&mut self, release: &Release) -> Result<Result<Resolved, Outcome>, Error> {
        let Request { namespace, common, .. } = self.request;
        let sources = config::dereference(&self.engine.client, namespace, common).await?;
        let mut resolved = match config::resolve(self.service, self.request, release, &sources) {
            Ok(resolved) => resolved,
            Err(refused) => {
                let outcome = Outcome::from(refused);
                match &outcome {
                    Outcome::Waiting { message, .. } => drop(self.checklist.running(CONFIGURATION, message)),
                    outcome => self.checklist.failed(CONFIGURATION, outcome.message()),
                }
                self.checklist.pending([DEPENDENCIES, CREDENTIALS, RELEASE, WORKLOADS, PROOF].map(str::to_owned));
                return Ok(Err(outcome));
            }
        };
        resolved.confide(&mut self.secrets);
        self.status.configuration = std::mem::take(&mut resolved.effective);
        self.unknown = Some(std::mem::take(&mut resolved.unknown));
        Ok(Ok(resolved))
    }

    fn by_hand<'r>(&'r self, revision: &'r Revision) -> ByHand<'r> {
        let (client, service, request) = (&self.engine.client, self.service, self.request);
        ByHand { client, service, request, release: &self.release, revision }
    }

    async fn keep_up(&mut self, values: &Value) -> Result<(), Error> {
        if let Some((reason, note)) = self.service.upkeep(&self.engine.client, self.request, values).await? {
            self.notes.push(Note::normal(reason, &note));
        }
        Ok(())
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
        let missing = self.missing_dependencies();
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

    /// What this service needs and what does not answer, with the reason.
    pub(crate) fn missing_dependencies(&self) -> Vec<String> {
        let dependencies = self.service.dependencies().iter();
        dependencies
            .filter_map(|kind| match self.engine.board.standing(*kind) {
                Some(standing) if standing.available => None,
                Some(standing) => Some(format!("{} ({})", kind.name(), standing.reason)),
                None => Some(format!("{} (there is no such object)", kind.name())),
            })
            .collect()
    }

    async fn prove(&mut self) -> Result<Next, Error> {
        if let Some(access) = self.service.admin_access(self.request, &self.secrets) {
            credentials::hand_out(&self.engine.client, &self.request.namespace, self.service.kind(), &access).await?;
        }
        if self.is_stopped() {
            self.checklist.done("Stopped: no replicas");
            return Ok(Next::Go);
        }
        let scene = Scene { request: self.request, secrets: &self.secrets, nodes: self.workloads.nodes };
        let request = self.service.prove(scene);
        match self.engine.prober.prove(self.service.kind().object(), request).await {
            Ok(()) => {
                self.checklist.done(PROOF);
                Ok(Next::Go)
            }
            Err(why) => {
                let message = why.to_string();
                let since = self.checklist.running(PROOF, &message);
                let waiting = Outcome::waiting("NotAnswering", message.clone());
                // a node may be down for days
                if !why.blames_the_change() {
                    return Ok(Next::Stop(waiting));
                }
                self.trouble = Some(Trouble::of_answer(&message, since));
                // nothing tells us when an address starts to answer, so this one is asked again soon
                Ok(Next::Stop(waiting.within(Duration::from_secs(2))))
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.service.components().first().and_then(|serving| self.request.replicas.get(serving)) == Some(&0)
    }

    /// The target runs and answers.
    fn arrived(&mut self, target: Target<'_>, release: &Release) -> Outcome {
        self.status.endpoint = Some(self.service.endpoint(&self.request.namespace));
        if let (Content::Former(_), Some(failed)) = (&target.content, &self.status.failed_change) {
            return taken_back(failed);
        }
        self.status.failed_change = None;
        self.status.public_endpoints = exposure::urls(self.service, self.request);
        self.status.release = Some(release.name.to_owned());
        self.status.hash = Some(target.hash);
        let answers = format!("release {} runs and answers", release.name);
        let demand = self.how_to_replace();
        let told = [answers].into_iter().chain(self.workloads.remarks.drain(..)).chain(demand);
        Outcome::ready(told.collect::<Vec<_>>().join("; "))
    }

    /// Whether requests are answered, perhaps not by what is declared now.
    async fn available(&mut self, outcome: &Outcome) -> Result<Option<conditions::Condition>, Error> {
        let (generation, before) = (self.request.generation, &self.request.status.conditions);
        let was = conditions::find(before, conditions::AVAILABLE).cloned();
        if self.request.common.paused {
            return Ok(was);
        }
        // a service that never answered is not made available by pods that run
        if self.status.hash.is_none() && was.is_none() {
            return Ok(None);
        }
        let (up, reason, message) = if self.is_stopped() {
            (false, "Stopped", "it has no replicas".to_owned())
        } else if outcome.is_done() {
            (true, "Answers", "requests are answered".to_owned())
        } else if self.is_serving().await? {
            (true, "Serves", "the pods that run serve".to_owned())
        } else {
            (false, outcome.reason(), outcome.message().to_owned())
        };
        let message = self.secrets.mask(&message);
        Ok(Some(conditions::one(conditions::AVAILABLE, up, reason, &message, generation, before, self.now)))
    }

    async fn is_serving(&mut self) -> Result<bool, Error> {
        if let Some(serving) = self.serving {
            return Ok(serving);
        }
        Ok(workloads::look(&self.engine.client, &self.request.namespace, &self.release.name).await?.serving())
    }

    pub(crate) fn note(&mut self, note: Note) {
        self.notes.push(note);
    }

    pub(crate) fn warn(&mut self, reason: &'static str, message: &str) {
        self.note(Note::warning(reason, message));
    }
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
