//! Why a pass ended early, and what the object's status says about it.

use std::time::Duration;

use kupenstack_core::{Outcome, reason};
use kupenstack_openstack::{self as openstack, ErrorKind};
use kupenstack_runtime::Failure;

/// Why a pass ended early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It has come as far as it can for now.
    Outcome(Outcome),
    /// As above, and the status goes on saying what it says.
    Quiet(Outcome),
    /// OpenStack refused something, or failed.
    OpenStack(openstack::Error),
    /// Something else failed that the status has to tell of.
    Trouble(Failure),
    /// Something failed that is none of the object's business, mostly Kubernetes.
    Failure(Failure),
}

impl From<openstack::Error> for Stop {
    fn from(error: openstack::Error) -> Self {
        Self::OpenStack(error)
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<kube::Error> for Stop {
    fn from(error: kube::Error) -> Self {
        Self::Failure(error.into())
    }
}

impl From<Outcome> for Stop {
    fn from(outcome: Outcome) -> Self {
        Self::Outcome(outcome)
    }
}

impl Stop {
    /// Whether Keystone refused the credentials, or a service the token.
    pub(crate) fn is_unauthorized(&self) -> bool {
        matches!(self, Self::OpenStack(error) if error.kind() == ErrorKind::Unauthorized)
    }

    /// What to show and how to go on.
    pub(crate) fn verdict(self) -> Verdict {
        match self {
            Self::Outcome(outcome) => Verdict::shown(outcome),
            Self::Quiet(outcome) => Verdict { shown: None, result: Ok(outcome) },
            Self::OpenStack(error) => refusal(error),
            Self::Trouble(failure) => Verdict::trouble(failure.reason(), failure),
            Self::Failure(failure) => Verdict { shown: None, result: Err(failure) },
        }
    }
}

/// What a pass comes to.
#[derive(Debug)]
pub(crate) struct Verdict {
    /// What the object's status is to say; what it says already when absent.
    pub(crate) shown: Option<Outcome>,
    /// How to go on: an outcome is looked at again at its own pace, a failure at a growing one.
    pub(crate) result: Result<Outcome, Failure>,
}

impl Verdict {
    pub(crate) fn shown(outcome: Outcome) -> Self {
        Self { shown: Some(outcome.clone()), result: Ok(outcome) }
    }

    fn trouble(word: &'static str, failure: Failure) -> Self {
        Self { shown: Some(Outcome::waiting(word, failure.message())), result: Err(failure) }
    }
}

/// A quota is mostly raised, and a limit of requests gone, within minutes.
const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// What OpenStack's refusal means. Nothing is final: even what the policy forbids is asked again later.
fn refusal(error: openstack::Error) -> Verdict {
    let message = error.to_string();
    let word = match error.kind() {
        ErrorKind::Quota => {
            let message = format!("the project's quota is used up: {message}");
            return Verdict::shown(Outcome::waiting("QuotaExceeded", message).within(Duration::from_mins(1)));
        }
        ErrorKind::RateLimited => {
            let after = error.retry_after().unwrap_or(Duration::from_secs(30)).min(LONGEST_WAIT);
            return Verdict::shown(Outcome::waiting(reason::CLOUD_UNAVAILABLE, message).within(after));
        }
        ErrorKind::Forbidden => return Verdict::shown(Outcome::blocked("Forbidden", message)),
        ErrorKind::BadRequest => return Verdict::shown(Outcome::blocked(reason::INVALID_SPEC, message)),
        ErrorKind::Unavailable | ErrorKind::Protocol => reason::CLOUD_UNAVAILABLE,
        ErrorKind::Unauthorized => "CredentialsRefused",
        other => other.reason(),
    };
    Verdict::trouble(word, Failure::new(error.reason(), error))
}
