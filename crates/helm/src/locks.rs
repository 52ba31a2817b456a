use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OwnedMutexGuard;

use crate::ReleaseRef;

/// One lock per release, forgotten when nobody holds or awaits it.
#[derive(Default)]
pub(crate) struct Locks(Mutex<HashMap<ReleaseRef, Weak<tokio::sync::Mutex<()>>>>);

impl Locks {
    /// Waits until nobody else changes the release.
    pub(crate) async fn lock(&self, release: &ReleaseRef) -> OwnedMutexGuard<()> {
        self.of(release).lock_owned().await
    }

    fn of(&self, release: &ReleaseRef) -> Arc<tokio::sync::Mutex<()>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lock) = known.get(release).and_then(Weak::upgrade) {
            return lock;
        }
        known.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::default();
        known.insert(release.clone(), Arc::downgrade(&lock));
        lock
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::Locks;
    use crate::ReleaseRef;

    #[tokio::test]
    async fn excludes_the_same_release_only_and_forgets() {
        let locks = Locks::default();
        let (one, other) = (ReleaseRef::new("ns", "one"), ReleaseRef::new("ns", "other"));
        let held = locks.lock(&one).await;
        drop(locks.lock(&other).await);
        assert!(timeout(Duration::from_millis(20), locks.lock(&one)).await.is_err());
        drop(held);
        drop(locks.lock(&one).await);
        drop(locks.lock(&other).await);
        assert_eq!(locks.0.lock().unwrap().len(), 1, "unused locks are dropped");
    }
}
