//! Outcomes as conditions in the standard Kubernetes shape.
//!
//! `Ready` is always there. `Reconciling` and `Stalled` are there only while true, which is what kstatus, Flux,
//! Argo CD, Helm and `kubectl wait` understand. A condition's transition time moves only when its status does,
//! so that an unchanged object costs no write.

use jiff::Timestamp;
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::Outcome;

/// Type of the condition that says whether the object is as declared.
pub const READY: &str = "Ready";
/// Type of the condition that is true while we work or wait.
pub const RECONCILING: &str = "Reconciling";
/// Type of the condition that says whether a service answers requests, as declared or not.
pub const AVAILABLE: &str = "Available";
/// Type of the condition that is false while something is not as declared which is left as it is.
pub const UP_TO_DATE: &str = "UpToDate";
/// Type of the condition that is true while only a person can help.
pub const STALLED: &str = "Stalled";

/// Longest message the Kubernetes API accepts in a condition.
const MAX_MESSAGE: usize = 32 * 1024;

/// The conditions of an object whose last pass came to `outcome`.
pub fn render(outcome: &Outcome, generation: Option<i64>, previous: &[Condition], now: Timestamp) -> Vec<Condition> {
    let kinds: &[(&str, &str)] = match outcome {
        Outcome::Done { .. } => &[(READY, "True")],
        Outcome::Waiting { .. } => &[(READY, "False"), (RECONCILING, "True")],
        Outcome::Blocked { .. } => &[(READY, "False"), (STALLED, "True")],
    };
    kinds
        .iter()
        .map(|(kind, status)| Condition {
            type_: (*kind).to_owned(),
            status: (*status).to_owned(),
            reason: outcome.reason().to_owned(),
            message: truncate(outcome.message(), MAX_MESSAGE),
            observed_generation: generation,
            last_transition_time: transition_time(previous, kind, status, now),
        })
        .collect()
}

/// A condition beside those that tell the outcome.
pub fn one(
    kind: &str,
    holds: bool,
    reason: &str,
    message: &str,
    generation: Option<i64>,
    previous: &[Condition],
    now: Timestamp,
) -> Condition {
    let status = if holds { "True" } else { "False" };
    Condition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: truncate(message, MAX_MESSAGE),
        observed_generation: generation,
        last_transition_time: transition_time(previous, kind, status, now),
    }
}

/// The conditions that do not tell an outcome. A pass that failed leaves them as they were.
pub fn others(conditions: &[Condition]) -> impl Iterator<Item = &Condition> {
    conditions.iter().filter(|c| ![READY, RECONCILING, STALLED].contains(&c.type_.as_str()))
}

/// Whether the condition of this type is true.
pub fn is_true(conditions: &[Condition], kind: &str) -> bool {
    find(conditions, kind).is_some_and(|c| c.status == "True")
}

/// Whether `Ready` is true and was judged for `generation`.
pub fn is_ready(conditions: &[Condition], generation: Option<i64>) -> bool {
    find(conditions, READY).is_some_and(|c| c.status == "True" && c.observed_generation == generation)
}

/// The condition of a type.
pub fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|c| c.type_ == kind)
}

/// `text` cut to at most `max` bytes at a character boundary, with an ellipsis when it was cut.
pub fn truncate(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(max.saturating_sub('…'.len_utf8()));
    format!("{}…", &text[..end])
}

fn transition_time(previous: &[Condition], kind: &str, status: &str, now: Timestamp) -> Time {
    match find(previous, kind) {
        Some(p) if p.status == status => p.last_transition_time.clone(),
        // the API stores whole seconds; anything finer would differ from what we read back
        _ => Time(Timestamp::from_second(now.as_second()).unwrap_or(now)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_wait_is_reconciling_and_a_block_is_stalled() {
        let wait = render(&Outcome::waiting("QuotaExceeded", "quota"), Some(3), &[], at(10));
        assert_eq!(wait.iter().map(|c| c.type_.as_str()).collect::<Vec<_>>(), [READY, RECONCILING]);
        let block = render(&Outcome::blocked("InvalidSpec", "spec.x"), Some(3), &wait, at(20));
        assert_eq!(block.iter().map(|c| c.type_.as_str()).collect::<Vec<_>>(), [READY, STALLED]);
        assert!(!is_ready(&block, Some(3)));
    }

    #[test]
    fn transition_time_moves_only_with_the_status() {
        let first = render(&Outcome::waiting("A", "a"), Some(1), &[], at(10));
        let second = render(&Outcome::waiting("B", "b"), Some(2), &first, at(20));
        assert_eq!(second[0].last_transition_time, Time(at(10)));
        let third = render(&Outcome::ready("ok"), Some(2), &second, at(30));
        assert_eq!(third[0].last_transition_time, Time(at(30)));
        assert_eq!(third.len(), 1);
    }

    #[test]
    fn ready_counts_only_for_the_generation_it_was_judged_for() {
        let c = render(&Outcome::ready("ok"), Some(2), &[], at(0));
        assert!(is_ready(&c, Some(2)));
        assert!(!is_ready(&c, Some(3)));
    }

    #[test]
    fn truncation_keeps_whole_characters() {
        assert_eq!(truncate("ääää", 6), "ä…");
        assert_eq!(truncate("short", 6), "short");
    }
}
