//! The operator is killed at every request that it or its Helm makes of Kubernetes, and started again with nothing
//! remembered. Afterwards everything is as if it had never died.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that can't go on ends")]
#![allow(clippy::print_stdout, reason = "what was covered is part of the result")]

#[path = "../common/mod.rs"]
mod common;
mod kills;
mod life;
mod scenario;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use common::world::{World, built_in, dialect, helm4, own_plane};
use kills::{Kills, THOROUGH, Victim};
use kupenstack_testkit::tap::{Point, Sentence};
use life::Life;
use scenario::Scenario;

/// A life up to a scenario.
async fn life_before(scenario: Scenario, charts: &Path) -> Life {
    let life = Life::begin("kill", charts.to_owned()).await;
    for earlier in scenario.before() {
        life.go_through(*earlier, |_| Sentence::Pass).await;
    }
    life
}

/// Every point that a victim comes to in the scenario is struck. Many in one life: an operator that is started again
/// goes on until it comes to a point that nobody died at yet. Those which a life with so many deaths does not come to
/// are struck in further lives. After each life all is as after one without a death.
async fn is_survived(scenario: Scenario, victim: Victim, charts: PathBuf) -> (usize, usize) {
    let began = Instant::now();
    let census = Kills::of(victim);
    let noted = census.clone();
    let expected = life_before(scenario, &charts).await.go_through(scenario, move |point| noted.note(point)).await;
    let kills = Kills::of(victim);
    let mut lives = 0;
    loop {
        let missed: BTreeSet<Point> = census.met().difference(&kills.covered()).cloned().collect();
        let Some(first) = missed.first().cloned() else { break };
        assert!(lives < 6 || *THOROUGH, "{scenario:?} {victim:?}: nobody comes to {missed:#?}");
        if *THOROUGH {
            kills.only(&[first].into());
        } else if lives > 0 {
            kills.only(&missed);
        }
        let life = life_before(scenario, &charts).await;
        let striking = kills.clone();
        let found = life.go_through(scenario, move |point| striking.strike(point)).await;
        assert_eq!(found, expected, "{scenario:?} {victim:?}");
        lives += 1;
    }
    let points: BTreeSet<_> = census.met().union(&kills.met()).cloned().collect();
    let covered = points.intersection(&kills.covered()).count();
    let (all, deaths) = (points.len(), kills.deaths());
    println!(
        "kill suite: {scenario:?}: {victim:?}: {all} points, {covered} killed ({deaths} deaths here, {lives} lives, {:?})",
        began.elapsed()
    );
    assert_eq!(covered, all);
    (all, deaths)
}

/// Scenarios side by side, since each mostly waits.
async fn all_are_survived(scenarios: &[Scenario], victim: Victim, charts: PathBuf) {
    let running: Vec<_> = scenarios.iter().map(|s| tokio::spawn(is_survived(*s, victim, charts.clone()))).collect();
    let mut sum = (0, 0);
    for (scenario, ended) in scenarios.iter().zip(futures::future::join_all(running).await) {
        let (points, deaths) = ended.unwrap_or_else(|_| panic!("{scenario:?} is not survived, see above"));
        sum = (sum.0 + points, sum.1 + deaths);
    }
    println!("kill suite: {victim:?}: {} points covered by {} deaths", sum.0, sum.1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_every_request_of_its_own_and_of_helm_it_finishes_what_it_began() {
    use Scenario::{Change, Delete, FailedJob, FailedPods, Install, Recreate, Repair};
    let all = [Install, Change, FailedJob, FailedPods, Repair, Delete, Recreate];
    all_are_survived(&all, Victim::Operator, dialect()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn helm_9548_when_helm_is_killed_at_any_request_the_release_recovers() {
    let all = [Scenario::Install, Scenario::Change, Scenario::FailedPods, Scenario::Delete];
    all_are_survived(&all, Victim::Helm, dialect()).await;
}

/// The API server dies, too, and comes back: the operator lives on and hears nothing of its requests under way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_server_that_dies_under_the_operator_is_survived() {
    let plane = own_plane().await;
    let outages = [
        (Scenario::Install, "after POST apis/batch/v1/jobs/keystone-db-sync"),
        (Scenario::Change, "after PATCH apis/apps/v1/deployments/keystone-api (helm upgrade)"),
        (Scenario::FailedPods, "before PUT api/v1/secrets/sh.helm.release.v1.keystone.v# (helm rollback)"),
        (Scenario::Delete, "after DELETE apis/apps/v1/deployments/keystone-api (helm uninstall)"),
    ];
    for (scenario, place) in outages {
        let charts = dialect();
        let unharmed = async { life_before(scenario, &charts).await.go_through(scenario, |_| Sentence::Pass).await };
        let world = World::on(&plane, "outage", dialect(), &["keystone"], helm4()).await;
        let life = Life::of(world).await;
        for earlier in scenario.before() {
            life.go_through(*earlier, |_| Sentence::Pass).await;
        }
        let met = Arc::new(AtomicBool::new(false));
        let first = Arc::clone(&met);
        let fatal = move |point: &Point| {
            let strikes = point.to_string() == place && !first.swap(true, Ordering::SeqCst);
            if strikes { Sentence::ApiServer } else { Sentence::Pass }
        };
        let dying = async {
            life.world.tap.outage().await;
            life.world.tap.let_go();
            plane.restart_api_server().await;
        };
        let (expected, found, ()) = tokio::join!(unharmed, life.go_through(scenario, fatal), dying);
        assert_eq!(found, expected, "{scenario:?}, {place}");
        println!("kill suite: {scenario:?}: API server killed {place}");
    }
}

/// The charts that the operator brings along name configuration by its content, and keep it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_built_in_charts_survive_too() {
    let all = [Scenario::Install, Scenario::Change, Scenario::FailedPods, Scenario::Delete];
    all_are_survived(&all, Victim::Writer, built_in()).await;
}
