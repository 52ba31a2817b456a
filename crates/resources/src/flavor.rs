//! `Flavor`: a flavor in Nova, of an identifier that follows from the object, unless one that is there is adopted.

mod listed;
mod wanted;

use std::sync::Arc;

use futures::{FutureExt, StreamExt, TryStreamExt, future::ready};
use kupenstack_api::resources::{Adoption, Flavor, FlavorStatus};
use kupenstack_core::{Outcome, reason};
use kupenstack_openstack::{self as openstack, Compute, Error, ErrorKind};
use kupenstack_runtime::Told;

pub(crate) use self::wanted::Wanted;
use crate::{
    actuator::{Actuator, Progress, Step, Target},
    adoption,
    placement::Placement,
    stop::Stop,
};

/// Keeps flavors in Nova. One that was made is ours if and only if it has the object's own identifier: nobody else comes to choose it.
pub(crate) struct FlavorActuator {
    placement: Arc<Placement>,
}

impl FlavorActuator {
    /// Tells `placement` what flavors are declared, of which others are derived.
    pub(crate) fn new(placement: &Arc<Placement>) -> Self {
        Self { placement: Arc::clone(placement) }
    }
}

/// By its identifier; else the one that is to be taken over, once nothing speaks against that.
async fn find(target: &Target<Flavor>) -> Result<Option<openstack::Flavor>, Stop> {
    let compute = target.client.compute();
    let Some(adoption) = &target.object.spec.adopt else { return Ok(compute.get_flavor(&target.own_id).await?) };
    if let Some(id) = &target.recorded
        && let Some(found) = compute.get_flavor(id).await?
    {
        return Ok(Some(found));
    }
    let wanted = Wanted::of(&target.object, &target.mark)?;
    let fitting = async {
        let found = fitting(&compute, adoption).await?.into_iter();
        Ok(found.filter(|flavor| wanted.what_speaks_against(flavor).is_none()).collect())
    };
    adoption::only(target, fitting).await
}

/// The flavors that are meant: there is one of a name at most.
async fn fitting(compute: &Compute, adoption: &Adoption) -> Result<Vec<openstack::Flavor>, Error> {
    if let Some(id) = &adoption.id {
        return Ok(compute.get_flavor(id).await?.into_iter().collect());
    }
    let is_called_so = |flavor: &openstack::Flavor| ready(adoption.name.as_ref() == Some(&flavor.name));
    compute.survey_flavors().try_filter(is_called_so).try_collect().await
}

/// Why there is nothing to take over.
async fn lack(target: &Target<Flavor>, adoption: &Adoption, wanted: &Wanted<'_>) -> Result<Outcome, Stop> {
    let fitting = fitting(&target.client.compute(), adoption).await?;
    let against = fitting.first().and_then(|flavor| Some((flavor, wanted.what_speaks_against(flavor)?)));
    Ok(match against {
        Some((flavor, why)) => {
            let message = format!("flavor {} (id {}) is left alone: {why}", flavor.name, flavor.id);
            Outcome::waiting("NotAdopted", message)
        }
        None => adoption::missing(&fitting, "cloud's flavors"),
    })
}

async fn make(target: &Target<Flavor>, progress: &dyn Progress) -> Result<openstack::Flavor, Stop> {
    let wanted = Wanted::of(&target.object, &target.mark)?;
    if let Some(adoption) = &target.object.spec.adopt {
        return Err(lack(target, adoption, &wanted).await?.into());
    }
    let flavor = match target.client.compute().create_flavor(&wanted.new_flavor(&target.own_id)).await {
        Err(refusal) if refusal.kind() == ErrorKind::Conflict => taken(target, &wanted, refusal).await?,
        result => result?,
    };
    progress.created(&flavor.id).await?;
    Ok(flavor)
}

/// What is in the way: an earlier request of ours that was carried out late, or a foreign flavor of the name, which
/// Nova has only one of.
async fn taken(target: &Target<Flavor>, wanted: &Wanted<'_>, refusal: Error) -> Result<openstack::Flavor, Stop> {
    let compute = target.client.compute();
    if let Some(ours) = compute.get_flavor(&target.own_id).await? {
        return Ok(ours);
    }
    let foreign = compute.survey_flavors().try_filter(|flavor| ready(wanted.name.as_ref() == Some(&flavor.name)));
    match foreign.boxed().try_next().await? {
        Some(foreign) => {
            let message = format!(
                "Nova has a flavor named {} (id {}) that is not this object's, and takes no second one: give this object \
                 another name, delete that flavor, or have another object adopt it",
                foreign.name, foreign.id
            );
            Err(Outcome::blocked(reason::NAME_CLASH, message).into())
        }
        None => Err(refusal.into()),
    }
}

/// The steps that set what can be set.
pub(crate) fn updates<'a>(compute: &Compute, wanted: &Wanted<'_>, flavor: &'a openstack::Flavor) -> Vec<Step<'a, ()>> {
    let id = flavor.id.as_str();
    let mut steps: Vec<Step<'a, ()>> = Vec::new();
    if let Some(description) = wanted.description_to_set(flavor).map(ToOwned::to_owned) {
        let compute = compute.clone();
        steps.push(async move { Ok(compute.describe_flavor(id, &description).await.map(drop)?) }.boxed());
    }
    let specs = wanted.extra_specs_to_set(flavor);
    if !specs.is_empty() {
        let compute = compute.clone();
        steps.push(async move { Ok(compute.set_extra_specs(id, &specs).await?) }.boxed());
    }
    for name in wanted.extra_specs_to_remove(flavor) {
        let compute = compute.clone();
        steps.push(async move { Ok(compute.remove_extra_spec(id, name).await.map(drop)?) }.boxed());
    }
    steps
}

impl Actuator for FlavorActuator {
    type Kind = Flavor;
    type Resource = openstack::Flavor;

    const NAME: &'static str = "flavor";
    const CONCURRENCY: u16 = 8;

    /// Its name, if that is not the object's: servers tell no more of their flavors.
    fn tells(flavor: &Flavor) -> Option<&str> {
        flavor.status.as_ref()?.name.as_deref()
    }

    fn heard(&self, told: &Told<'_, Flavor>) {
        self.placement.heard_of_flavor(told);
    }

    fn observe<'a>(&'a self, target: &'a Target<Flavor>) -> Step<'a, Option<openstack::Flavor>> {
        find(target).boxed()
    }

    fn create<'a>(&'a self, target: &'a Target<Flavor>, progress: &'a dyn Progress) -> Step<'a, openstack::Flavor> {
        make(target, progress).boxed()
    }

    fn updates<'a>(&'a self, target: &'a Target<Flavor>, flavor: &'a openstack::Flavor) -> Vec<Step<'a, ()>> {
        let wanted = match Wanted::of(&target.object, &target.mark) {
            Ok(wanted) => wanted,
            Err(blocked) => return vec![futures::future::err(blocked.into()).boxed()],
        };
        updates(&target.client.compute(), &wanted, flavor)
    }

    fn delete<'a>(&'a self, target: &'a Target<Flavor>, flavor: &'a openstack::Flavor) -> Step<'a, ()> {
        async move { Ok(target.client.compute().delete_flavor(&flavor.id).await.map(drop)?) }.boxed()
    }

    fn report(&self, target: &Target<Flavor>, flavor: &openstack::Flavor, status: &mut FlavorStatus) -> Outcome {
        let is_adopted = target.object.spec.adopt.is_some();
        status.name = is_adopted.then(|| flavor.name.clone());
        match Wanted::of(&target.object, &target.mark) {
            Err(blocked) => blocked,
            Ok(wanted) => match wanted.what_can_not_be_set(flavor) {
                None => Outcome::ready("offered by Nova"),
                Some(difference) => {
                    let message = format!(
                        "{difference}, which Nova can't change: delete flavor {} in Nova, and it is made anew",
                        flavor.id
                    );
                    Outcome::blocked("Replaced", message)
                }
            },
        }
    }
}
