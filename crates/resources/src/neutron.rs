//! What is the same for everything in Neutron: it is found by the recorded identifier, else by name and mark, or adopted.
//!
//! Neutron chooses the identifiers, and a mark keeps nobody from making a second object with it. One that a lost request
//! made too is seen by the next list of the whole cloud, and deleted by the flow.

use std::{marker::PhantomData, net::IpAddr};

use futures::{FutureExt, TryStreamExt};
use ipnet::IpNet;
use kube::ResourceExt;
use kupenstack_api::resources::{Adoption, ResourceKind};
use kupenstack_core::{Outcome, ownership::described};
use kupenstack_openstack::{Client, NetworkFilter, NetworkResource, network::Collection};

use crate::{
    actuator::{Actuator, Kind, Progress, Step, Target},
    adoption,
    needs::Need,
    observe::Listed,
    stop::Stop,
};

/// A kind of objects that stand for something in Neutron.
pub(crate) trait NeutronKind: Kind {
    /// What they stand for.
    type Resource: Listed + NetworkResource<Attributes: Send + Default + PartialEq>;

    /// Name of the controller.
    const NAME: &'static str;
    /// As [`Actuator::NEEDS`].
    const NEEDS: &'static [&'static str] = &[];

    /// As [`Actuator::needs`].
    fn needs(&self) -> Vec<Need> {
        Vec::new()
    }

    /// Where those resources are.
    fn all(client: &Client) -> Collection<Self::Resource>;

    /// What an object takes over instead of making it.
    fn adopted(&self) -> Option<&Adoption>;

    /// What a new resource is to have.
    fn attributes(target: &Target<Self>) -> <Self::Resource as NetworkResource>::Attributes;

    /// What has to be set of a resource.
    fn changes(target: &Target<Self>, resource: &Self::Resource) -> <Self::Resource as NetworkResource>::Attributes;

    /// What has to be done beside and after that, as [`Actuator::updates`].
    fn further_updates<'a>(_: &'a Target<Self>, _: &'a Self::Resource) -> Vec<Step<'a, ()>> {
        Vec::new()
    }

    /// What uses a resource although Neutron would delete it.
    fn user(_: &Self::Resource) -> Option<String> {
        None
    }

    /// As [`Actuator::report`].
    fn report(resource: &Self::Resource, status: &mut <Self as ResourceKind>::Status) -> Outcome;
}

/// Implements [`Listed`] for a type of resource that carries our mark in its description.
macro_rules! listed_in_neutron {
    ($resource:ty, $noun:literal, $collection:ident) => {
        impl $crate::observe::Listed for $resource {
            const NOUN: &'static str = $noun;
            const SERVICES: &'static [&'static str] = &["Keystone", "Neutron"];

            fn list(
                admin: &kupenstack_openstack::Client,
            ) -> futures::stream::BoxStream<'static, Result<Self, kupenstack_openstack::Error>> {
                futures::StreamExt::boxed(admin.network().$collection().survey())
            }

            fn id(&self) -> &str {
                &self.id
            }

            fn mark(&self) -> Option<&str> {
                kupenstack_core::ownership::mark_in(self.description.as_deref()?)
            }

            fn is_in(&self, project: &str) -> bool {
                self.project_id == project
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

    fn needs(object: &K) -> Vec<Need> {
        object.needs()
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
            steps.push(async move { Ok(K::all(&target.client).update(resource, &changes).await.map(drop)?) }.boxed());
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
    let all = K::all(&target.client);
    if let Some(id) = &target.recorded
        && let Some(found) = all.get(id).await?.filter(|found| is_ours(found, target))
    {
        return Ok(Some(found));
    }
    match target.object.adopted() {
        Some(wanted) => adoption::only(target, candidates(target, &all, wanted)).await,
        None => marked(target, &all).await,
    }
}

/// By name and mark. Of several, always the same one: the others were made by requests whose answers were lost.
async fn marked<K: NeutronKind>(
    target: &Target<K>,
    all: &Collection<K::Resource>,
) -> Result<Option<K::Resource>, Stop> {
    let filter = NetworkFilter { name: Some(target.object.name_any()), project_id: target.owner.clone() };
    let same_name: Vec<K::Resource> = all.list(&filter).try_collect().await?;
    let ours = same_name.into_iter().filter(|found| found.mark() == Some(target.mark.as_str()));
    Ok(ours.min_by(|a, b| NetworkResource::id(a).cmp(NetworkResource::id(b))))
}

/// What carries our mark, or, as long as the project guards what is not its own, what we recorded.
fn is_ours<K, R: Listed>(found: &R, target: &Target<K>) -> bool {
    match &target.owner {
        Some(owner) => found.is_in(owner),
        None => found.mark() == Some(target.mark.as_str()),
    }
}

/// Makes a resource, and records its identifier before anything else can fail.
async fn make<K: NeutronKind>(target: &Target<K>, progress: &dyn Progress) -> Result<K::Resource, Stop> {
    let all = K::all(&target.client);
    if let Some(wanted) = target.object.adopted() {
        let fitting = candidates(target, &all, wanted).await?;
        return Err(adoption::missing(&fitting, &format!("project's {}s", K::Resource::NOUN)).into());
    }
    let made = all.create(&K::attributes(target)).await?;
    progress.created(NetworkResource::id(&made)).await?;
    Ok(made)
}

async fn delete<K: NeutronKind>(target: &Target<K>, resource: &K::Resource) -> Result<(), Stop> {
    if let Some(user) = K::user(resource) {
        return Err(Outcome::waiting("InUse", format!("used by {user}")).into());
    }
    Ok(K::all(&target.client).delete(NetworkResource::id(resource)).await.map(drop)?)
}

/// What fits, of the project's own: what every project sees is not one project's to take over.
async fn candidates<K: NeutronKind>(
    target: &Target<K>,
    all: &Collection<K::Resource>,
    wanted: &Adoption,
) -> Result<Vec<K::Resource>, Stop> {
    let found: Vec<K::Resource> = if let Some(id) = &wanted.id {
        all.get(id).await?.into_iter().collect()
    } else {
        let filter = NetworkFilter { name: wanted.name.clone(), project_id: target.owner.clone() };
        all.list(&filter).try_collect().await?
    };
    Ok(found.into_iter().filter(|found| target.owner.as_ref().is_some_and(|owner| found.is_in(owner))).collect())
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
