//! The HTTP server for probes and metrics: `/livez`, `/readyz`, `/metrics`.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{Router, extract::State, http::StatusCode, http::header, response::IntoResponse, routing::get};
use tokio::net::TcpListener;

use crate::{Context, Health};

/// Whether the process has everything it needs in order to work, or to begin as soon as it is to.
#[derive(Clone)]
pub struct Readiness(Arc<Mutex<BTreeSet<String>>>);

impl Readiness {
    /// Not ready before each of these is [there](Self::there).
    pub fn awaiting(missing: impl IntoIterator<Item = String>) -> Self {
        Self(Arc::new(Mutex::new(missing.into_iter().collect())))
    }

    /// From now on this is not waited for.
    pub fn there(&self, what: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(what);
    }

    fn missing(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// Serves until the context is cancelled.
pub async fn serve(address: SocketAddr, readiness: Readiness, health: Health, context: Context) -> std::io::Result<()> {
    let stop = context.stop.clone();
    let app = Router::new()
        .route("/livez", get(livez).with_state(health))
        .route("/readyz", get(readyz).with_state(readiness))
        .route("/metrics", get(metrics).with_state(context));
    let listener = TcpListener::bind(address).await?;
    axum::serve(listener, app).with_graceful_shutdown(stop.cancelled_owned()).await
}

async fn livez(State(health): State<Health>) -> (StatusCode, String) {
    probed("stuck: ", &health.stuck())
}

async fn readyz(State(readiness): State<Readiness>) -> (StatusCode, String) {
    probed("waiting for ", &readiness.missing())
}

/// `ok` when nothing is wrong.
fn probed(says: &str, wrong: &[String]) -> (StatusCode, String) {
    if wrong.is_empty() {
        (StatusCode::OK, "ok".to_owned())
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, format!("{says}{}", wrong.join("; ")))
    }
}

async fn metrics(State(context): State<Context>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], context.metrics.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_when_nothing_is_missing() {
        let readiness = Readiness::awaiting(["lease a".to_owned(), "lease b".to_owned()]);
        readiness.there("lease a");
        readiness.there("lease a");
        let (status, text) = probed("waiting for ", &readiness.missing());
        assert_eq!((status, text.as_str()), (StatusCode::SERVICE_UNAVAILABLE, "waiting for lease b"));
        readiness.there("lease b");
        assert_eq!(probed("waiting for ", &readiness.missing()), (StatusCode::OK, "ok".to_owned()));
    }
}
