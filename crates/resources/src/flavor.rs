//! `Flavor`: a flavor in Nova, of an identifier that follows from the object.

mod listed;
mod wanted;

use std::sync::Arc;

use futures::{FutureExt, StreamExt, TryStreamExt};
use kupenstack_api::resources::{Flavor, FlavorStatus};
use kupenstack_core::{Outcome, reason};
use kupenstack_openstack::{self as openstack, Compute, Error, ErrorKind};
use kupenstack_runtime::Told;

pub(crate) use self::wanted::Wanted;
use crate::{
    actuator::{Actuator, Progress, Step, Target},
    placement::Placement,
    stop::Stop,
};

/// Keeps flavors in Nova. One is ours if and only if it has the object's own identifier: nobody else comes to choose it.
pub(crate) struct FlavorActuator {
    placement: Arc<Placement>,
}

impl FlavorActuator {
    /// Tells `placement` what flavors are declared, of which others are derived.
    pub(crate) fn new(placement: &Arc<Placement>) -> Self {
        Self { placement: Arc::clone(placement) }
    }
}

async fn make(target: &Target<Flavor>, progress: &dyn Progress) -> Result<openstack::Flavor, Stop> {
    let wanted = Wanted::of(&target.object, &target.mark)?;
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
    let foreign = compute.survey_flavors().try_filter(|flavor| futures::future::ready(flavor.name == wanted.name));
    match foreign.boxed().try_next().await? {
        Some(foreign) => {
            let message = format!(
                "Nova has a flavor named {} (id {}) that is not this object's, and takes no second one: give this object \
                 another name, or delete that flavor",
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

    fn heard(&self, told: &Told<'_, Flavor>) {
        self.placement.heard_of_flavor(told);
    }

    fn observe<'a>(&'a self, target: &'a Target<Flavor>) -> Step<'a, Option<openstack::Flavor>> {
        async move { Ok(target.client.compute().get_flavor(&target.own_id).await?) }.boxed()
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

    fn report(&self, target: &Target<Flavor>, flavor: &openstack::Flavor, _: &mut FlavorStatus) -> Outcome {
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
