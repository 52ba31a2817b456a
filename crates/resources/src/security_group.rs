//! `SecurityGroup`: a security group in Neutron, and its rules.

mod rule;
mod wanted;

use std::collections::BTreeSet;

use futures::FutureExt;
use kube::ResourceExt;
use kupenstack_api::resources::{ResourceKind, SecurityGroup, SecurityGroupStatus};
use kupenstack_core::Outcome;
use kupenstack_openstack::{self as openstack, Client, ErrorKind, SecurityGroupAttributes, network::Collection};

use self::{
    rule::Rule,
    wanted::{Rules, Wanted},
};
use crate::{
    actuator::{Step, Target},
    needs::{Need, When},
    neutron::{NeutronKind, Sought, listed_in_neutron},
    stop::Stop,
};

impl NeutronKind for SecurityGroup {
    type Resource = openstack::SecurityGroup;

    const NAME: &'static str = "securitygroup";
    const NEEDS: &'static [&'static str] = &[Self::KIND];

    /// The other groups that its rules name.
    fn needs(&self) -> Vec<Need> {
        let rules = self.spec.ingress.iter().chain(&self.spec.egress).flatten();
        let others: BTreeSet<_> = rules.filter_map(|rule| rule.group.as_deref()).collect();
        let own = self.name_any();
        let others = others.into_iter().filter(|name| *name != own);
        others.map(|name| Need::of::<Self>(self, name, When::InTheEnd)).collect()
    }

    fn all(client: &Client) -> Collection<openstack::SecurityGroup> {
        client.network().security_groups()
    }

    fn adopted(&self) -> Option<Sought> {
        self.spec.adopt.as_ref().map(Sought::from)
    }

    fn attributes(target: &Target<Self>) -> SecurityGroupAttributes {
        Wanted::of(target).attributes()
    }

    fn changes(target: &Target<Self>, group: &openstack::SecurityGroup) -> SecurityGroupAttributes {
        Wanted::of(target).changes(group)
    }

    /// Its rules come after it: each of them makes another revision of the group.
    fn further_updates<'a>(target: &'a Target<Self>, group: &'a openstack::SecurityGroup) -> Vec<Step<'a, ()>> {
        let rules = Wanted::of(target).rules(group);
        if rules.is_empty() { Vec::new() } else { vec![set(&target.client, &group.id, rules).boxed()] }
    }

    fn report(group: &openstack::SecurityGroup, status: &mut SecurityGroupStatus) -> Outcome {
        status.rules = i64::try_from(group.rules.len()).ok();
        Outcome::ready("as declared in Neutron")
    }
}

/// What is new first: what both the old and the new rules let through is never cut off. Neutron has each rule once, so
/// one whose creation is repeated is refused, and was made before.
async fn set(client: &Client, group: &str, rules: Rules) -> Result<(), Stop> {
    let all = client.network().security_group_rules();
    for rule in &rules.missing {
        match all.create(&rule.attributes(group)).await {
            Err(error) if error.kind() == ErrorKind::Conflict => {
                let there = rules_of(client, group).await?;
                if !there.iter().any(|seen| Rule::seen(seen).as_ref() == Some(rule)) {
                    return Err(error.into());
                }
            }
            made => drop(made?),
        }
    }
    let mut unknown = Vec::new();
    for id in &rules.needless {
        if !all.delete(id).await? {
            unknown.push(id);
        }
    }
    if unknown.is_empty() { Ok(()) } else { none_is_foreign(client, group, &unknown).await }
}

/// A rule that an administrator added belongs to his project: ours is shown it with the group, and can't delete it.
async fn none_is_foreign(client: &Client, group: &str, unknown: &[&String]) -> Result<(), Stop> {
    let there = rules_of(client, group).await?;
    let Some(rule) = there.iter().find(|rule| unknown.contains(&&rule.id)) else { return Ok(()) };
    let message = format!("rule {} is not declared and of another project: an administrator has to delete it", rule.id);
    Err(Outcome::blocked("ForeignRule", message).into())
}

async fn rules_of(client: &Client, group: &str) -> Result<Vec<openstack::SecurityGroupRule>, Stop> {
    let group = client.network().security_groups().get(group).await?;
    Ok(group.map(|group| group.rules).unwrap_or_default())
}

listed_in_neutron!(openstack::SecurityGroup, "Neutron security group", security_groups);
