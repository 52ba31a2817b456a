//! What a release is brought to: what is declared, or what ran before when the declared change failed.
//!
//! A change is taken back when something is wrong with it for longer than its kind of trouble deserves, all that the
//! service depends on answers, and there is a way back: a content that was once proven and is still recorded, of the
//! same OpenStack release. A newer release has migrated the database; that is the point of no return.

use std::time::Duration;

use jiff::Timestamp;
use kupenstack_agent::{Cause, Evidence, Severity};
use kupenstack_api::cluster::FailedChange;
use kupenstack_core::{Outcome, conditions};
use serde_json::Value;

use crate::{
    pass::Pass,
    record::{History, Revision},
};

/// Reason of a change that was taken back.
const ROLLED_BACK: &str = "RolledBack";
/// Reason while it is.
const ROLLING_BACK: &str = "RollingBack";

/// How long trouble with a change is borne with before the change is taken back.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// With pods that fail.
    pub pods: Duration,
    /// With a job that fails. Until it succeeds nothing has changed that serves.
    pub jobs: Duration,
    /// With a service that does not answer though its pods are ready.
    pub answer: Duration,
    /// With any of them where the cause may well lie outside of the change and pass: a registry, a full node, a slow
    /// disk.
    pub surroundings: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            pods: Duration::from_mins(1),
            jobs: Duration::from_mins(2),
            answer: Duration::from_mins(2),
            surroundings: Duration::from_mins(10),
        }
    }
}

/// What kind of trouble it is, which decides how long it is borne with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Lasted,
    Pods,
    Jobs,
    Answer,
    Surroundings,
}

/// What the release is brought to.
pub(crate) struct Target<'v> {
    /// Hash of the content.
    pub(crate) hash: String,
    pub(crate) content: Content<'v>,
}

pub(crate) enum Content<'v> {
    /// What the spec declares, as the chart's values.
    Wanted(&'v Value),
    /// A recorded revision.
    Former(u32),
}

/// Something that may be a reason to take a change back.
#[derive(Debug)]
pub(crate) struct Trouble {
    message: String,
    since: Timestamp,
    sort: Sort,
}

impl Trouble {
    /// Trouble that has lasted long enough.
    pub(crate) fn now(message: &str) -> Self {
        Self { message: message.to_owned(), since: Timestamp::MIN, sort: Sort::Lasted }
    }

    /// A failing job, with the time of its creation.
    pub(crate) fn of_job(message: &str, cause: Option<&Cause>, since: Option<Timestamp>) -> Self {
        let sort = if of_surroundings(cause) { Sort::Surroundings } else { Sort::Jobs };
        Self { message: message.to_owned(), since: since.unwrap_or(Timestamp::MAX), sort }
    }

    /// A service that does not answer.
    pub(crate) fn of_answer(message: &str, since: Timestamp) -> Self {
        Self { message: message.to_owned(), since, sort: Sort::Answer }
    }

    /// A pod in trouble. Pods from before the change say nothing against it.
    pub(crate) fn of_pod(evidence: &Evidence, change_began: Option<Timestamp>) -> Option<Self> {
        let since = evidence.created.filter(|created| change_began.is_some_and(|began| *created >= began))?;
        let slow = evidence.severity == Severity::Slow;
        let outside = slow || of_surroundings(evidence.cause.as_ref());
        let sort = if outside { Sort::Surroundings } else { Sort::Pods };
        Some(Self { message: evidence.to_string(), since, sort })
    }

    /// How long it is still borne with; zero when it is not any more.
    fn left(&self, now: Timestamp, patience: &Patience) -> Duration {
        let borne = match self.sort {
            Sort::Lasted => Duration::ZERO,
            Sort::Pods => patience.pods,
            Sort::Jobs => patience.jobs,
            Sort::Answer => patience.answer,
            Sort::Surroundings => patience.surroundings,
        };
        borne.saturating_sub(Duration::try_from(now.duration_since(self.since)).unwrap_or_default())
    }
}

fn of_surroundings(cause: Option<&Cause>) -> bool {
    matches!(
        cause,
        Some(
            Cause::ImagePull
                | Cause::Unschedulable(_)
                | Cause::VolumeNotMounted
                | Cause::PodNetwork
                | Cause::NodeLost
                | Cause::NodeUnfit
                | Cause::NameResolution
                | Cause::DatabaseUnreachable
                | Cause::ServiceUnreachable
                | Cause::DependencyMissing
        )
    )
}

impl Pass<'_> {
    /// What to bring the release to: what is declared, unless just that failed.
    pub(crate) fn target<'v>(&mut self, hash: String, values: &'v Value, history: &History) -> Target<'v> {
        let failed = self.status.failed_change.as_ref();
        if failed.is_some_and(|failed| failed.hash == hash && failed.retry == self.request.retry)
            && let Some(former) = self.way_back(&hash, history)
        {
            return Target { hash: former.hash.clone(), content: Content::Former(former.number) };
        }
        self.status.failed_change = None;
        Target { hash, content: Content::Wanted(values) }
    }

    /// Whether the target, once proven, was reached for good. What is gone back to was proven before; until its pass has
    /// ended the jobs' copies are still to be removed.
    pub(crate) fn has_been_at(&self, target: &Target<'_>) -> bool {
        let ready = conditions::find(&self.request.status.conditions, conditions::READY);
        matches!(target.content, Content::Wanted(_)) || ready.is_some_and(|c| c.reason == ROLLED_BACK)
    }

    /// The revision that a change to `hash` can be taken back to.
    pub(crate) fn way_back<'h>(&self, hash: &str, history: &'h History) -> Option<&'h Revision> {
        let proven = self.status.hash.as_deref().filter(|proven| *proven != hash)?;
        let same_release = self.status.release.as_ref() == Some(&self.request.common.release);
        history.deployed_with(proven).filter(|_| same_release)
    }

    /// Takes the change back if it is time to, else goes on waiting for what `outcome` says.
    pub(crate) fn take_back_or(&mut self, target: &Target<'_>, history: &History, outcome: Outcome) -> Outcome {
        if let Content::Former(_) = target.content {
            let failed = self.status.failed_change.as_ref().map(|f| f.message.as_str()).unwrap_or_default();
            let message = format!("{}; the change failed: {failed}", outcome.message());
            let waiting = Outcome::waiting(ROLLING_BACK, message);
            return match outcome {
                Outcome::Waiting { after, .. } => waiting.within(after),
                _ => waiting,
            };
        }
        let Some(trouble) = self.trouble.take() else { return outcome };
        let back = self.way_back(&target.hash, history).map(|former| former.number);
        let (Some(former), true) = (back, self.missing_dependencies().is_empty()) else { return outcome };
        let left = trouble.left(self.now, &self.engine.patience);
        if !left.is_zero() {
            return outcome.sooner(left);
        }
        let message = format!("{}; it is taken back to revision {former}", trouble.message);
        self.warn(ROLLING_BACK, &message);
        self.status.failed_change = Some(FailedChange {
            hash: target.hash.clone(),
            message: trouble.message,
            since: Timestamp::from_second(self.now.as_second()).unwrap_or(self.now).to_string(),
            retry: self.request.retry.clone(),
        });
        Outcome::waiting(ROLLING_BACK, message).within(Duration::ZERO)
    }
}

/// How a change stands that was taken back.
pub(crate) fn taken_back(failed: &FailedChange) -> Outcome {
    let message = format!(
        "the change failed and was taken back, what ran before runs on: {}. Edit the spec; or, if the cause lay elsewhere, \
         try it again by another value of the annotation {}",
        failed.message,
        crate::RETRY
    );
    Outcome::blocked(ROLLED_BACK, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn pod(created: Option<i64>, cause: Option<Cause>, severity: Severity) -> Evidence {
        Evidence {
            object: "Pod x".to_owned(),
            container: None,
            problem: "Error".to_owned(),
            log: Vec::new(),
            cause,
            since: None,
            created: created.map(at),
            severity,
        }
    }

    #[test]
    fn trouble_is_borne_with_for_a_while() {
        let trouble = Trouble::of_pod(&pod(Some(100), None, Severity::Failing), Some(at(90))).unwrap();
        let left = |second| trouble.left(at(second), &Patience::default());
        assert_eq!(left(100), Duration::from_mins(1));
        assert_eq!(left(130), Duration::from_secs(30));
        assert!(left(160).is_zero());
        // clocks may differ: what lies ahead has not lasted
        assert_eq!(left(50), Duration::from_mins(1));
        assert!(Trouble::now("x").left(at(0), &Patience::default()).is_zero());
    }

    #[test]
    fn what_may_pass_by_itself_is_borne_with_longer() {
        for evidence in
            [pod(Some(100), Some(Cause::ImagePull), Severity::Failing), pod(Some(100), None, Severity::Slow)]
        {
            assert_eq!(Trouble::of_pod(&evidence, Some(at(90))).unwrap().sort, Sort::Surroundings);
        }
    }

    #[test]
    fn pods_from_before_the_change_say_nothing_against_it() {
        assert!(Trouble::of_pod(&pod(Some(80), None, Severity::Failing), Some(at(90))).is_none());
        assert!(Trouble::of_pod(&pod(None, None, Severity::Failing), Some(at(90))).is_none());
    }
}
