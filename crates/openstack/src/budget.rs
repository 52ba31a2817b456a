//! The concurrency budget of one cloud.

use std::sync::Arc;

use tokio::sync::{Semaphore, SemaphorePermit};

/// How many requests may be under way at one cloud at the same time, first come, first served.
///
/// Clones share the budget: clients of several users of one cloud are bounded together.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Semaphore>);

impl Budget {
    /// A budget of `requests` at a time.
    pub fn new(requests: usize) -> Self {
        Self(Arc::new(Semaphore::new(requests)))
    }

    /// Waits for a place. The semaphore is never closed, so there always is a permit in the end.
    pub(crate) async fn enter(&self) -> Option<SemaphorePermit<'_>> {
        self.0.acquire().await.ok()
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(16)
    }
}
