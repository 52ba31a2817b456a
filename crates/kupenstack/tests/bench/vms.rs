//! What VMs cost, each with its port: made all at once and one by one, left alone, and deleted with all that is theirs.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, ResourceExt, api::DeleteParams};
use kupenstack_api::{
    FINALIZER,
    resources::{ExternalNetwork, FloatingIP, Network, Port, Router, Subnet, VirtualMachine},
};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::{
    heading,
    operator::Operator,
    row, setting,
    stage::{LATENCY, Stage, passed, until},
    tally::{Processors, Requests, between, each, float, percentile, to},
    tenants::{NONE, Readiness, delete_all, left, scene, vm},
};

/// How long Nova builds a server.
const BUILD: Duration = Duration::from_secs(5);
/// Up to how long after a VM the next one is made, when they are made one by one.
const BETWEEN: Duration = Duration::from_millis(1_100);
/// VMs of a namespace.
const PER_NAMESPACE: usize = 10;
/// Floating IPs, and VMs that have one, of the namespace that is deleted.
const LEAVING: usize = 10;

fn vms() -> usize {
    setting("KUPENSTACK_BENCH_VMS", 1_000)
}

/// How many of another number of VMs there are to be, in proportion.
fn of_thousand(number: usize) -> usize {
    (vms() * number / 1_000).max(PER_NAMESPACE)
}

/// Waits until the pace is that of a cloud in which nothing happens.
async fn rest() {
    let seconds = setting("KUPENSTACK_BENCH_REST_SECONDS", 100);
    sleep(Duration::from_secs(u64::try_from(seconds).unwrap())).await;
}

/// Figures that depend little on the machine: those of `dev/bench vms`, for fewer.
#[tokio::test(flavor = "multi_thread")]
async fn a_vm_costs_what_it_did() {
    const VMS: usize = 8;
    let stage = Stage::with(2, scene(Duration::from_secs(1))).await;
    let operator = stage.operator(60);
    stage.projects().await;
    stage.furnish().await;
    let Made { requests, written, .. } = Made::of(&stage, VMS).await;
    let deleted = Deleted::of(&stage, &operator).await;
    operator.stop().await;
    let beside = requests.all_own() - requests.own_with("POST");
    assert_eq!(requests.own_with("POST"), 2 * VMS, "{:?}", requests.own);
    assert!(beside <= MOST_BESIDE * VMS, "{:?}", requests.own);
    assert!(to(&written, "virtualmachines") - VMS <= MOST_WRITES_VM * VMS, "{written:?}");
    assert!(to(&written, "ports") <= MOST_WRITES_PORT * VMS, "{written:?}");
    assert!(to(&written, "events") <= MOST_EVENTS * VMS, "{written:?}");
    assert_eq!(requests.conflicts, 0);
    assert!(requests.whole_lists_of_servers <= MOST_WHOLE_LISTS, "{requests:?}");
    assert!(deleted.requests.all_own() <= MOST_DELETING, "{:?}", deleted.requests);
    assert_eq!(deleted.requests.conflicts, 0, "{:?}", deleted.requests);
}

/// Requests of a VM with its port beside those that make both: one of a pass that comes before a list
/// has shown what was made.
const MOST_BESIDE: usize = 1;
/// Lists of all servers until they run: before there is one, and the first that shows one. After that, lists of changes do.
const MOST_WHOLE_LISTS: usize = 2;
/// Writes to a VM until it runs (finalizer, identifier, ready), and to its port, which the operator creates itself (made, ready,
/// in use); and one more of a pass that does not see yet what the one before it has written.
const MOST_WRITES_VM: usize = 4;
const MOST_WRITES_PORT: usize = 4;
/// Events of both, likewise.
const MOST_EVENTS: usize = 5;
/// Requests of a deletion: two for each object, and one more look at each port of VMs and router. On a busy machine it takes two more
/// than two for each.
const MOST_DELETING: usize = 2 * Deleted::OBJECTS + LEAVING + 2;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes many minutes: dev/bench runs it"]
async fn made() {
    let number = vms();
    let stage = Stage::with(number.div_ceil(PER_NAMESPACE), scene(BUILD)).await;
    let operator = stage.operator(60);
    stage.projects().await;
    stage.furnish().await;
    heading();
    Made::of(&stage, number).await.tell();
    rest().await;
    one_by_one(&stage, number, setting("KUPENSTACK_BENCH_SINGLE_VMS", of_thousand(100))).await;
    Deleted::of(&stage, &operator).await.tell();
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes many minutes: dev/bench runs it"]
async fn settled() {
    let number = setting("KUPENSTACK_BENCH_SETTLED_VMS", 10 * vms());
    let stage = Stage::with((number / 50).max(1), scene(Duration::ZERO)).await;
    let operator = stage.operator(60);
    stage.projects().await;
    stage.furnish().await;
    let (readiness, began) = (Readiness::watch(&stage.client), Instant::now());
    stage.declare_vms(0, number, 2).await;
    let took = readiness.of(number).await - began;
    drop(readiness);
    println!("{number} VMs made in {:.0} s, for a look at them when they are settled", took.as_secs_f64());
    operator.stop().await;
    heading();
    idle(&stage, number).await;
}

/// VMs that were made, and what that cost.
struct Made {
    number: usize,
    took: Duration,
    requests: Requests,
    written: BTreeMap<String, u64>,
    processors: Processors,
}

impl Made {
    async fn of(stage: &Stage, number: usize) -> Self {
        let readiness = Readiness::watch(&stage.client);
        stage.sim.cloud().journal.clear();
        let (before, processors, began) = (stage.written().await, Processors::now(), Instant::now());
        stage.declare_vms(0, number, NONE).await;
        let took = readiness.of(number).await - began;
        let processors = Processors::now().since(&processors);
        // the last ones' events come after what they tell of
        sleep(Duration::from_secs(1)).await;
        let written = between(&before, &stage.written().await);
        Self { number, took, requests: Requests::of(&stage.sim), written, processors }
    }

    fn tell(&self) {
        self.tell_time();
        self.tell_requests();
        self.tell_writes();
    }

    fn tell_time(&self) {
        let Self { number, took, requests, processors, .. } = self;
        let own = requests.all_own();
        let ideal = float(own) * LATENCY.as_secs_f64() / crate::BUDGET + BUILD.as_secs_f64();
        let (took, limit) = (took.as_secs_f64(), 1.5 * ideal);
        let namespaces = number.div_ceil(PER_NAMESPACE);
        row(
            &format!("{number} VMs with ports in {namespaces} namespaces, built {} s each, all ready", BUILD.as_secs()),
            &format!("{took:.1} s (of processors {processors})"),
            &format!(
                "≤ {limit:.1} s (1.5 × {own} requests of {} ms, {} at a time, and the build)",
                LATENCY.as_millis(),
                crate::BUDGET
            ),
            took <= limit,
        );
    }

    fn tell_requests(&self) {
        let Self { number, requests, .. } = self;
        let posts = requests.own_with("POST");
        let beside = requests.all_own() - posts;
        row(
            "requests of a VM with its port",
            &format!(
                "{:.2} POSTs and {:.2} others ({:?}; {} logins and looks at versions)",
                each(posts, *number),
                each(beside, *number),
                requests.own,
                requests.sessions
            ),
            "2 POSTs and ≤ 1",
            posts == 2 * number && beside <= *number,
        );
        let (what, rate) = requests.busiest_list();
        row(
            "lists that all share, of the most listed kind",
            &format!(
                "{rate:.2} a second ({what}; in {:.0} s {:?}; {} lists of all servers, the others of changes)",
                requests.seconds, requests.shared, requests.whole_lists_of_servers
            ),
            "≤ 1 a second",
            rate <= 1.0,
        );
    }

    fn tell_writes(&self) {
        let Self { number, written, .. } = self;
        let of = |resource: &str| written.iter().filter(|(what, _)| what.contains(resource)).collect::<Vec<_>>();
        let to_vms = to(written, "virtualmachines") - number;
        row(
            "Kubernetes writes per VM until it is ready, without its creation",
            &format!("{:.2} ({:?})", each(to_vms, *number), of("virtualmachines")),
            "≤ 3",
            to_vms <= 3 * number,
        );
        let to_ports = to(written, "ports");
        row(
            "Kubernetes writes per port until its VM is ready, with its creation",
            &format!("{:.2} ({:?})", each(to_ports, *number), of(" ports")),
            "≤ 3",
            to_ports <= 3 * number,
        );
        let events = to(written, "events");
        row("events per VM or port", &format!("{:.2}", each(events, 2 * number)), "≤ 2", events <= 2 * 2 * number);
    }
}

/// VMs that are made while nothing else is: what of the time is ours.
async fn one_by_one(stage: &Stage, from: usize, number: usize) {
    let readiness = Readiness::watch(&stage.client);
    readiness.of(from).await;
    let mut ours = Vec::new();
    for number in from..from + number {
        // what is made when the one before it is ready would meet the lists always at the same moment of their second
        sleep(BETWEEN.mul_f64(float(number * 7 % 10) / 10.0)).await;
        stage.sim.cloud().journal.clear();
        let began = Instant::now();
        stage.declare_vms(number, number + 1, NONE).await;
        let took = readiness.of_one(&vm(number)).await - began;
        let requests = LATENCY.as_secs_f64() * float(Requests::of(&stage.sim).all_own());
        ours.push(took.as_secs_f64() - BUILD.as_secs_f64() - requests);
    }
    let (half, most) = (percentile(&mut ours, 50), percentile(&mut ours, 95));
    row(
        &format!("from a VM's creation until it is seen to run, our own part, {number} one by one"),
        &format!("p50 {half:.2} s, p95 {most:.2} s, at most {:.2} s", percentile(&mut ours, 100)),
        "p50 < 1 s, p95 < 2 s",
        half < 1.0 && most < 2.0,
    );
}

/// What settled VMs cost.
async fn idle(stage: &Stage, number: usize) {
    let operator = stage.operator(60);
    passed(&operator, "virtualmachine", number).await;
    passed(&operator, "port", number).await;
    rest().await;
    let minutes = setting("KUPENSTACK_BENCH_IDLE_MINUTES", 12);
    stage.sim.cloud().journal.clear();
    let before = stage.written().await;
    sleep(Duration::from_mins(u64::try_from(minutes).unwrap())).await;
    let requests = stage.requests();
    let written = between(&before, &stage.written().await);
    operator.stop().await;
    let (all, hours) = (requests.values().sum::<usize>(), float(minutes) / 60.0);
    let per_object = each(all, 2 * number) / hours;
    row(
        &format!(
            "idle requests per object and hour, {number} VMs (half of them stopped) and as many ports, {minutes} minutes"
        ),
        &format!("{per_object:.3}, {:.3} per VM ({all} requests: {requests:?})", 2.0 * per_object),
        "≤ 0.1",
        per_object <= 0.1,
    );
    row("idle Kubernetes writes in that time", &format!("{written:?}"), "none", written.is_empty());
}

/// A namespace that was deleted with two networks, a router, and VMs with floating IPs.
struct Deleted {
    took: Duration,
    passes: usize,
    requests: Requests,
    written: BTreeMap<String, u64>,
}

impl Deleted {
    /// In OpenStack: a router with its ports on two networks, these with a subnet each, and a server, a port and a floating IP
    /// of each VM.
    const OBJECTS: usize = 7 + 3 * LEAVING;

    async fn of(stage: &Stage, operator: &Operator) -> Self {
        let place = furnish_leaving(stage).await;
        let before = (stage.written().await, passes(operator).await);
        stage.sim.cloud().journal.clear();
        let began = Instant::now();
        let namespaces = Api::<Namespace>::all(stage.client.clone());
        namespaces.delete(&place, &DeleteParams::default()).await.unwrap();
        let client = &stage.client;
        // as the namespace's controller does, which is not here
        delete_all::<FloatingIP>(client, &place).await;
        delete_all::<Network>(client, &place).await;
        delete_all::<Port>(client, &place).await;
        delete_all::<Router>(client, &place).await;
        delete_all::<Subnet>(client, &place).await;
        delete_all::<VirtualMachine>(client, &place).await;
        let is_left = async || namespaces.get(&place).await.unwrap().finalizers().contains(&FINALIZER.to_owned());
        until("the end of the namespace's project", Duration::from_millis(200), async || !is_left().await).await;
        let took = began.elapsed();
        assert_eq!(left::<VirtualMachine>(client, &place).await, 0);
        let written = between(&before.0, &stage.written().await);
        Self { took, passes: passes(operator).await - before.1, requests: Requests::of(&stage.sim), written }
    }

    fn is_cheap(&self) -> bool {
        self.requests.all_own() <= 2 * Self::OBJECTS && self.requests.conflicts == 0
    }

    fn tell(&self) {
        let Self { took, passes, requests, written } = self;
        let deletions = requests.own_with("DELETE");
        row(
            &format!(
                "a namespace with a router, 2 networks and {LEAVING} VMs with floating IPs is deleted ({:.1} s)",
                took.as_secs_f64()
            ),
            &format!(
                "{:.2} requests for each of {} in OpenStack, {deletions} of them deletions, {} conflicts; {:.2} passes each \
                 ({:?}, written {written:?})",
                each(requests.all_own(), Self::OBJECTS),
                Self::OBJECTS,
                requests.conflicts,
                each(*passes, Self::OBJECTS),
                requests.own
            ),
            "≤ 2 requests each, no conflict",
            self.is_cheap(),
        );
    }
}

/// Passes over objects of a namespace.
async fn passes(operator: &Operator) -> usize {
    let mut all = 0;
    for controller in ["floatingip", "network", "port", "router", "subnet", "virtualmachine"] {
        all += operator.passes(controller).await;
    }
    all
}

/// A namespace in which all that is there.
async fn furnish_leaving(stage: &Stage) -> String {
    let outside = json!({"physicalNetwork": "outside", "subnets": [{"cidr": "203.0.113.0/24"}]});
    stage.declare_for_all::<ExternalNetwork>("outside", outside).await;
    let place = stage.namespace_with_project("bench-leaving").await;
    for network in ["front", "back"] {
        let range = if network == "front" { "10.8.0.0/24" } else { "10.9.0.0/24" };
        stage.declare_in::<Network>(&place, network, json!({})).await;
        stage.declare_in::<Subnet>(&place, network, json!({"network": network, "cidr": range})).await;
    }
    let router = json!({"externalNetwork": "outside", "interfaces": [{"subnet": "front"}, {"subnet": "back"}]});
    stage.declare_in::<Router>(&place, "way", router).await;
    for number in 0..LEAVING {
        let network = ["front", "back"][number % 2];
        let spec = json!({
            "clusterImage": "linux", "flavor": "small", "networks": [{"network": network}],
            "floatingIP": {"externalNetwork": "outside"},
        });
        stage.declare_in::<VirtualMachine>(&place, &format!("leaving-{number}"), spec).await;
    }
    stage.all_ready::<VirtualMachine>().await;
    stage.all_ready::<FloatingIP>().await;
    all_listed(stage).await;
    place
}

/// All that is there is old enough to have been listed.
async fn all_listed(stage: &Stage) {
    const LISTS: [&str; 6] = ["servers", "ports", "floatingips", "routers", "networks", "subnets"];
    stage.sim.cloud().journal.clear();
    let is_listed = |shared: &BTreeMap<String, usize>, list| shared.keys().any(|what| what.contains(list));
    until("a list of each kind", Duration::from_secs(1), async || {
        let shared = Requests::of(&stage.sim).shared;
        LISTS.iter().all(|list| is_listed(&shared, list))
    })
    .await;
}
