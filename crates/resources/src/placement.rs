//! Where VMs with a `nodeSelector` are put: on nodes that have its labels.
//!
//! For every label that a VM asks for there is a host aggregate in Nova, which the nodes are in that have it, and for every
//! flavor and selector a flavor of its own, derived from the first, which asks for these aggregates. Both are there for as long
//! as a VM wishes for them and a node fulfils its wish. Nova knows no marks on aggregates: [`names`] tells which are ours.
//!
//! What VMs wish is told by the controllers' own watches, so that it costs nothing where none wishes for anything.

mod names;
mod round;
mod wanted;
mod wishes;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{StreamExt, future::OptionFuture, stream::BoxStream};
use kube::ResourceExt;
use kupenstack_api::resources::{Flavor, PROJECT_ID, VirtualMachine};
use kupenstack_core::{Outcome, reason};
use kupenstack_openstack::ComputeService;
use kupenstack_runtime::{Context, Told, growing, jittered};
use tokio::{sync::Notify, time::sleep};

pub(crate) use self::names::{flavor_of, labels_of};
use self::{
    round::{Answer, Let, Present},
    wanted::{Labels, Wanted},
    wishes::{Wish, Wishes},
};
use crate::{
    cloud::{Cloud, Site, Standing},
    directory::{Directory, LOOK},
    nodes::Nodes,
    realm::Worker,
    stop::Stop,
};

/// Aggregates and flavors are Nova's.
const SERVICES: &[&str] = &["Keystone", "Nova"];
/// Reason of a VM that no node has the labels for.
pub(crate) const NO_NODE: &str = "NoNode";
/// Reason of a VM whose flavor is being made.
pub(crate) const SCHEDULING: &str = "Scheduling";
/// For so long it is believed who was let use a flavor.
const BELIEVED: Duration = Duration::from_mins(10);

/// Keeps what VMs with a selector need in Nova, and says whether it is there.
pub(crate) struct Placement {
    cloud: Arc<Cloud>,
    directory: Arc<Directory>,
    wishes: Mutex<Wishes>,
    nodes: Arc<Nodes>,
    found: Mutex<Found>,
    /// Something is otherwise than in the last round.
    news: Notify,
}

/// What the last rounds have come to.
#[derive(Default)]
struct Found {
    answers: BTreeMap<Wish, Answer>,
    /// Why there are no others.
    trouble: Option<Outcome>,
}

/// What rounds remember of a cloud.
struct Memory {
    site: Site,
    /// Whether nothing of ours is left.
    is_clean: bool,
    /// Whether there may be something that was not seen to go.
    is_doubtful: bool,
    admitted: Let,
    admitted_since: tokio::time::Instant,
}

impl Memory {
    fn of(site: Site) -> Self {
        let admitted_since = tokio::time::Instant::now();
        Self { site, is_clean: false, is_doubtful: false, admitted: HashMap::new(), admitted_since }
    }
}

impl Placement {
    pub(crate) fn new(cloud: &Arc<Cloud>, directory: &Arc<Directory>, nodes: &Arc<Nodes>) -> Arc<Self> {
        Arc::new(Self {
            cloud: Arc::clone(cloud),
            directory: Arc::clone(directory),
            wishes: Mutex::default(),
            nodes: Arc::clone(nodes),
            found: Mutex::default(),
            news: Notify::new(),
        })
    }

    /// Takes in what is told of VMs.
    pub(crate) fn heard_of_vm(&self, told: &Told<'_, VirtualMachine>) {
        if lock(&self.wishes).take_vm(told) {
            self.news.notify_one();
        }
    }

    /// Takes in what is told of flavors.
    pub(crate) fn heard_of_flavor(&self, told: &Told<'_, Flavor>) {
        if lock(&self.wishes).take_flavor(told) {
            self.news.notify_one();
        }
    }

    /// The identifier of the flavor that is derived for a VM with a selector, once a project may use it. The VM is looked at
    /// again when that changes.
    pub(crate) fn flavor_for(&self, vm: &VirtualMachine, project: Option<&str>) -> Result<String, Outcome> {
        let wait = || Outcome::waiting(SCHEDULING, "a flavor is made in Nova for spec.nodeSelector");
        let Some(wish) = Wish::of(vm) else { return Err(wait()) };
        let found = lock(&self.found);
        let offer = match found.answers.get(&wish) {
            Some(Answer::Offered(offer)) => offer,
            Some(Answer::Lacking(outcome)) => return Err(outcome.clone()),
            None => {
                // the project may have come since
                self.news.notify_one();
                return Err(found.trouble.clone().unwrap_or_else(wait));
            }
        };
        match project {
            Some(project) if offer.projects.contains(project) => Ok(offer.id.clone()),
            Some(project) if offer.denied.contains(project) => {
                let message = format!("project {project} may not use flavor {}", wish.flavor);
                Err(Outcome::waiting("Forbidden", message).within(LOOK))
            }
            _ => {
                self.news.notify_one();
                Err(wait())
            }
        }
    }

    /// Whether a node has the labels that a VM asks for; none as long as nodes are not known.
    pub(crate) fn fits(&self, vm: &VirtualMachine, node: &str) -> Option<bool> {
        let labels = self.nodes.are_known().then(|| self.nodes.labels(node))?;
        Some(labels.is_some_and(|labels| wanted::fulfils(&labels, &vm.spec.node_selector)))
    }

    /// Runs for as long as the context. What others do is seen within `every`.
    pub(crate) async fn run(self: Arc<Self>, every: Duration, context: Context) {
        if !self.cloud.known_to("aggregates").await {
            return;
        }
        let stop = context.stop.clone();
        stop.run_until_cancelled(self.rounds(every, &context)).await;
    }

    async fn rounds(&self, every: Duration, context: &Context) {
        let mut turns = self.cloud.turns(|cloud| cloud.standing(SERVICES).settled());
        let mut recoveries = self.cloud.recoveries();
        let mut labels: Option<BoxStream<'static, ()>> = None;
        let (mut memory, mut failures) = (None, 0);
        loop {
            if labels.is_none() && lock(&self.wishes).are_some() {
                let Ok(changes) = self.nodes.watched(context, |node| node.labels().clone()).await else { return };
                labels = Some(changes);
            }
            let wait = match self.round(&mut memory).await {
                Ok(is_used) => {
                    failures = 0;
                    is_used.then(|| jittered(every))
                }
                Err(stop) => {
                    let wait = growing(context.retry, failures, every);
                    failures += 1;
                    self.tell_of(stop, wait);
                    Some(wait)
                }
            };
            tokio::select! {
                Some(()) = OptionFuture::from(wait.map(sleep)) => {}
                () = self.news.notified() => {}
                Some(Some(())) = OptionFuture::from(labels.as_mut().map(StreamExt::next)) => {}
                Some(()) = recoveries.next() => {}
                Some(_) = turns.next() => {}
            }
        }
    }

    /// One round. Whether there is anything to look after.
    async fn round(&self, memory: &mut Option<Memory>) -> Result<bool, Stop> {
        let Standing::Ready(site) = self.cloud.standing(SERVICES) else { return Ok(false) };
        let wishes = {
            let wishes = lock(&self.wishes);
            if !wishes.are_known() {
                return Ok(false);
            }
            wishes.namespaces()
        };
        if memory.as_ref().is_none_or(|memory| memory.site != site) {
            // nothing is known of another cloud
            *memory = Some(Memory::of(site.clone()));
            *lock(&self.found) = Found::default();
        }
        let Some(memory) = memory else { return Ok(false) };
        if wishes.is_empty() && memory.is_clean {
            return Ok(false);
        }
        let admin = Worker::stranger(&self.cloud, &site).await?;
        let result = self.look_after(memory, &admin, wishes).await;
        result.inspect_err(|stop| admin.doubt(&self.cloud, stop))
    }

    async fn look_after(
        &self,
        memory: &mut Memory,
        admin: &Worker,
        wishes: BTreeMap<Wish, BTreeSet<Arc<str>>>,
    ) -> Result<bool, Stop> {
        let (compute, cluster) = (admin.client.compute(), memory.site.cluster.clone());
        let aggregates = round::aggregates(&compute, &cluster).await?;
        if wishes.is_empty() && aggregates.is_empty() {
            self.publish(BTreeMap::new());
            // an old list does not show what was made just now
            memory.is_clean = !std::mem::take(&mut memory.is_doubtful);
            return Ok(!memory.is_clean);
        }
        (memory.is_clean, memory.is_doubtful) = (false, true);
        let labels = if wishes.is_empty() { Labels::new() } else { self.labels(&compute.compute_services().await?) };
        let present = Present { aggregates, flavors: round::flavors(&compute, &cluster).await? };
        if memory.admitted_since.elapsed() > BELIEVED {
            (memory.admitted, memory.admitted_since) = (HashMap::new(), tokio::time::Instant::now());
        }
        let wanted = {
            let known = lock(&self.wishes);
            let wishes = wishes.into_iter().map(|(wish, namespaces)| (wish, self.projects(&namespaces)));
            // nothing is made for those that have no project yet
            let wishes = wishes.filter(|(_, projects)| !projects.is_empty()).collect();
            Wanted::of(&cluster, wishes, &labels, |name| known.flavor(name))
        };
        self.withdraw(&wanted);
        let answers = round::settle(&compute, present, &wanted, &mut memory.admitted).await?;
        memory.is_doubtful = !answers.is_empty();
        self.publish(answers);
        // also what was removed is looked for once more, to know that nothing is left
        Ok(true)
    }

    /// The labels of those that run servers, as far as they are nodes.
    fn labels(&self, services: &[ComputeService]) -> Labels {
        let hosts = services.iter().map(|service| &service.host);
        hosts.filter_map(|host| Some((host.clone(), self.nodes.labels(host)?))).collect()
    }

    /// The projects of namespaces. One that gets its project later asks again.
    fn projects(&self, namespaces: &BTreeSet<Arc<str>>) -> BTreeSet<String> {
        let namespaces = namespaces.iter().filter_map(|namespace| self.cloud.namespace(namespace));
        namespaces.filter_map(|namespace| namespace.annotations().get(PROJECT_ID).cloned()).collect()
    }

    /// Says no more that there is a flavor which is about to go.
    fn withdraw(&self, wanted: &Wanted) {
        lock(&self.found).answers.retain(|wish, answer| match (answer, wanted.flavors.get(wish)) {
            (Answer::Offered(offer), wanted) => wanted.is_some_and(|wanted| wanted.id == offer.id),
            (Answer::Lacking(_), _) => true,
        });
    }

    /// Tells what there is now, and has those look who are concerned.
    fn publish(&self, answers: BTreeMap<Wish, Answer>) {
        let mut found = lock(&self.found);
        let before = std::mem::replace(&mut *found, Found { answers, trouble: None });
        let changed: HashSet<&Wish> = found
            .answers
            .iter()
            .filter(|(wish, answer)| before.answers.get(wish) != Some(answer))
            .map(|(wish, _)| wish)
            .collect();
        let concerned = if changed.is_empty() { Vec::new() } else { lock(&self.wishes).vms(&changed) };
        drop(found);
        self.directory.wake(&concerned);
    }

    /// Has those who wait know why.
    fn tell_of(&self, stop: Stop, wait: Duration) {
        tracing::debug!(?stop, "aggregates not looked after, it is tried again");
        let trouble = stop.verdict().shown.unwrap_or_else(|| {
            Outcome::waiting(reason::CLOUD_UNAVAILABLE, "what spec.nodeSelector needs can't be looked after")
        });
        let trouble = trouble.sooner(wait.max(Duration::from_secs(15)));
        let concerned = {
            let mut found = lock(&self.found);
            if found.trouble.replace(trouble).is_some() {
                return;
            }
            let known = lock(&self.wishes);
            let all = known.namespaces();
            known.vms(&all.keys().filter(|wish| !found.answers.contains_key(wish)).collect())
        };
        self.directory.wake(&concerned);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
