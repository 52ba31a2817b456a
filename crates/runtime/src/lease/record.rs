//! What a candidate knows of the lease, and when it may take it. Pure: the caller says what time it is.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};

use super::clock::Moment;

/// How much longer than our own terms a holder of another version may ask to be waited for.
const LONGEST: Duration = Duration::from_mins(1);

/// Watches one lease with the candidate's eyes.
pub(super) struct Observer<'a> {
    identity: &'a str,
    duration: Duration,
    last: Option<Sight>,
    /// Somebody held the lease when it was seen at some time.
    held_before: bool,
    in_doubt: bool,
}

struct Sight {
    lease: Option<Lease>,
    changed: Moment,
}

impl<'a> Observer<'a> {
    pub(super) fn new(identity: &'a str, duration: Duration) -> Self {
        Self { identity, duration, last: None, held_before: false, in_doubt: false }
    }

    /// Notes what the lease is now, or that there is none. Says whether its holder has changed.
    pub(super) fn note(&mut self, lease: Option<Lease>, now: Moment) -> bool {
        self.in_doubt = false;
        let known = self.last.as_ref();
        // what others do to its labels is no sign of life of its holder
        let changed = match known {
            Some(known) if spec(known.lease.as_ref()) == spec(lease.as_ref()) => known.changed,
            _ => now,
        };
        let first = known.is_none();
        let before = self.holder().map(str::to_owned);
        self.last = Some(Sight { lease, changed });
        self.held_before |= self.holder().is_some();
        first || before.as_deref() != self.holder()
    }

    /// What was seen last is not believed any more; only the next sight says anything again.
    pub(super) fn doubt(&mut self) {
        self.in_doubt = true;
    }

    /// When the lease may be taken if it stays as it is; `None` while that is not known.
    pub(super) fn free_at(&self) -> Option<Moment> {
        let last = self.last.as_ref().filter(|_| !self.in_doubt)?;
        let patience = match spec(last.lease.as_ref()) {
            None => self.duration,
            Some(spec) if spec.holder_identity.as_deref() == Some(self.identity) => Duration::ZERO,
            Some(spec) if is_released(spec) || is_new(spec) && !self.held_before => Duration::ZERO,
            Some(spec) => {
                let asked = u64::try_from(spec.lease_duration_seconds.unwrap_or_default()).unwrap_or_default();
                Duration::from_secs(asked).min(LONGEST).max(self.duration)
            }
        };
        Some(last.changed + patience)
    }

    pub(super) fn lease(&self) -> Option<&Lease> {
        self.last.as_ref()?.lease.as_ref()
    }

    pub(super) fn holder(&self) -> Option<&str> {
        holder(self.lease()?)
    }
}

/// Who holds a lease.
pub(super) fn holder(lease: &Lease) -> Option<&str> {
    lease.spec.as_ref()?.holder_identity.as_deref().filter(|holder| !holder.is_empty())
}

/// As nobody has ever held it.
static NEW: LeaseSpec = LeaseSpec {
    acquire_time: None,
    holder_identity: None,
    lease_duration_seconds: None,
    lease_transitions: None,
    preferred_holder: None,
    renew_time: None,
    strategy: None,
};

/// What counts of a lease; one without is a new one. `None` when there is no lease.
pub(super) fn spec(lease: Option<&Lease>) -> Option<&LeaseSpec> {
    lease.map(|lease| lease.spec.as_ref().unwrap_or(&NEW))
}

fn is_new(spec: &LeaseSpec) -> bool {
    *spec == NEW
}

/// As its holder leaves it. A person who takes the holder out, or everything, does not stop the holder by that.
fn is_released(spec: &LeaseSpec) -> bool {
    spec.holder_identity.is_none() && spec.renew_time.is_none() && spec.lease_transitions.is_some()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::{apimachinery::pkg::apis::meta::v1::MicroTime, jiff::Timestamp};
    use kube::api::ObjectMeta;
    use rstest::rstest;

    use super::{super::clock::now, *};

    const OURS: Duration = Duration::from_secs(15);

    fn at(second: i64) -> MicroTime {
        MicroTime(Timestamp::from_second(second).unwrap())
    }

    fn held(renewed: i64) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some("other".to_owned()),
            lease_duration_seconds: Some(15),
            renew_time: Some(at(renewed)),
            ..LeaseSpec::default()
        }
    }

    fn lease(spec: LeaseSpec) -> Lease {
        Lease { spec: Some(spec), ..Lease::default() }
    }

    fn observer() -> Observer<'static> {
        Observer::new("us", OURS)
    }

    #[rstest]
    #[case::never_held(Some(Lease::default()), 0)]
    #[case::released(Some(lease(LeaseSpec { lease_transitions: Some(3), ..LeaseSpec::default() })), 0)]
    #[case::ours_by_a_write_whose_answer_was_lost(Some(lease(LeaseSpec { holder_identity: Some("us".into()), ..held(0) })), 0)]
    #[case::absent(None, 15)]
    #[case::held(Some(lease(held(0))), 15)]
    #[case::holder_taken_out_by_hand(Some(lease(LeaseSpec { holder_identity: None, ..held(0) })), 15)]
    #[case::by_a_version_with_longer_terms(Some(lease(LeaseSpec { lease_duration_seconds: Some(40), ..held(0) })), 40)]
    #[case::duration_made_absurd_by_hand(Some(lease(LeaseSpec { lease_duration_seconds: Some(i32::MAX), ..held(0) })), 60)]
    #[case::duration_made_negative(Some(lease(LeaseSpec { lease_duration_seconds: Some(-1), ..held(0) })), 15)]
    fn a_lease_is_free_after(#[case] lease: Option<Lease>, #[case] seconds: u64) {
        let (mut observer, start) = (observer(), now());
        observer.note(lease, start);
        assert_eq!(observer.free_at(), Some(start + Duration::from_secs(seconds)));
    }

    #[test]
    fn nothing_is_known_before_the_first_look_nor_after_a_failed_write() {
        let mut observer = observer();
        assert_eq!(observer.free_at(), None);
        observer.note(Some(Lease::default()), now());
        observer.doubt();
        assert_eq!(observer.free_at(), None);
    }

    /// In the year 1970, 2033 and back: whatever the clock of the holder says, it is only a change.
    #[test]
    fn clocks_of_others_do_not_matter() {
        let (mut observer, start) = (observer(), now());
        for (i, renewed) in [0, 2_000_000_000, 1, 1_999_999_999].into_iter().enumerate() {
            let seen = start + Duration::from_secs(2 * i as u64);
            observer.note(Some(lease(held(renewed))), seen);
            assert_eq!(observer.free_at(), Some(seen + OURS));
        }
    }

    #[test]
    fn only_a_change_of_the_record_is_a_sign_of_life() {
        let (mut observer, start) = (observer(), now());
        assert!(observer.note(Some(lease(held(7))), start));
        let labelled = ObjectMeta { resource_version: Some("9".to_owned()), ..ObjectMeta::default() };
        let touched = Lease { metadata: labelled, spec: Some(held(7)) };
        assert!(!observer.note(Some(touched), start + Duration::from_secs(9)));
        assert_eq!(observer.free_at(), Some(start + OURS));
        assert!(
            observer.lease().unwrap().metadata.resource_version.is_some(),
            "the next write is guarded by the newest"
        );
    }

    #[test]
    fn a_lease_that_was_emptied_by_hand_is_waited_for() {
        let (mut observer, start) = (observer(), now());
        observer.note(Some(lease(held(7))), start);
        observer.note(Some(Lease::default()), start);
        assert_eq!(observer.free_at(), Some(start + OURS));
    }

    #[test]
    fn a_deleted_lease_is_waited_for_as_long_as_a_held_one() {
        let (mut observer, start) = (observer(), now());
        observer.note(Some(lease(held(7))), start);
        let deleted = start + Duration::from_secs(5);
        assert!(observer.note(None, deleted));
        assert_eq!(observer.free_at(), Some(deleted + OURS));
    }
}
