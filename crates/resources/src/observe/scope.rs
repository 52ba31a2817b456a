//! Whether the next list is to be one of all, or one of what has changed.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::{draft::Finished, pace};
use crate::cloud::Site;

/// What changed so long before the latest change that was seen is asked for once more: the clocks of a service's hosts differ, and
/// a change is to be seen only some time after it says that it was made.
const OVERLAP: SignedDuration = SignedDuration::from_secs(5);

/// What a census knows already, so that it need not be listed again.
#[derive(Debug)]
pub(super) struct Scope {
    /// Between two lists of all.
    every: Duration,
    /// The last list of all, if nothing has failed since.
    whole: Option<Whole>,
}

#[derive(Debug)]
struct Whole {
    site: Site,
    ended: Instant,
    took: Duration,
    /// Up to when lists have shown every change, by the service's clock.
    latest: Option<Timestamp>,
    /// Whether lists of changes have not shown since what they should have.
    is_short: bool,
}

impl Scope {
    pub(super) fn new(every: Duration) -> Self {
        Self { every, whole: None }
    }

    /// From when on changes are enough; none if all is to be listed.
    pub(super) fn since(&self, site: &Site) -> Option<Timestamp> {
        let whole = self.whole.as_ref().filter(|whole| whole.site == *site)?;
        let rest =
            if whole.is_short { pace::least(whole.took, true) } else { self.every.max(pace::least(whole.took, false)) };
        if whole.ended.elapsed() >= rest {
            return None;
        }
        whole.latest?.checked_sub(OVERLAP).ok()
    }

    /// A list came to its end.
    pub(super) fn listed(&mut self, site: &Site, is_whole: bool, took: Duration, finished: &Finished) {
        let latest = finished.latest.and_then(|latest| asked_at(latest, took));
        if is_whole {
            self.whole = Some(Whole { site: site.clone(), ended: Instant::now(), took, latest, is_short: false });
        } else if let Some(whole) = &mut self.whole {
            whole.latest = whole.latest.max(latest);
            whole.is_short |= finished.is_short;
        }
    }

    /// A list of all failed.
    pub(super) fn failed(&mut self) {
        self.whole = None;
    }

    /// A list of changes failed. They are asked for again, unless all can be listed.
    pub(super) fn changes_failed(&mut self) {
        if let Some(whole) = &mut self.whole {
            whole.is_short = true;
        }
    }
}

/// Up to when a list that took so long shows every change. What its last page shows is later than what others may miss. A host
/// whose clock is ahead must not hide what the others do.
fn asked_at(latest: Timestamp, took: Duration) -> Option<Timestamp> {
    latest.min(Timestamp::now()).checked_sub(SignedDuration::try_from(took).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::News;

    const EVERY: Duration = Duration::from_secs(50);
    const SHORT: Duration = Duration::ZERO;
    const LATEST: &str = "2026-12-01T00:00:10Z";

    fn site(life: &str) -> Site {
        let cluster = "6f2b6a2e-1f0a-4a55-9c58-0d4f3ad0f7a1".parse().unwrap();
        Site { namespace: "cloud".to_owned(), cluster, life: life.to_owned() }
    }

    fn at(latest: &str) -> Timestamp {
        latest.parse().unwrap()
    }

    fn finished(latest: Option<Timestamp>, is_short: bool) -> Finished {
        Finished { news: News::default(), moving: false, is_short, latest }
    }

    fn scope(took: Duration) -> Scope {
        let mut scope = Scope::new(EVERY);
        assert_eq!(scope.since(&site("one")), None, "nothing is known");
        scope.listed(&site("one"), true, took, &finished(Some(at(LATEST)), false));
        scope
    }

    #[tokio::test(start_paused = true)]
    async fn between_two_lists_of_all_changes_are_enough() {
        let mut scope = scope(SHORT);
        let one = site("one");
        assert_eq!(scope.since(&one), Some(at("2026-12-01T00:00:05Z")));
        scope.listed(&one, false, SHORT, &finished(Some(at("2026-12-01T00:00:20Z")), false));
        assert_eq!(scope.since(&one), Some(at("2026-12-01T00:00:15Z")));
        scope.listed(&one, false, SHORT, &finished(None, false));
        assert_eq!(scope.since(&one), Some(at("2026-12-01T00:00:15Z")), "nothing has changed since");
        assert_eq!(scope.since(&site("two")), None, "that is another cloud");
        tokio::time::advance(EVERY).await;
        assert_eq!(scope.since(&one), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_changes_do_not_show_all_is_listed_for() {
        let mut scope = scope(SHORT);
        let one = site("one");
        tokio::time::advance(Duration::from_secs(1)).await;
        scope.listed(&one, false, SHORT, &finished(None, true));
        assert_eq!(scope.since(&one), None);
        scope.listed(&one, true, SHORT, &finished(Some(at(LATEST)), false));
        assert!(scope.since(&one).is_some());
        scope.changes_failed();
        assert_eq!(scope.since(&one), None, "and after a failure");
        scope.listed(&one, true, SHORT, &finished(Some(at(LATEST)), false));
        scope.failed();
        assert_eq!(scope.since(&one), None, "of either sort");
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_cloud_is_not_listed_all_the_time() {
        let mut scope = scope(Duration::from_secs(4));
        let one = site("one");
        scope.listed(&one, false, SHORT, &finished(None, true));
        assert!(scope.since(&one).is_some());
        tokio::time::advance(Duration::from_secs(20)).await;
        assert_eq!(scope.since(&one), None, "somebody waits");
        scope.listed(&one, true, Duration::from_secs(4), &finished(Some(at(LATEST)), false));
        tokio::time::advance(EVERY).await;
        assert!(scope.since(&one).is_some());
        tokio::time::advance(Duration::from_secs(30)).await;
        assert_eq!(scope.since(&one), None);
    }

    /// What changed while its pages were read may have been on one of the first.
    #[tokio::test(start_paused = true)]
    async fn what_changed_while_a_list_was_read_is_asked_for_again() {
        let mut scope = scope(Duration::from_secs(4));
        assert_eq!(scope.since(&site("one")), Some(at("2026-12-01T00:00:01Z")));
        scope.changes_failed();
        assert_eq!(scope.since(&site("one")), Some(at("2026-12-01T00:00:01Z")), "nothing is missed by a failure");
    }

    #[tokio::test]
    async fn without_a_service_s_time_there_are_no_changes_to_ask_for() {
        let mut scope = Scope::new(EVERY);
        scope.listed(&site("one"), true, SHORT, &finished(None, false));
        assert_eq!(scope.since(&site("one")), None);
    }

    #[tokio::test]
    async fn a_clock_that_is_ahead_hides_nothing() {
        let mut scope = Scope::new(EVERY);
        scope.listed(&site("one"), true, SHORT, &finished(Some(at("2999-01-01T00:00:00Z")), false));
        assert!(scope.since(&site("one")).unwrap() < Timestamp::now() - Duration::from_secs(4));
    }
}
