//! The cloud's time: tokens expire by it, and states that take time change by it.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use jiff::{SignedDuration, Timestamp};

/// A clock that runs, or that stands until it is advanced. Both can be advanced, never set back.
#[derive(Debug)]
pub struct Clock(Mutex<Reading>);

#[derive(Debug)]
struct Reading {
    start: Timestamp,
    /// Where it runs from; none stands still.
    runs_since: Option<Instant>,
    advanced: Duration,
}

impl Clock {
    /// A clock that shows the real time.
    pub fn running() -> Self {
        Self::new(Some(Instant::now()))
    }

    /// A clock that begins with the real time, and stands: nothing expires or gets ready unless a test says so.
    pub fn standing() -> Self {
        Self::new(None)
    }

    fn new(runs_since: Option<Instant>) -> Self {
        Self(Mutex::new(Reading { start: Timestamp::now(), runs_since, advanced: Duration::ZERO }))
    }

    /// What time it is.
    pub fn now(&self) -> Timestamp {
        let reading = self.reading();
        let elapsed = reading.runs_since.map_or(Duration::ZERO, |since| since.elapsed()) + reading.advanced;
        later(reading.start, elapsed)
    }

    /// Lets time pass at once. What falls due happens before the next request, in its order.
    pub fn advance(&self, by: Duration) {
        self.reading().advanced += by;
    }

    fn reading(&self) -> MutexGuard<'_, Reading> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A time and a span after it, held at the end of time.
pub(super) fn later(time: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by).ok().and_then(|by| time.checked_add(by).ok()).unwrap_or(Timestamp::MAX)
}

/// A time and a span before it, held at the beginning of time.
pub(super) fn earlier(time: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by).ok().and_then(|by| time.checked_sub(by).ok()).unwrap_or(Timestamp::MIN)
}
