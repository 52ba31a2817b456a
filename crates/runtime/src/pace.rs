//! How soon an object is looked at again.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rand::Rng;

/// Consecutive fruitless passes per object. Entries go when an object succeeds or disappears, so the map is
/// bounded by the objects in trouble.
pub(crate) struct Attempts<Key>(Mutex<HashMap<Key, u32>>);

impl<Key: Eq + Hash> Attempts<Key> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(HashMap::new()))
    }

    /// Counts one more and returns how many there were before.
    pub(crate) fn next(&self, key: Key) -> u32 {
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let n = map.entry(key).or_insert(0);
        let before = *n;
        *n = n.saturating_add(1);
        before
    }

    pub(crate) fn forget(&self, key: &Key) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

/// `base` doubled `attempt` times, at most `cap`, with up to 20 % added.
pub fn growing(base: Duration, attempt: u32, cap: Duration) -> Duration {
    jittered(base.saturating_mul(2_u32.saturating_pow(attempt.min(16))).min(cap))
}

/// Up to 20 % longer, so that what came together once does not come together for ever.
pub fn jittered(d: Duration) -> Duration {
    d.mul_f64(1.0 + rand::rng().random_range(0.0..0.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pace_grows_to_its_cap() {
        let s = Duration::from_secs;
        for (attempt, low, high) in [(0, 1, 2), (3, 8, 10), (40, 300, 360)] {
            let d = growing(s(1), attempt, s(300));
            assert!(d >= s(low) && d <= s(high), "{attempt}: {d:?}");
        }
    }

    #[test]
    fn attempts_start_anew_after_success() {
        let a = Attempts::new();
        assert_eq!((a.next("x"), a.next("x"), a.next("y")), (0, 1, 0));
        a.forget(&"x");
        assert_eq!(a.next("x"), 0);
    }
}
