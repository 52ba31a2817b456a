//! One life from its beginning to its end, with what goes wrong in it.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::future::join_all;
use tokio::time::Instant;

use crate::{
    check::Before,
    common::operator::Operator,
    life::Life,
    patience::eventually,
    point::{Phase, Point, Request},
    stage::Stage,
    trap::{Trap, Witness},
};

/// An operator has asked everything by then that it asks at its start.
const SLOW_START: Duration = Duration::from_secs(10);
/// Everything late has come by then.
const ALL_LATE: Duration = Duration::from_secs(30);

/// How far a life has come, for those who have to tell when it comes to grief.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) at: Option<Phase>,
    /// Phases whose fault has come true, and that were survived.
    pub(crate) survived: Vec<Phase>,
    /// What was asked in each phase, in its order.
    pub(crate) journal: BTreeMap<Phase, Vec<Request>>,
}

pub(crate) struct Run<'a, L> {
    pub(crate) stage: &'a Stage,
    pub(crate) life: &'a L,
    /// At most one for each phase.
    pub(crate) points: &'a [Point],
    pub(crate) progress: &'a Mutex<Progress>,
}

/// Makes what a life needs on its stage, with nothing going wrong.
pub(crate) async fn prepare<L: Life>(stage: &Stage, life: &L) {
    let operators = stage.operators();
    life.prepare(stage).await;
    stage.rests().await;
    join_all(operators.into_iter().map(Operator::stop)).await;
}

impl<L: Life> Run<'_, L> {
    pub(crate) async fn whole(&self) {
        let before = Before::of(self.stage).await;
        let mut operators = Vec::new();
        for phase in Phase::ALL {
            self.progress().at = Some(phase);
            self.phase(phase, &mut operators, &before).await;
        }
        join_all(operators.into_iter().map(Operator::stop)).await;
    }

    async fn phase(&self, phase: Phase, operators: &mut Vec<Operator>, before: &Before) {
        let (stage, point) = (self.stage, self.points.iter().find(|point| point.request.phase == phase));
        let asked = (stage.tap.requests(), stage.sim.cloud().journal.total());
        let mut trap = point.map(|point| Trap::set(stage, point));
        let witness = trap.as_ref().map(Trap::witness);
        match phase {
            Phase::Start => *operators = stage.operators(),
            Phase::Create => self.life.create(stage).await,
            Phase::Update => self.life.edit(stage).await,
            Phase::Delete => self.life.delete(stage).await,
        }
        loop {
            let dead = tokio::select! {
                biased;
                () = deadly(trap.as_mut()) => true,
                () = self.settled(phase, witness.as_ref(), operators) => trap.as_ref().is_some_and(Trap::is_deadly_now),
            };
            if !dead {
                break;
            }
            // what a dead operator still has on its way was never sent
            stage.tap.close();
            join_all(operators.drain(..).map(Operator::kill)).await;
            trap.iter_mut().for_each(Trap::open);
            *operators = stage.operators();
        }
        self.write_down(phase, asked);
        let has_struck = witness.is_some_and(|witness| witness.has_seen_it());
        trap.iter_mut().for_each(Trap::open);
        self.verify(phase, point, before).await;
        if has_struck {
            self.progress().survived.push(phase);
        }
    }

    /// What comes after the last word counts too: events, and a pass that finds nothing to do.
    async fn settled(&self, phase: Phase, witness: Option<&Witness<'_>>, operators: &[Operator]) {
        self.life.settled(self.stage, phase).await;
        let since = Instant::now();
        self.stage.rests().await;
        // on a busy machine an operator may have rested before it began: what it asks then would be taken for another
        // phase's, or not be seen
        let has_begun = || phase != Phase::Start || operators.iter().all(|operator| operator.passes("projects") > 0);
        let has_come = || witness.map_or_else(has_begun, Witness::has_seen_it);
        while since.elapsed() < SLOW_START && !has_come() {
            self.stage.rests().await;
        }
    }

    async fn verify(&self, phase: Phase, point: Option<&Point>, before: &Before) {
        let (stage, life) = (self.stage, self.life);
        let is_late = point.is_some_and(|point| point.fault.comes_late());
        if is_late {
            stage.sim.clock().advance(ALL_LATE);
            if matches!(phase, Phase::Create | Phase::Update) {
                life.nudge(stage).await;
            }
        }
        // what comes late, and what two do, is set right by a pass that sees it
        if is_late || stage.surroundings.are_restless() {
            eventually(|| before.verify(stage, life, phase)).await;
            stage.rests().await;
        }
        if let Err(problem) = before.verify(stage, life, phase).await {
            panic!("{problem}");
        }
    }

    fn write_down(&self, phase: Phase, (tapped, entries): (usize, u64)) {
        let stage = self.stage;
        let kubernetes = stage.tap.journal(tapped);
        let kubernetes = kubernetes.iter().map(|point| Request::of_kubernetes(phase, point, &stage.name));
        let cloud = stage.sim.cloud();
        let openstack = cloud.journal.entries().filter(|entry| entry.number >= entries);
        let mut requests: Vec<Request> =
            openstack.map(|entry| Request::of_openstack(phase, entry)).chain(kubernetes).collect();
        for index in 0..requests.len() {
            let before = requests[..index].iter().filter(|request| request.is_like(&requests[index])).count();
            requests[index].nth = u32::try_from(before).unwrap() + 1;
        }
        drop(cloud);
        self.progress().journal.insert(phase, requests);
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until an operator is to die; for ever if none is.
async fn deadly(trap: Option<&mut Trap<'_>>) {
    match trap {
        Some(trap) => trap.deadly().await,
        None => std::future::pending().await,
    }
}
