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

/// A request may come in one life and not in the next.
const TRIES: u32 = 4;

/// Lets the API server die at a write of each phase of a life: in one life before it is carried out, in another after.
/// The cluster is for such lives alone.
pub(crate) async fn is_survived<L: Life>(cluster: &'static Cluster, life: L) {
    let (one, other) = (live(cluster, &life, &[]).await, live(cluster, &life, &[]).await);
    for fault in &OUTAGES {
        let requests = Phase::ALL.into_iter().filter_map(|phase| last_write(&one, &other, phase));
        let point = |request| Point { kind: L::KIND, request, fault, then_killed: false };
        let mut points: Vec<Point> = requests.map(point).collect();
        for _ in 0..TRIES {
            let survived = live(cluster, &life, &points).await.survived;
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
}

async fn live<L: Life>(cluster: &'static Cluster, life: &L, points: &[Point]) -> Progress {
    let surroundings = Surroundings { outages: true, controllers: L::CONTROLLERS, ..Surroundings::default() };
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

/// The last thing that a phase writes into an object in both lives: an event would not be missed.
fn last_write(one: &Progress, other: &Progress, phase: Phase) -> Option<Request> {
    let (written, again) = (one.journal.get(&phase)?, other.journal.get(&phase)?);
    let is_one = |request: &&Request| request.is_of_kubernetes() && request.is_write() && !request.is_news();
    written.iter().filter(is_one).rfind(|request| again.contains(request)).cloned()
}
