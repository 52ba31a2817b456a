//! Places for what only few objects may do at a time, in the order in which they asked.
//!
//! A pass must not wait for a place: it would keep others from running. It ends, and its object is called when it is
//! its turn. The place is kept for it until its next pass, and given on if that does not ask for it any more.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// Who was called and does not come for so long has vanished, and loses its place when the next one asks.
const PATIENCE: Duration = Duration::from_mins(1);

/// Has an object looked at.
pub(crate) type Call = Box<dyn FnOnce() + Send>;

/// The places, and who waits for one. Clones are the same queue.
#[derive(Clone)]
pub(crate) struct Queue(Arc<Mutex<State>>);

struct State {
    free: usize,
    waiting: VecDeque<Waiting>,
    called: Vec<Called>,
}

struct Waiting {
    uid: String,
    /// Whether it asked in the pass that is under way.
    asked: bool,
    call: Call,
}

struct Called {
    uid: String,
    /// Whether the pass in which it asked is still under way.
    asked: bool,
    at: Instant,
}

/// One place, given on when it is dropped.
pub(crate) struct Place(Queue);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.give_on();
    }
}

impl Queue {
    /// A queue for so many places.
    pub(crate) fn new(places: usize) -> Self {
        Self(Arc::new(Mutex::new(State { free: places, waiting: VecDeque::new(), called: Vec::new() })))
    }

    /// A place, if one is free and nobody came before; otherwise the object is called when it is its turn.
    pub(crate) fn enter(&self, uid: &str, call: Call) -> Option<Place> {
        self.forget_the_lost();
        let mut state = self.state();
        if let Some(index) = state.called.iter().position(|called| called.uid == uid) {
            state.called.swap_remove(index);
            return Some(Place(self.clone()));
        }
        if let Some(waiting) = state.waiting.iter_mut().find(|waiting| waiting.uid == uid) {
            (waiting.asked, waiting.call) = (true, call);
            return None;
        }
        // a free place is one that nobody waits for
        if state.free > 0 {
            state.free -= 1;
            return Some(Place(self.clone()));
        }
        state.waiting.push_back(Waiting { uid: uid.to_owned(), asked: true, call });
        None
    }

    /// Whether an object waits for a place, or has been called to one.
    pub(crate) fn knows(&self, uid: &str) -> bool {
        let state = self.state();
        state.waiting.iter().any(|waiting| waiting.uid == uid) || state.called.iter().any(|called| called.uid == uid)
    }

    /// A pass over an object is over. If it did not ask for a place, the object does not want one any more.
    pub(crate) fn passed(&self, uid: &str) {
        let mut state = self.state();
        state.waiting.retain_mut(|waiting| waiting.uid != uid || std::mem::take(&mut waiting.asked));
        let before = state.called.len();
        state.called.retain_mut(|called| called.uid != uid || std::mem::take(&mut called.asked));
        let left = before - state.called.len();
        drop(state);
        (0..left).for_each(|_| self.give_on());
    }

    fn forget_the_lost(&self) {
        let mut state = self.state();
        let before = state.called.len();
        state.called.retain(|called| called.at.elapsed() < PATIENCE);
        let lost = before - state.called.len();
        drop(state);
        (0..lost).for_each(|_| self.give_on());
    }

    /// Gives a place to whoever has waited longest.
    fn give_on(&self) {
        let mut state = self.state();
        let Some(Waiting { uid, asked, call }) = state.waiting.pop_front() else {
            state.free += 1;
            return;
        };
        state.called.push(Called { uid, asked, at: Instant::now() });
        drop(state);
        call();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue, and who was called so far.
    struct Stage {
        queue: Queue,
        called: Arc<Mutex<Vec<String>>>,
    }

    impl Stage {
        fn new(places: usize) -> Self {
            Self { queue: Queue::new(places), called: Arc::default() }
        }

        /// Asks for a place in a pass that goes on.
        fn ask(&self, uid: &str) -> Option<Place> {
            let (called, name) = (Arc::clone(&self.called), uid.to_owned());
            self.queue.enter(uid, Box::new(move || called.lock().unwrap().push(name)))
        }

        /// A pass that asks for a place and does not get it.
        fn pass(&self, uid: &str) {
            assert!(self.ask(uid).is_none(), "{uid} is to wait");
            self.queue.passed(uid);
        }

        fn called(&self) -> Vec<String> {
            self.called.lock().unwrap().clone()
        }
    }

    #[test]
    fn places_are_given_in_the_order_in_which_they_were_asked_for() {
        let stage = Stage::new(2);
        let (a, b) = (stage.ask("a"), stage.ask("b"));
        assert!(a.is_some() && b.is_some());
        for uid in ["c", "d", "c", "e"] {
            stage.pass(uid);
        }
        assert!(stage.called().is_empty());
        drop(a);
        assert_eq!(stage.called(), ["c"]);
        stage.pass("f");
        stage.pass("d");
        let c = stage.ask("c");
        assert!(c.is_some(), "the place was kept for it");
        drop((b, c));
        assert_eq!(stage.called(), ["c", "d", "e"]);
        assert!(stage.queue.knows("f") && stage.queue.knows("e") && !stage.queue.knows("c"));
    }

    #[test]
    fn who_does_not_ask_again_leaves_the_queue() {
        let stage = Stage::new(1);
        let a = stage.ask("a");
        for uid in ["b", "c", "d"] {
            stage.pass(uid);
        }
        // deleted while it waited, and after it was called
        stage.queue.passed("b");
        drop(a);
        assert_eq!(stage.called(), ["c"]);
        stage.queue.passed("c");
        assert_eq!(stage.called(), ["c", "d"]);
        stage.queue.passed("d");
        assert!(stage.ask("e").is_some(), "the place is free");
    }

    #[test]
    fn a_call_in_the_very_pass_that_asked_is_not_lost() {
        let stage = Stage::new(1);
        let a = stage.ask("a");
        assert!(stage.ask("b").is_none());
        drop(a);
        stage.queue.passed("b");
        assert_eq!(stage.called(), ["b"]);
        assert!(stage.ask("b").is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn who_vanished_keeps_no_place_for_ever() {
        let stage = Stage::new(1);
        let a = stage.ask("a");
        stage.pass("vanished");
        stage.pass("c");
        drop(a);
        tokio::time::advance(PATIENCE).await;
        stage.pass("d");
        assert_eq!(stage.called(), ["vanished", "c"]);
        assert!(stage.ask("c").is_some());
    }
}
