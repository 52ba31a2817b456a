//! Work under a lease: waiting for it, working while it is held, and stopping before another can begin.

use anyhow::{Context as _, anyhow};
use futures::FutureExt;
use kupenstack_runtime::{
    Context, Health,
    lease::{Candidate, Held, Loss, Terms},
    server::Readiness,
};
use tokio::{task::JoinSet, time::timeout};

use super::{DRAIN, Ended, early_end, groups::Group};
use crate::cli::ControllerArgs;

/// What a group of controllers needs in order to lead.
pub(super) struct Leading {
    /// A client of its own, so that renewals do not queue behind other requests; none if there is no lease to wait for.
    lease: Option<(kube::Client, String)>,
    readiness: Readiness,
    health: Health,
    context: Context,
}

impl Leading {
    pub(super) fn new(
        args: &ControllerArgs,
        config: &kube::Config,
        readiness: &Readiness,
        health: &Health,
        context: &Context,
    ) -> anyhow::Result<Self> {
        let client = || kube::Client::try_from(config.clone()).context("reach the Kubernetes API");
        let lease = if args.without_lease { None } else { Some((client()?, args.lease_namespace().to_owned())) };
        let (readiness, health, context) = (readiness.clone(), health.clone(), context.clone());
        Ok(Self { lease, readiness, health, context })
    }

    /// Waits for the group's lease, runs its controllers, and gives the lease back when all of them have ended. Fails
    /// when they end without being asked to, or the lease is lost.
    pub(super) async fn run(self, group: Group) -> anyhow::Result<()> {
        let Some((client, namespace)) = &self.lease else { return self.work(&group, None).await };
        let lease = group.lease();
        self.context.metrics.leads(&lease, false);
        let candidate = Candidate::new(client.clone(), namespace, &lease, &process_name(), Terms::default());
        let acquired = candidate.acquire(|| self.readiness.there(&lease));
        let Some(mut held) = self.context.stop.run_until_cancelled(acquired).await else { return Ok(()) };
        held.enforce(end_hard).context("start a thread that watches over the lease")?;
        self.context.metrics.leads(&lease, true);
        let result = self.work(&group, Some(&held)).await;
        self.context.metrics.leads(&lease, false);
        held.release().await;
        result
    }

    /// Runs the controllers. None of them is there any more when this returns.
    async fn work(&self, group: &Group, held: Option<&Held>) -> anyhow::Result<()> {
        let mut controllers = JoinSet::new();
        for (name, controller) in group.controllers(&self.context)? {
            let health = self.health.clone();
            let running = async move { health.beating(name, controller).await }.boxed();
            let running = match held {
                Some(held) => held.guard(running).map(drop).boxed(),
                None => running,
            };
            controllers.spawn(running.map(move |()| (name, Ok(()))));
        }
        let result = tokio::select! {
            biased;
            loss = lost(held) => Err(anyhow!("lost the lease {}: {loss}", group.lease())),
            () = self.context.stop.cancelled() => self.drain(held, &mut controllers).await,
            Some(ended) = controllers.join_next() => Err(early_end(ended)),
        };
        // drops what is left of passes, which kills the programs that they run
        controllers.shutdown().await;
        result
    }

    /// Lets passes under way come to their end, within limits.
    async fn drain(&self, held: Option<&Held>, controllers: &mut JoinSet<Ended>) -> anyhow::Result<()> {
        let all = async { while controllers.join_next().await.is_some() {} };
        tokio::select! {
            biased;
            loss = lost(held) => Err(anyhow!("lost the lease while stopping: {loss}")),
            ended = timeout(DRAIN, all) => {
                if ended.is_err() {
                    tracing::info!("passes under way are broken off after {} s", DRAIN.as_secs());
                }
                Ok(())
            }
        }
    }
}

async fn lost(held: Option<&Held>) -> Loss {
    match held {
        Some(held) => held.lost().await,
        None => std::future::pending().await,
    }
}

/// What people know this process by.
fn process_name() -> String {
    let pod = std::env::var("POD_NAME").or_else(|_| std::fs::read_to_string("/proc/sys/kernel/hostname"));
    pod.ok().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).unwrap_or_else(|| "operator".to_owned())
}

/// Another may work from now on, and something here can't be stopped otherwise.
fn end_hard() {
    tracing::error!("lost the lease, and work had not stopped in time: the process ends");
    std::process::exit(1);
}
