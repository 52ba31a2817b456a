//! Metrics of the process in Prometheus' text format. No label holds an object's name.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, histogram::Histogram},
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

/// All metrics.
pub struct Metrics {
    registry: Mutex<Registry>,
    reconciles: Family<Reconciled, Counter>,
    durations: Family<Of, Histogram>,
    watch_failures: Family<Watched, Counter>,
    requests: Family<Request, Counter>,
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
        let watch_failures = Family::default();
        registry.register("watch_failures", "Interrupted watches by kind; they are resumed", watch_failures.clone());
        let requests = Family::default();
        registry.register(
            "openstack_requests",
            "Requests to OpenStack by service, method and class of status",
            requests.clone(),
        );
        Self { registry: Mutex::new(registry), reconciles, durations, watch_failures, requests }
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

    pub(crate) fn watch_failed(&self, kind: &str) {
        self.watch_failures.get_or_create(&Watched { kind: kind.to_owned() }).inc();
    }

    /// Counts one request to OpenStack. `status` is its class, such as `2xx` or `refused`.
    pub fn openstack_request(&self, service: &str, method: &str, status: &str) {
        let (service, method, status) = (service.to_owned(), method.to_owned(), status.to_owned());
        self.requests.get_or_create(&Request { service, method, status }).inc();
    }

    /// The text that Prometheus reads.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        if encode(&mut text, &registry).is_err() {
            tracing::error!("metrics could not be encoded");
        }
        text
    }
}
