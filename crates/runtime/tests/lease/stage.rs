//! Candidates whose work tells when two of them work at once.

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client, Config,
    api::{ObjectMeta, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use kupenstack_runtime::lease::{Candidate, Loss, Terms};
use kupenstack_testkit::{ControlPlane, eventually, within};
use tokio::{task::JoinHandle, time::sleep};
use tokio_util::sync::CancellationToken;

/// As the default ones, but quicker, with room for a machine that is busy.
pub(crate) const TERMS: Terms = Terms {
    duration: Duration::from_secs(6),
    renew_every: Duration::from_millis(500),
    renew_deadline: Duration::from_secs(4),
    stop_grace: Duration::from_secs(1),
};
pub(crate) const LEASE: &str = "work";

/// Where one may work at a time.
#[derive(Default)]
pub(crate) struct Floor(Mutex<State>);

#[derive(Default)]
struct State {
    working: Vec<String>,
    overlaps: Vec<Vec<String>>,
    /// Who began, and when.
    shifts: Vec<(String, Instant)>,
}

impl Floor {
    /// Works until dropped.
    async fn work(self: Arc<Self>, name: String) {
        let _shift = Shift::begin(&self, &name);
        loop {
            sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) fn working(&self) -> Option<String> {
        self.0.lock().unwrap().working.first().cloned()
    }

    pub(crate) fn shifts(&self) -> Vec<String> {
        self.0.lock().unwrap().shifts.iter().map(|(name, _)| name.clone()).collect()
    }

    pub(crate) async fn works(&self, name: &str) {
        eventually(&format!("{name} works"), async || self.working().as_deref() == Some(name)).await;
    }

    /// How long after `since` the newest shift began.
    pub(crate) fn begun_after(&self, since: Instant) -> Duration {
        self.0.lock().unwrap().shifts.last().expect("somebody works").1.saturating_duration_since(since)
    }

    pub(crate) fn assert_one_at_a_time(&self) {
        assert_eq!(self.0.lock().unwrap().overlaps, Vec::<Vec<String>>::new(), "several worked at once");
    }
}

struct Shift<'a> {
    floor: &'a Floor,
    name: &'a str,
}

impl<'a> Shift<'a> {
    fn begin(floor: &'a Floor, name: &'a str) -> Self {
        let mut state = floor.0.lock().unwrap();
        state.working.push(name.to_owned());
        state.shifts.push((name.to_owned(), Instant::now()));
        if state.working.len() > 1 {
            let working = state.working.clone();
            state.overlaps.push(working);
        }
        Self { floor, name }
    }
}

impl Drop for Shift<'_> {
    fn drop(&mut self) {
        let mut state = self.floor.0.lock().unwrap();
        state.working.retain(|name| name != self.name);
    }
}

/// A candidate at its life: it waits, works, and gives the lease back.
pub(crate) struct Worker {
    stop: CancellationToken,
    task: JoinHandle<Option<Loss>>,
}

impl Worker {
    pub(crate) fn start(floor: &Arc<Floor>, client: Client, namespace: &str, name: &str) -> Self {
        Self::with(TERMS, floor, client, namespace, name)
    }

    pub(crate) fn with(terms: Terms, floor: &Arc<Floor>, client: Client, namespace: &str, name: &str) -> Self {
        let stop = CancellationToken::new();
        let candidate = Candidate::new(client, namespace, LEASE, name, terms);
        let (stopped, floor, name) = (stop.clone(), Arc::clone(floor), name.to_owned());
        let task = tokio::spawn(async move {
            let held = stopped.run_until_cancelled(candidate.acquire(|| ())).await?;
            let work = held.guard(floor.work(name));
            let loss = match stopped.run_until_cancelled(work).await {
                Some(_) => Some(held.lost().await),
                None => None,
            };
            held.release().await;
            loss
        });
        Self { stop, task }
    }

    /// Asks it to stop, and waits for its end.
    pub(crate) async fn stop(self) -> Option<Loss> {
        self.stop.cancel();
        self.task.await.unwrap()
    }

    /// Ends as a process that is killed does: nothing is given back.
    pub(crate) async fn crash(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.task.is_finished()
    }

    /// Waits until it has lost the lease.
    pub(crate) async fn loses(self) -> Loss {
        let loss = within(self.task, "it loses the lease").await.unwrap();
        loss.expect("it was not asked to stop")
    }
}

/// A control plane, a namespace in it with a new lease, and a floor.
pub(crate) struct Stage {
    pub(crate) plane: &'static ControlPlane,
    pub(crate) namespace: String,
    pub(crate) floor: Arc<Floor>,
    pub(crate) leases: Api<Lease>,
}

impl Stage {
    pub(crate) async fn set(prefix: &str) -> Self {
        Self::on(ControlPlane::shared().await, prefix).await
    }

    pub(crate) async fn on(plane: &'static ControlPlane, prefix: &str) -> Self {
        let namespace = plane.create_namespace(prefix).await;
        let leases: Api<Lease> = Api::namespaced(plane.client().await, &namespace);
        let labels = Some([("made-by".to_owned(), "test".to_owned())].into());
        let metadata = ObjectMeta { name: Some(LEASE.to_owned()), labels, ..ObjectMeta::default() };
        leases.create(&PostParams::default(), &Lease { metadata, spec: None }).await.unwrap();
        Self { plane, namespace, floor: Arc::default(), leases }
    }

    pub(crate) async fn worker(&self, name: &str) -> Worker {
        Worker::start(&self.floor, self.plane.client().await, &self.namespace, name)
    }

    /// Two workers, of whom `a` works and `b` stands by.
    pub(crate) async fn two(&self) -> (Worker, Worker) {
        let a = self.worker("a").await;
        self.floor.works("a").await;
        let b = self.worker("b").await;
        // until its first look at the lease
        sleep(TERMS.renew_every).await;
        (a, b)
    }

    /// The holder by its name, without what makes it this process's own.
    pub(crate) async fn holder(&self) -> Option<String> {
        let holder = self.leases.get_opt(LEASE).await.unwrap()?.spec?.holder_identity?;
        Some(holder.split('_').next().unwrap().to_owned())
    }
}

/// A client for the control plane at another address.
pub(crate) async fn client_at(kubeconfig: &Path, server: String) -> Client {
    let mut config = Kubeconfig::read_from(kubeconfig).unwrap();
    config.clusters[0].cluster.as_mut().unwrap().server = Some(server);
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}
