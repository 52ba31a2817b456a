//! How often lists are made.

use std::time::Duration;

use kupenstack_runtime::jittered;

/// Between two attempts when the first has just failed, and after many: a service that is back is noticed then.
const FAILED: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(12));
/// A list takes at most one part in so many of the time, so that a large cloud is not busy with being listed.
const SHARE: u32 = 20;
/// The same while something moves, for which somebody waits. One list may be slow only because much else is asked for.
const SHARE_MOVING: u32 = 5;
/// But however long lists take, changes are seen within this time.
const LONGEST: Duration = Duration::from_mins(10);

/// The pace of one census.
#[derive(Debug)]
pub(super) struct Pace {
    /// Between two lists while something is being made, changed or found changed.
    moving: Duration,
    /// Between two lists when all is settled.
    settled: Duration,
    interval: Duration,
    failed: Duration,
}

impl Pace {
    /// A pace at which lists are `every` apart at most, and one part in `quick` of that while something moves.
    pub(super) fn new(every: Duration, quick: u32) -> Self {
        // the jitter comes on top
        let (moving, settled) = (every / quick, every * 5 / 6);
        Self { moving, settled, interval: Duration::ZERO, failed: Duration::ZERO }
    }

    /// Between two lists when all is settled.
    pub(super) fn settled(&self) -> Duration {
        self.settled
    }

    /// How long to wait after a list.
    pub(super) fn listed(&mut self, moving: bool, took: Duration) -> Duration {
        self.failed = Duration::ZERO;
        self.interval = if moving { self.moving } else { (self.interval * 2).clamp(self.moving, self.settled) };
        jittered(self.interval.max(least(took, moving)))
    }

    /// How long to wait where there is nothing: the first that is written is news.
    pub(super) fn deserted(&mut self) -> Duration {
        (self.interval, self.failed) = (LONGEST, Duration::ZERO);
        jittered(self.interval)
    }

    /// How long to wait after an attempt that failed.
    pub(super) fn failed(&mut self) -> Duration {
        self.failed = (self.failed * 2).clamp(FAILED.0, FAILED.1);
        jittered(self.failed)
    }

    /// How long to wait where nothing can be listed and every object looks for itself.
    pub(super) fn unlistable(&mut self) -> Duration {
        (self.interval, self.failed) = (Duration::ZERO, Duration::ZERO);
        jittered(self.settled)
    }

    /// Something was written: how long to wait for more of it. `None` when the next list comes soon anyway.
    pub(super) fn moved(&mut self) -> Option<Duration> {
        let news = self.failed.is_zero() && self.interval > self.moving;
        self.interval = if news { self.moving } else { self.interval };
        news.then(|| jittered(self.moving))
    }
}

/// How long to wait at least after a list that took so long.
pub(super) fn least(took: Duration, moving: bool) -> Duration {
    let share = if moving { SHARE_MOVING } else { SHARE };
    took.saturating_mul(share).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace() -> Pace {
        Pace::new(Duration::from_mins(1), 12)
    }

    const SHORT: Duration = Duration::from_millis(10);

    fn is_about(span: Duration, seconds: u64) -> bool {
        let least = Duration::from_secs(seconds);
        span >= least && span <= least.mul_f64(1.2)
    }

    #[test]
    fn the_more_settled_the_slower_but_never_slower_than_once_a_minute() {
        let mut pace = pace();
        for seconds in [5, 10, 20, 40, 50, 50] {
            let wait = pace.listed(false, SHORT);
            assert!(is_about(wait, seconds) && wait <= Duration::from_mins(1), "{wait:?}");
        }
        assert!(is_about(pace.listed(true, SHORT), 5), "a change makes it quick");
    }

    #[test]
    fn where_there_is_nothing_lists_are_rare_until_something_is_written() {
        let mut pace = pace();
        assert!(is_about(pace.deserted(), 600));
        assert!(pace.moved().is_some_and(|wait| is_about(wait, 5)));
    }

    #[test]
    fn a_list_that_takes_long_is_made_less_often() {
        let mut pace = pace();
        assert!(is_about(pace.listed(false, Duration::from_secs(3)), 60));
        assert!(is_about(pace.listed(true, Duration::from_secs(3)), 15), "somebody waits");
        assert!(is_about(pace.listed(true, Duration::from_hours(1)), 600));
    }

    #[test]
    fn failures_are_tried_again_soon() {
        let mut pace = pace();
        for seconds in [1, 2, 4, 8, 12, 12] {
            assert!(is_about(pace.failed(), seconds));
        }
        assert_eq!(pace.moved(), None, "a failing service is not asked more often");
        pace.listed(false, SHORT);
        assert!(is_about(pace.failed(), 1));
    }

    #[test]
    fn a_write_brings_the_next_list_nearer_once() {
        let mut pace = pace();
        for _ in 0..6 {
            pace.listed(false, SHORT);
        }
        assert!(pace.moved().is_some_and(|wait| is_about(wait, 5)));
        assert_eq!(pace.moved(), None);
    }
}
