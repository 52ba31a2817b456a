//! One round: what there is in Nova is made what is wanted.
//!
//! Everything can be broken off at any point and done again. As long as there is a derived flavor there is an aggregate of ours:
//! aggregates come first and go last, so that a list of them tells whether anything is left.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures::TryStreamExt;
use kupenstack_core::{Outcome, ownership::ClusterId, reason};
use kupenstack_openstack::{Aggregate, Compute, ErrorKind, Flavor};

use super::{
    names,
    wanted::{Wanted, WantedAggregate, WantedFlavor},
    wishes::Wish,
};
use crate::{
    flavor::{self, Wanted as WantedInNova},
    stop::Stop,
};

/// What is there for a wish.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    /// A flavor, and the projects that may use it.
    Offered(Offer),
    /// There is none, and why.
    Lacking(Outcome),
}

/// A flavor for those who wish for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    pub(super) id: String,
    pub(super) projects: BTreeSet<String>,
    /// Projects that may not use what it is derived from.
    pub(super) denied: BTreeSet<String>,
    /// Where its servers are put.
    pub(super) hosts: BTreeSet<String>,
}

/// What all rounds know of the projects that may use a flavor, which no list tells.
pub(super) type Let = HashMap<String, BTreeSet<String>>;

/// What there is that is ours.
pub(super) struct Present {
    pub(super) aggregates: Vec<Aggregate>,
    pub(super) flavors: BTreeMap<String, Flavor>,
}

/// The aggregates that are ours, the oldest first.
pub(super) async fn aggregates(compute: &Compute, cluster: &ClusterId) -> Result<Vec<Aggregate>, Stop> {
    let mut all = compute.aggregates().await?;
    all.retain(|aggregate| names::is_ours(cluster, &aggregate.name));
    all.sort_by_key(|aggregate| aggregate.id);
    Ok(all)
}

/// The flavors that are ours and derived, by identifier.
pub(super) async fn flavors(compute: &Compute, cluster: &ClusterId) -> Result<BTreeMap<String, Flavor>, Stop> {
    let all: Vec<Flavor> = compute.survey_private_flavors().try_collect().await?;
    let is_ours = |flavor: &Flavor| names::is_derived(cluster, &flavor.id, flavor.description.as_deref());
    Ok(all.into_iter().filter(is_ours).map(|flavor| (flavor.id.clone(), flavor)).collect())
}

/// Makes what there is what is wanted, and says what there is for each wish then.
pub(super) async fn settle(
    compute: &Compute,
    present: Present,
    wanted: &Wanted,
    known: &mut Let,
) -> Result<BTreeMap<Wish, Answer>, Stop> {
    let Present { aggregates, mut flavors } = present;
    let mut surplus: Vec<&Aggregate> = aggregates.iter().collect();
    for (name, wanted) in &wanted.aggregates {
        let found = surplus.iter().position(|aggregate| aggregate.name == *name).map(|index| surplus.remove(index));
        settle_aggregate(compute, name, found, wanted).await?;
    }
    // the name of one that goes may be another's
    let stays = |flavor: &Flavor| wanted.flavors.values().any(|wanted| wanted.id == flavor.id && wanted.fits(flavor));
    for gone in flavors.extract_if(.., |_, flavor| !stays(flavor)) {
        known.remove(&gone.0);
        compute.delete_flavor(&gone.0).await?;
        tracing::info!(flavor = gone.1.name, "no VM is to have it any more, deleted");
    }
    let mut answers = BTreeMap::new();
    for (wish, message) in &wanted.unmet {
        let lacking = Outcome::waiting(super::NO_NODE, message.clone()).within(super::LOOK);
        answers.insert(wish.clone(), Answer::Lacking(lacking));
    }
    for (wish, wanted) in &wanted.flavors {
        let settled = settle_flavor(compute, flavors.get(&wanted.id), wanted, known).await;
        answers.insert(wish.clone(), settled.or_else(only_of_one)?);
    }
    for aggregate in surplus {
        remove(compute, aggregate).await?;
    }
    Ok(answers)
}

/// What is wrong with one flavor need not keep others from being made.
fn only_of_one(stop: Stop) -> Result<Answer, Stop> {
    match stop {
        Stop::OpenStack(error) if [ErrorKind::BadRequest, ErrorKind::Conflict].contains(&error.kind()) => {
            let message = format!("the flavor for spec.nodeSelector can't be made: {error}");
            Ok(Answer::Lacking(Outcome::waiting(error.reason(), message)))
        }
        Stop::Outcome(outcome) => Ok(Answer::Lacking(outcome)),
        stop => Err(stop),
    }
}

async fn settle_aggregate(
    compute: &Compute,
    name: &str,
    found: Option<&Aggregate>,
    wanted: &WantedAggregate,
) -> Result<(), Stop> {
    let made;
    let aggregate = if let Some(found) = found {
        found
    } else {
        made = compute.create_aggregate(name).await?;
        tracing::info!(aggregate = name, "made, for VMs are to be on its nodes");
        &made
    };
    let (key, value) = &wanted.property;
    if aggregate.metadata.get(key) != Some(value) {
        compute.set_aggregate_metadata(aggregate.id, &[(key.clone(), Some(value.clone()))].into()).await?;
    }
    for host in wanted.hosts.iter().filter(|host| !aggregate.hosts.contains(host)) {
        if compute.add_aggregate_host(aggregate.id, host).await? {
            tracing::info!(aggregate = name, host, "taken in");
        }
    }
    for host in aggregate.hosts.iter().filter(|host| !wanted.hosts.contains(*host)) {
        // one that Nova does not know any more is on its way out
        if compute.remove_aggregate_host(aggregate.id, host).await? {
            tracing::info!(aggregate = name, host, "taken out");
        }
    }
    Ok(())
}

async fn remove(compute: &Compute, aggregate: &Aggregate) -> Result<(), Stop> {
    for host in &aggregate.hosts {
        compute.remove_aggregate_host(aggregate.id, host).await?;
    }
    compute.delete_aggregate(aggregate.id).await?;
    tracing::info!(aggregate = aggregate.name, "no VM asks for it any more, deleted");
    Ok(())
}

impl WantedFlavor {
    /// What it is to be in Nova.
    fn in_nova(&self) -> Result<WantedInNova<'_>, Stop> {
        Ok(WantedInNova::of(&self.declared, &self.signature)?)
    }

    /// Whether a flavor can become what is wanted.
    fn fits(&self, flavor: &Flavor) -> bool {
        self.in_nova().is_ok_and(|wanted| wanted.what_can_not_be_set(flavor).is_none())
    }
}

/// Makes a flavor what is wanted, and lets those use it who are to.
async fn settle_flavor(
    compute: &Compute,
    found: Option<&Flavor>,
    wanted: &WantedFlavor,
    known: &mut Let,
) -> Result<Answer, Stop> {
    let in_nova = wanted.in_nova()?;
    let made;
    let flavor = if let Some(found) = found {
        found
    } else {
        known.remove(&wanted.id);
        made = create(compute, wanted, &in_nova).await?;
        &made
    };
    for step in flavor::updates(compute, &in_nova, flavor) {
        step.await?;
    }
    let (mut projects, mut denied) = admitted(compute, wanted).await?;
    if known.get(&wanted.id) != Some(&projects) {
        let unknown = admit(compute, &wanted.id, &projects).await?;
        projects.retain(|project| !unknown.contains(project));
        denied.extend(unknown);
        known.insert(wanted.id.clone(), projects.clone());
    }
    Ok(Answer::Offered(Offer { id: wanted.id.clone(), projects, denied, hosts: wanted.hosts.clone() }))
}

async fn create(compute: &Compute, wanted: &WantedFlavor, in_nova: &WantedInNova<'_>) -> Result<Flavor, Stop> {
    let refusal = match compute.create_flavor(&in_nova.new_flavor(&wanted.id)).await {
        Err(refusal) if refusal.kind() == ErrorKind::Conflict => refusal,
        made => {
            let made = made?;
            tracing::info!(flavor = made.name, "made, for VMs are to be on certain nodes");
            return Ok(made);
        }
    };
    // there may be an earlier request of ours that was carried out late
    compute.get_flavor(&wanted.id).await?.ok_or_else(|| {
        let message = format!("the flavor for spec.nodeSelector can't be made: {refusal}; delete what has its name");
        Outcome::waiting(reason::NAME_CLASH, message).into()
    })
}

/// Of the projects that are to use a flavor, those that may use what it is derived from, and those that may not.
async fn admitted(compute: &Compute, wanted: &WantedFlavor) -> Result<(BTreeSet<String>, BTreeSet<String>), Stop> {
    let Some(base) = &wanted.private_base else { return Ok((wanted.projects.clone(), BTreeSet::new())) };
    let may = compute.flavor_access(base).await?.unwrap_or_default();
    Ok(wanted.projects.iter().cloned().partition(|project| may.contains(project)))
}

/// Lets these projects use a flavor, and no others. Returns those that Keystone does not know: whoever may edit a namespace can
/// say that it has such a project.
async fn admit(compute: &Compute, id: &str, projects: &BTreeSet<String>) -> Result<BTreeSet<String>, Stop> {
    let may = compute.flavor_access(id).await?.unwrap_or_default();
    let mut unknown = BTreeSet::new();
    for project in projects.difference(&may) {
        match compute.add_flavor_access(id, project).await {
            Err(refusal) if refusal.kind() == ErrorKind::BadRequest => drop(unknown.insert(project.clone())),
            result => result?,
        }
    }
    for project in may.difference(projects) {
        compute.remove_flavor_access(id, project).await?;
    }
    Ok(unknown)
}
