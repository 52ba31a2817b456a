//! How long tests wait.

use std::time::Duration;

use tokio::time::{sleep, timeout};

/// Longest wait for anything that has to come. Only a test that fails takes so long: two cores may build and test at the
/// same time.
pub const PATIENCE: Duration = Duration::from_mins(3);

/// Between two looks at what tells of nothing.
const LOOK: Duration = Duration::from_millis(20);

/// Waits for something, and fails the test when it does not come within [`PATIENCE`].
pub async fn within<T>(coming: impl Future<Output = T>, what: &str) -> T {
    timeout(PATIENCE, coming).await.unwrap_or_else(|_| panic!("not after {PATIENCE:?}: {what}"))
}

/// Waits until something holds that no event tells of, and fails the test when it does not within [`PATIENCE`].
pub async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let held = async {
        while !holds().await {
            sleep(LOOK).await;
        }
    };
    within(held, what).await;
}
