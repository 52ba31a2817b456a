//! The rollout engine: what all services share between passes. A pass itself is in [`crate::pass`].

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use jiff::Timestamp;
use kube::{Client, runtime::events::EventType};
use kupenstack_api::cluster::ServiceStatus;
use kupenstack_core::Outcome;
use kupenstack_helm::{Capabilities, ChartRef, Helm, ReleaseRef, Values};
use kupenstack_runtime::Context;
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::{
    Error, Settings,
    applied::Applied,
    board::Board,
    build::{self, Built},
    drift::{Repairs, Verified},
    inventory::Inventory,
    pass::Pass,
    probe::Prober,
    record::{self, History, Recovery, Revision},
    service::{Kind, Request, Service},
    target::Patience,
};

/// Drives every service.
pub(crate) struct Engine {
    pub(crate) client: Client,
    pub(crate) helm: Arc<dyn Helm>,
    pub(crate) board: Arc<Board>,
    pub(crate) prober: Arc<dyn Prober>,
    pub(crate) patience: Patience,
    pub(crate) inventory: Arc<Inventory>,
    pub(crate) verified: Verified,
    pub(crate) repairs: Repairs,
    /// Held while a pod on a node with VMs is chosen and deleted, whichever service it is of.
    pub(crate) replacing: tokio::sync::Mutex<()>,
    charts: PathBuf,
    kubernetes: OnceCell<String>,
    /// Digest and version of each chart; charts don't change while the process lives.
    digests: Mutex<HashMap<Kind, String>>,
    /// What the newest plan of each service renders, so that the passes of one rollout render once.
    rendered: Mutex<HashMap<Kind, (String, Arc<Built>)>>,
    /// What the newest revision of each release applied, so that an unchanged release is read once.
    applied: Mutex<HashMap<Kind, (String, Arc<Applied>)>>,
}

/// Something worth an event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) type_: EventType,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Note {
    pub(crate) fn normal(reason: &'static str, message: &str) -> Self {
        Self { type_: EventType::Normal, reason, message: message.to_owned() }
    }

    pub(crate) fn warning(reason: &'static str, message: &str) -> Self {
        Self { type_: EventType::Warning, reason, message: message.to_owned() }
    }
}

/// What a pass came to.
#[derive(Debug)]
pub(crate) struct Passed {
    pub(crate) outcome: Outcome,
    /// The status to write.
    pub(crate) status: ServiceStatus,
    /// The events to publish.
    pub(crate) notes: Vec<Note>,
}

impl Engine {
    pub(crate) fn new(context: &Context, settings: &Settings, board: Arc<Board>) -> Self {
        Self {
            client: context.client.clone(),
            helm: Arc::clone(&settings.helm),
            inventory: Inventory::start(context, &settings.cloud_namespace),
            verified: Verified::default(),
            repairs: Repairs::default(),
            replacing: tokio::sync::Mutex::default(),
            charts: settings.charts.clone(),
            board,
            prober: Arc::clone(&settings.prober),
            patience: settings.patience,
            kubernetes: OnceCell::new(),
            digests: Mutex::default(),
            rendered: Mutex::default(),
            applied: Mutex::default(),
        }
    }

    /// One pass over a service.
    pub(crate) async fn pass(&self, service: &dyn Service, request: &Request) -> Result<Passed, Error> {
        self.board.ready().await?;
        self.inventory.ready().await?;
        Box::pin(Pass::new(self, service, request, Timestamp::now()).whole()).await
    }

    /// Clears what a killed run left in the way of a run to `hash`. Whether there was anything; then the records are
    /// others now.
    pub(crate) async fn recover(&self, release: &ReleaseRef, history: &History, hash: &str) -> Result<bool, Error> {
        match history.recovery(hash) {
            Recovery::None => return Ok(false),
            Recovery::Drop(revision) => {
                tracing::warn!(
                    release = release.name,
                    revision,
                    "the record of an interrupted run is dropped, the next run begins anew"
                );
                record::drop(&self.client, release, revision).await?;
            }
            Recovery::RollBack(revision) => {
                tracing::warn!(
                    release = release.name,
                    revision,
                    "an interrupted run is rolled back to this revision first"
                );
                self.helm.rollback(release, revision).await?;
            }
        }
        Ok(true)
    }

    pub(crate) fn chart(&self, kind: Kind) -> ChartRef {
        ChartRef::Path(self.charts.join(kind.object()))
    }

    pub(crate) fn digest(&self, kind: Kind) -> Result<String, Error> {
        if let Some(known) = self.digests.lock().unwrap_or_else(PoisonError::into_inner).get(&kind) {
            return Ok(known.clone());
        }
        let digest = build::chart_digest(&self.charts.join(kind.object()))?;
        self.digests.lock().unwrap_or_else(PoisonError::into_inner).insert(kind, digest.clone());
        Ok(digest)
    }

    /// What the chart renders with these values.
    pub(crate) async fn rendered(
        &self,
        kind: Kind,
        release: &ReleaseRef,
        hash: &str,
        values: &Value,
    ) -> Result<Arc<Built>, Error> {
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
        let values = Values::new(values.clone());
        let rendered = self.helm.template(release, &self.chart(kind), &values, &capabilities).await;
        let rendered = rendered.map_err(|e| match e {
            kupenstack_helm::Error::Failed { .. } => Error::Values(e),
            e => e.into(),
        })?;
        let built = Arc::new(build::sort(rendered.objects)?);
        let entry = (hash.to_owned(), Arc::clone(&built));
        self.rendered.lock().unwrap_or_else(PoisonError::into_inner).insert(kind, entry);
        Ok(built)
    }

    /// What a revision applied; `None` when it is not recorded any more.
    pub(crate) async fn applied(
        &self,
        kind: Kind,
        release: &ReleaseRef,
        revision: &Revision,
    ) -> Result<Option<Arc<Applied>>, Error> {
        if let Some((known, applied)) = self.applied.lock().unwrap_or_else(PoisonError::into_inner).get(&kind)
            && *known == revision.uid
        {
            return Ok(Some(Arc::clone(applied)));
        }
        let Some(applied) = Applied::read(&self.client, release, revision.number).await? else { return Ok(None) };
        let applied = Arc::new(applied);
        let entry = (revision.uid.clone(), Arc::clone(&applied));
        self.applied.lock().unwrap_or_else(PoisonError::into_inner).insert(kind, entry);
        Ok(Some(applied))
    }
}
