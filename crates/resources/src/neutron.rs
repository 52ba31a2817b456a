//! What is the same for everything in Neutron: it is found by the recorded identifier, else by name and mark, or adopted.
//!
//! Neutron chooses the identifiers, and a mark keeps nobody from making a second object with it. One that a lost request
//! made too is seen by the next list of the whole cloud, and deleted by the flow.

use futures::TryStreamExt;
use kube::ResourceExt;
use kupenstack_api::resources::Adoption;
use kupenstack_core::Outcome;
use kupenstack_openstack::{ErrorKind, NetworkFilter, NetworkResource, network::Collection};

use crate::{
    actuator::{Kind, Progress, Target},
    observe::Listed,
    stop::Stop,
};

/// Finds what is the object's. The heir of a project's user adopts nothing, and an object that is being deleted nothing
/// new: what was never taken over is not to be deleted.
pub(crate) async fn find<K, R>(
    target: &Target<K>,
    all: &Collection<R>,
    adoption: Option<&Adoption>,
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
    let Some(adoption) = adoption else { return marked(target, all).await };
    if target.owner.is_none() || target.object.meta().deletion_timestamp.is_some() {
        return Ok(None);
    }
    let mut fitting = candidates(target, all, adoption).await?;
    Ok(if fitting.len() == 1 { fitting.pop() } else { None })
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
    let is_marked = found.mark() == Some(target.mark.as_str());
    match &target.owner {
        Some(owner) => found.is_in(owner),
        None => is_marked,
    }
}

/// Makes a resource, and records its identifier before anything else can fail.
pub(crate) async fn make<K, R>(
    target: &Target<K>,
    all: &Collection<R>,
    adoption: Option<&Adoption>,
    attributes: &R::Attributes,
    progress: &dyn Progress,
) -> Result<R, Stop>
where
    K: Kind,
    R: Listed + NetworkResource,
{
    if let Some(adoption) = adoption {
        return Err(nothing_to_adopt(target, all, adoption).await?.into());
    }
    let made = all.create(attributes).await?;
    progress.created(NetworkResource::id(&made)).await?;
    Ok(made)
}

/// Deletes a resource, unless others still use it.
pub(crate) async fn delete<R: Listed + NetworkResource>(all: &Collection<R>, id: &str) -> Result<(), Stop> {
    match all.delete(id).await {
        Err(error) if error.kind() == ErrorKind::Conflict => {
            Err(Outcome::waiting("InUse", format!("the {} can't be deleted yet: {error}", R::NOUN)).into())
        }
        result => Ok(result.map(drop)?),
    }
}

/// Why there is nothing to adopt.
async fn nothing_to_adopt<K, R>(target: &Target<K>, all: &Collection<R>, adoption: &Adoption) -> Result<Outcome, Stop>
where
    K: Kind,
    R: Listed + NetworkResource,
{
    let fitting = candidates(target, all, adoption).await?;
    Ok(match fitting.as_slice() {
        [first, second, ..] => Outcome::waiting(
            "AmbiguousAdoption",
            format!(
                "spec.adopt: {} of the project's {}s fit, {} and {} among them; name one of them by its id",
                fitting.len(),
                R::NOUN,
                NetworkResource::id(first),
                NetworkResource::id(second)
            ),
        ),
        _ => Outcome::waiting("NothingToAdopt", format!("spec.adopt: none of the project's {}s fits", R::NOUN)),
    })
}

/// What fits, of the project's own: what every project sees is not one project's to take over.
async fn candidates<K, R>(target: &Target<K>, all: &Collection<R>, adoption: &Adoption) -> Result<Vec<R>, Stop>
where
    R: Listed + NetworkResource,
{
    let found: Vec<R> = if let Some(id) = &adoption.id {
        all.get(id).await?.into_iter().collect()
    } else {
        let filter = NetworkFilter { name: adoption.name.clone(), project_id: target.owner.clone() };
        all.list(&filter).try_collect().await?
    };
    Ok(found.into_iter().filter(|found| target.owner.as_ref().is_some_and(|owner| found.is_in(owner))).collect())
}
