//! Writes to the lease, each guarded by the version it is based on.

use std::time::Duration;

use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api,
    api::{ObjectMeta, PostParams},
};
use rand::Rng;

use super::{Terms, record::holder, sights::bounded};

/// Why a write had no effect that is known of.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The lease is not what the write was based on.
    Conflict,
    /// No answer, or an error.
    Failed(kube::Error),
}

impl From<kube::Error> for Refusal {
    fn from(error: kube::Error) -> Self {
        match &error {
            // gone counts: the write was based on something
            kube::Error::Api(status) if matches!(status.code, 404 | 409) => Self::Conflict,
            _ => Self::Failed(error),
        }
    }
}

/// Who holds the lease.
pub(super) enum Holder {
    Us,
    Nobody,
    Other(String),
}

/// Writes one lease as one holder.
pub(super) struct Writer {
    api: Api<Lease>,
    name: String,
    identity: String,
    terms: Terms,
    /// The lease as it was seen or written last; `None` when there was none.
    base: Option<Lease>,
    /// What a lease that has to be made anew is to bear of the former one: by labels and annotations Helm, for one,
    /// knows what it may take for its own.
    marks: ObjectMeta,
    acquired: MicroTime,
    transitions: i32,
}

impl Writer {
    /// A writer whose first write takes the lease as it is in `base`.
    pub(super) fn new(api: Api<Lease>, name: &str, identity: &str, terms: Terms, base: Option<Lease>) -> Self {
        let former = base.as_ref().and_then(|lease| lease.spec.as_ref()?.lease_transitions).unwrap_or_default();
        let mut writer = Self {
            api,
            name: name.to_owned(),
            identity: identity.to_owned(),
            terms,
            base: None,
            marks: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
            acquired: wall_clock(),
            transitions: former.saturating_add(1),
        };
        writer.rebase(base);
        writer
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Whether a sight of the lease is of it as ours.
    pub(super) fn is_ours(&self, lease: Option<&Lease>) -> bool {
        lease.and_then(holder) == Some(&self.identity)
    }

    /// Writes the lease as ours, once.
    pub(super) async fn write(&mut self) -> Result<(), Refusal> {
        let seconds = i32::try_from(self.terms.duration.as_secs().max(1)).unwrap_or(i32::MAX);
        self.put(LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            acquire_time: Some(self.acquired.clone()),
            renew_time: Some(wall_clock()),
            lease_duration_seconds: Some(seconds),
            lease_transitions: Some(self.transitions),
            ..LeaseSpec::default()
        })
        .await
    }

    /// Writes the lease as nobody's, once.
    pub(super) async fn write_free(&mut self) -> Result<(), Refusal> {
        self.put(LeaseSpec { lease_transitions: Some(self.transitions), ..LeaseSpec::default() }).await
    }

    /// Reads what the next write is to be based on, and says who holds the lease. The write has to follow at once: who
    /// writes without end leaves little time. It is here that a moment passes, so that two who do so do not always meet.
    pub(super) async fn read_again(&mut self) -> kube::Result<Holder> {
        let pause = Duration::from_millis(rand::rng().random_range(5..50));
        tokio::time::sleep(pause).await;
        let lease = bounded(self.terms.request_limit(), self.api.get_opt(&self.name)).await?;
        self.rebase(lease);
        Ok(match self.base.as_ref().and_then(holder) {
            None => Holder::Nobody,
            Some(holder) if holder == self.identity => Holder::Us,
            Some(holder) => Holder::Other(holder.to_owned()),
        })
    }

    /// What the next write is based on.
    pub(super) fn base(&self) -> Option<&Lease> {
        self.base.as_ref()
    }

    async fn put(&mut self, spec: LeaseSpec) -> Result<(), Refusal> {
        let (limit, parameters) = (self.terms.request_limit(), PostParams::default());
        let written = if let Some(base) = &self.base {
            let lease = Lease { metadata: base.metadata.clone(), spec: Some(spec) };
            bounded(limit, self.api.replace(&self.name, &parameters, &lease)).await
        } else {
            let lease = Lease { metadata: self.marks.clone(), spec: Some(spec) };
            bounded(limit, self.api.create(&parameters, &lease)).await
        };
        self.rebase(Some(written?));
        Ok(())
    }

    fn rebase(&mut self, lease: Option<Lease>) {
        if let Some(lease) = &lease {
            self.marks.labels.clone_from(&lease.metadata.labels);
            self.marks.annotations.clone_from(&lease.metadata.annotations);
        }
        self.base = lease;
    }
}

/// For people who read the lease. No decision of ours depends on it.
fn wall_clock() -> MicroTime {
    MicroTime(k8s_openapi::jiff::Timestamp::now())
}
