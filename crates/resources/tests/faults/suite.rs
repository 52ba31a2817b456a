//! All points of a kind's life.

use std::{
    collections::BTreeSet,
    env,
    fmt::Write,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use futures::future::join_all;
use kube::Client;

use crate::{
    common::cluster::Cluster,
    life::Life,
    point::{FAULTS, Phase, Point, Request},
    queue::Queue,
    run::{Progress, Run, prepare},
    stage::{Stage, Surroundings},
};

/// Lives at the same time: each mostly waits.
const AT_ONCE: usize = 16;
/// What all have in common came in each of so many lives.
const RECORDINGS: usize = 2;

/// The lives of one kind in certain surroundings.
pub(crate) struct Suite<L> {
    pub(crate) cluster: &'static Cluster,
    pub(crate) client: Client,
    pub(crate) life: L,
    pub(crate) surroundings: Surroundings,
    /// What the surroundings are called in reports.
    pub(crate) title: &'static str,
    /// Which points are to come true.
    pub(crate) choose: fn(&Point) -> bool,
}

impl<L: Life> Suite<L> {
    /// Lets every point come true in some life, and fails unless all of them did and each was survived.
    pub(crate) async fn run(self) {
        let began = Instant::now();
        let requests = self.record().await;
        let points: Vec<Point> = points_of::<L>(&requests).into_iter().filter(self.choose).filter(is_wanted).collect();
        let (all, faults) = (points.len(), points.iter().map(|point| point.fault.name).collect::<BTreeSet<_>>().len());
        let queue = Queue::new(points);
        join_all((0..AT_ONCE).map(|_| self.work(&queue))).await;
        let (covered, lives, failures) = queue.result();
        let (kind, title, entries, took) = (L::KIND, self.title, requests.len(), began.elapsed().as_secs());
        println!(
            "fault suite: {kind}{title}: points covered: {covered} of {all} ({entries} journal entries x {faults} faults, \
             {lives} lives, {took} s)"
        );
        assert!(failures.is_empty(), "{} of {all} points:\n\n{}", failures.len(), failures.join("\n\n"));
        assert_eq!(covered, all);
    }

    /// The requests that came in every life in which nothing went wrong.
    async fn record(&self) -> BTreeSet<Request> {
        let recordings = (0..RECORDINGS).map(|_| async {
            let stage = self.stage().await;
            let (stage, progress, grief) = self.live(stage, Vec::new()).await;
            if let Some(grief) = grief {
                panic!("{}: a life without faults: {}", L::KIND, told(&[], &progress, &grief));
            }
            if let Some(stage) = stage {
                stage.end().await;
            }
            progress.journal.into_values().flatten().collect::<BTreeSet<Request>>()
        });
        let recorded = join_all(recordings).await;
        recorded.into_iter().reduce(|a, b| &a & &b).unwrap_or_default()
    }

    async fn work(&self, queue: &Queue) {
        let mut stage = None;
        loop {
            let batch = queue.take();
            if batch.is_empty() {
                break;
            }
            let points: Vec<Point> = batch.iter().map(|(point, _)| point.clone()).collect();
            let at = match stage.take() {
                Some(stage) => stage,
                None => self.stage().await,
            };
            let (left, progress, grief) = self.live(at, points.clone()).await;
            let failure = grief.map(|grief| (progress.at.unwrap_or(Phase::Start), told(&points, &progress, &grief)));
            queue.done(batch, &progress.survived, failure);
            stage = match left {
                Some(stage) if L::ENDS_ITS_STAGE => {
                    stage.end().await;
                    None
                }
                left => left,
            };
        }
        if let Some(stage) = stage {
            stage.end().await;
        }
    }

    async fn stage(&self) -> Stage {
        let stage = Stage::new(self.cluster, &self.client, L::KIND, self.surroundings).await;
        prepare(&stage, &self.life).await;
        stage
    }

    /// One life, and what is left of its stage, or what it came to grief by.
    async fn live(&self, stage: Stage, points: Vec<Point>) -> (Option<Stage>, Progress, Option<String>) {
        let (life, progress) = (self.life.clone(), Arc::<Mutex<Progress>>::default());
        let shared = Arc::clone(&progress);
        let ended = tokio::spawn(async move {
            Box::pin(Run { stage: &stage, life: &life, points: &points, progress: &shared }.whole()).await;
            stage
        });
        let (stage, grief) = match ended.await {
            Ok(stage) => (Some(stage), None),
            Err(error) => (None, Some(words(error))),
        };
        let progress = std::mem::take(&mut *progress.lock().unwrap_or_else(PoisonError::into_inner));
        (stage, progress, grief)
    }
}

/// Every request with every fault that makes a difference to it, and an operator that is killed after a fault: after
/// those that may leave something behind, or, if there is time, after all.
pub(crate) fn points_of<L: Life>(requests: &BTreeSet<Request>) -> Vec<Point> {
    let is_long = env::var("KUPENSTACK_LONG").is_ok_and(|value| value == "yes");
    let mut points = Vec::new();
    for request in requests {
        for fault in FAULTS.iter().filter(|fault| fault.applies_to(request)) {
            let point = |then_killed| Point { kind: L::KIND, request: request.clone(), fault, then_killed };
            points.push(point(false));
            let leaves_something = request.is_write() && fault.name == "drop after commit";
            if !request.is_of_kubernetes() && !fault.is_deadly() && (is_long || leaves_something) {
                points.push(point(true));
            }
        }
    }
    points
}

/// Whether a point is among those that `KUPENSTACK_POINT` asks for: all, if it is not set.
fn is_wanted(point: &Point) -> bool {
    env::var("KUPENSTACK_POINT").map_or(true, |wanted| point.to_string().contains(&wanted))
}

/// What to read of a life that came to grief.
fn told(points: &[Point], progress: &Progress, grief: &str) -> String {
    let mut text = String::new();
    for point in points {
        let here = if progress.at == Some(point.request.phase) { "here" } else { "before or after" };
        let _ = writeln!(text, "{point} ({here})");
    }
    let _ = writeln!(text, "  in phase {}: {grief}", progress.at.map_or("?".to_owned(), |phase| phase.to_string()));
    text
}

fn words(error: tokio::task::JoinError) -> String {
    let panic = error.into_panic();
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned())).unwrap_or_default()
}
