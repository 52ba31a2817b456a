//! What the holder believes: until when the lease is its own. Once that is over it is over for good.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio_util::sync::CancellationToken;

use super::{
    Terms,
    clock::{Moment, now},
};

/// Why the lease is ours no more.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// It could not be renewed in time.
    Expired,
    /// Somebody else holds it.
    Taken(String),
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired => f.write_str("it could not be renewed in time"),
            Self::Taken(by) => write!(f, "{by} holds it"),
        }
    }
}

struct State {
    until: Moment,
    loss: Option<Loss>,
}

pub(super) struct Belief {
    terms: Terms,
    state: Mutex<State>,
    lost: CancellationToken,
}

impl Belief {
    /// The lease was taken by a request sent at `sent`.
    pub(super) fn new(sent: Moment, terms: Terms) -> Self {
        let until = sent + terms.renew_deadline;
        Self { terms, state: Mutex::new(State { until, loss: None }), lost: CancellationToken::new() }
    }

    /// Whether the lease is ours at this moment.
    pub(super) fn holds(&self) -> bool {
        self.still(&mut self.state())
    }

    fn still(&self, state: &mut State) -> bool {
        if state.loss.is_none() && state.until.has_passed() {
            self.lose(state, Loss::Expired);
        }
        state.loss.is_none()
    }

    /// The lease was renewed by a request sent at `sent`. Comes too late once it is lost: work was dropped already.
    pub(super) fn renewed(&self, sent: Moment) {
        let mut state = self.state();
        if self.still(&mut state) {
            state.until = sent + self.terms.renew_deadline;
        }
    }

    pub(super) fn taken(&self, by: String) {
        let mut state = self.state();
        if state.loss.is_none() {
            self.lose(&mut state, Loss::Taken(by));
        }
    }

    /// When the belief ends if nothing renews it.
    pub(super) fn until(&self) -> Moment {
        self.state().until
    }

    /// When work has to be gone if nothing renews the belief.
    pub(super) fn work_ends(&self) -> Moment {
        self.until() + self.terms.stop_grace
    }

    pub(super) fn loss(&self) -> Option<Loss> {
        self.state().loss.clone()
    }

    pub(super) fn lost(&self) -> &CancellationToken {
        &self.lost
    }

    fn lose(&self, state: &mut State, loss: Loss) {
        // work that has to stop because somebody else may begin has its grace from now on, not from the last renewal
        state.until = state.until.min(now());
        state.loss = Some(loss);
        self.lost.cancel();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn terms(deadline: Duration) -> Terms {
        Terms { renew_deadline: deadline, ..Terms::default() }
    }

    #[test]
    fn a_renewal_counts_from_when_it_was_sent() {
        let belief = Belief::new(now(), terms(Duration::from_mins(1)));
        let sent = now();
        std::thread::sleep(Duration::from_millis(20));
        belief.renewed(sent);
        assert_eq!(belief.until(), sent + Duration::from_mins(1));
        assert!(belief.holds());
    }

    #[test]
    fn what_expired_stays_lost_although_a_renewal_succeeds() {
        let belief = Belief::new(now(), terms(Duration::from_millis(5)));
        std::thread::sleep(Duration::from_millis(10));
        belief.renewed(now());
        assert!(!belief.holds() && belief.lost().is_cancelled());
        assert_eq!(belief.loss(), Some(Loss::Expired));
    }

    #[test]
    fn what_was_taken_is_not_believed_a_moment_longer() {
        let belief = Belief::new(now(), terms(Duration::from_mins(1)));
        belief.taken("another".to_owned());
        belief.renewed(now());
        assert!(!belief.holds());
        assert!(belief.work_ends() <= now() + Terms::default().stop_grace);
        assert_eq!(belief.loss().unwrap().to_string(), "another holds it");
    }
}
