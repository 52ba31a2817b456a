//! Why a pass ended early, and what the object's status says about it.

use std::{sync::Arc, time::Duration};

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

impl From<Arc<kube::Error>> for Stop {
    fn from(error: Arc<kube::Error>) -> Self {
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

    /// Whether the token may be to blame: a service answers that it does not know what the token stands for, or what
    /// that may do, when Keystone's database was replaced.
    pub(crate) fn casts_doubt_on_the_token(&self) -> bool {
        let doubtful = [ErrorKind::Unauthorized, ErrorKind::Forbidden, ErrorKind::NotFound];
        matches!(self, Self::OpenStack(error) if doubtful.contains(&error.kind()))
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
        // nothing is wrong: the next pass looks at what it has become
        ErrorKind::Outdated => return Verdict { shown: None, result: Err(Failure::new(error.reason(), error)) },
        ErrorKind::Unavailable | ErrorKind::Protocol => reason::CLOUD_UNAVAILABLE,
        ErrorKind::Unauthorized => "CredentialsRefused",
        other => other.reason(),
    };
    Verdict::trouble(word, Failure::new(error.reason(), error))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::{Method, StatusCode};
    use kupenstack_openstack::{CallName, Error};
    use rstest::rstest;

    use super::*;

    fn answered(kind: ErrorKind, retry_after: Option<Duration>) -> Stop {
        let call = CallName { service: "image".to_owned(), method: Method::POST, path: "/v2/images".to_owned() };
        let status = StatusCode::IM_A_TEAPOT;
        Stop::OpenStack(Error::Answer {
            call: Arc::new(call),
            status,
            kind,
            message: "said so".to_owned(),
            retry_after,
        })
    }

    #[rstest]
    #[case(ErrorKind::Quota, "QuotaExceeded")]
    #[case(ErrorKind::RateLimited, reason::CLOUD_UNAVAILABLE)]
    fn what_passes_by_itself_is_waited_for(#[case] kind: ErrorKind, #[case] word: &str) {
        let verdict = answered(kind, None).verdict();
        assert!(matches!(&verdict.result, Ok(Outcome::Waiting { reason, .. }) if *reason == word));
        let shown = verdict.shown.unwrap();
        assert!(shown.message().contains("image POST /v2/images") && shown.message().contains("said so"));
    }

    #[rstest]
    #[case(ErrorKind::Forbidden)]
    #[case(ErrorKind::BadRequest)]
    fn what_a_person_has_to_cure_is_blocked(#[case] kind: ErrorKind) {
        assert!(matches!(answered(kind, None).verdict().result, Ok(Outcome::Blocked { .. })));
    }

    #[rstest]
    #[case(ErrorKind::Unavailable, reason::CLOUD_UNAVAILABLE)]
    #[case(ErrorKind::Protocol, reason::CLOUD_UNAVAILABLE)]
    #[case(ErrorKind::Unauthorized, "CredentialsRefused")]
    #[case(ErrorKind::Conflict, "Conflict")]
    #[case(ErrorKind::NotFound, "NotFound")]
    fn everything_else_is_tried_again_and_shown_as_a_wait(#[case] kind: ErrorKind, #[case] word: &str) {
        let verdict = answered(kind, None).verdict();
        assert!(verdict.result.is_err());
        assert!(matches!(verdict.shown, Some(Outcome::Waiting { reason, .. }) if reason == word));
    }

    #[test]
    fn what_has_changed_meanwhile_is_looked_at_again_and_not_told() {
        let verdict = answered(ErrorKind::Outdated, None).verdict();
        assert!(verdict.shown.is_none());
        assert_eq!(verdict.result.unwrap_err().reason(), "ChangedMeanwhile");
    }

    #[rstest]
    #[case(Some(7), 7)]
    #[case(Some(86_400), 300)]
    #[case(None, 30)]
    fn a_service_is_left_alone_as_long_as_it_asks_within_reason(#[case] asked: Option<u64>, #[case] seconds: u64) {
        let verdict = answered(ErrorKind::RateLimited, asked.map(Duration::from_secs)).verdict();
        let expected = Duration::from_secs(seconds);
        assert!(matches!(verdict.result, Ok(Outcome::Waiting { after, .. }) if after == expected));
    }
}
