//! Two replicas of the program itself: one works, the other stands by.

use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api,
    api::{ObjectMeta, PostParams},
};
use kupenstack_runtime::lease::Terms;
use kupenstack_testkit::eventually;
use tokio::time::sleep;

use crate::{
    operator::Operator,
    stage::{Stage, shared},
};

const LEASE: &str = "kupenstack-resources";

struct Replicas {
    stage: &'static Stage,
    namespace: String,
}

impl Replicas {
    /// With a lease of their own, so that other tests have theirs.
    async fn new(prefix: &str) -> Self {
        let stage = shared().await;
        let namespace = stage.plane.create_namespace(prefix).await;
        let leases: Api<Lease> = Api::namespaced(stage.plane.client().await, &namespace);
        let metadata = ObjectMeta { name: Some(LEASE.to_owned()), ..ObjectMeta::default() };
        leases.create(&PostParams::default(), &Lease { metadata, spec: None }).await.expect("a lease");
        Self { stage, namespace }
    }

    fn start(&self, name: &str) -> Operator {
        let name = format!("{name}-{}", self.namespace);
        let arguments = ["--controllers", "projects", "--lease-namespace", &self.namespace];
        Operator::run(&name, self.stage.plane.kubeconfig_path(), &arguments)
    }

    /// One that works, and one that stands by.
    async fn two(&self) -> [Operator; 2] {
        let a = self.start("a");
        eventually("a leads", || leads(&a)).await;
        let b = self.start("b");
        eventually("b is ready", || async { b.get("/readyz").await.is_some() }).await;
        [a, b]
    }
}

async fn leads(operator: &Operator) -> bool {
    let leading = format!("kupenstack_leader{{lease=\"{LEASE}\"}} 1");
    operator.get("/metrics").await.is_some_and(|metrics| metrics.lines().any(|line| line == leading))
}

#[tokio::test]
async fn a_standby_serves_probes_and_works_as_soon_as_the_leader_stops() {
    let replicas = Replicas::new("two").await;
    let [a, b] = replicas.two().await;
    eventually("a works", || async { a.passes("projects").await > 0 }).await;
    assert_eq!(b.get("/livez").await.as_deref(), Some("ok"));
    assert!(!leads(&b).await && b.passes("projects").await == 0);

    let log = a.stop().await;
    let (since, terms) = (Instant::now(), Terms::default());
    assert!(log.contains("\"message\":\"released\""), "{log}");
    eventually("b leads", || leads(&b)).await;
    assert!(
        since.elapsed() + terms.renew_every < terms.duration,
        "as late as if it had been killed: {:?}",
        since.elapsed()
    );
    eventually("b works", || async { b.passes("projects").await > 0 }).await;
    b.stop().await;
}

#[tokio::test]
async fn a_leader_that_was_frozen_ends_when_it_goes_on() {
    let replicas = Replicas::new("frozen").await;
    let [a, b] = replicas.two().await;
    a.signal("STOP").await;
    eventually("b leads", || leads(&b)).await;
    a.signal("CONT").await;
    let (success, log) = a.end().await;
    assert!(!success && log.contains("lost the lease"), "{log}");
    sleep(Duration::from_secs(3)).await;
    assert!(leads(&b).await);
    b.stop().await;
}

#[tokio::test]
async fn a_replica_without_lease_asks_nobody() {
    let replicas = Replicas::new("alone").await;
    let arguments = ["--controllers", "projects", "--without-lease"];
    let one = Operator::run("alone", replicas.stage.plane.kubeconfig_path(), &arguments);
    eventually("it works", || async { one.passes("projects").await > 0 }).await;
    assert!(one.get("/readyz").await.is_some());
    one.stop().await;
}
