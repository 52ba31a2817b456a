//! What the status says of a server.

use std::time::Duration;

use kupenstack_api::resources::{
    ResourceKind, RestartPolicy, VirtualMachine, VirtualMachineFault, VirtualMachineStatus,
};
use kupenstack_core::{Outcome, conditions::UP_TO_DATE};
use kupenstack_openstack::{Server, ServerAddress};

use super::{
    apart,
    plan::{BACK_OFF, Case, NOT_RESIZED, Plan},
    restart,
};
use crate::{
    actuator::{Aside, Target},
    placement::labels_of,
};

/// What is being made has nothing to show yet, and would have to be written once more.
pub(super) fn describe(vm: &VirtualMachine, server: &Server, plan: &Plan, status: &mut VirtualMachineStatus) {
    if server.status == "BUILD" {
        return;
    }
    status.state = Some(server.status.clone());
    status.addresses = addresses(vm, server);
    // users are not told, so that what an administrator's list showed stays, unless that was another server
    if server.host.is_some() || vm.recorded() != Some(&server.id) {
        status.node.clone_from(&server.host);
    }
    if matches!(plan, Plan::Keep(_)) {
        status.fault = None;
        // an operator that has just begun does not know yet that its host is dead
        if !restart::is_noted(vm.status.as_ref(), server) {
            status.failed_id = None;
        }
    }
    if let Some(fault) = &server.fault {
        status.fault = Some(VirtualMachineFault {
            code: i64::from(fault.code),
            message: fault.message.trim().to_owned(),
            since: fault.created.clone(),
        });
    }
}

/// Floating IPs first, then as the networks are declared.
fn addresses(vm: &VirtualMachine, server: &Server) -> Vec<String> {
    let position = |network: &str| vm.spec.networks.iter().position(|named| named.network.as_deref() == Some(network));
    let mut networks: Vec<_> = server.addresses.iter().collect();
    networks.sort_by_key(|(name, _)| position(name).unwrap_or(usize::MAX));
    let all: Vec<&ServerAddress> = networks.into_iter().flat_map(|(_, addresses)| addresses).collect();
    let (floating, fixed): (Vec<_>, Vec<_>) = all.into_iter().partition(|address| address.is_floating());
    floating.into_iter().chain(fixed).map(|address| address.addr.clone()).collect()
}

/// What a pass comes to.
pub(super) fn outcome(
    target: &Target<VirtualMachine>,
    server: &Server,
    plan: &Plan,
    case: &Case,
    status: &mut VirtualMachineStatus,
) -> Outcome {
    let (vm, id, now) = (&target.object, &server.id, case.now);
    let before = vm.status.clone().unwrap_or_default();
    match plan {
        Plan::Keep(word) => {
            let message = dead(server, case).unwrap_or_else(|| format!("server {id} is {}", server.status));
            Outcome::Done { reason: word, message }
        }
        Plan::Wait("Building") => Outcome::waiting("Building", format!("Nova makes server {id}")),
        Plan::Wait(word) | Plan::Act(_, word) => Outcome::waiting(word, doing(server)),
        Plan::Replace => {
            Outcome::waiting("Restarting", format!("server {id} is made anew: {}", why(target, server, case)))
        }
        Plan::Note => {
            restart::count(&before, status, restart::failed_at(server), now);
            status.failed_id = Some(id.clone());
            back_off(target, server, case, status)
        }
        Plan::Pause => back_off(target, server, case, status),
        Plan::Refused => {
            let wait = restart::postpone(&before, status, now);
            let (is, wanted) = (&server.flavor.original_name, case.flavor_name.as_deref().unwrap_or_default());
            let message = format!(
                "Nova left server {id} at flavor {is}: mostly no host has room for {wanted}, or its image does not fit; it is asked \
                 again in {} s",
                wait.as_secs().max(1)
            );
            Outcome::waiting(NOT_RESIZED, message).within(wait)
        }
        Plan::Lack(why) => why.clone(),
        Plan::Leave if server.status == "SHUTOFF" && case.dead_host.is_none() => {
            let message = format!(
                "server {id} was shut down, and restartPolicy leaves it so: set powerState to Stopped and then to Running to \
                 start it"
            );
            Outcome::blocked("Stopped", message)
        }
        Plan::Leave => Outcome::blocked("Failed", format!("{}: {}", why(target, server, case), left_by(vm))),
        Plan::Strange => {
            let message = dead(server, case)
                .unwrap_or_else(|| format!("server {id} is {}, which somebody else must end", server.status));
            Outcome::blocked("Failed", message)
        }
    }
}

/// That the node of a VM has not the labels that the VM is to be on.
pub(super) fn misplaced(vm: &VirtualMachine, node: &str) -> Aside {
    let labels = labels_of(vm);
    let message = format!(
        "it is on node {node}, which does not have {labels} now, and stays there: label the node so again, have Nova move the VM \
         (openstack server migrate), or change spec.nodeSelector"
    );
    Aside::Not { kind: UP_TO_DATE, reason: "NodeChanged", message }
}

fn back_off(target: &Target<VirtualMachine>, server: &Server, case: &Case, status: &VirtualMachineStatus) -> Outcome {
    let wait = restart::wait(status, case.now);
    let can_be_started = case.dead_host.is_none() && (server.status == "SHUTOFF" || server.launched.is_some());
    let cure = if can_be_started { "started again" } else { "made anew" };
    let when = if wait.is_zero() { "now".to_owned() } else { format!("after {} s", wait.as_secs().max(1)) };
    Outcome::waiting(BACK_OFF, format!("{}; it is {cure} {when}", why(target, server, case)))
        .within(wait.max(Duration::from_millis(100)))
}

fn doing(server: &Server) -> String {
    match &server.task_state {
        Some(task) => format!("server {} is {}, {task}", server.id, server.status),
        None if server.status == "BUILD" => {
            format!(
                "Nova has found no host for server {}, nor said that there is none, since {}",
                server.id, server.created
            )
        }
        None => format!("server {} is {}", server.id, server.status),
    }
}

/// Where that is told which Nova leaves out. It forgets why a host could not make a server when there is no other host to try.
fn unsaid(fault: &str) -> Option<&'static str> {
    let forgets = fault.contains("Exhausted all hosts");
    forgets.then_some("why a node could not make it, such as a full disk, is in the log of its nova-compute")
}

/// Why nothing is done about a VM that has failed.
fn left_by(vm: &VirtualMachine) -> &'static str {
    match (vm.restart_policy(), vm.power_state()) {
        (_, None) => "it was adopted and has no powerState, so that it is left so",
        (RestartPolicy::Never, _) => "restartPolicy leaves it so",
        _ => "it was adopted, and can't be made anew",
    }
}

/// That its host is.
fn dead(server: &Server, case: &Case) -> Option<String> {
    case.dead_host.as_ref().map(|node| format!("node {node}, which server {} is on, is out of service", server.id))
}

fn why(target: &Target<VirtualMachine>, server: &Server, case: &Case) -> String {
    if let Some(dead) = dead(server, case) {
        return dead;
    }
    match &server.fault {
        Some(fault) => {
            let more = apart::lack(target, server).or_else(|| unsaid(&fault.message).map(ToOwned::to_owned));
            let more = more.map(|more| format!("; {more}")).unwrap_or_default();
            format!("Nova says: {} (code {}){more}", fault.message.trim(), fault.code)
        }
        None if server.status == "BUILD" => {
            format!(
                "Nova has found no host for server {}, nor said that there is none, since {}",
                server.id, server.created
            )
        }
        None => format!("server {} is {}", server.id, server.status),
    }
}
