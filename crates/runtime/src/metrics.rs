//! Metrics of the process in Prometheus' text format. No label holds an object's name.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Reconciled {
    controller: &'static str,
    result: &'static str,
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Of {
    controller: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Watched {
    kind: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Request {
    service: String,
    method: String,
    status: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Named {
    lease: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Reviewed {
    resource: String,
    verdict: &'static str,
}

/// Passes under way by controller, in the order of their begin.
type Passes = HashMap<&'static str, BTreeMap<u64, Instant>>;

/// All metrics.
pub struct Metrics {
    registry: Mutex<Registry>,
    reconciles: Family<Reconciled, Counter>,
    durations: Family<Of, Histogram>,
    oldest: Family<Of, Gauge<f64, AtomicU64>>,
    passes: Mutex<Passes>,
    begun: AtomicU64,
    leader: Family<Named, Gauge>,
    watch_failures: Family<Watched, Counter>,
    requests: Family<Request, Counter>,
    unowned: Family<Watched, Gauge>,
    reviews: Family<Reviewed, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("kupenstack");
        let reconciles = Family::default();
        registry.register(
            "reconciles",
            "Passes over objects by controller, result (ok or failed) and reason",
            reconciles.clone(),
        );
        // a pass that calls helm takes seconds, one that finds nothing to do a millisecond
        let durations =
            Family::<Of, Histogram>::new_with_constructor(|| Histogram::new([0.001, 0.01, 0.1, 1.0, 10.0, 60.0]));
        registry.register("reconcile_seconds", "Duration of passes over objects", durations.clone());
        let oldest = Family::default();
        registry.register(
            "oldest_pass_seconds",
            "Age of the oldest pass under way; an upload may take hours, other passes minutes",
            oldest.clone(),
        );
        let leader = Family::default();
        registry.register("leader", "Whether this process holds the lease, and works", leader.clone());
        let watch_failures = Family::default();
        registry.register("watch_failures", "Interrupted watches by kind; they are resumed", watch_failures.clone());
        let requests = Family::default();
        registry.register(
            "openstack_requests",
            "Requests to OpenStack by service, method and class of status",
            requests.clone(),
        );
        let unowned = Family::default();
        registry.register(
            "unowned_resources",
            "Resources in OpenStack that carry this cluster's mark and whose object does not exist, by kind",
            unowned.clone(),
        );
        let reviews = Family::default();
        registry.register("admission_reviews", "Reviews by the webhook by resource and verdict", reviews.clone());
        Self {
            registry: Mutex::new(registry),
            reconciles,
            durations,
            oldest,
            passes: Mutex::default(),
            begun: AtomicU64::new(0),
            leader,
            watch_failures,
            requests,
            unowned,
            reviews,
        }
    }
}

impl Metrics {
    pub(crate) fn reconciled(
        &self,
        controller: &'static str,
        took: Duration,
        outcome: Result<&'static str, &crate::Failure>,
    ) {
        let (result, reason) = match outcome {
            Ok(reason) => ("ok", reason),
            Err(failure) => ("failed", failure.reason()),
        };
        self.reconciles.get_or_create(&Reconciled { controller, result, reason }).inc();
        self.durations.get_or_create(&Of { controller }).observe(took.as_secs_f64());
    }

    /// A pass has begun; it is over when what is returned is dropped.
    pub(crate) fn running(&self, controller: &'static str) -> impl Drop + use<'_> {
        let id = self.begun.fetch_add(1, Ordering::Relaxed);
        self.passes().entry(controller).or_default().insert(id, Instant::now());
        Running { metrics: self, controller, id }
    }

    /// Says whether this process holds a lease.
    pub fn leads(&self, lease: &str, yes: bool) {
        self.leader.get_or_create(&Named { lease: lease.to_owned() }).set(i64::from(yes));
    }

    pub(crate) fn watch_failed(&self, kind: &str) {
        self.watch_failures.get_or_create(&Watched { kind: kind.to_owned() }).inc();
    }

    /// Counts one request to OpenStack. `status` is its class, such as `2xx` or `refused`.
    pub fn openstack_request(&self, service: &str, method: &str, status: &str) {
        let (service, method, status) = (service.to_owned(), method.to_owned(), status.to_owned());
        self.requests.get_or_create(&Request { service, method, status }).inc();
    }

    /// Sets how many resources of a kind carry our mark and belong to no object.
    pub fn unowned(&self, kind: &str, count: usize) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.unowned.get_or_create(&Watched { kind: kind.to_owned() }).set(count);
    }

    /// Counts one review by the webhook.
    pub fn reviewed(&self, resource: &str, verdict: &'static str) {
        self.reviews.get_or_create(&Reviewed { resource: resource.to_owned(), verdict }).inc();
    }

    /// The text that Prometheus reads.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (&controller, passes) in &*self.passes() {
            let age = passes.first_key_value().map(|(_, begun)| begun.elapsed()).unwrap_or_default();
            self.oldest.get_or_create(&Of { controller }).set(age.as_secs_f64());
        }
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        if encode(&mut text, &registry).is_err() {
            tracing::error!("metrics could not be encoded");
        }
        text
    }
    fn passes(&self) -> MutexGuard<'_, Passes> {
        self.passes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Running<'a> {
    metrics: &'a Metrics,
    controller: &'static str,
    id: u64,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(passes) = self.metrics.passes().get_mut(self.controller) {
            passes.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line<'a>(text: &'a str, metric: &str) -> Option<&'a str> {
        text.lines().find(|line| line.starts_with(metric))?.rsplit(' ').next()
    }

    #[test]
    fn the_oldest_pass_shows_its_age() {
        let metrics = Metrics::default();
        let age = || line(&metrics.text(), "kupenstack_oldest_pass_seconds").map(|age| age.parse::<f64>().unwrap());
        assert_eq!(age(), None);
        let first = metrics.running("image");
        std::thread::sleep(Duration::from_millis(20));
        let before = Instant::now();
        let second = metrics.running("image");
        assert!(age().unwrap() >= 0.02);
        drop(first);
        let younger = age().unwrap();
        assert!(younger <= before.elapsed().as_secs_f64(), "{younger}");
        drop(second);
        assert_eq!(age(), Some(0.0));
    }

    #[test]
    fn it_is_told_who_leads() {
        let metrics = Metrics::default();
        for (yes, expected) in [(false, "0"), (true, "1"), (false, "0")] {
            metrics.leads("kupenstack-cloud", yes);
            assert_eq!(line(&metrics.text(), "kupenstack_leader{lease=\"kupenstack-cloud\"}"), Some(expected));
        }
    }
}
