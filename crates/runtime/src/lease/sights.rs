//! How the lease is seen: by a watch, and by a look whenever that ends.

use std::{io, time::Duration};

use futures::{StreamExt, stream::BoxStream};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api,
    api::{WatchEvent, WatchParams},
};
use tokio::time::timeout;

use super::{
    Terms,
    clock::{Moment, now, sleep_until},
    pause,
};

/// A watch that says nothing for so long may be dead: a held lease changes every few seconds.
const SILENCE: Duration = Duration::from_mins(1);

type Events = BoxStream<'static, kube::Result<WatchEvent<Lease>>>;

/// One sight of the lease after the other.
pub(super) struct Sights {
    api: Api<Lease>,
    name: String,
    terms: Terms,
    events: Option<Events>,
    not_before: Moment,
}

impl Sights {
    pub(super) fn new(api: Api<Lease>, name: &str, terms: Terms) -> Self {
        Self { api, name: name.to_owned(), terms, events: None, not_before: now() }
    }

    /// The lease as it is now or becomes next, `None` when there is none. Nothing but time is lost when the future is
    /// dropped. Fails when the API server does not answer. Where there is no watch, the next call waits a moment and
    /// looks again.
    pub(super) async fn next(&mut self) -> kube::Result<Option<Lease>> {
        loop {
            let Some(events) = &mut self.events else { return self.look().await };
            match timeout(SILENCE, events.next()).await {
                Ok(Some(Ok(WatchEvent::Added(lease) | WatchEvent::Modified(lease)))) => return Ok(Some(lease)),
                Ok(Some(Ok(WatchEvent::Deleted(_)))) => return Ok(None),
                Ok(Some(Ok(WatchEvent::Bookmark(_)))) => {}
                Ok(Some(Ok(WatchEvent::Error(_)) | Err(_)) | None) | Err(_) => self.look_again(),
            }
        }
    }

    /// The next sight is a look of its own instead of what the watch tells.
    pub(super) fn look_again(&mut self) {
        self.events = None;
    }

    async fn look(&mut self) -> kube::Result<Option<Lease>> {
        sleep_until(self.not_before).await;
        // also when nothing fails: a watch that ends at once must not make us ask without end
        self.not_before = now() + pause(&self.terms) / 10;
        let lease = bounded(self.terms.request_limit(), self.api.get_opt(&self.name)).await;
        if lease.is_err() {
            self.not_before = now() + pause(&self.terms);
            return lease;
        }
        self.events = self.watch().await.inspect_err(|error| tracing::debug!(%error, "watch of the lease")).ok();
        if self.events.is_none() {
            self.not_before = now() + pause(&self.terms);
        }
        lease
    }

    /// Without a version the watch begins with what is there when it begins, so nothing since the look is missed.
    async fn watch(&mut self) -> kube::Result<Events> {
        let parameters = WatchParams::default().fields(&format!("metadata.name={}", self.name));
        let events = bounded(self.terms.request_limit(), self.api.watch(&parameters, "")).await?;
        Ok(events.boxed())
    }
}

/// A request that must not take longer.
pub(super) async fn bounded<T>(limit: Duration, request: impl Future<Output = kube::Result<T>>) -> kube::Result<T> {
    let late = |_| kube::Error::Service(io::Error::new(io::ErrorKind::TimedOut, "no answer in time").into());
    timeout(limit, request).await.map_err(late)?
}
