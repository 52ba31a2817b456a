//! Where operators were killed, and what is left to kill them at.
//!
//! A read leaves the cluster as it is: a death after it is one before the next request, and it makes no difference in
//! which scenario it comes. So a read is struck before it is sent, and once in all; a write is struck before it is
//! sent and after it was carried out, in each scenario. With `KUPENSTACK_KILL=all` there is no such difference.

use std::{
    collections::BTreeSet,
    env,
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError},
};

use kupenstack_testkit::tap::{Phase, Point, Sentence, Who};

/// Whether everything is to be struck everywhere.
pub(crate) static THOROUGH: LazyLock<bool> = LazyLock::new(|| env::var("KUPENSTACK_KILL").is_ok_and(|v| v == "all"));

/// Reads that somebody died at, in whatever scenario.
static READS: Mutex<BTreeSet<Point>> = Mutex::new(BTreeSet::new());

/// Who dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Victim {
    /// The operator with its Helm.
    Operator,
    /// The same, at writes only: what it reads it reads in other tests too.
    Writer,
    /// Helm, and the operator when it has said so or begins anew: one that meets error upon error waits ever longer.
    Helm,
}

/// The points of one scenario.
#[derive(Clone)]
pub(crate) struct Kills {
    victim: Victim,
    points: Arc<Mutex<Points>>,
}

#[derive(Default)]
struct Points {
    met: BTreeSet<Point>,
    killed: BTreeSet<Point>,
    /// Points to be left alone.
    spared: BTreeSet<Point>,
    /// Helm was killed, and the operator lives.
    bereaved: bool,
}

impl Kills {
    pub(crate) fn of(victim: Victim) -> Self {
        Self { victim, points: Arc::default() }
    }

    /// What becomes of an operator or a Helm that comes to this point: the first one is to die.
    pub(crate) fn strike(&self, point: &Point) -> Sentence {
        let mut points = lock(&self.points);
        if points.bereaved && is_next_word(point) {
            points.bereaved = false;
            return Sentence::Operator;
        }
        if !self.counts(point) {
            return Sentence::Pass;
        }
        points.met.insert(point.clone());
        if points.bereaved || points.spared.contains(point) || points.killed.contains(point) {
            return Sentence::Pass;
        }
        if !point.writes() && !*THOROUGH && !lock(&READS).insert(point.clone()) {
            return Sentence::Pass;
        }
        points.killed.insert(point.clone());
        match self.victim {
            Victim::Operator | Victim::Writer => Sentence::Operator,
            Victim::Helm => {
                points.bereaved = true;
                Sentence::Helm
            }
        }
    }

    /// Notes a point without a death.
    pub(crate) fn note(&self, point: &Point) -> Sentence {
        if self.counts(point) {
            lock(&self.points).met.insert(point.clone());
        }
        Sentence::Pass
    }

    /// From now on only these points are struck.
    pub(crate) fn only(&self, these: &BTreeSet<Point>) {
        let mut points = lock(&self.points);
        points.spared = points.met.difference(these).cloned().collect();
    }

    /// Points that somebody came to.
    pub(crate) fn met(&self) -> BTreeSet<Point> {
        lock(&self.points).met.clone()
    }

    /// Points that somebody died at, here or, if that is the same, elsewhere.
    pub(crate) fn covered(&self) -> BTreeSet<Point> {
        let elsewhere = if *THOROUGH { BTreeSet::new() } else { lock(&READS).clone() };
        lock(&self.points).killed.union(&elsewhere).cloned().collect()
    }

    /// How often somebody died here.
    pub(crate) fn deaths(&self) -> usize {
        lock(&self.points).killed.len()
    }

    fn counts(&self, point: &Point) -> bool {
        match self.victim {
            Victim::Operator => *THOROUGH || point.writes() || point.phase == Phase::Before,
            Victim::Writer => *THOROUGH || point.writes(),
            Victim::Helm => matches!(point.who, Who::Helm(_)) && point.verb != "RUN" && (*THOROUGH || point.writes()),
        }
    }
}

/// Whether an operator whose pass has failed tells so, or begins the next one.
fn is_next_word(point: &Point) -> bool {
    let [telling, beginning] = ["/keystones/keystone/status", "/keystones/keystone"];
    point.who == Who::Operator
        && match point.phase {
            Phase::After => point.what.ends_with(telling),
            Phase::Before => point.verb == "GET" && point.what.ends_with(beginning),
        }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
