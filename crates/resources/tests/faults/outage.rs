//! The API server dies in the middle of lives, and comes back.
//!
//! It dies for all of them at once: each waits at its point until every other one is at its own. One after the other
//! would be a hundred deaths, and each of them disturbs all.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::{sync::watch, time::timeout};

use crate::{
    common::cluster::Cluster,
    life::Life,
    point::{OUTAGES, Phase, Point, Request},
    run::{Progress, Run, prepare},
    stage::{Stage, Surroundings},
};

/// A request may come in one life and not in the next.
const TRIES: u32 = 4;
/// A life whose request does not come keeps the others waiting for so long.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Default)]
struct Counts {
    /// Lives that are not over.
    under_way: usize,
    /// Lives that have been recorded, also those that are over.
    recorded: usize,
    /// Those of them that are at their points.
    waiting: usize,
    deaths: u64,
}

/// Lives that share an API server, which is theirs alone.
pub(crate) struct Lives {
    cluster: &'static Cluster,
    counts: watch::Sender<Counts>,
}

impl Lives {
    pub(crate) fn on(cluster: &'static Cluster) -> Self {
        Self { cluster, counts: watch::Sender::default() }
    }

    /// Has the API server die whenever all are at their points.
    pub(crate) async fn deaths(&self) {
        loop {
            self.come(|counts| counts.waiting > 0).await;
            let _ = timeout(PATIENCE, self.come(|counts| counts.waiting >= counts.under_way)).await;
            self.counts.send_modify(|counts| *counts = Counts { waiting: 0, deaths: counts.deaths + 1, ..*counts });
            self.cluster.plane.restart_api_server().await;
        }
    }

    /// Lets the API server die at a write of each phase of a life: in one life before it is carried out, in another
    /// after. It counts among the others as soon as this is called: before any of them is waited for, all have to be.
    pub(crate) fn survive<L: Life>(&self, life: L) -> impl Future<Output = ()> + '_ {
        self.counts.send_modify(|counts| counts.under_way += 1);
        self.whole(life)
    }

    async fn whole<L: Life>(&self, life: L) {
        let (one, other) = (self.live(&life, &[]).await, self.live(&life, &[]).await);
        self.counts.send_modify(|counts| counts.recorded += 1);
        self.come(|counts| counts.recorded >= counts.under_way).await;
        for fault in &OUTAGES {
            let requests = Phase::ALL.into_iter().filter_map(|phase| last_write(&one, &other, phase));
            let point = |request| Point { kind: L::KIND, request, fault, then_killed: false };
            let mut points: Vec<Point> = requests.map(point).collect();
            for _ in 0..TRIES {
                let survived = self.live(&life, &points).await.survived;
                points.retain(|point| {
                    let is_done = survived.contains(&point.request.phase);
                    if is_done {
                        println!("fault suite: {point}: survived");
                    }
                    !is_done
                });
                if points.is_empty() {
                    break;
                }
            }
            assert!(points.is_empty(), "{}: did not come in {TRIES} lives: {points:?}", L::KIND);
        }
        self.counts.send_modify(|counts| counts.under_way -= 1);
    }

    async fn live<L: Life>(&self, life: &L, points: &[Point]) -> Progress {
        let surroundings = Surroundings { outages: true, controllers: L::CONTROLLERS, ..Surroundings::default() };
        let stage = Stage::new(self.cluster, &self.cluster.client().await, L::KIND, surroundings).await;
        let progress = Mutex::<Progress>::default();
        prepare(&stage, life).await;
        let run = Run { stage: &stage, life, points, progress: &progress };
        tokio::select! {
            () = run.whole() => {}
            () = self.dying(&stage) => {}
        }
        progress.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of what waits for the API server's death when it comes.
    async fn dying(&self, stage: &Stage) {
        loop {
            stage.tap.outage().await;
            let mut deaths = 0;
            self.counts.send_modify(|counts| {
                counts.waiting += 1;
                deaths = counts.deaths;
            });
            self.come(|counts| counts.deaths > deaths).await;
            stage.tap.let_go();
        }
    }

    async fn come(&self, are_so: impl FnMut(&Counts) -> bool) {
        let came = self.counts.subscribe().wait_for(are_so).await.map(drop);
        came.unwrap_or_else(|error| panic!("the counts are our own: {error}"));
    }
}

/// The last thing that a phase writes into an object in both lives: an event would not be missed.
fn last_write(one: &Progress, other: &Progress, phase: Phase) -> Option<Request> {
    let (written, again) = (one.journal.get(&phase)?, other.journal.get(&phase)?);
    let is_one = |request: &&Request| request.is_of_kubernetes() && request.is_write() && !request.is_news();
    written.iter().filter(is_one).rfind(|request| again.contains(request)).cloned()
}
