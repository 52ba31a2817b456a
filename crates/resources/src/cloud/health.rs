//! Notices when a service that did not answer does so again, so that those who wait for it need not wait any longer.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use kupenstack_openstack::{Observation, Observer, StatusClass};
use kupenstack_runtime::metrics::Metrics;
use rand::Rng;
use tokio::{
    sync::{Notify, broadcast},
    time::{Instant, sleep},
};

use super::Cloud;

/// A service that fails for less is not one that others have begun to wait for.
const OUTAGE: Duration = Duration::from_secs(3);
/// Between two looks at a service that fails. Who waits for it tries it less and less often.
const LOOK: Duration = Duration::from_secs(8);

/// Which services fail.
pub(super) struct Health {
    metrics: Arc<Metrics>,
    /// Since when, by service type.
    failing: Mutex<HashMap<String, Instant>>,
    failed: Notify,
    back: broadcast::Sender<()>,
}

impl Health {
    pub(super) fn new(metrics: Arc<Metrics>) -> Self {
        Self { metrics, failing: Mutex::default(), failed: Notify::new(), back: broadcast::channel(16).0 }
    }

    /// Each time that a service is back.
    pub(super) fn recoveries(&self) -> BoxStream<'static, ()> {
        stream::unfold(self.back.subscribe(), |mut back| async {
            match back.recv().await {
                // however many came back meanwhile, it is told once
                Ok(()) | Err(broadcast::error::RecvError::Lagged(_)) => Some(((), back)),
                Err(broadcast::error::RecvError::Closed) => None,
            }
        })
        .boxed()
    }

    fn saw(&self, service: &str, fails: bool) {
        let mut failing = self.failing();
        if fails && !failing.contains_key(service) {
            failing.insert(service.to_owned(), Instant::now());
            self.failed.notify_one();
        } else if !fails
            && let Some(since) = failing.remove(service)
            && since.elapsed() >= OUTAGE
        {
            tracing::info!(service, "answers again");
            // without a listener nobody has waited
            drop(self.back.send(()));
        }
    }

    fn failing(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn services(&self) -> Vec<String> {
        self.failing().keys().cloned().collect()
    }
}

impl Observer for Health {
    fn request(&self, seen: &Observation<'_>) {
        self.metrics.openstack_request(seen.service, seen.method, seen.status.into());
        self.saw(seen.service, matches!(seen.status, StatusClass::ServerError | StatusClass::NoAnswer));
    }
}

/// Looks at services that fail until they answer. Ends with the cloud.
pub(super) async fn look(cloud: Weak<Cloud>, health: Arc<Health>) {
    loop {
        if health.services().is_empty() {
            health.failed.notified().await;
        }
        let jitter = rand::rng().random_range(0.75..1.25);
        sleep(LOOK.mul_f64(jitter)).await;
        let Some(cloud) = cloud.upgrade() else { return };
        let Some(site) = cloud.site() else { continue };
        let Ok(admin) = cloud.admin(&site).await else { continue };
        for service in health.services() {
            if let Err(error) = admin.probe(&service, "/").await {
                tracing::debug!(service, %error, "still out of order");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn heard(recoveries: &mut BoxStream<'static, ()>) -> usize {
        std::iter::from_fn(|| recoveries.next().now_or_never().flatten()).count()
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_an_outage_is_told_once() {
        let health = Health::new(Arc::default());
        let mut recoveries = health.recoveries();
        for _ in 0..3 {
            health.saw("image", true);
            tokio::time::advance(OUTAGE).await;
        }
        assert_eq!(heard(&mut recoveries), 0);
        health.saw("identity", false);
        assert_eq!(heard(&mut recoveries), 0, "another service");
        health.saw("image", false);
        health.saw("image", false);
        assert_eq!(heard(&mut recoveries), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_single_failure_is_no_outage() {
        let health = Health::new(Arc::default());
        let mut recoveries = health.recoveries();
        health.saw("image", true);
        health.saw("image", false);
        tokio::time::advance(OUTAGE).await;
        health.saw("image", true);
        health.saw("image", false);
        assert_eq!(heard(&mut recoveries), 0);
    }
}
