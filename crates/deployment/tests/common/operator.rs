//! The operator in a runtime of its own, as in a process of its own, and the Helm it runs.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use kupenstack_deployment::{NotProven, Patience, Prober, Settings, controllers};
use kupenstack_helm::{
    Answer, Capabilities, ChartRef, Cli, Helm, ReleaseRef, Rendered, Revision, Status, UpgradeOptions, Values,
};
use kupenstack_runtime::{Context, metrics::Metrics};
use kupenstack_testkit::tap::{Phase, Point, Tap, Who};
use tokio::{runtime::Runtime, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::{PATIENCE, eventually};

/// What comes after a last request comes sooner than this.
const QUIET: Duration = Duration::from_millis(300);

/// The real Helm; it tells the tap what it runs.
pub(crate) struct Tapped {
    helm: Cli,
    tap: Arc<Tap>,
    calls: Mutex<Vec<&'static str>>,
}

impl Tapped {
    /// `program` is Helm of either major.
    pub(crate) async fn new(program: &Path, tap: &Arc<Tap>) -> Arc<Self> {
        let settings = kupenstack_helm::Settings {
            program: tap.helm_program(program),
            kubeconfig: Some(tap.kubeconfig()),
            ..kupenstack_helm::Settings::from_env()
        };
        let helm = Cli::new(settings).await.expect("helm: set HELM_BIN, or run ./dev/test");
        Arc::new(Self { helm, tap: Arc::clone(tap), calls: Mutex::default() })
    }

    /// The commands that were run, in order.
    pub(crate) fn calls(&self) -> Vec<&'static str> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn call<T>(&self, command: &'static str, answer: Answer<'_, T>) -> Result<T, kupenstack_helm::Error> {
        let mut point =
            Point { who: Who::Helm(command), verb: "RUN".into(), what: "process".into(), phase: Phase::Before };
        self.tap.reach(&point).await;
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(command);
        self.tap.helm_runs(command);
        let answer = answer.await;
        point.phase = Phase::After;
        self.tap.reach(&point).await;
        answer
    }
}

impl Helm for Tapped {
    fn template<'a>(
        &'a self,
        release: &'a ReleaseRef,
        chart: &'a ChartRef,
        values: &'a Values,
        capabilities: &'a Capabilities,
    ) -> Answer<'a, Rendered> {
        Box::pin(self.call("template", self.helm.template(release, chart, values, capabilities)))
    }

    fn upgrade_install<'a>(
        &'a self,
        release: &'a ReleaseRef,
        chart: &'a ChartRef,
        values: &'a Values,
        options: &'a UpgradeOptions,
    ) -> Answer<'a, Status> {
        Box::pin(self.call("upgrade", self.helm.upgrade_install(release, chart, values, options)))
    }

    fn history<'a>(&'a self, release: &'a ReleaseRef) -> Answer<'a, Vec<Revision>> {
        Box::pin(self.call("history", self.helm.history(release)))
    }

    fn status<'a>(&'a self, release: &'a ReleaseRef) -> Answer<'a, Status> {
        Box::pin(self.call("status", self.helm.status(release)))
    }

    fn get_values<'a>(&'a self, release: &'a ReleaseRef) -> Answer<'a, Values> {
        Box::pin(self.call("get values", self.helm.get_values(release)))
    }

    fn rollback<'a>(&'a self, release: &'a ReleaseRef, revision: u32) -> Answer<'a, ()> {
        Box::pin(self.call("rollback", self.helm.rollback(release, revision)))
    }

    fn uninstall<'a>(&'a self, release: &'a ReleaseRef) -> Answer<'a, ()> {
        Box::pin(self.call("uninstall", self.helm.uninstall(release)))
    }
}

/// There is no network to the pods: what runs is taken to answer.
struct Answers;

impl Prober for Answers {
    fn prove<'a>(
        &'a self,
        _service: &'a str,
        _request: BoxFuture<'a, Result<(), NotProven>>,
    ) -> BoxFuture<'a, Result<(), NotProven>> {
        async { Ok(()) }.boxed()
    }
}

/// How an operator is started.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) tap: Arc<Tap>,
    pub(crate) helm: Arc<Tapped>,
    pub(crate) charts: PathBuf,
    pub(crate) namespace: String,
    /// How long trouble with a change is borne with.
    pub(crate) patience: Patience,
    /// Controllers that run.
    pub(crate) controllers: &'static [&'static str],
}

/// A running operator.
pub(crate) struct Operator {
    stop: CancellationToken,
    metrics: Arc<Metrics>,
    tap: Arc<Tap>,
    tasks: JoinHandle<()>,
    runtime: Runtime,
}

impl Operator {
    /// A new one: it remembers nothing.
    pub(crate) fn start(plan: &Plan) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (stop, metrics) = (CancellationToken::new(), Arc::<Metrics>::default());
        let tap = Arc::clone(&plan.tap);
        let (plan, token, counted) = (plan.clone(), stop.clone(), Arc::clone(&metrics));
        let tasks = runtime.spawn(async move {
            let context = Context::new(plan.tap.client(), counted, token);
            let settings = Settings {
                helm: plan.helm.clone(),
                charts: plan.charts.clone(),
                cloud_namespace: plan.namespace.clone(),
                prober: Arc::new(Answers),
                patience: plan.patience,
            };
            let all = controllers(&context, &settings).into_iter();
            let chosen = all.filter(|(name, _)| plan.controllers.contains(name)).map(|(_, running)| running);
            futures::future::join_all(chosen).await;
        });
        Self { stop, metrics, tap, tasks, runtime }
    }

    /// Lets passes under way end.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        eventually("the operator's end", self.tasks).await.unwrap();
        self.runtime.shutdown_background();
    }

    /// Ends everything where it is, as SIGKILL does to all processes of a container.
    pub(crate) async fn kill(self) {
        let runtime = self.runtime;
        tokio::task::spawn_blocking(move || runtime.shutdown_timeout(Duration::from_secs(10))).await.unwrap();
    }

    /// Passes that have ended.
    fn passes(&self) -> u64 {
        let text = self.metrics.text();
        let passes = text.lines().filter(|l| l.starts_with("kupenstack_reconciles_total{"));
        passes.filter_map(|l| l.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    }

    /// Waits until nothing was asked of Kubernetes for a while.
    pub(crate) async fn rests(&self) {
        let mut seen = None;
        while seen != Some(self.tap.requests()) {
            seen = Some(self.tap.requests());
            tokio::time::sleep(QUIET).await;
        }
    }

    /// Waits until that many passes have ended.
    pub(crate) async fn has_made(&self, passes: u64) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while self.passes() < passes {
            assert!(tokio::time::Instant::now() < deadline, "{} passes only", self.passes());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
