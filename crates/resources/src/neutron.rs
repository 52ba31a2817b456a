//! What is the same for everything in Neutron: it is found by the recorded identifier, else by its mark, or adopted.
//!
//! Neutron chooses the identifiers, and a mark keeps nobody from making a second object with it. One that a lost request
//! made too is seen by the next list of the whole cloud, and deleted by the flow. Of ports there is never a second one: no
//! network has a MAC twice.

use std::{marker::PhantomData, net::IpAddr};

use futures::{FutureExt, TryStreamExt, future::BoxFuture, stream::BoxStream};
use ipnet::IpNet;
use kube::ResourceExt;
use kupenstack_api::resources::{Adoption, ResourceKind};
use kupenstack_core::{Outcome, ownership::described};
use kupenstack_openstack::{Client, Error, ErrorKind, NetworkFilter, NetworkResource, network::Collection};

use crate::{
    actuator::{Actuator, Kind, Progress, Step, Target},
    adoption,
    needs::Need,
    observe::{self, Listed},
    stop::Stop,
};

/// Something in Neutron, with all that is looked at together with it although Neutron shows it elsewhere.
pub(crate) trait Whole: Listed {
    /// What Neutron shows under the identifier.
    type Main: NetworkResource<Attributes: Send + Default + PartialEq> + Sync;

    fn main(&self) -> &Self::Main;

    /// Looks at what belongs to one.
    fn of(client: &Client, main: Self::Main) -> BoxFuture<'static, Result<Self, Error>>;

    /// As [`Listed::list`].
    fn survey(admin: &Client) -> BoxStream<'static, Result<Self, Error>>;
}

/// What may be declared of what a kind's objects stand for.
pub(crate) type Attributes<K> = <<<K as NeutronKind>::Resource as Whole>::Main as NetworkResource>::Attributes;

/// What in Neutron an object means.
#[derive(Debug)]
pub(crate) enum Sought {
    /// What has this identifier.
    Id(String),
    /// The only one that fits.
    Fitting(NetworkFilter),
}

impl From<&Adoption> for Sought {
    fn from(adoption: &Adoption) -> Self {
        let by_name = || NetworkFilter { name: adoption.name.clone(), ..NetworkFilter::default() };
        adoption.id.clone().map_or_else(|| Self::Fitting(by_name()), Self::Id)
    }
}

/// A kind of objects that stand for something in Neutron.
pub(crate) trait NeutronKind: Kind {
    /// What they stand for.
    type Resource: Whole;

    /// Name of the controller.
    const NAME: &'static str;
    /// As [`Actuator::NEEDS`].
    const NEEDS: &'static [&'static str] = &[];
    /// Whether Neutron refuses to make a second one for an object: what an earlier pass may have made is then looked for when
    /// it does, and not before.
    const IS_UNIQUE: bool = false;
    /// As [`Actuator::GOES_AFTER`].
    const GOES_AFTER: &'static [&'static str] = &[];
    /// As [`Actuator::DELETES_AS_LISTED`].
    const DELETES_AS_LISTED: bool = true;
    /// Among whose resources one is looked for that is to be taken over.
    const ADOPTS_FROM: &'static str = "project's";

    /// As [`Actuator::needs`].
    fn needs(&self) -> Vec<Need> {
        Vec::new()
    }

    /// As [`Actuator::tells`].
    fn tells(&self) -> Option<&str> {
        None
    }

    /// Where those resources are.
    fn all(client: &Client) -> Collection<<Self::Resource as Whole>::Main>;

    /// Among what in its project an object's own is looked for, by its mark.
    fn own(&self) -> NetworkFilter {
        NetworkFilter { name: Some(self.name_any()), ..NetworkFilter::default() }
    }

    /// What an object takes over instead of making it.
    fn adopted(&self) -> Option<Sought>;

    /// What all have in common that an object of this project may take over.
    fn adoptable(project: &str) -> NetworkFilter {
        NetworkFilter { project_id: Some(project.to_owned()), ..NetworkFilter::default() }
    }

    /// As [`Actuator::can_be_of`]: what every project sees is not one project's.
    fn can_be_of(project: &str, resource: &Self::Resource) -> bool {
        resource.is_in(project)
    }

    /// What a new resource is to have.
    fn attributes(target: &Target<Self>) -> Attributes<Self>;

    /// What it means that Neutron refuses to make one.
    fn refusal(_: &Target<Self>, error: Error) -> Stop {
        error.into()
    }

    /// What has to be set of a resource.
    fn changes(target: &Target<Self>, resource: &Self::Resource) -> Attributes<Self>;

    /// What has to be done beside and after that, as [`Actuator::updates`].
    fn further_updates<'a>(_: &'a Target<Self>, _: &'a Self::Resource) -> Vec<Step<'a, ()>> {
        Vec::new()
    }

    /// What uses a resource although Neutron would delete it.
    fn user(_: &Self::Resource) -> Option<String> {
        None
    }

    /// What has to be done before Neutron deletes a resource, in this order.
    fn before_deletion<'a>(_: &'a Target<Self>, _: &'a Self::Resource) -> Vec<Step<'a, ()>> {
        Vec::new()
    }

    /// As [`Actuator::report`].
    fn report(resource: &Self::Resource, status: &mut <Self as ResourceKind>::Status) -> Outcome;
}

/// Implements [`Listed`] for a type of resource that carries our mark in its description. For one that is whole by itself,
/// and whose collection is given, [`Whole`] too.
macro_rules! listed_in_neutron {
    ($resource:ty, $noun:literal, $collection:ident) => {
        impl $crate::neutron::Whole for $resource {
            type Main = Self;

            fn main(&self) -> &Self {
                self
            }

            fn of(
                _: &kupenstack_openstack::Client,
                main: Self,
            ) -> futures::future::BoxFuture<'static, Result<Self, kupenstack_openstack::Error>> {
                futures::FutureExt::boxed(futures::future::ready(Ok(main)))
            }

            fn survey(
                admin: &kupenstack_openstack::Client,
            ) -> futures::stream::BoxStream<'static, Result<Self, kupenstack_openstack::Error>> {
                futures::StreamExt::boxed(admin.network().$collection().survey())
            }
        }

        $crate::neutron::listed_in_neutron!($resource, $noun);
    };
    ($resource:ty, $noun:literal) => {
        impl $crate::observe::Listed for $resource {
            const NOUN: &'static str = $noun;
            const SERVICES: &'static [&'static str] = &["Keystone", "Neutron"];

            fn list(
                admin: &kupenstack_openstack::Client,
            ) -> futures::stream::BoxStream<'static, Result<Self, kupenstack_openstack::Error>> {
                $crate::neutron::Whole::survey(admin)
            }

            fn id(&self) -> &str {
                &$crate::neutron::Whole::main(self).id
            }

            fn mark(&self) -> Option<&str> {
                kupenstack_core::ownership::mark_in($crate::neutron::Whole::main(self).description.as_deref()?)
            }

            fn is_in(&self, project: &str) -> bool {
                $crate::neutron::Whole::main(self).project_id == project
            }
        }
    };
}
pub(crate) use listed_in_neutron;

/// Keeps the resources of one kind.
pub(crate) struct NeutronActuator<K>(PhantomData<fn() -> K>);

impl<K> NeutronActuator<K> {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<K: NeutronKind> Actuator for NeutronActuator<K> {
    type Kind = K;
    type Resource = K::Resource;

    const NAME: &'static str = K::NAME;
    const CONCURRENCY: u16 = 16;
    const NEEDS: &'static [&'static str] = K::NEEDS;
    const GOES_AFTER: &'static [&'static str] = K::GOES_AFTER;
    const DELETES_AS_LISTED: bool = K::DELETES_AS_LISTED;

    fn needs(object: &K) -> Vec<Need> {
        object.needs()
    }

    fn can_be_of(project: &str, resource: &K::Resource) -> bool {
        K::can_be_of(project, resource)
    }

    fn tells(object: &K) -> Option<&str> {
        object.tells()
    }

    fn observe<'a>(&'a self, target: &'a Target<K>) -> Step<'a, Option<K::Resource>> {
        find(target).boxed()
    }

    fn create<'a>(&'a self, target: &'a Target<K>, progress: &'a dyn Progress) -> Step<'a, K::Resource> {
        make(target, progress).boxed()
    }

    fn updates<'a>(&'a self, target: &'a Target<K>, resource: &'a K::Resource) -> Vec<Step<'a, ()>> {
        let changes = K::changes(target, resource);
        let mut steps: Vec<Step<'a, ()>> = Vec::new();
        if changes != Default::default() {
            steps.push(
                async move { Ok(K::all(&target.client).update(resource.main(), &changes).await.map(drop)?) }.boxed(),
            );
        }
        steps.extend(K::further_updates(target, resource));
        steps
    }

    fn delete<'a>(&'a self, target: &'a Target<K>, resource: &'a K::Resource) -> Step<'a, ()> {
        delete(target, resource).boxed()
    }

    fn report(&self, _: &Target<K>, resource: &K::Resource, status: &mut <K as ResourceKind>::Status) -> Outcome {
        K::report(resource, status)
    }
}

/// Finds what is the object's.
async fn find<K: NeutronKind>(target: &Target<K>) -> Result<Option<K::Resource>, Stop> {
    if let Some(id) = &target.recorded
        && let Some(found) = get(target, id).await?.filter(|found| is_ours(found, target))
    {
        return Ok(Some(found));
    }
    match target.object.adopted() {
        Some(wanted) => adoption::only(target, candidates(target, wanted)).await,
        None if target.is_new || is_refused_twice(target) => Ok(None),
        None => marked(target).await,
    }
}

/// Whether what may be there need not be looked for, as it would be found when another one is asked for.
fn is_refused_twice<K: NeutronKind>(target: &Target<K>) -> bool {
    K::IS_UNIQUE && target.recorded.is_none() && target.object.meta().deletion_timestamp.is_none()
}

async fn get<K: NeutronKind>(target: &Target<K>, id: &str) -> Result<Option<K::Resource>, Stop> {
    match K::all(&target.client).get(id).await? {
        Some(main) => Ok(Some(K::Resource::of(&target.client, main).await?)),
        None => Ok(None),
    }
}

async fn list<K: NeutronKind>(target: &Target<K>, filter: &NetworkFilter) -> Result<Vec<K::Resource>, Stop> {
    let found = K::all(&target.client).list(filter);
    Ok(found.and_then(|main| K::Resource::of(&target.client, main)).try_collect().await?)
}

/// By its mark.
async fn marked<K: NeutronKind>(target: &Target<K>) -> Result<Option<K::Resource>, Stop> {
    let like_it = list(target, &NetworkFilter { project_id: target.owner.clone(), ..target.object.own() }).await?;
    Ok(observe::marked(like_it, &target.mark))
}

/// What carries our mark, or, as long as the project guards what is not its own, what we recorded.
fn is_ours<K: NeutronKind>(found: &K::Resource, target: &Target<K>) -> bool {
    match &target.owner {
        Some(owner) => K::can_be_of(owner, found),
        None => found.mark() == Some(target.mark.as_str()),
    }
}

/// Makes a resource.
async fn make<K: NeutronKind>(target: &Target<K>, progress: &dyn Progress) -> Result<K::Resource, Stop> {
    if let Some(wanted) = target.object.adopted() {
        let fitting = candidates(target, wanted).await?;
        return Err(adoption::missing(&fitting, &format!("{} {}s", K::ADOPTS_FROM, K::Resource::NOUN)).into());
    }
    let made = match K::all(&target.client).create(&K::attributes(target)).await {
        Err(error) if K::IS_UNIQUE && matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Quota) => {
            // the answer to an earlier request may have been lost, which may have taken the last that the quota allows
            return marked(target).await?.ok_or_else(|| K::refusal(target, error));
        }
        made => made.map_err(|error| K::refusal(target, error))?,
    };
    progress.made(made.id()).await;
    Ok(K::Resource::of(&target.client, made).await?)
}

async fn delete<K: NeutronKind>(target: &Target<K>, resource: &K::Resource) -> Result<(), Stop> {
    if let Some(user) = K::user(resource) {
        return Err(Outcome::waiting("InUse", format!("used by {user}")).into());
    }
    for step in K::before_deletion(target, resource) {
        step.await?;
    }
    Ok(K::all(&target.client).delete(resource.id()).await.map(drop)?)
}

/// What fits, of what the object's project may take over.
async fn candidates<K: NeutronKind>(target: &Target<K>, wanted: Sought) -> Result<Vec<K::Resource>, Stop> {
    let Some(project) = &target.owner else { return Ok(Vec::new()) };
    let found = match wanted {
        Sought::Id(id) => get(target, &id).await?.into_iter().collect(),
        Sought::Fitting(NetworkFilter { name, address, .. }) => {
            list(target, &NetworkFilter { name, address, ..K::adoptable(project) }).await?
        }
    };
    Ok(found.into_iter().filter(|found| K::can_be_of(project, found)).collect())
}

/// An address or a range in the one way to write it: a range of one address is that.
pub(crate) fn canonical(text: &str) -> String {
    if let Ok(range) = text.parse::<IpNet>() {
        let range = range.trunc();
        return if range.prefix_len() == range.max_prefix_len() { range.addr().to_string() } else { range.to_string() };
    }
    text.parse::<IpAddr>().map_or_else(|_| text.to_owned(), |address| address.to_string())
}

/// What has no order in Neutron, in one.
pub(crate) fn sorted<T: Ord>(mut all: Vec<T>) -> Vec<T> {
    all.sort_unstable();
    all.dedup();
    all
}

/// The description to declare: the text, and for what is made here the mark behind it.
pub(crate) fn description(text: Option<&str>, mark: &str, is_made: bool) -> Option<String> {
    if is_made { Some(described(text.unwrap_or_default(), mark)) } else { text.map(str::to_owned) }
}

/// What is wanted, unless it is so.
pub(crate) fn differing<T: PartialEq>(wanted: Option<T>, is: Option<&T>) -> Option<T> {
    wanted.filter(|wanted| Some(wanted) != is)
}
