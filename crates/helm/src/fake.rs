use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::{
    Answer, Capabilities, ChartRef, ContentHash, Error, Helm, ReleaseRef, ReleaseState, Rendered, Revision, Status,
    UpgradeOptions, Values,
};

/// The calls of [`Helm`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// [`Helm::template`]
    Template,
    /// [`Helm::upgrade_install`]
    UpgradeInstall,
    /// [`Helm::history`]
    History,
    /// [`Helm::status`]
    Status,
    /// [`Helm::get_values`]
    GetValues,
    /// [`Helm::rollback`]
    Rollback,
    /// [`Helm::uninstall`]
    Uninstall,
}

/// A call that a [`Fake`] received.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Which.
    pub operation: Operation,
    /// About which release.
    pub release: ReleaseRef,
    /// The values it carried, for a template or an upgrade.
    pub values: Option<Values>,
    /// The hash it carried, for an upgrade.
    pub hash: Option<ContentHash>,
}

type Renderer = Box<dyn Fn(&ReleaseRef, &ChartRef, &Values) -> Vec<Value> + Send + Sync>;

/// A Helm without a program and without a cluster, for tests.
///
/// It keeps releases and their histories by Helm's rules, writes down every call, and fails when told to.
#[derive(Default)]
pub struct Fake {
    renderer: Option<Renderer>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    calls: Vec<Call>,
    failures: HashMap<Operation, VecDeque<Error>>,
    releases: HashMap<ReleaseRef, Vec<Stored>>,
}

#[derive(Clone)]
struct Stored {
    revision: Revision,
    hash: Option<ContentHash>,
    values: Values,
}

impl Fake {
    /// No releases; every chart renders to nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// No releases; charts render to what `renderer` returns.
    pub fn rendering(renderer: impl Fn(&ReleaseRef, &ChartRef, &Values) -> Vec<Value> + Send + Sync + 'static) -> Self {
        Self { renderer: Some(Box::new(renderer)), inner: Mutex::default() }
    }

    /// Makes the next such call fail; several failures are met one after the other.
    ///
    /// A failing upgrade or rollback leaves a failed revision behind, as Helm does, unless the failure is one that
    /// Helm meets before it writes ([`Error::Spawn`], [`Error::PendingOperation`], [`Error::ReleaseNotFound`]); a
    /// timeout leaves a pending one.
    pub fn fail_next(&self, operation: Operation, error: Error) {
        self.lock().failures.entry(operation).or_default().push_back(error);
    }

    /// Changes the state of the newest revision, if there is one.
    pub fn set_state(&self, release: &ReleaseRef, state: ReleaseState) {
        if let Some(newest) = self.lock().releases.get_mut(release).and_then(|history| history.last_mut()) {
            newest.revision.state = state;
        }
    }

    /// Forgets one revision, as deleting its record does.
    pub fn delete_record(&self, release: &ReleaseRef, revision: u32) {
        if let Some(history) = self.lock().releases.get_mut(release) {
            history.retain(|stored| stored.revision.revision != revision);
        }
    }

    /// Every call so far, oldest first.
    pub fn calls(&self) -> Vec<Call> {
        self.lock().calls.clone()
    }

    /// How often an operation was called.
    pub fn count(&self, operation: Operation) -> usize {
        self.lock().calls.iter().filter(|call| call.operation == operation).count()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the call down and takes the failure that was ordered for it.
    fn called(
        &self,
        operation: Operation,
        release: &ReleaseRef,
        values: Option<&Values>,
        hash: Option<&ContentHash>,
    ) -> Result<(), Error> {
        let mut inner = self.lock();
        let (release, values, hash) = (release.clone(), values.cloned(), hash.cloned());
        inner.calls.push(Call { operation, release, values, hash });
        inner.failures.get_mut(&operation).and_then(VecDeque::pop_front).map_or(Ok(()), Err)
    }
}

impl Inner {
    fn history(&self, release: &ReleaseRef) -> &[Stored] {
        self.releases.get(release).map_or(&[], Vec::as_slice)
    }

    fn newest(&self, release: &ReleaseRef) -> Result<&Stored, Error> {
        self.history(release).last().ok_or_else(|| Error::ReleaseNotFound { release: release.to_string() })
    }

    fn refuse_if_pending(&self, release: &ReleaseRef) -> Result<(), Error> {
        match self.newest(release) {
            Ok(newest) if newest.revision.state.is_pending() => {
                Err(Error::PendingOperation { release: release.to_string() })
            }
            _ => Ok(()),
        }
    }

    /// Adds a revision. A deployed one takes the place of the one deployed before.
    fn add(&mut self, release: &ReleaseRef, mut made: Stored) -> Status {
        let history = self.releases.entry(release.clone()).or_default();
        if made.revision.state == ReleaseState::Deployed {
            for earlier in history.iter_mut().filter(|stored| stored.revision.state == ReleaseState::Deployed) {
                earlier.revision.state = ReleaseState::Superseded;
            }
        }
        made.revision.revision = history.last().map_or(1, |newest| newest.revision.revision + 1);
        let status = made.status();
        history.push(made);
        status
    }
}

impl Stored {
    fn new(chart: String, hash: Option<ContentHash>, values: Values) -> Self {
        let (updated, description) = ("1970-01-01T00:00:00Z".to_owned(), String::new());
        let revision = Revision { revision: 0, state: ReleaseState::Deployed, chart, updated, description };
        Self { revision, hash, values }
    }

    fn status(&self) -> Status {
        Status { revision: self.revision.revision, state: self.revision.state, hash: self.hash.clone() }
    }

    /// The revision that a failure leaves behind, if it leaves one.
    fn after(mut self, error: &Error, interrupted: ReleaseState) -> Option<Self> {
        self.revision.state = match error {
            Error::Timeout { .. } => interrupted,
            Error::Failed { .. } | Error::Output { .. } => ReleaseState::Failed,
            Error::Spawn { .. } | Error::PendingOperation { .. } | Error::ReleaseNotFound { .. } => return None,
        };
        self.revision.description = error.to_string();
        Some(self)
    }
}

impl Helm for Fake {
    fn template<'a>(
        &'a self,
        release: &'a ReleaseRef,
        chart: &'a ChartRef,
        values: &'a Values,
        _: &'a Capabilities,
    ) -> Answer<'a, Rendered> {
        Box::pin(async move {
            self.called(Operation::Template, release, Some(values), None)?;
            let objects = self.renderer.as_ref().map_or_else(Vec::new, |render| render(release, chart, values));
            Ok(Rendered { objects })
        })
    }

    fn upgrade_install<'a>(
        &'a self,
        release: &'a ReleaseRef,
        chart: &'a ChartRef,
        values: &'a Values,
        options: &'a UpgradeOptions,
    ) -> Answer<'a, Status> {
        Box::pin(async move {
            let ordered = self.called(Operation::UpgradeInstall, release, Some(values), Some(&options.hash));
            let mut inner = self.lock();
            inner.refuse_if_pending(release)?;
            let first = inner.history(release).is_empty();
            let made = Stored::new(format!("{chart:?}"), Some(options.hash.clone()), values.clone());
            if let Err(error) = ordered {
                let pending = if first { ReleaseState::PendingInstall } else { ReleaseState::PendingUpgrade };
                made.after(&error, pending).map(|left| inner.add(release, left));
                return Err(error);
            }
            Ok(inner.add(release, made))
        })
    }

    fn history<'a>(&'a self, release: &'a ReleaseRef) -> Answer<'a, Vec<Revision>> {
        Box::pin(async move {
            self.called(Operation::History, release, None, None)?;
            Ok(self.lock().history(release).iter().map(|stored| stored.revision.clone()).collect())
        })
    }

    fn status<'a>(&'a self, release: &'a ReleaseRef) -> Answer<'a, Status> {
        Box::pin(async move {
            self.called(Operation::Status, release, None, None)?;
            self.lock().newest(release).map(Stored::status)
        })
    }

    fn get_values<'a>(&'a self, release: &'a ReleaseRef) -> Answer<'a, Values> {
        Box::pin(async move {
            self.called(Operation::GetValues, release, None, None)?;
            self.lock().newest(release).map(|stored| stored.values.clone())
        })
    }

    fn rollback<'a>(&'a self, release: &'a ReleaseRef, revision: u32) -> Answer<'a, ()> {
        Box::pin(async move {
            let ordered = self.called(Operation::Rollback, release, None, None);
            let mut inner = self.lock();
            let target = inner.history(release).iter().find(|stored| stored.revision.revision == revision).cloned();
            let target = target.ok_or_else(|| Error::ReleaseNotFound { release: release.to_string() })?;
            let made = Stored::new(target.revision.chart, target.hash, target.values);
            if let Err(error) = ordered {
                made.after(&error, ReleaseState::PendingRollback).map(|left| inner.add(release, left));
                return Err(error);
            }
            inner.add(release, made);
            Ok(())
        })
    }

    fn uninstall<'a>(&'a self, release: &'a ReleaseRef) -> Answer<'a, ()> {
        Box::pin(async move {
            self.called(Operation::Uninstall, release, None, None)?;
            self.lock().releases.remove(release);
            Ok(())
        })
    }
}
