//! Which images are on their way at the same time.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use kupenstack_core::Outcome;
use tokio_util::sync::CancellationToken;

use crate::{
    actuator::Progress,
    queue::{Place, Queue},
};

/// Small images on their way at the same time: as many as it takes to hide the round trips that they consist of.
const SMALL: usize = 12;
/// Large ones: each takes disk and bandwidth, and few of them use both up.
const LARGE: usize = 4;
/// The most bytes of a small one.
const SMALL_BYTES: u64 = 64 << 20;
/// Whoever has to wait is called. It looks again all the same, in case it was called in vain.
const AGAIN: Duration = Duration::from_mins(5);

/// Who may be on its way. Small images do not wait for large ones.
pub(super) struct Turns {
    small: Queue,
    large: Queue,
}

impl Turns {
    pub(super) fn new() -> Self {
        Self { small: Queue::new(SMALL), large: Queue::new(LARGE) }
    }

    /// The turn of an object, which is taken for a small image until more is known; or what it waits for.
    pub(super) fn take<'a>(&'a self, uid: &'a str, progress: &'a dyn Progress) -> Result<Turn<'a>, Outcome> {
        let is_large = self.large.knows(uid);
        let queue = if is_large { &self.large } else { &self.small };
        let place = queue.enter(uid, progress.call()).ok_or_else(queued)?;
        let held = Mutex::new(Held { _place: place, is_large });
        Ok(Turn { turns: self, uid, progress, held, lost: CancellationToken::new() })
    }

    /// A pass over an object is over.
    pub(super) fn passed(&self, uid: &str) {
        self.small.passed(uid);
        self.large.passed(uid);
    }
}

fn queued() -> Outcome {
    Outcome::waiting("Queued", "other images are on their way, this one has to wait").within(AGAIN)
}

/// The right to be on the way.
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    uid: &'a str,
    progress: &'a dyn Progress,
    held: Mutex<Held>,
    lost: CancellationToken,
}

struct Held {
    /// Given on when another is put in its place.
    _place: Place,
    is_large: bool,
}

impl Turn<'_> {
    /// There are so many bytes: more than a small image has need another place, and the turn is lost while there is none.
    pub(super) fn weigh(&self, bytes: u64) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes <= SMALL_BYTES || held.is_large || self.lost.is_cancelled() {
            return;
        }
        match self.turns.large.enter(self.uid, self.progress.call()) {
            Some(place) => *held = Held { _place: place, is_large: true },
            None => self.lost.cancel(),
        }
    }

    /// Does this, unless the turn is lost meanwhile.
    pub(super) async fn during<T, E: From<Outcome>>(&self, work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        match self.lost.run_until_cancelled(work).await {
            Some(result) => result,
            None => Err(queued().into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::{
        FutureExt,
        future::{BoxFuture, pending, ready},
    };
    use kupenstack_runtime::Failure;

    use super::*;
    use crate::queue::Call;

    struct Silent;

    impl Progress for Silent {
        fn say(&self, _: &'static str, _: String) {}

        fn made<'a>(&'a self, _: &'a str) -> BoxFuture<'a, ()> {
            ready(()).boxed()
        }

        fn created<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), Failure>> {
            ready(Ok(())).boxed()
        }

        fn call(&self) -> Call {
            Box::new(|| {})
        }
    }

    fn goes_on(turn: &Turn<'_>) -> bool {
        turn.during(pending::<Result<(), Outcome>>()).now_or_never().is_none()
    }

    #[test]
    fn large_images_wait_for_each_other_and_small_ones_for_none_of_them() {
        let turns = Turns::new();
        let uids: Vec<_> = (0..=LARGE).map(|number| format!("large-{number}")).collect();
        let all: Vec<_> = uids.iter().map(|uid| turns.take(uid, &Silent).ok().unwrap()).collect();
        for turn in &all {
            turn.weigh(SMALL_BYTES);
            assert!(goes_on(turn));
            turn.weigh(SMALL_BYTES + 1);
            turn.weigh(SMALL_BYTES + 2);
        }
        let (last, others) = all.split_last().unwrap();
        assert!(others.iter().all(goes_on) && !goes_on(last));
        drop(all);
        let small: Vec<_> = (0..SMALL).map(|number| format!("small-{number}")).collect();
        let small: Vec<_> = small.iter().map(|uid| turns.take(uid, &Silent).ok()).collect();
        assert!(small.iter().all(Option::is_some), "all places are free again");
        // the one that waits is known to be large, and needs none of the others' places
        assert!(turns.take(uids.last().unwrap(), &Silent).is_ok());
    }
}
