//! What the tests of the engine share: a cluster with a player of its nodes, and an operator that can be killed.

#![allow(dead_code, reason = "each test binary uses its part")]

pub(crate) mod operator;
pub(crate) mod player;
mod pod;
pub(crate) mod world;

use std::{future::Future, time::Duration};

/// Longest wait for anything; the machine may be busy with other tests.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// What comes in the end; a test that waits in vain fails.
pub(crate) async fn eventually<T>(what: &str, coming: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, coming).await.unwrap_or_else(|_| panic!("{what}: not within {PATIENCE:?}"))
}
