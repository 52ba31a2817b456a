//! A rollout as a list that a person reads from top to bottom.

use jiff::Timestamp;
use kupenstack_api::cluster::{Step, StepState};

/// Collects the steps of a pass. A step that is as it was keeps the time since when.
pub(crate) struct Checklist<'a> {
    previous: &'a [Step],
    now: Timestamp,
    steps: Vec<Step>,
}

impl<'a> Checklist<'a> {
    pub(crate) fn new(previous: &'a [Step], now: Timestamp) -> Self {
        Self { previous, now, steps: Vec::new() }
    }

    pub(crate) fn done(&mut self, name: impl Into<String>) {
        self.push(name.into(), StepState::Done, None);
    }

    /// Returns since when.
    pub(crate) fn running(&mut self, name: impl Into<String>, message: impl Into<String>) -> Timestamp {
        self.push(name.into(), StepState::Running, Some(message.into()));
        self.steps.last().and_then(|step| step.since.as_ref()?.parse().ok()).unwrap_or(self.now)
    }

    pub(crate) fn failed(&mut self, name: impl Into<String>, message: impl Into<String>) {
        self.push(name.into(), StepState::Failed, Some(message.into()));
    }

    /// The time of the pass, in whole seconds.
    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_second(self.now.as_second()).unwrap_or(self.now)
    }

    /// Steps that are still to come.
    pub(crate) fn pending(&mut self, names: impl IntoIterator<Item = String>) {
        for name in names {
            self.push(name, StepState::Pending, None);
        }
    }

    /// The steps as they were.
    pub(crate) fn repeat(&mut self) {
        self.steps = self.previous.to_vec();
    }

    /// The steps as they were, if all were done. A step that is told of again keeps its place.
    pub(crate) fn repeat_if_done(&mut self) -> bool {
        let done = !self.previous.is_empty() && self.previous.iter().all(|step| step.state == StepState::Done);
        if done {
            self.repeat();
        }
        done
    }

    pub(crate) fn finish(self) -> Vec<Step> {
        self.steps
    }

    fn push(&mut self, name: String, state: StepState, message: Option<String>) {
        let before = self.previous.iter().find(|p| p.name == name && p.state == state);
        let since = before.and_then(|p| p.since.clone()).or_else(|| match state {
            StepState::Pending => None,
            _ => Some(self.now().to_string()),
        });
        let step = Step { name, state, since, message };
        match self.steps.iter_mut().find(|s| s.name == step.name) {
            Some(told) => *told = step,
            None => self.steps.push(step),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finished_list_keeps_its_order() {
        let now = Timestamp::from_second(0).unwrap();
        let mut first = Checklist::new(&[], now);
        for name in ["a", "b", "c"] {
            first.done(name);
        }
        let first = first.finish();
        let mut second = Checklist::new(&first, now);
        assert!(second.repeat_if_done());
        for name in ["c", "b"] {
            second.done(name);
        }
        assert_eq!(second.finish(), first);
        let mut third = Checklist::new(&[], now);
        third.running("a", "…");
        let third = third.finish();
        assert!(!Checklist::new(&third, now).repeat_if_done());
        assert!(!Checklist::new(&[], now).repeat_if_done());
    }

    #[test]
    fn a_step_keeps_its_time_until_its_state_changes() {
        let at = |s| Timestamp::from_second(s).unwrap();
        let mut first = Checklist::new(&[], at(0));
        first.done("a");
        first.running("b", "…");
        let first = first.finish();
        let mut second = Checklist::new(&first, at(60));
        second.done("a");
        second.done("b");
        second.pending(["c".to_owned()]);
        let second = second.finish();
        assert_eq!(second[0], first[0]);
        assert_eq!(second[1].since.as_deref(), Some("1970-01-01T00:01:00Z"));
        assert_eq!(second[2].since, None);
    }
}
