//! What is the same for everything in Neutron: it is found by the recorded identifier, else by name and mark, or adopted.
//!
//! Neutron chooses the identifiers, and a mark keeps nobody from making a second object with it. One that a lost request
//! made too is seen by the next list of the whole cloud, and deleted by the flow.

use futures::TryStreamExt;
use kube::ResourceExt;
use kupenstack_api::resources::Adoption;
use kupenstack_openstack::{NetworkFilter, NetworkResource, network::Collection};

use crate::{
    actuator::{Kind, Progress, Target},
    adoption,
    observe::Listed,
    stop::Stop,
};

/// Finds what is the object's.
pub(crate) async fn find<K, R>(
    target: &Target<K>,
    all: &Collection<R>,
    adopted: Option<&Adoption>,
) -> Result<Option<R>, Stop>
where
    K: Kind,
    R: Listed + NetworkResource,
{
    if let Some(id) = &target.recorded
        && let Some(found) = all.get(id).await?.filter(|found| is_ours(found, target))
    {
        return Ok(Some(found));
    }
    match adopted {
        Some(wanted) => adoption::only(target, candidates(target, all, wanted)).await,
        None => marked(target, all).await,
    }
}

/// By name and mark. Of several, always the same one: the others were made by requests whose answers were lost.
async fn marked<K, R>(target: &Target<K>, all: &Collection<R>) -> Result<Option<R>, Stop>
where
    K: Kind,
    R: Listed + NetworkResource,
{
    let filter = NetworkFilter { name: Some(target.object.name_any()), project_id: target.owner.clone() };
    let same_name: Vec<R> = all.list(&filter).try_collect().await?;
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
pub(crate) async fn make<K, R>(
    target: &Target<K>,
    all: &Collection<R>,
    adopted: Option<&Adoption>,
    attributes: &R::Attributes,
    progress: &dyn Progress,
) -> Result<R, Stop>
where
    K: Kind,
    R: Listed + NetworkResource,
{
    if let Some(wanted) = adopted {
        let fitting = candidates(target, all, wanted).await?;
        return Err(adoption::missing(&fitting, &format!("project's {}s", R::NOUN)).into());
    }
    let made = all.create(attributes).await?;
    progress.created(NetworkResource::id(&made)).await?;
    Ok(made)
}

/// What fits, of the project's own: what every project sees is not one project's to take over.
async fn candidates<K, R>(target: &Target<K>, all: &Collection<R>, wanted: &Adoption) -> Result<Vec<R>, Stop>
where
    R: Listed + NetworkResource,
{
    let found: Vec<R> = if let Some(id) = &wanted.id {
        all.get(id).await?.into_iter().collect()
    } else {
        let filter = NetworkFilter { name: wanted.name.clone(), project_id: target.owner.clone() };
        all.list(&filter).try_collect().await?
    };
    Ok(found.into_iter().filter(|found| target.owner.as_ref().is_some_and(|owner| found.is_in(owner))).collect())
}

/// What is wanted, unless it is so.
pub(crate) fn differing<T: PartialEq>(wanted: Option<T>, is: Option<&T>) -> Option<T> {
    wanted.filter(|wanted| Some(wanted) != is)
}
