//! What the operator costs and how fast it is, against a real API server and a simulated cloud.
//!
//! `dev/bench` runs the whole and prints a table; what does not depend on the machine is held in every run of the tests.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail the test")]
#![allow(clippy::print_stdout, reason = "a bench prints")]

#[path = "../common/operator.rs"]
mod operator;
mod stage;
mod tally;
mod tenants;
mod vms;

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use kupenstack_testkit::sim::Rule;

use crate::stage::{LATENCY, Stage, passed, source};

/// Requests at a time at one cloud, as the client has it.
const BUDGET: f64 = 32.0;

/// A number from the environment.
fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_settled_costs_the_same_however_much_it_is() {
    const EVERY: u64 = 3;
    const WINDOW: Duration = Duration::from_secs(12);
    let stage = Stage::set(3).await;
    let operator = stage.operator(EVERY);
    stage.projects().await;
    operator.stop().await;
    let mut costs = Vec::new();
    let mut filled = 0;
    for objects in [100, 900] {
        stage.fill(filled, objects).await;
        filled = objects;
        stage.sim.cloud().journal.clear();
        let written = stage.writes().await;
        let operator = stage.operator(EVERY);
        passed(&operator, "image", objects).await;
        let singly = |stage: &Stage| {
            stage.sim.cloud().journal.entries().filter(|entry| entry.template == "/v2/images/{image_id}").count()
        };
        assert_eq!(singly(&stage), 0, "a restart looks at no image of {objects}");
        passed(&operator, "projects", 4).await;
        stage.sim.cloud().journal.clear();
        tokio::time::sleep(WINDOW).await;
        costs.push(stage.requests().values().sum::<usize>());
        assert_eq!(stage.writes().await, written, "{objects} settled images cost writes");
        operator.stop().await;
    }
    assert!(costs[0] > 0 && costs[1] <= costs[0] + 4, "{costs:?} requests for 100 and 900 images");
}

/// One line of the table.
fn row(what: &str, figure: &str, target: &str, met: bool) {
    println!("| {what} | {figure} | {target} | {} |", if met { "met" } else { "**not met**" });
}

fn heading() {
    let build = if cfg!(debug_assertions) { "development" } else { "release" };
    println!("| figure ({build} build) | measured | target | |\n| --- | --- | --- | --- |");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes many minutes: dev/bench runs it"]
async fn settled() {
    let objects = setting("KUPENSTACK_BENCH_OBJECTS", 10_000);
    let stage = Stage::set(setting("KUPENSTACK_BENCH_NAMESPACES", 200)).await;
    heading();
    tokens(&stage).await;
    let half = held(&stage, 0, objects / 2).await;
    let whole = held(&stage, objects / 2, objects).await;
    let slope = whole.saturating_sub(half) / u64::try_from(objects - objects / 2).unwrap();
    row(
        &format!("memory per object, from {} to {objects} objects", objects / 2),
        &format!("{slope} bytes ({} MB at {objects})", whole >> 20),
        "≤ 5000 bytes",
        slope <= 5_000,
    );
    restart(&stage, objects).await;
    idle(&stage, objects).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes many minutes: dev/bench runs it"]
async fn recovery() {
    let objects = setting("KUPENSTACK_BENCH_OBJECTS", 10_000);
    let stage = Stage::set(setting("KUPENSTACK_BENCH_NAMESPACES", 200)).await;
    let operator = stage.operator(60);
    stage.projects().await;
    operator.stop().await;
    stage.fill(0, objects).await;
    heading();
    let operator = stage.operator(60);
    passed(&operator, "image", objects).await;
    outage(&stage).await;
    operator.stop().await;
}

/// Projects for all namespaces, which have just been made.
async fn tokens(stage: &Stage) {
    let began = Instant::now();
    let operator = stage.operator(60);
    stage.projects().await;
    let took = began.elapsed();
    operator.stop().await;
    let cloud = stage.sim.cloud();
    let logins = cloud.journal.entries().filter(|entry| entry.template == "/v3/auth/tokens").count();
    let identities = cloud.keystone.all("users").count();
    drop(cloud);
    row(
        &format!("tokens for {} namespaces created at once ({} s)", identities - 1, took.as_secs()),
        &format!("{logins} for {identities} identities"),
        "≤ 1 per identity",
        logins <= identities,
    );
}

/// Memory of an operator that has settled images to look after.
async fn held(stage: &Stage, from: usize, to: usize) -> u64 {
    stage.fill(from, to).await;
    let operator = stage.operator(60);
    passed(&operator, "image", to).await;
    // several lists, of which each leaves something behind that the next one uses
    tokio::time::sleep(Duration::from_mins(1)).await;
    let resident = operator.resident();
    operator.stop().await;
    resident
}

async fn restart(stage: &Stage, objects: usize) {
    stage.sim.cloud().journal.clear();
    let (written, began) = (stage.writes().await, Instant::now());
    let operator = stage.operator(60);
    passed(&operator, "image", objects).await;
    let took = began.elapsed();
    let cloud = stage.sim.cloud();
    let of_images: HashMap<&str, usize> =
        cloud.journal.entries().filter(|entry| entry.service == "image").fold(HashMap::new(), |mut all, entry| {
            *all.entry(entry.template).or_default() += 1;
            all
        });
    let only_lists = of_images.keys().all(|template| *template == "/v2/images");
    drop(cloud);
    let written = stage.writes().await - written;
    operator.stop().await;
    row(
        &format!("restart with {objects} settled"),
        &format!("{:.1} s, {written} writes, image requests {of_images:?}", took.as_secs_f64()),
        "< 5 s, 0 writes, lists only",
        took < Duration::from_secs(5) && written == 0 && only_lists,
    );
}

async fn idle(stage: &Stage, objects: usize) {
    let operator = stage.operator(60);
    passed(&operator, "image", objects).await;
    // until the pace is that of a cloud in which nothing happens
    tokio::time::sleep(Duration::from_secs(100)).await;
    let minutes = setting("KUPENSTACK_BENCH_IDLE_MINUTES", 12);
    stage.sim.cloud().journal.clear();
    let written = stage.writes().await;
    tokio::time::sleep(Duration::from_mins(u64::try_from(minutes).unwrap())).await;
    let requests = stage.requests();
    let written = stage.writes().await - written;
    operator.stop().await;
    let hours = f64::from(u32::try_from(minutes).unwrap()) / 60.0;
    let all = requests.values().sum::<usize>();
    let per_object = f64::from(u32::try_from(all).unwrap()) / f64::from(u32::try_from(objects).unwrap()) / hours;
    row(
        &format!("idle OpenStack requests per object and hour, {objects} objects, {minutes} minutes"),
        &format!("{per_object:.3} ({all} requests: {requests:?})"),
        "≤ 0.1",
        per_object <= 0.1,
    );
    row("idle Kubernetes writes in that time", &written.to_string(), "0", written == 0);
}

/// Everything is out of order for a while, with images waiting to be made.
async fn outage(stage: &Stage) {
    const WAITING: usize = 1_000;
    let seconds = setting("KUPENSTACK_BENCH_OUTAGE_SECONDS", 120);
    let src = source().await;
    stage.sim.cloud().faults.add(Rule::outage());
    stage.declare(WAITING, &src).await;
    tokio::time::sleep(Duration::from_secs(u64::try_from(seconds).unwrap())).await;
    stage.sim.cloud().journal.clear();
    stage.sim.cloud().faults.clear();
    let began = Instant::now();
    while stage.ready().await < WAITING && began.elapsed() < Duration::from_mins(10) {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let took = began.elapsed();
    let ready = stage.ready().await;
    let cloud = stage.sim.cloud();
    let mut by_second: HashMap<i64, u32> = HashMap::new();
    for entry in cloud.journal.entries() {
        *by_second.entry(entry.at.as_second()).or_default() += 1;
    }
    drop(cloud);
    let peak = f64::from(by_second.values().copied().max().unwrap_or_default());
    let limit = BUDGET / LATENCY.as_secs_f64();
    row(
        &format!("recovery of {WAITING} new images after an outage of {seconds} s"),
        &format!("{ready} ready after {:.0} s, at most {peak} requests in a second", took.as_secs_f64()),
        &format!("≤ 60 s, ≤ {limit} per second"),
        ready == WAITING && took <= Duration::from_mins(1) && peak <= limit,
    );
}
