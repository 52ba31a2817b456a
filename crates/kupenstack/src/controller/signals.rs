//! The signals that ask a process to end.

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};

/// Waits for SIGTERM or SIGINT and returns its name.
pub(super) async fn received() -> anyhow::Result<&'static str> {
    let mut terminate = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listen for SIGINT")?;
    Ok(tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    })
}
