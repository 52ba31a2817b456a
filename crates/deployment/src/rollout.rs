//! Bringing a release to a content: jobs, Helm, workloads, jobs.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt;
use kupenstack_core::Outcome;
use kupenstack_helm::{UpgradeOptions, Values};

use crate::{
    Error,
    build::{self, Built},
    collector, drift,
    jobs::{self, Plan, Progress},
    pass::{Next, PROOF, Pass, RELEASE, WORKLOADS},
    record::{History, Revision},
    target::{Content, Target, Trouble},
    workloads::{self, Look},
};

/// The database is of the newer release from here on.
const NO_RETURN: &str = "Point of no return";
/// How often a helm run may fail before the change is taken back.
const HELM_FAILURES: usize = 3;

/// How a release that should be installed was found.
enum Found {
    Intact,
    Different,
    /// It was put back only just now, and is different again.
    DifferentAgain(Outcome),
}

fn job_step(name: &str) -> String {
    format!("Job {name}")
}

fn job_steps(jobs: &[Job]) -> impl Iterator<Item = String> {
    jobs.iter().map(|job| job_step(&job.name_any()))
}

impl Pass<'_> {
    /// Brings the release to the target's content and waits until its pods serve.
    pub(crate) async fn reach(&mut self, target: &Target<'_>, history: &History) -> Result<Next, Error> {
        let engine = self.engine;
        let plan = Plan {
            client: &engine.client,
            namespace: &self.request.namespace,
            kind: self.service.kind(),
            hash: &target.hash,
            owner: &self.request.owner,
        };
        let installed = history.newest().filter(|newest| newest.is_deployed(&target.hash));
        let mut intact = false;
        if let Some(installed) = installed {
            self.status.revision = Some(i64::from(installed.number));
            intact = match self.inspect(&plan, installed).await? {
                Found::Intact => true,
                Found::Different => false,
                Found::DifferentAgain(outcome) => return Ok(Next::Stop(outcome)),
            };
            let settled = intact && self.status.hash.as_deref() == Some(plan.hash) && self.has_been_at(target);
            if settled && self.has_all_jobs(&plan, installed).await? {
                self.checklist.done(RELEASE);
                return self.await_workloads(&plan, installed, &[]).await;
            }
        }
        let built = self.built(target, history).await?;
        if engine.recover(&self.release, history, plan.hash).await? {
            let outcome = Outcome::waiting("Recovering", "an interrupted run is dealt with");
            return Ok(Next::Stop(outcome.within(Duration::ZERO)));
        }
        if let Next::Stop(outcome) = self.prepare(&plan, &built).await? {
            return Ok(Next::Stop(outcome));
        }
        if !intact && let Next::Stop(outcome) = self.apply(&plan, &built, target, history).await? {
            return Ok(Next::Stop(outcome));
        }
        self.finish(&plan, &built).await
    }

    /// Before Helm: the jobs that have to succeed first.
    async fn prepare(&mut self, plan: &Plan<'_>, built: &Built) -> Result<Next, Error> {
        let upgrades = self.status.release.as_ref().is_some_and(|r| *r != self.request.common.release);
        let no_return = upgrades.then(|| NO_RETURN.to_owned());
        let rest = [RELEASE, WORKLOADS].map(str::to_owned);
        let after = no_return.clone().into_iter().chain(rest).chain(job_steps(&built.post_jobs));
        let after = after.chain([PROOF.to_owned()]).collect();
        if let Next::Stop(outcome) = self.run_jobs(plan, &built.pre_jobs, built, after).await? {
            return Ok(Next::Stop(outcome));
        }
        if let Some(step) = no_return {
            self.checklist.done(step);
        }
        Ok(Next::Go)
    }

    /// Whether everything of the revision still is as it was applied. What is not is told as an event.
    async fn inspect(&mut self, plan: &Plan<'_>, installed: &Revision) -> Result<Found, Error> {
        let engine = self.engine;
        let Some(applied) = engine.applied(plan.kind, &self.release, installed).await? else {
            return Ok(Found::Different);
        };
        if !applied.is_of(plan.hash) {
            tracing::info!(release = self.release.name, revision = installed.number, "made by hand upon ours");
            return Ok(Found::Different);
        }
        let uid = &installed.uid;
        let drifted = drift::find(&engine.inventory, &engine.verified, plan.kind, uid, &applied).await?;
        if drifted.is_empty() {
            return Ok(Found::Intact);
        }
        let drifted = drifted.join("; ");
        if let Err(left) = engine.repairs.next(plan.kind) {
            let message = format!("{drifted}; it was put back before, and is again in a while: who changes it?");
            self.checklist.failed(RELEASE, &message);
            self.checklist.pending([WORKLOADS, PROOF].map(str::to_owned));
            return Ok(Found::DifferentAgain(Outcome::waiting("Drifting", message).within(left)));
        }
        self.warn("DriftRepaired", &format!("is put back: {drifted}"));
        Ok(Found::Different)
    }

    async fn built(&self, target: &Target<'_>, history: &History) -> Result<Arc<Built>, Error> {
        let (engine, kind) = (self.engine, self.service.kind());
        match &target.content {
            Content::Wanted(values) => engine.rendered(kind, &self.release, &target.hash, values).await,
            Content::Former(revision) => {
                let former = history.deployed_with(&target.hash).filter(|r| r.number == *revision);
                let applied = match former {
                    Some(former) => engine.applied(kind, &self.release, former).await?,
                    None => None,
                };
                Ok(Arc::new(build::sort(applied.map(|a| a.all()).unwrap_or_default())?))
            }
        }
    }

    /// Runs Helm, once nothing stands in its way.
    async fn apply(
        &mut self,
        plan: &Plan<'_>,
        built: &Built,
        target: &Target<'_>,
        history: &History,
    ) -> Result<Next, Error> {
        if let Progress::Running(message) = plan.clear_plain_jobs(built).await? {
            self.checklist.running(RELEASE, &message);
            return Ok(Next::Stop(Outcome::waiting("RollingOut", message)));
        }
        let engine = self.engine;
        let revision = match &target.content {
            Content::Wanted(values) => {
                let hash = target.hash.parse().map_err(|_| Error::Rendered {
                    what: "content hash",
                    source: serde::de::Error::custom("not a label value"),
                })?;
                let (chart, options) = (engine.chart(self.service.kind()), UpgradeOptions::new(hash));
                let values = Values::new((*values).clone());
                match engine.helm.upgrade_install(&self.release, &chart, &values, &options).await {
                    Ok(status) => status.revision,
                    Err(error) => return self.helm_failed(target, history, error),
                }
            }
            Content::Former(revision) => {
                engine.helm.rollback(&self.release, *revision).await?;
                history.newest().map_or(1, |r| r.number + 1)
            }
        };
        self.status.revision = Some(i64::from(revision));
        Ok(Next::Go)
    }

    /// A failed run is half applied. It is tried again, but not for ever.
    fn helm_failed(
        &mut self,
        target: &Target<'_>,
        history: &History,
        error: kupenstack_helm::Error,
    ) -> Result<Next, Error> {
        let often = history.failures(&target.hash) + 1 >= HELM_FAILURES;
        if !often || self.way_back(&target.hash, history).is_none() {
            return Err(error.into());
        }
        let message = error.to_string();
        self.trouble = Some(Trouble::now(&message));
        self.checklist.failed(RELEASE, &message);
        self.checklist.pending([WORKLOADS, PROOF].map(str::to_owned));
        Ok(Next::Stop(Outcome::waiting(error.reason(), message)))
    }

    /// After Helm: workloads, post-jobs, removal of what nobody needs any more.
    async fn finish(&mut self, plan: &Plan<'_>, built: &Built) -> Result<Next, Error> {
        self.checklist.done(RELEASE);
        let post: Vec<_> = job_steps(&built.post_jobs).collect();
        let history = History::read(&self.engine.client, &self.release).await?;
        let Some(installed) = history.newest() else {
            return Ok(Next::Stop(Outcome::waiting("RollingOut", "the release is gone again")));
        };
        if let Next::Stop(outcome) = self.await_workloads(plan, installed, &post).await? {
            return Ok(Next::Stop(outcome));
        }
        if let Next::Stop(outcome) = self.run_jobs(plan, &built.post_jobs, built, vec![PROOF.to_owned()]).await? {
            return Ok(Next::Stop(outcome));
        }
        if let Next::Stop(outcome) = self.await_plain_jobs(plan, built).await? {
            return Ok(Next::Stop(outcome));
        }
        jobs::remove_copies(plan.client, plan.namespace, plan.kind).await?;
        collector::collect(&self.engine.client, &self.release, plan.kind, &history).await?;
        Ok(Next::Go)
    }

    /// Runs jobs one after the other; `after` are the names of the steps that follow.
    async fn run_jobs(
        &mut self,
        plan: &Plan<'_>,
        jobs: &[Job],
        built: &Built,
        after: Vec<String>,
    ) -> Result<Next, Error> {
        for (i, job) in jobs.iter().enumerate() {
            let step = job_step(&job.name_any());
            let progress = plan.advance(job, &built.configuration).await?;
            if let Some(outcome) = self.told(step, progress) {
                self.checklist.pending(job_steps(&jobs[i + 1..]).chain(after));
                return Ok(Next::Stop(outcome));
            }
        }
        Ok(Next::Go)
    }

    /// Tells where a job stands; the outcome to stop with unless it is done.
    fn told(&mut self, step: String, progress: Progress) -> Option<Outcome> {
        match progress {
            Progress::Done => {
                self.checklist.done(step);
                None
            }
            Progress::Running(message) => {
                self.checklist.running(&step, "running");
                Some(Outcome::waiting("RunningJobs", format!("{step}: {message}")))
            }
            Progress::Failed { message, cause, since } => {
                let outcome = Outcome::waiting("JobFailing", format!("{step}: {message}"));
                self.trouble = Some(Trouble::of_job(outcome.message(), cause.as_ref(), since));
                self.checklist.failed(step, outcome.message());
                Some(outcome)
            }
        }
    }

    /// Jobs that are objects of the release: Helm made them, the engine only waits.
    async fn await_plain_jobs(&mut self, plan: &Plan<'_>, built: &Built) -> Result<Next, Error> {
        for job in &built.plain_jobs {
            let name = build::name_of(job);
            let progress = plan.plain_job(name).await?;
            if let Some(outcome) = self.told(job_step(name), progress) {
                self.checklist.pending([PROOF.to_owned()]);
                return Ok(Next::Stop(outcome));
            }
        }
        Ok(Next::Go)
    }

    /// Whether the jobs of the revision are still there, complete: pods that start anew wait for them by name.
    async fn has_all_jobs(&mut self, plan: &Plan<'_>, installed: &Revision) -> Result<bool, Error> {
        let complete = plan.complete().await?;
        let applied = self.engine.applied(plan.kind, &self.release, installed).await?;
        let all = applied.is_some_and(|a| a.job_names().all(|name| complete.iter().any(|c| c == name)));
        if all && !self.checklist.repeat_if_done() {
            for name in &complete {
                self.checklist.done(job_step(name));
            }
        }
        Ok(all)
    }

    async fn await_workloads(
        &mut self,
        plan: &Plan<'_>,
        installed: &Revision,
        post_jobs: &[String],
    ) -> Result<Next, Error> {
        let look = workloads::look(&self.engine.client, &self.request.namespace, &self.release.name).await?;
        self.serving = Some(look.serving());
        let outcome = match look {
            Look::Done(done) => {
                self.checklist.done(WORKLOADS);
                self.workloads = done;
                return Ok(Next::Go);
            }
            Look::Under { message, slow, .. } => {
                self.trouble = match &slow {
                    Some(slow) => Trouble::of_pod(slow, plan.began(installed).await?),
                    None => None,
                };
                let message = slow.map_or(message.clone(), |slow| format!("{message}; {slow}"));
                self.checklist.running(WORKLOADS, &message);
                Outcome::waiting("RollingOut", message)
            }
            Look::Trouble { evidence, .. } => {
                self.trouble = Trouble::of_pod(&evidence, plan.began(installed).await?);
                let message = evidence.to_string();
                self.checklist.failed(WORKLOADS, &message);
                Outcome::waiting("PodsFailing", message)
            }
        };
        self.checklist.pending(post_jobs.iter().cloned().chain([PROOF.to_owned()]));
        Ok(Next::Stop(outcome))
    }
}
