//! Jobs that the engine runs itself.
//!
//! A job that has to finish before the release exists can't mount the release's ConfigMaps and Secrets: they are
//! written by Helm only, later. It runs from private copies, named by the plan's hash, owned by the service's object
//! and removed after success. The job keeps its name: pods' init containers wait for it by that name. A job of an
//! earlier plan never counts as done: it is removed and run anew.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::{
    api::{
        batch::v1::Job,
        core::v1::{ConfigMap, Container, PodSpec, Secret, Volume},
    },
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
    core::NamespaceResourceScope,
};
use kupenstack_agent::{Cause, Severity};
use kupenstack_core::{hash, names};
use kupenstack_runtime::apply;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    Error,
    build::{self, Built},
    collector,
    drift::COMPARISON,
    record::Revision,
    service::Kind,
    workloads,
};

/// Label on what the engine makes for a service; the value is the service.
pub(crate) const SERVICE: &str = "kupenstack.io/service";
/// Label with the hash of the plan that something was made for.
pub(crate) const PLAN: &str = "kupenstack.io/plan";

/// The dependency init container of the charts, and what only it needs. The engine has waited already, and the
/// ServiceAccount is an object of the release.
const WAIT_CONTAINER: &str = "init";
const WAIT_TOKEN: &str = "init-token";

/// What jobs are run for.
pub(crate) struct Plan<'a> {
    pub(crate) client: &'a Client,
    pub(crate) namespace: &'a str,
    pub(crate) kind: Kind,
    pub(crate) hash: &'a str,
    pub(crate) owner: &'a OwnerReference,
}

/// Where a job stands.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Running(String),
    Failed {
        message: String,
        /// What it may come from.
        cause: Option<Cause>,
        /// When the job was made.
        since: Option<Timestamp>,
    },
    Done,
}

impl Plan<'_> {
    /// Takes the job one step further.
    pub(crate) async fn advance(&self, rendered: &Job, configuration: &[Value]) -> Result<Progress, Error> {
        let jobs: Api<Job> = Api::namespaced(self.client.clone(), self.namespace);
        let Some(job) = jobs.get_opt(&rendered.name_any()).await? else {
            let (job, copies) = self.prepare(rendered.clone(), configuration);
            self.create_copies(copies).await?;
            apply::create_if_absent(&jobs, &job).await?;
            return Ok(Progress::Running("started".to_owned()));
        };
        if job.metadata.deletion_timestamp.is_some() {
            return Ok(Progress::Running("an earlier run is being removed".to_owned()));
        }
        if job.labels().get(PLAN).map(String::as_str) != Some(self.hash) {
            // in the foreground: pods of the earlier run must be gone before the job of that name runs anew
            jobs.delete(&job.name_any(), &DeleteParams::foreground()).await?;
            return Ok(Progress::Running("an earlier run is being removed".to_owned()));
        }
        self.judge(&job).await
    }

    async fn judge(&self, job: &Job) -> Result<Progress, Error> {
        let since = job.creation_timestamp().map(|t| t.0);
        let conditions = job.status.iter().flat_map(|s| s.conditions.iter().flatten());
        for condition in conditions.filter(|c| c.status == "True") {
            match condition.type_.as_str() {
                "Complete" => return Ok(Progress::Done),
                "Failed" => {
                    let message = condition.message.clone().unwrap_or_default();
                    return Ok(Progress::Failed { message, cause: None, since });
                }
                _ => {}
            }
        }
        let selector = format!("batch.kubernetes.io/job-name={}", job.name_any());
        Ok(match workloads::trouble(self.client, self.namespace, &selector).await? {
            Some(evidence) if evidence.severity == Severity::Failing => {
                Progress::Failed { message: evidence.to_string(), cause: evidence.cause, since }
            }
            Some(slow) => Progress::Running(slow.to_string()),
            None => Progress::Running("running".to_owned()),
        })
    }

    /// Removes jobs that are objects of the release and would differ: what a job runs can't be changed, and an upgrade
    /// or a rollback over it fails half way.
    pub(crate) async fn clear_plain_jobs(&self, built: &Built) -> Result<Progress, Error> {
        let jobs: Api<Job> = Api::namespaced(self.client.clone(), self.namespace);
        for wanted in &built.plain_jobs {
            let name = build::name_of(wanted);
            let Some(job) = jobs.get_opt(name).await? else { continue };
            if job.metadata.deletion_timestamp.is_none() {
                if would_stay(&jobs, &job, wanted).await? {
                    continue;
                }
                jobs.delete(name, &DeleteParams::foreground()).await?;
            }
            return Ok(Progress::Running(format!("Job {name} of an earlier revision is being removed")));
        }
        Ok(Progress::Done)
    }

    /// Where a job stands that is an object of the release.
    pub(crate) async fn plain_job(&self, name: &str) -> Result<Progress, Error> {
        let jobs: Api<Job> = Api::namespaced(self.client.clone(), self.namespace);
        match jobs.get_opt(name).await? {
            Some(job) => self.judge(&job).await,
            None => Ok(Progress::Running("not made yet".to_owned())),
        }
    }

    /// Names of this plan's jobs that are complete, in the order in which they were made.
    pub(crate) async fn complete(&self) -> Result<Vec<String>, Error> {
        let jobs: Api<Job> = Api::namespaced(self.client.clone(), self.namespace);
        let selector = format!("{SERVICE}={},{PLAN}={}", self.kind.object(), self.hash);
        let mut items = jobs.list(&ListParams::default().labels(&selector)).await?.items;
        items.retain(is_complete);
        items.sort_by_key(|j| j.metadata.creation_timestamp.clone().map(|t| (t.0, j.name_any())));
        Ok(items.iter().map(ResourceExt::name_any).collect())
    }

    /// When the change to this plan began. Its jobs come first and tell it even when an interrupted run of Helm was
    /// taken up again: its pods are then older than the record.
    pub(crate) async fn began(&self, installed: &Revision) -> Result<Option<Timestamp>, Error> {
        let jobs: Api<Job> = Api::namespaced(self.client.clone(), self.namespace);
        let selector = format!("{SERVICE}={},{PLAN}={}", self.kind.object(), self.hash);
        let jobs = jobs.list_metadata(&ListParams::default().labels(&selector)).await?;
        Ok(jobs.iter().filter_map(|job| job.creation_timestamp().map(|t| t.0)).chain(installed.began).min())
    }

    async fn create_copies(&self, copies: Vec<Value>) -> Result<(), Error> {
        for copy in copies {
            match copy["kind"].as_str() {
                Some("Secret") => self.create::<Secret>("Secret", copy).await?,
                _ => self.create::<ConfigMap>("ConfigMap", copy).await?,
            }
        }
        Ok(())
    }

    async fn create<K>(&self, what: &'static str, object: Value) -> Result<(), Error>
    where
        K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + DeserializeOwned + Serialize + std::fmt::Debug,
    {
        let object: K = serde_json::from_value(object).map_err(|source| Error::Rendered { what, source })?;
        apply::create_if_absent(&Api::namespaced(self.client.clone(), self.namespace), &object).await?;
        Ok(())
    }

    /// The job as it is run, and the copies it mounts. Pure.
    fn prepare(&self, mut job: Job, configuration: &[Value]) -> (Job, Vec<Value>) {
        let labels = [(SERVICE, self.kind.object()), (PLAN, self.hash)].map(|(k, v)| (k.to_owned(), v.to_owned()));
        if let Some(annotations) = &mut job.metadata.annotations {
            annotations.retain(|key, _| !key.starts_with("helm.sh/"));
        }
        job.metadata.labels.get_or_insert_default().extend(labels.clone());
        job.metadata.owner_references = Some(vec![self.owner.clone()]);
        let mut used = BTreeSet::new();
        if let Some(pod) = job.spec.as_mut().and_then(|s| s.template.spec.as_mut()) {
            drop_wait(pod);
            references(pod, &mut |kind, name| {
                if configuration.iter().any(|o| o["kind"] == kind && o["metadata"]["name"] == *name) {
                    used.insert((kind, name.clone()));
                    *name = self.copy_name(name);
                }
            });
        }
        let copies = configuration
            .iter()
            .filter(|o| used.iter().any(|(kind, name)| o["kind"] == *kind && o["metadata"]["name"] == **name))
            .map(|object| self.copy(object, &labels.clone().into()))
            .collect();
        (job, copies)
    }

    fn copy_name(&self, name: &str) -> String {
        names::joined(name, hash::short(self.hash))
    }

    fn copy(&self, object: &Value, labels: &BTreeMap<String, String>) -> Value {
        let mut copy = object.clone();
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        copy["metadata"] = json!({"name": self.copy_name(name), "labels": labels, "ownerReferences": [self.owner]});
        copy
    }
}

/// Removes the private copies that jobs of a service were run from.
pub(crate) async fn remove_copies(client: &Client, namespace: &str, service: Kind) -> Result<(), Error> {
    collector::remove_labelled(client, namespace, &format!("{SERVICE}={},{PLAN}", service.object())).await
}

fn is_complete(job: &Job) -> bool {
    let mut conditions = job.status.iter().flat_map(|s| s.conditions.iter().flatten());
    conditions.any(|c| c.type_ == "Complete" && c.status == "True")
}

/// Whether applying `wanted` would leave the job as it is.
async fn would_stay(jobs: &Api<Job>, job: &Job, wanted: &Value) -> Result<bool, Error> {
    let params = PatchParams { dry_run: true, force: true, ..PatchParams::apply(COMPARISON) };
    match jobs.patch(&job.name_any(), &params, &Patch::Apply(wanted)).await {
        Ok(would_be) => Ok(would_be.spec == job.spec),
        Err(kube::Error::Api(refusal)) if refusal.code == 422 => Ok(false),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn drop_wait(pod: &mut PodSpec) {
    if let Some(containers) = &mut pod.init_containers {
        containers.retain(|c| c.name != WAIT_CONTAINER);
    }
    if let Some(volumes) = &mut pod.volumes {
        volumes.retain(|v| v.name != WAIT_TOKEN);
    }
    pod.service_account_name = None;
    pod.service_account = None;
}

/// Calls `f` with kind and name of every ConfigMap and Secret that the pod refers to.
fn references(pod: &mut PodSpec, f: &mut impl FnMut(&'static str, &mut String)) {
    for volume in pod.volumes.iter_mut().flatten() {
        volume_references(volume, f);
    }
    for container in pod.init_containers.iter_mut().flatten().chain(&mut pod.containers) {
        container_references(container, f);
    }
}

fn volume_references(volume: &mut Volume, f: &mut impl FnMut(&'static str, &mut String)) {
    if let Some(name) = volume.secret.as_mut().and_then(|s| s.secret_name.as_mut()) {
        f("Secret", name);
    }
    if let Some(source) = &mut volume.config_map {
        f("ConfigMap", &mut source.name);
    }
    for source in volume.projected.iter_mut().flat_map(|p| p.sources.iter_mut().flatten()) {
        if let Some(secret) = &mut source.secret {
            f("Secret", &mut secret.name);
        }
        if let Some(map) = &mut source.config_map {
            f("ConfigMap", &mut map.name);
        }
    }
}

fn container_references(container: &mut Container, f: &mut impl FnMut(&'static str, &mut String)) {
    for source in container.env.iter_mut().flatten().filter_map(|e| e.value_from.as_mut()) {
        if let Some(secret) = &mut source.secret_key_ref {
            f("Secret", &mut secret.name);
        }
        if let Some(map) = &mut source.config_map_key_ref {
            f("ConfigMap", &mut map.name);
        }
    }
    for source in container.env_from.iter_mut().flatten() {
        if let Some(secret) = &mut source.secret_ref {
            f("Secret", &mut secret.name);
        }
        if let Some(map) = &mut source.config_map_ref {
            f("ConfigMap", &mut map.name);
        }
    }
}

#[cfg(test)]
mod tests;
