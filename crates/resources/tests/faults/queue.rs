//! The points that are still to come true.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::point::{Phase, Point};

/// A request may not come in a life though it came in those that were recorded. What did not come in so many lives came
/// by chance when it was recorded.
const TRIES: u32 = 4;
/// When so many lives have come to grief there is no use in more.
const MOST_FAILURES: usize = 10;

#[derive(Default)]
struct State {
    waiting: BTreeMap<Phase, VecDeque<(Point, u32)>>,
    covered: usize,
    missed: Vec<String>,
    lives: usize,
    failures: Vec<String>,
}

/// What came of all points.
pub(crate) struct Outcome {
    /// How many came true and were survived.
    pub(crate) covered: usize,
    pub(crate) lives: usize,
    /// Points whose request did not come.
    pub(crate) missed: Vec<String>,
    /// What to read of those that were not survived.
    pub(crate) failures: Vec<String>,
}

/// What is left to do, and what came of it.
pub(crate) struct Queue(Mutex<State>);

impl Queue {
    pub(crate) fn new(mut points: Vec<Point>) -> Self {
        // those that take long first, side by side
        points.sort_by_key(|point| !point.fault.is_slow);
        let mut state = State::default();
        for point in points {
            state.waiting.entry(point.request.phase).or_default().push_back((point, 1));
        }
        Self(Mutex::new(state))
    }

    /// How many points wait in the phase that has most: so many lives there have to be.
    pub(crate) fn longest(&self) -> usize {
        self.state().waiting.values().map(VecDeque::len).max().unwrap_or_default()
    }

    /// Points for one life, one for each phase.
    pub(crate) fn take(&self) -> Vec<(Point, u32)> {
        let mut state = self.state();
        if state.failures.len() >= MOST_FAILURES {
            return Vec::new();
        }
        let batch: Vec<_> = state.waiting.values_mut().filter_map(VecDeque::pop_front).collect();
        state.lives += usize::from(!batch.is_empty());
        batch
    }

    /// A life is over: these phases met their fault and survived it, and perhaps one did not.
    pub(crate) fn done(&self, batch: Vec<(Point, u32)>, survived: &[Phase], failure: Option<(Phase, String)>) {
        let mut state = self.state();
        let failed_at = failure.as_ref().map(|(phase, _)| *phase);
        state.covered += batch.iter().filter(|(point, _)| survived.contains(&point.request.phase)).count();
        let is_over = |phase| survived.contains(&phase) || failed_at == Some(phase);
        for (point, tries) in batch.into_iter().filter(|(point, _)| !is_over(point.request.phase)) {
            let phase = point.request.phase;
            if tries < TRIES {
                state.waiting.entry(phase).or_default().push_back((point, tries + 1));
            } else {
                state.missed.push(point.to_string());
            }
        }
        state.failures.extend(failure.map(|(_, text)| text));
    }

    /// What came of the points.
    pub(crate) fn result(&self) -> Outcome {
        let state = self.state();
        let (missed, failures) = (state.missed.clone(), state.failures.clone());
        Outcome { covered: state.covered, lives: state.lives, missed, failures }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
