//! The controllers at work, in a runtime of their own as in a process of their own.

use std::{path::PathBuf, sync::Arc, time::Duration};

use futures::future::join_all;
use kube::{Client, Config};
use kupenstack_resources::{FetchSettings, Guard, Settings};
use kupenstack_runtime::{Context, metrics::Metrics};
use kupenstack_testkit::within;
use tokio::{runtime::Runtime, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::cluster::OPERATOR;

/// Shorter than in real life, so that no test has to wait for long.
const OBSERVED: Duration = Duration::from_secs(4);
/// Longer than anything takes that can't be interrupted.
const DYING: Duration = Duration::from_secs(10);

pub(crate) struct Operator {
    stop: CancellationToken,
    controllers: JoinHandle<()>,
    /// None once it is on its way out.
    runtime: Option<Runtime>,
    metrics: Arc<Metrics>,
}

impl Operator {
    /// Starts the controllers, with nothing remembered.
    pub(crate) fn start(kubernetes: Config, work_dir: PathBuf) -> Self {
        Self::start_with(kubernetes, work_dir, &[], |_, _| {})
    }

    /// The same with other settings, and of the controllers only these; all, when none is named.
    pub(crate) fn start_with(
        kubernetes: Config,
        work_dir: PathBuf,
        only: &'static [&'static str],
        change: impl FnOnce(&mut Settings, &mut Context) + Send + 'static,
    ) -> Self {
        let (runtime, stop) = (runtime(), CancellationToken::new());
        // images are served from this machine
        let guard = Guard::new(vec!["127.0.0.0/8".parse().unwrap()], Vec::new());
        let mut settings = Settings {
            operator_namespace: OPERATOR.to_owned(),
            work_dir,
            work_dir_size: None,
            sources: FetchSettings { guard, ..FetchSettings::default() },
            observe_every: OBSERVED,
        };
        let (stopped, metrics) = (stop.clone(), Arc::<Metrics>::default());
        let counted = Arc::clone(&metrics);
        let controllers = runtime.spawn(async move {
            let client = Client::try_from(kubernetes).unwrap();
            let mut context = Context::new(client, counted, stopped);
            change(&mut settings, &mut context);
            let controllers = kupenstack_resources::controllers(&context, &settings).unwrap();
            let chosen = controllers.into_iter().filter(|(name, _)| only.is_empty() || only.contains(name));
            join_all(chosen.map(|(_, controller)| controller)).await;
        });
        Self { stop, controllers, runtime: Some(runtime), metrics }
    }

    /// The sum of a metric over its labels, of which one line has to have this text.
    pub(crate) fn metric(&self, name: &str, label: &str) -> u64 {
        let text = self.metrics.text();
        let lines = text.lines().filter(|line| line.starts_with(name) && line.contains(label));
        lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum()
    }

    /// How many passes a controller has made.
    pub(crate) fn passes(&self, controller: &str) -> u64 {
        self.metric("kupenstack_reconciles_total", &format!("controller=\"{controller}\""))
    }

    /// Lets passes under way end.
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        within(&mut self.controllers, "the operator's end").await.unwrap();
    }

    /// Ends everything where it is, as a crash does, and waits until nothing of it runs any more.
    pub(crate) async fn kill(mut self) {
        // whoever waits for a pass goes first: kube takes a pass that was cancelled for a bug
        self.controllers.abort();
        let _ = (&mut self.controllers).await;
        let runtime = self.runtime.take().unwrap();
        tokio::task::spawn_blocking(move || runtime.shutdown_timeout(DYING)).await.unwrap();
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        // a runtime may not wait for its end in another one
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A runtime for what outlives a test, or dies before it.
pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}
