//! The only clock of the lease. It goes on while the machine sleeps, which tokio's and `Instant` do not, and nobody can
//! set it.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Time since the machine was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment(Duration);

impl Moment {
    /// How long it is until this moment; nothing when it has passed.
    pub(super) fn left(self) -> Duration {
        self.0.saturating_sub(now().0)
    }

    pub(super) fn has_passed(self) -> bool {
        now() >= self
    }
}

impl std::ops::Add<Duration> for Moment {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

pub(super) fn now() -> Moment {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or_default());
    Moment(seconds + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or_default()))
}

pub(super) async fn sleep_until(moment: Moment) {
    tokio::time::sleep(moment.left()).await;
}
