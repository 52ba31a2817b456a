//! VMs that share no node: server groups, which Nova has see to that. They can have no mark but in their names.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use kupenstack_api::resources::{AntiAffinity, AntiAffinityPolicy, VirtualMachine};
use kupenstack_core::{Outcome, ownership::described, reason};
use kupenstack_openstack::{Server, ServerGroup};
use tokio::time::Instant;

use crate::{
    actuator::{LATE, Target},
    needs::Key,
    realm::place_of,
    stop::Stop,
};

/// What VMs share that are kept apart from each other.
pub(super) fn shared(vm: &VirtualMachine) -> Option<Key> {
    let apart = vm.spec.anti_affinity.as_ref()?;
    Some(Key { kind: "ServerGroup", place: place_of(vm).into(), name: title(apart).into() })
}

/// What is to be added to Nova's words when it has found no host, if being apart may be why.
pub(super) fn lack(target: &Target<VirtualMachine>, server: &Server) -> Option<String> {
    let apart = target.object.spec.anti_affinity.as_ref()?;
    let found_none = server.fault.as_ref().is_some_and(|fault| fault.message.contains("No valid host"));
    let is_strict = apart.policy() == AntiAffinityPolicy::Required;
    (found_none && is_strict && target.sharers > 0).then(|| {
        let (group, all) = (&apart.group, target.sharers + 1);
        format!("group {group} takes a node with room for each of its {all} VMs, and there are fewer")
    })
}

fn title(apart: &AntiAffinity) -> String {
    format!("{} {}", apart.group, policy(apart))
}

/// Nova's word.
fn policy(apart: &AntiAffinity) -> &'static str {
    match apart.policy() {
        AntiAffinityPolicy::Required => "anti-affinity",
        AntiAffinityPolicy::Preferred => "soft-anti-affinity",
    }
}

/// The groups that a VM may be in, the one to use first: one that has servers, else the one that is always the same.
fn ours(all: Vec<ServerGroup>, name: &str) -> Vec<ServerGroup> {
    let mut ours: Vec<_> = all.into_iter().filter(|group| group.name == name).collect();
    ours.sort_by(|a, b| (a.members.is_empty(), &a.id).cmp(&(b.members.is_empty(), &b.id)));
    ours
}

/// Makes and removes the groups.
#[derive(Default)]
pub(super) struct Groups {
    /// What is known of whether there is another group beside the one that is used. Of what was there when this process began,
    /// nothing is.
    known: Mutex<HashMap<Key, Known>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// There is none.
    Alone,
    /// There may be, and may come to be: a request was lost then.
    Lost(Instant),
}

impl Groups {
    /// The id of the group that a VM's server is to be made in. There is one afterwards.
    pub(super) async fn id(&self, target: &Target<VirtualMachine>) -> Result<Option<String>, Stop> {
        let Some(apart) = &target.object.spec.anti_affinity else { return Ok(None) };
        let Some(name) = name(target, apart) else {
            let message = "the namespace is not known yet";
            return Err(Outcome::waiting(reason::PROJECT_NOT_READY, message).into());
        };
        let compute = target.client.compute();
        let found = ours(compute.list_server_groups().await?, &name);
        if let Some(first) = found.first() {
            remove(target, unused(&found)).await?;
            return Ok(Some(first.id.clone()));
        }
        self.doubt(&target.object);
        let made = compute.create_server_group(&name, policy(apart)).await?;
        if target.is_new {
            // no request was made before
            self.learn(&target.object, Known::Alone);
        }
        Ok(Some(made.id))
    }

    /// A request for a VM's group may have been lost, or come beside another operator's.
    pub(super) fn doubt(&self, vm: &VirtualMachine) {
        self.learn(vm, Known::Lost(Instant::now()));
    }

    /// Whether there may be another group beside the one that a VM is in.
    pub(super) fn may_be_more(&self, vm: &VirtualMachine) -> bool {
        shared(vm).is_some_and(|shared| self.known().get(&shared) != Some(&Known::Alone))
    }

    /// Removes the groups of a VM that was the last in them, else those beside the one that is used.
    pub(super) async fn sweep(&self, target: &Target<VirtualMachine>, is_last: bool) -> Result<(), Stop> {
        let vm = &target.object;
        let named = vm.spec.anti_affinity.as_ref().and_then(|apart| name(target, apart));
        let (Some(shared), Some(name)) = (shared(vm), named) else { return Ok(()) };
        let began = Instant::now();
        let found = ours(list(target).await?, &name);
        if is_last {
            // a list may be of before there was one, and nobody looks again
            let found = if found.is_empty() { ours(list(target).await?, &name) } else { found };
            remove(target, found.iter()).await?;
            self.known().remove(&shared);
            return Ok(());
        }
        remove(target, unused(&found)).await?;
        let known = self.known().get(&shared).copied();
        if !matches!(known, Some(Known::Lost(at)) if began.duration_since(at) < LATE) {
            self.learn(vm, Known::Alone);
        }
        Ok(())
    }

    fn learn(&self, vm: &VirtualMachine, known: Known) {
        if let Some(shared) = shared(vm) {
            self.known().insert(shared, known);
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Key, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All groups that whoever acts can see.
async fn list(target: &Target<VirtualMachine>) -> Result<Vec<ServerGroup>, Stop> {
    let compute = target.client.compute();
    match target.owner {
        Some(_) => Ok(compute.list_server_groups().await?),
        None => Ok(compute.survey_server_groups().await?),
    }
}

/// Name of the group in Nova. It is nobody else's, and the same in all of a namespace's projects.
fn name(target: &Target<VirtualMachine>, apart: &AntiAffinity) -> Option<String> {
    Some(described(&title(apart), target.place_mark.as_ref()?))
}

/// What of these no server is in, beside the one to use.
fn unused(found: &[ServerGroup]) -> impl Iterator<Item = &ServerGroup> {
    found.iter().skip(1).filter(|group| group.members.is_empty())
}

async fn remove(target: &Target<VirtualMachine>, groups: impl Iterator<Item = &ServerGroup>) -> Result<(), Stop> {
    for group in groups {
        target.client.compute().delete_server_group(&group.id).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(id: &str, name: &str, members: &[&str]) -> ServerGroup {
        ServerGroup {
            id: id.to_owned(),
            name: name.to_owned(),
            policy: "anti-affinity".to_owned(),
            members: members.iter().map(ToString::to_string).collect(),
            project_id: "p".to_owned(),
        }
    }

    /// What is removed beside the one that is used has no servers that would not be apart any more.
    #[test]
    fn of_several_groups_the_one_with_servers_is_used() {
        let all = || {
            vec![
                group("3", "web", &["s1"]),
                group("2", "web", &[]),
                group("1", "web", &[]),
                group("0", "other", &["s2"]),
            ]
        };
        let found = ours(all(), "web");
        let ids = |groups: Vec<&ServerGroup>| groups.into_iter().map(|group| group.id.clone()).collect::<Vec<_>>();
        assert_eq!(ids(found.iter().collect()), ["3", "1", "2"]);
        assert_eq!(ids(unused(&found).collect()), ["1", "2"]);
        let both = vec![group("2", "web", &["s1"]), group("1", "web", &["s2"])];
        assert_eq!(ids(unused(&ours(both, "web")).collect()), Vec::<String>::new());
        assert!(unused(&[]).next().is_none());
    }

    #[test]
    fn a_name_tells_the_group_the_policy_and_whose_it_is() {
        let apart = |policy| AntiAffinity { group: "x".repeat(63), policy };
        let titles = [None, Some(AntiAffinityPolicy::Preferred)].map(|policy| title(&apart(policy)));
        assert_eq!(titles[0], format!("{} anti-affinity", "x".repeat(63)));
        assert_eq!(titles[1], format!("{} soft-anti-affinity", "x".repeat(63)));
        let uuid = "6f2b6a2e-1f0a-4a55-9c58-0d4f3ad0f7a1";
        let mark = uuid.parse::<kupenstack_core::ownership::ClusterId>().unwrap().mark(uuid);
        let name = described(&titles[1], &mark);
        assert!(name.len() <= 255 && kupenstack_core::ownership::mark_in(&name) == Some(&mark), "{name}");
    }
}
