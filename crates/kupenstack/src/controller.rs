//! Runs the selected controllers until they are told to stop.

mod selection;
mod signals;

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use futures::future::BoxFuture;
use kupenstack_runtime::{
    Context,
    metrics::Metrics,
    server::{self, Readiness},
};
use tokio::{
    task::{JoinError, JoinSet},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use self::selection::Selection;
use crate::cli::ControllerArgs;

/// Kubernetes kills a pod 30 s after it asked it to stop.
const GRACE: Duration = Duration::from_secs(25);
/// The Kubernetes client tells of every reconnection; what matters of it we log ourselves.
const LOG: &str = "info,kube=warn,kube_client=warn,kube_runtime=warn,tower=warn,hyper=warn";

/// What a task came to, and its name.
type Ended = (&'static str, anyhow::Result<()>);
type Named = (&'static str, BoxFuture<'static, ()>);

/// Runs controllers until SIGTERM or SIGINT.
pub(crate) fn main(args: &ControllerArgs) -> anyhow::Result<()> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(LOG));
    tracing_subscriber::fmt().json().flatten_event(true).with_env_filter(filter).init();
    let selection = Selection::of(&args.controllers)?;
    // controllers wait for others nearly all the time, and every further thread keeps memory of its own
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("start the runtime")?
        .block_on(run(args, selection))
}

async fn run(args: &ControllerArgs, selection: Selection) -> anyhow::Result<()> {
    let client = kube::Client::try_default().await.context("reach the Kubernetes API")?;
    let context = Context { client, metrics: Arc::<Metrics>::default(), stop: CancellationToken::new() };
    let controllers = build(args, &selection, &context).await?;
    let readiness = Readiness::default();
    let mut tasks = JoinSet::new();
    let serving = server::serve(args.listen, readiness.clone(), context.clone());
    tasks.spawn(async move { ("server", serving.await.context("serve probes and metrics")) });
    for (name, controller) in controllers {
        tasks.spawn(async move {
            controller.await;
            (name, Ok(()))
        });
    }
    readiness.set();
    tracing::info!(version = env!("CARGO_PKG_VERSION"), controllers = %selection, "started");
    let result = tokio::select! {
        signal = signals::received() => signal.map(|name| tracing::info!(signal = name, "stopping")),
        Some(ended) = tasks.join_next() => Err(early_end(ended)),
    };
    context.stop.cancel();
    result.and(drain(tasks).await)
}

/// The selected controllers. A group of which none is selected is not built, so that it watches nothing.
async fn build(args: &ControllerArgs, selection: &Selection, context: &Context) -> anyhow::Result<Vec<Named>> {
    let mut all = Vec::new();
    if selection.any_of(&crate::rbac::CLOUD) {
        let helm = kupenstack_helm::Cli::new(kupenstack_helm::Settings::from_env()).await.context("find helm")?;
        let settings = kupenstack_deployment::Settings {
            helm: Arc::new(helm),
            charts: args.charts.clone(),
            cloud_namespace: args.cloud_namespace.clone(),
            prober: Arc::new(kupenstack_deployment::Requests),
            patience: kupenstack_deployment::Patience::default(),
        };
        all.extend(kupenstack_deployment::controllers(context, &settings));
    }
    if selection.any_of(&crate::rbac::RESOURCES) {
        let settings = kupenstack_resources::Settings {
            operator_namespace: args.operator_namespace.clone(),
            work_dir: args.work_dir.clone(),
            work_dir_size: args.work_dir_size,
            sources: args.sources.settings().await,
        };
        all.extend(kupenstack_resources::controllers(context, &settings).context("prepare the resource controllers")?);
    }
    selection.pick(all)
}

/// A controller that ends by itself would leave its objects alone for good: the process has to end with it.
fn early_end(ended: Result<Ended, JoinError>) -> anyhow::Error {
    match ended {
        Ok((name, Ok(()))) => anyhow::anyhow!("{name} ended although nobody asked it to"),
        Ok((_, Err(error))) => error,
        Err(error) => anyhow::Error::new(error).context("a controller broke down"),
    }
}

/// Lets passes under way come to their end.
async fn drain(mut tasks: JoinSet<Ended>) -> anyhow::Result<()> {
    let all = async { while tasks.join_next().await.is_some() {} };
    if timeout(GRACE, all).await.is_err() {
        bail!("some controllers were still at work after {} s", GRACE.as_secs());
    }
    tracing::info!("stopped");
    Ok(())
}
