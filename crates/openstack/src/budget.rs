//! The budget of requests of one cloud: how many at once, in which order, and when a service is to be left alone.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{sync::oneshot, time::Instant};

/// No service is left alone for longer, whatever it asks: it may have been put right meanwhile.
const LONGEST_HOLD: Duration = Duration::from_mins(5);

/// How many requests may be under way at one cloud at the same time.
///
/// Users take turns: one with a thousand requests waiting delays another's only one by a single request. A service
/// that asks to be left alone (`Retry-After`) is left alone by all of them. Clones share the budget: clients of several
/// users of one cloud are bounded together.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Shared>);

#[derive(Debug)]
struct Shared(Mutex<State>);

#[derive(Debug)]
struct State {
    free: usize,
    /// Who waits, in the order of their turns; each has an entry only while it waits.
    turns: VecDeque<(User, VecDeque<oneshot::Sender<Place>>)>,
    /// Until when services are left alone.
    held: HashMap<String, Instant>,
}

/// A user of the cloud, as far as the order of requests is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct User(u64);

impl User {
    /// One that is like no other.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Room for one request, given on when it is dropped.
#[derive(Debug)]
pub(crate) struct Place(Option<Arc<Shared>>);

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            Shared::give_on(&shared);
        }
    }
}

impl Budget {
    /// A budget of `requests` at a time.
    pub fn new(requests: usize) -> Self {
        let state = State { free: requests, turns: VecDeque::new(), held: HashMap::new() };
        Self(Arc::new(Shared(Mutex::new(state))))
    }

    /// Waits for the user's turn.
    pub(crate) async fn enter(&self, user: User) -> Place {
        let turn = self.0.state().queue(user);
        match turn {
            // the sender is kept until it is the waiter's turn, so there always is one in the end
            Some(turn) => turn.await.unwrap_or(Place(None)),
            None => Place(Some(Arc::clone(&self.0))),
        }
    }

    /// Leaves a service alone for this long from now on.
    pub(crate) fn hold(&self, service: &str, span: Duration) {
        let until = Instant::now() + span.min(LONGEST_HOLD);
        let mut state = self.0.state();
        let held = state.held.entry(service.to_owned()).or_insert(until);
        *held = until.max(*held);
    }

    /// For how long a service is still to be left alone.
    pub(crate) fn held(&self, service: &str) -> Option<Duration> {
        let mut state = self.0.state();
        let left = state.held.get(service)?.saturating_duration_since(Instant::now());
        if left.is_zero() {
            state.held.remove(service);
            return None;
        }
        Some(left)
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(32)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a place to the next who waits for one. Who has gone meanwhile is passed over.
    fn give_on(shared: &Arc<Self>) {
        loop {
            let Some(next) = shared.state().next() else { return };
            match next.send(Place(Some(Arc::clone(shared)))) {
                Ok(()) => return,
                Err(mut refused) => drop(refused.0.take()),
            }
        }
    }
}

impl State {
    /// Takes a place, or queues up for one.
    fn queue(&mut self, user: User) -> Option<oneshot::Receiver<Place>> {
        if self.free > 0 {
            self.free -= 1;
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        match self.turns.iter_mut().find(|(who, _)| *who == user) {
            Some((_, waiting)) => waiting.push_back(sender),
            None => self.turns.push_back((user, VecDeque::from([sender]))),
        }
        Some(receiver)
    }

    /// Whose turn it is; without anybody, the place is free.
    fn next(&mut self) -> Option<oneshot::Sender<Place>> {
        while let Some((user, mut waiting)) = self.turns.pop_front() {
            let Some(next) = waiting.pop_front() else { continue };
            if !waiting.is_empty() {
                self.turns.push_back((user, waiting));
            }
            return Some(next);
        }
        self.free += 1;
        None
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, future::join_all};

    use super::*;

    /// Whose requests were let in, in their order, when all of them wait for one place.
    async fn order(requests: &[(User, &'static str)]) -> Vec<&'static str> {
        let budget = Budget::new(1);
        let first = budget.enter(User::new()).await;
        let served = Mutex::new(Vec::new());
        let waiting = requests.iter().map(|&(user, name)| {
            let (budget, served) = (&budget, &served);
            async move {
                let _place = budget.enter(user).await;
                served.lock().unwrap().push(name);
            }
        });
        let mut all = Box::pin(join_all(waiting));
        assert!((&mut all).now_or_never().is_none(), "one place, and it is taken");
        drop(first);
        all.await;
        served.into_inner().unwrap()
    }

    #[tokio::test]
    async fn users_take_turns() {
        let (busy, other, third) = (User::new(), User::new(), User::new());
        let requests = [(busy, "a1"), (busy, "a2"), (busy, "a3"), (other, "b1"), (third, "c1"), (other, "b2")];
        assert_eq!(order(&requests).await, ["a1", "b1", "c1", "a2", "b2", "a3"]);
    }

    #[tokio::test]
    async fn who_gave_up_waiting_takes_no_place() {
        let budget = Budget::new(1);
        let user = User::new();
        let first = budget.enter(user).await;
        let mut gone = Box::pin(budget.enter(user));
        assert!((&mut gone).now_or_never().is_none());
        let mut given = Box::pin(budget.enter(user));
        assert!((&mut given).now_or_never().is_none());
        drop(gone);
        drop(first);
        // it has been given the place, and drops it without having looked
        drop(given);
        assert!(budget.enter(user).now_or_never().is_some());
    }

    #[tokio::test]
    async fn as_many_as_there_are_places_go_at_once() {
        let budget = Budget::new(2);
        let user = User::new();
        let one = budget.enter(user).now_or_never();
        let two = budget.enter(user).now_or_never();
        assert!(one.is_some() && two.is_some() && budget.enter(user).now_or_never().is_none());
        drop((one, two));
        assert!(budget.enter(user).now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_is_left_alone_for_as_long_as_it_asked_but_not_for_ever() {
        let budget = Budget::default();
        let seconds = Duration::from_secs;
        budget.hold("image", seconds(10));
        budget.hold("image", seconds(5));
        assert_eq!((budget.held("image"), budget.held("identity")), (Some(seconds(10)), None));
        tokio::time::advance(seconds(10)).await;
        assert_eq!(budget.held("image"), None);
        budget.hold("image", seconds(86_400));
        assert_eq!(budget.held("image"), Some(LONGEST_HOLD));
    }
}
