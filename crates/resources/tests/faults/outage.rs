//! The API server dies in the middle of lives, and comes back.

use std::sync::{Mutex, PoisonError};

use kupenstack_testkit::ControlPlane;

use crate::{
    common::cluster::Cluster,
    life::Life,
    point::{OUTAGES, Phase, Point, Request},
    run::{Progress, Run, prepare},
    stage::{Stage, Surroundings},
};

/// Lets the API server die at a write of each phase of a life: in one life before it is carried out, in another after.
/// The cluster is for such lives alone.
pub(crate) async fn is_survived<L: Life>(cluster: &'static Cluster, life: L) {
    let recorded = live(cluster, &life, &[]).await;
    for fault in &OUTAGES {
        let requests = Phase::ALL.into_iter().filter_map(|phase| last_write(&recorded, phase));
        let point = |request| Point { kind: L::KIND, request, fault, then_killed: false };
        let points: Vec<Point> = requests.map(point).collect();
        let survived = live(cluster, &life, &points).await.survived;
        assert_eq!(survived.len(), points.len(), "{}: {}: in {survived:?} only", L::KIND, fault.name);
        for point in &points {
            println!("fault suite: {point}: survived");
        }
    }
}

async fn live<L: Life>(cluster: &'static Cluster, life: &L, points: &[Point]) -> Progress {
    let surroundings = Surroundings { outages: true, ..Surroundings::default() };
    let stage = Stage::new(cluster, &cluster.client().await, L::KIND, surroundings).await;
    let progress = Mutex::<Progress>::default();
    prepare(&stage, life).await;
    let run = Run { stage: &stage, life, points, progress: &progress };
    tokio::select! {
        () = run.whole() => {}
        () = dying(&stage, &cluster.plane) => {}
    }
    progress.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Restarts the API server whenever it is to die.
async fn dying(stage: &Stage, plane: &ControlPlane) {
    loop {
        stage.tap.outage().await;
        plane.restart_api_server().await;
    }
}

/// The last thing that a phase writes into an object: an event would not be missed.
fn last_write(recorded: &Progress, phase: Phase) -> Option<Request> {
    let written = recorded.journal.get(&phase)?.iter();
    let mut written = written.filter(|request| request.is_of_kubernetes() && request.is_write());
    written.rfind(|request| !request.is_news()).cloned()
}
