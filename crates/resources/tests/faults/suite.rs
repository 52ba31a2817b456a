//! All points of a kind's life.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    fmt::Write,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use futures::future::join_all;
use kube::Client;
use tokio::sync::{OnceCell, Semaphore};

use crate::{
    common::cluster::Cluster,
    life::Life,
    point::{FAULTS, Phase, Point, Request},
    queue::{Outcome, Queue},
    run::{Progress, Run, prepare},
    stage::{Stage, Surroundings},
};

/// Lives that follow each other on one stage. Of all that wait for a turn a kind has as many as it has to live, so that none is
/// left with most of its own when the others have done.
const LIVES_OF_A_STAGE: usize = 3;
/// Stages of a kind that has few lives, which else would be left to follow each other.
const STAGES: usize = 4;
/// Lives of all kinds at the same time: with more than the machine bears each would only take longer, and be late at last.
static TURNS: Semaphore = Semaphore::const_new(40);
/// What all have in common came in each of so many lives.
const RECORDINGS: usize = 3;
/// Of so many points there may be one whose request came by chance when it was recorded, and one at least.
const MISSED: usize = 20;

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
        let requests = recorded(L::KIND).get_or_init(|| self.record()).await.clone();
        let possible: Vec<Point> = points_of::<L>(&requests).into_iter().filter(self.choose).collect();
        let faults = possible.iter().map(|point| point.fault.name).collect::<BTreeSet<_>>().len();
        let (there_are, points) = (possible.len(), chosen(possible));
        let all = points.len();
        let queue = Queue::new(points);
        let lives = queue.longest();
        let stages = if L::ENDS_ITS_STAGE { lives } else { lives.div_ceil(LIVES_OF_A_STAGE).max(STAGES.min(lives)) };
        join_all((0..stages).map(|_| self.work(&queue))).await;
        let Outcome { covered, lives, missed, failures } = queue.result();
        let (kind, title, entries, took) = (L::KIND, self.title, requests.len(), began.elapsed().as_secs());
        println!(
            "fault suite: {kind}{title}: points covered: {covered} of {all} (of {there_are} from {entries} journal entries x \
             {faults} faults, {lives} lives, {took} s)"
        );
        for point in &missed {
            println!("fault suite: {point}: came by chance only");
        }
        assert!(failures.is_empty(), "{} of {all} points:\n\n{}", failures.len(), failures.join("\n\n"));
        assert!(missed.len() * MISSED <= all.max(MISSED), "did not come: {missed:#?}");
        assert_eq!(covered + missed.len(), all);
    }

    /// The requests that came in every life in which nothing went wrong. Its surroundings were calm: what comes in others
    /// only, as when two operators meet, comes by chance. One after the other: what a busy moment brings about, as a pass that
    /// has not heard yet of what the last one did, would come in all.
    async fn record(&self) -> BTreeSet<Request> {
        let mut common: Option<BTreeSet<Request>> = None;
        for _ in 0..RECORDINGS {
            let _turn = TURNS.acquire().await;
            let stage = self.stage(Surroundings::default()).await;
            let (stage, progress, grief) = self.live(stage, Vec::new()).await;
            if let Some(grief) = grief {
                panic!("{}: a life without faults: {}", L::KIND, told(&[], &progress, &grief));
            }
            if let Some(stage) = stage {
                stage.end().await;
            }
            let came: BTreeSet<Request> = progress.journal.into_values().flatten().collect();
            common = Some(common.map_or_else(|| came.clone(), |common| &common & &came));
        }
        common.unwrap_or_default()
    }

    async fn work(&self, queue: &Queue) {
        let mut stage = None;
        loop {
            let _turn = TURNS.acquire().await;
            let batch = queue.take();
            if batch.is_empty() {
                break;
            }
            let points: Vec<Point> = batch.iter().map(|(point, _)| point.clone()).collect();
            let at = match stage.take() {
                Some(stage) => stage,
                None => self.stage(self.surroundings).await,
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

    async fn stage(&self, surroundings: Surroundings) -> Stage {
        let surroundings = Surroundings { controllers: L::CONTROLLERS, ..surroundings };
        let stage = Stage::new(self.cluster, &self.client, L::KIND, surroundings).await;
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

/// What a kind's life takes, which is the same whatever surroundings the points then come true in.
fn recorded(kind: &'static str) -> Arc<OnceCell<BTreeSet<Request>>> {
    static RECORDED: Mutex<BTreeMap<&str, Arc<OnceCell<BTreeSet<Request>>>>> = Mutex::new(BTreeMap::new());
    Arc::clone(RECORDED.lock().unwrap_or_else(PoisonError::into_inner).entry(kind).or_default())
}

/// Every request with every fault that makes a difference to it, alone and with an operator that is killed after it.
pub(crate) fn points_of<L: Life>(requests: &BTreeSet<Request>) -> Vec<Point> {
    let mut points = Vec::new();
    for request in requests {
        for fault in FAULTS.iter().filter(|fault| fault.applies_to(request)) {
            let point = |then_killed| Point { kind: L::KIND, request: request.clone(), fault, then_killed };
            points.push(point(false));
            if !request.is_of_kubernetes() && !fault.is_deadly() {
                points.push(point(true));
            }
        }
    }
    points
}

/// Of the points that are much like others, one in so many comes true in a short run.
const SHARE: usize = 16;

/// Which of the points come true: those that `KUPENSTACK_POINT` asks for; all, if there is time; else those at which
/// something may be left behind, and of the others a share, in which each request meets some of the faults and each
/// fault some of the requests.
fn chosen(points: Vec<Point>) -> Vec<Point> {
    if let Ok(wanted) = env::var("KUPENSTACK_POINT") {
        return points.into_iter().filter(|point| point.to_string().contains(&wanted)).collect();
    }
    if env::var("KUPENSTACK_LONG").is_ok_and(|value| value == "yes") {
        return points;
    }
    let fault = |point: &Point| FAULTS.iter().position(|fault| fault.name == point.fault.name).unwrap_or_default();
    let requests: BTreeSet<Request> = points.iter().map(|point| point.request.clone()).collect();
    let request = |point: &Point| requests.range(..&point.request).count();
    let share = |point: &Point| !point.then_killed && (request(point) + fault(point)).is_multiple_of(SHARE);
    points.into_iter().filter(|point| point.may_leave_something() || share(point)).collect()
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
