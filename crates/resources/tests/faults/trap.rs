//! What waits for a request.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use kupenstack_testkit::{
    sim::{Effect, Entry, Rule},
    tap::{self, Sentence},
};
use tokio::sync::{broadcast, watch};

use crate::{
    point::{How, Phase, Point, Request},
    stage::Stage,
};

/// A point on a stage where it is to come true.
pub(crate) struct Trap<'a> {
    stage: &'a Stage,
    hung: watch::Receiver<u64>,
    arrivals: broadcast::Receiver<Entry>,
    witness: Witness<'a>,
    /// Whether the operator has still to be killed after the fault.
    kills_next: bool,
}

/// Who knows whether a point has come true.
#[derive(Clone)]
pub(crate) struct Witness<'a> {
    stage: &'a Stage,
    point: &'a Point,
    /// Requests to OpenStack before.
    since: u64,
    /// Whether the API server's side of it has come true.
    struck: Arc<AtomicBool>,
}

impl Witness<'_> {
    /// Whether the request has come and met its fault.
    pub(crate) fn has_seen_it(&self) -> bool {
        let cloud = self.stage.sim.cloud();
        let met = |entry: &Entry| {
            let request = Request::of_openstack(Phase::Start, entry);
            entry.number >= self.since && entry.fault.is_some() && request.is_like(&self.point.request)
        };
        self.struck.load(Ordering::SeqCst) || cloud.journal.entries().any(met)
    }
}

impl<'a> Trap<'a> {
    pub(crate) fn set(stage: &'a Stage, point: &'a Point) -> Self {
        let struck = Arc::new(AtomicBool::new(false));
        let (hung, arrivals) = (stage.sim.hung(), stage.sim.arrivals());
        let mut cloud = stage.sim.cloud();
        match &point.fault.how {
            How::OpenStack(effect, times) => {
                let Request { service, method, what, nth, .. } = &point.request;
                let rule = Rule::on(service, method, what, effect.clone());
                cloud.faults.add(Rule { skip: nth - 1, ..rule.times(*times) });
            }
            How::Kubernetes(side, sentence) => {
                stage.tap.arm(verdict(stage, &point.request, *side, *sentence, Arc::clone(&struck)));
            }
        }
        let since = cloud.journal.total();
        drop(cloud);
        let witness = Witness { stage, point, since, struck };
        Self { stage, hung, arrivals, witness, kills_next: point.then_killed }
    }

    /// Waits until the operator is to die.
    pub(crate) async fn deadly(&mut self) {
        loop {
            tokio::select! {
                hung = self.hung.changed() => return hung.unwrap(),
                () = self.stage.tap.condemned() => return,
                entry = self.arrivals.recv(), if self.kills_next => {
                    if entry.is_ok_and(|entry| entry.fault.is_some()) {
                        self.kills_next = false;
                        self.stage.sim.cloud().faults.add(Rule::every(Effect::Hang { commit: false }).once());
                    }
                }
            }
        }
    }

    /// Whether the operator is to die, and nobody has seen to it yet.
    pub(crate) fn is_deadly_now(&self) -> bool {
        !self.stage.tap.spare() || self.hung.has_changed().unwrap_or_default()
    }

    /// Lets everything pass again.
    pub(crate) fn open(&mut self) {
        self.hung.mark_unchanged();
        self.stage.sim.cloud().faults.clear();
        self.stage.tap.open();
    }

    pub(crate) fn witness(&self) -> Witness<'a> {
        self.witness.clone()
    }
}

/// Lets the nth request of its like meet its fate.
fn verdict(
    stage: &Stage,
    request: &Request,
    side: tap::Phase,
    sentence: Sentence,
    struck: Arc<AtomicBool>,
) -> impl FnMut(&tap::Point) -> Sentence + Send + 'static {
    let (name, request, mut seen) = (stage.name.clone(), request.clone(), 0);
    move |point| {
        let is_it = point.phase == side && Request::of_kubernetes(request.phase, point, &name).is_like(&request);
        seen += u32::from(is_it);
        if is_it && seen == request.nth {
            struck.store(true, Ordering::SeqCst);
            return sentence;
        }
        Sentence::Pass
    }
}
