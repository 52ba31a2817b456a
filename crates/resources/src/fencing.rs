//! Dead hosts: Nova is told of them, so that their VMs can be made anew elsewhere, at the same ports.
//!
//! A host is dead by a fact only: its node is tainted as out of service, by which whoever switched the machine off says so; or its node
//! was deleted, and its heartbeats have ceased. One that is merely not ready may well run its VMs, and there must never be two of one.
//!
//! Nova deletes nothing on a host that it believes to be up, or that may come back. So it is told that the host is down, and takes it for
//! that whatever comes; and told otherwise when the node is in service again. That it was us is in the reason that Nova shows.
//!
//! What is left of a host whose node was deleted is forgotten once no server is on it: by Neutron its agents, at which routers may go
//! out, and then by Nova the host itself. If the node comes back, it is a new host.

mod verdict;

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::{StreamExt, TryStreamExt, future::OptionFuture};
use kupenstack_api::resources::VirtualMachine;
use kupenstack_core::ownership::ClusterId;
use kupenstack_openstack::{Client, Compute, ComputeService, Error};
use kupenstack_runtime::{Context, Told, growing, jittered};
use tokio::{sync::Notify, time::sleep};

use self::verdict::Verdict;
use crate::{
    cloud::{Cloud, Standing},
    directory::Directory,
    nodes::{self, Nodes, Presence},
    realm::Worker,
    stop::Stop,
};

const SERVICES: &[&str] = &["Keystone", "Nova"];
/// Nova takes a host for down when it has not heard of it for a minute.
const SOON: Duration = Duration::from_secs(15);

/// Tells Nova of dead hosts, and others which servers died with them.
pub(crate) struct Fencing {
    cloud: Arc<Cloud>,
    directory: Arc<Directory>,
    nodes: Arc<Nodes>,
    /// The first VM is there: before, it does not matter which hosts are dead.
    used: Notify,
    /// The servers on dead hosts that Nova was told of, and their hosts.
    lost: Mutex<HashMap<String, Arc<str>>>,
}

/// When hosts are to be looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    /// When something happens.
    AtNews,
    /// Now and then as well: there may be more servers on dead hosts than were seen.
    NowAndThen,
    /// Before long as well: one is not known to be dead yet.
    Soon,
}

impl Fencing {
    pub(crate) fn new(cloud: &Arc<Cloud>, directory: &Arc<Directory>, nodes: &Arc<Nodes>) -> Arc<Self> {
        Arc::new(Self {
            cloud: Arc::clone(cloud),
            directory: Arc::clone(directory),
            nodes: Arc::clone(nodes),
            used: Notify::new(),
            lost: Mutex::default(),
        })
    }

    /// Takes in what is told of VMs.
    pub(crate) fn heard_of_vm(&self, told: &Told<'_, VirtualMachine>) {
        if matches!(told, Told::There(..)) {
            self.used.notify_one();
        }
    }

    /// The dead host of a server, if it is on one. Nova knows by then, and deletes the server when it is asked to.
    pub(crate) fn dead_host_of(&self, server_id: &str) -> Option<Arc<str>> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).get(server_id).cloned()
    }

    /// Runs for as long as the context. Servers that came to a dead host nevertheless are seen within `every`.
    pub(crate) async fn run(self: Arc<Self>, every: Duration, context: Context) {
        if !self.cloud.known_to("fencing").await {
            return;
        }
        let stop = context.stop.clone();
        stop.run_until_cancelled(self.rounds(every, &context)).await;
    }

    async fn rounds(&self, every: Duration, context: &Context) {
        self.used.notified().await;
        let Ok(mut changes) = self.nodes.watched(context, nodes::presence).await else { return };
        let mut turns = self.cloud.turns(|cloud| cloud.standing(SERVICES).settled());
        let mut recoveries = self.cloud.recoveries();
        let (mut doubts, mut failures, mut before) = (0, 0, Next::AtNews);
        loop {
            let round = self.round().await.map(|next| {
                // an old list does not show what is dead, or was told of
                let doubtful = std::mem::replace(&mut before, next) != Next::AtNews;
                if doubtful { next.max(Next::NowAndThen) } else { next }
            });
            failures = if round.is_err() { failures + 1 } else { 0 };
            doubts = if matches!(round, Ok(Next::Soon)) { doubts + 1 } else { 0 };
            let wait = match round {
                Ok(Next::AtNews) => None,
                Ok(Next::NowAndThen) => Some(jittered(every)),
                Ok(Next::Soon) => Some(growing(SOON, doubts - 1, every)),
                Err(stop) => {
                    tracing::warn!(?stop, "dead hosts not looked after, it is tried again");
                    Some(growing(context.retry, failures - 1, every))
                }
            };
            tokio::select! {
                Some(()) = OptionFuture::from(wait.map(sleep)) => {}
                Some(()) = changes.next() => {}
                Some(()) = recoveries.next() => {}
                Some(_) = turns.next() => {}
            }
        }
    }

    async fn round(&self) -> Result<Next, Stop> {
        let Standing::Ready(site) = self.cloud.standing(SERVICES) else { return Ok(Next::AtNews) };
        let admin = Worker::stranger(&self.cloud, &site).await?;
        let result = self.look_after(&admin.client, &site.cluster).await;
        result.inspect_err(|stop| admin.doubt(&self.cloud, stop))
    }

    async fn look_after(&self, client: &Client, cluster: &ClusterId) -> Result<Next, Stop> {
        let compute = &client.compute();
        let services = compute.compute_services().await?;
        let presence = |host: &str| self.nodes.presence(host).unwrap_or(Presence::There);
        let (mut lost, mut next, mut failed) = (HashMap::new(), Next::AtNews, None);
        for (service, verdict) in verdict::of(cluster, &services, presence) {
            let host = service.host.as_str();
            let due = match verdict {
                Verdict::Fine => continue,
                Verdict::Doubtful => Ok(Next::Soon),
                Verdict::Fenced => servers_on(compute, host, &mut lost).await.map(|_| Next::NowAndThen),
                Verdict::Gone => self.retire(client, service, &mut lost).await,
                Verdict::Fence(changes) => match compute.update_service(&service.id, &changes).await {
                    Ok(()) => {
                        tracing::warn!(host, "its node is out of service: Nova was told that it is down");
                        let next = if presence(host) == Presence::Absent { Next::Soon } else { Next::NowAndThen };
                        servers_on(compute, host, &mut lost).await.map(|_| next)
                    }
                    Err(error) => Err(error),
                },
                Verdict::Release(changes) => compute.update_service(&service.id, &changes).await.map(|()| {
                    tracing::info!(host, "its node is in service again: Nova was told that it is not down");
                    Next::AtNews
                }),
            };
            // trouble with one host is none of the others'
            match due {
                Ok(due) => next = next.max(due),
                Err(error) => drop(failed.get_or_insert(error)),
            }
        }
        self.publish(lost);
        failed.map_or(Ok(next), |error| Err(error.into()))
    }

    /// Has a host forgotten that is no node any more, unless there are servers on it, or a sign that it lives. The host itself goes
    /// last: it tells of the rest.
    async fn retire(
        &self,
        client: &Client,
        service: &ComputeService,
        lost: &mut HashMap<String, Arc<str>>,
    ) -> Result<Next, Error> {
        let (compute, host) = (client.compute(), service.host.as_str());
        if servers_on(&compute, host, lost).await? > 0 {
            return Ok(Next::Soon);
        }
        if self.cloud.has("Neutron") {
            let network = client.network();
            let agents = network.agents_on(host).await?;
            if agents.iter().any(|agent| agent.alive) {
                return Ok(Next::Soon);
            }
            for agent in agents {
                network.delete_agent(&agent.id).await?;
            }
        }
        if compute.delete_service(&service.id).await? {
            tracing::info!(host, "its node was deleted, and no server is on it: it was forgotten");
        }
        Ok(Next::NowAndThen)
    }

    /// Tells what died, and has those look who are concerned.
    fn publish(&self, now: HashMap<String, Arc<str>>) {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *lost, now);
        let ids = |one: &HashMap<String, Arc<str>>| one.keys().cloned().collect::<HashSet<_>>();
        let changed = &ids(&before) ^ &ids(&lost);
        drop(lost);
        if !changed.is_empty() {
            self.directory.wake_those_with::<VirtualMachine>(&changed);
        }
    }
}

/// Notes all servers on a dead host. How many they are.
async fn servers_on(compute: &Compute, host: &str, lost: &mut HashMap<String, Arc<str>>) -> Result<usize, Error> {
    let ids: Vec<String> = compute.servers_on(host).try_collect().await?;
    let (count, host): (_, Arc<str>) = (ids.len(), host.into());
    lost.extend(ids.into_iter().map(|id| (id, Arc::clone(&host))));
    Ok(count)
}
