//! Runs the selected controllers until they are told to stop.

mod console;
mod groups;
mod leading;
mod selection;
mod signals;
mod webhook;

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, bail};
use futures::future::BoxFuture;
use kupenstack_runtime::{
    Context, Health,
    metrics::Metrics,
    server::{self, Readiness},
};
use tokio::{
    task::{JoinError, JoinSet},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use self::{groups::Group, leading::Leading, selection::Selection};
use crate::cli::ControllerArgs;

/// How long passes under way may take to come to their end. What is left of them then is dropped, and the lease
/// released. Kubernetes kills a pod 30 s after it asked it to stop.
const DRAIN: Duration = Duration::from_secs(20);
/// How long all of that may take.
const GRACE: Duration = Duration::from_secs(26);
/// The Kubernetes client tells of every reconnection, several times; what matters of it we log ourselves.
const LOG: &str =
    "info,kube=warn,kube_client=error,kube_client::client::builder=off,kube_runtime=warn,tower=warn,hyper=warn";

/// What a task came to, and its name.
type Ended = (&'static str, anyhow::Result<()>);
type Named = (&'static str, BoxFuture<'static, ()>);

/// Runs controllers until SIGTERM or SIGINT.
pub(crate) fn main(args: &ControllerArgs) -> anyhow::Result<()> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(LOG));
    tracing_subscriber::fmt().json().flatten_event(true).with_env_filter(filter).init();
    let selection = Selection::of(&args.controllers)?;
    // controllers wait for others nearly all the time, and every further thread keeps memory of its own
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("start the runtime")?;
    let result = runtime.block_on(run(args, selection));
    // a file that is being looked into must not keep a process alive that works no more
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

async fn run(args: &ControllerArgs, selection: Selection) -> anyhow::Result<()> {
    let config = kube::Config::infer().await.context("reach the Kubernetes API")?;
    let health = Health::default();
    let client = health.client(config.clone()).context("reach the Kubernetes API")?;
    let context = Context::new(client, Arc::<Metrics>::default(), CancellationToken::new());
    let groups = Group::prepare(args, &selection).await?;
    let leases = groups.iter().filter(|_| !args.without_lease).map(Group::lease);
    let certificate = args.webhook_listen.map(|_| webhook::CERTIFICATE.to_owned());
    let readiness = Readiness::awaiting(leases.chain(certificate));

    // what a standby serves as the leader does is started here, beside the probes; it gets `context.client`
    let mut tasks = JoinSet::new();
    let serving = server::serve(args.listen, readiness.clone(), health.clone(), context.clone());
    tasks.spawn(async move { ("server", serving.await.context("serve probes and metrics")) });
    if let Some((webhook, rules)) = webhook::bind(args, &selection, &context).await? {
        let (certified, readiness) = (webhook.certified(), readiness.clone());
        tokio::spawn(async move {
            certified.cancelled().await;
            readiness.there(webhook::CERTIFICATE);
        });
        let serving = webhook.run(rules, context.clone());
        tasks.spawn(async move { ("webhook", serving.await.context("serve the webhook")) });
    }

    // what only the leader does
    for group in groups {
        let leading = Leading::new(args, &config, &readiness, &health, &context)?;
        tasks.spawn(async move { (group.name(), Box::pin(leading.run(group)).await) });
    }
    tracing::info!(version = env!("CARGO_PKG_VERSION"), controllers = %selection, "started");
    let result = tokio::select! {
        signal = signals::received() => signal.map(|name| tracing::info!(signal = name, "stopping")),
        Some(ended) = tasks.join_next() => Err(early_end(ended)),
    };
    context.stop.cancel();
    result.and(drain(tasks).await)
}

/// A task that ends by itself would leave its objects alone for good: the process has to end with it.
fn early_end(ended: Result<Ended, JoinError>) -> anyhow::Error {
    match ended {
        Ok((name, Ok(()))) => anyhow::anyhow!("{name} ended although nobody asked it to"),
        Ok((_, Err(error))) => error,
        Err(error) => anyhow::Error::new(error).context("a controller broke down"),
    }
}

/// Waits for the end of all tasks. The first that ends badly says why.
async fn drain(mut tasks: JoinSet<Ended>) -> anyhow::Result<()> {
    let all = async {
        let mut result = Ok(());
        while let Some(ended) = tasks.join_next().await {
            result = result.and(match ended {
                Ok((_, ended)) => ended,
                Err(error) => Err(error.into()),
            });
        }
        result
    };
    let Ok(result) = timeout(GRACE, all).await else {
        bail!("some controllers were still at work after {} s", GRACE.as_secs());
    };
    tracing::info!("stopped");
    result
}
