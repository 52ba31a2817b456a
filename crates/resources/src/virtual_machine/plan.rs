//! What has to be done with a server so that it does what it is to do.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kupenstack_api::{
    HasConditions,
    resources::{PowerState, ResourceKind, RestartPolicy, VirtualMachine},
};
use kupenstack_core::{
    Outcome,
    conditions::{self, READY},
};
use kupenstack_openstack::{Server, ServerAction};

use super::restart;
use crate::flow::ignores_drift;

/// Reason of a VM that has failed and is going to be started again or made anew.
pub(super) const BACK_OFF: &str = "CrashLoopBackOff";

/// Reason of a VM that Nova did not resize.
pub(super) const NOT_RESIZED: &str = "ResizeFailed";

/// Nova finds a host for a server, or none, within seconds. One that has had neither for so long it has lost: whoever was to find a
/// host died with the database or the broker, and Nova itself never looks at it again.
const LOST: SignedDuration = SignedDuration::from_mins(10);

/// Reason of a VM whose server others delete.
const LOSS: &str = "Vanishing";

/// What has to be done. The words are those of the status.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Nothing: it does what it is to do.
    Keep(&'static str),
    /// Nothing for now: Nova is at it.
    Wait(&'static str),
    /// This has to be asked for.
    Act(ServerAction, &'static str),
    /// It has just been seen to have failed.
    Note,
    /// It has failed, and its time has not come.
    Pause,
    /// It was not resized, and it is asked again later.
    Refused,
    /// It is to have another flavor, which is not there.
    Lack(Outcome),
    /// It never came up, and is to be made anew.
    Replace,
    /// It has failed, and is to be left as it is.
    Leave,
    /// It is in a state that somebody else has brought it to.
    Strange,
}

/// What the object said when the pass began.
#[derive(Debug)]
pub(super) struct Prior<'a> {
    vm: &'a VirtualMachine,
}

impl<'a> Prior<'a> {
    pub(super) fn of(vm: &'a VirtualMachine) -> Self {
        Self { vm }
    }

    /// The reason of `Ready`, if it is about what is declared now.
    fn reason(&self) -> Option<&'a str> {
        let ready = conditions::find(self.vm.conditions(), READY)?;
        (ready.observed_generation == self.vm.metadata.generation).then_some(ready.reason.as_str())
    }

    /// Whether it is about this server.
    fn knows(&self, server: &Server) -> bool {
        self.reason().is_some() && self.vm.recorded() == Some(server.id.as_str())
    }

    /// Whether others may do as they like with a VM that was as declared.
    fn leaves_drift(&self) -> bool {
        ignores_drift(self.vm) && conditions::is_ready(self.vm.conditions(), self.vm.metadata.generation)
    }

    /// Whether the server is there in place of one that was lost, and not of one that is known to have failed.
    pub(super) fn had_lost(&self, server: &Server) -> bool {
        let status = self.vm.status.as_ref();
        let (recorded, noted) = (status.and_then(|it| it.id.as_ref()), status.and_then(|it| it.failed_id.as_ref()));
        recorded.is_some_and(|id| *id != server.id) && recorded != noted
    }

    /// Whether it is known to have failed, and is being made anew for that.
    fn is_noted(&self) -> bool {
        self.reason().is_some_and(|reason| [BACK_OFF, "Restarting"].contains(&reason))
    }
}

/// Whether a server is not becoming anything else by itself.
pub(super) fn is_resting(server: &Server) -> bool {
    server.task_state.is_none() && under_way(&server.status).is_none()
}

/// Whether Nova has forgotten that a server is to be made. Of those that it does not know in any cell it says that they changed just
/// now, so that only their beginning tells.
fn is_lost(server: &Server, now: Timestamp) -> bool {
    let has_no_host = server.status == "BUILD" && server.task_state.as_deref() == Some("scheduling");
    has_no_host && server.created.parse().is_ok_and(|created: Timestamp| now.duration_since(created) > LOST)
}

/// The word for a state that is none to stay in.
fn under_way(state: &str) -> Option<&'static str> {
    Some(match state {
        "BUILD" => "Building",
        "RESIZE" | "REVERT_RESIZE" | "VERIFY_RESIZE" => "Resizing",
        "MIGRATING" => "Migrating",
        "REBOOT" | "HARD_REBOOT" | "REBUILD" => "Restarting",
        _ => return None,
    })
}

/// The word for what Nova is doing.
fn task(task: &str) -> &'static str {
    match task {
        "powering-off" => "Stopping",
        "powering-on" | "resuming" | "unpausing" => "Starting",
        "suspending" => "Suspending",
        "migrating" => "Migrating",
        _ if task.starts_with("resize") => "Resizing",
        _ if task.starts_with("re") => "Restarting",
        _ => "Building",
    }
}

/// The identifier of the flavor that a VM is to have. If there is none, why, unless it is told elsewhere.
pub(super) type Size = Result<String, Option<Outcome>>;

/// What is known beside an object and its server when it is planned for them.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) flavor: Size,
    /// The name of that flavor in Nova, which is known also while there is none; none if any will do.
    pub(super) flavor_name: Option<String>,
    /// The server's host, if that is dead.
    pub(super) dead_host: Option<Arc<str>>,
    pub(super) now: Timestamp,
}

/// What has to be done with the server of an object.
pub(super) fn of(vm: &VirtualMachine, server: &Server, case: &Case) -> Plan {
    let now = case.now;
    if case.dead_host.is_some() {
        return on_dead_host(vm, server, now);
    }
    if server.status == "VERIFY_RESIZE" && server.task_state.is_none() && case.flavor_name.is_some() {
        return Plan::Act(ServerAction::ConfirmResize, "Resizing");
    }
    if is_lost(server, now) {
        return failed(vm, server, now, None);
    }
    if let Some(doing) = &server.task_state {
        return Plan::Wait(match doing.as_str() {
            "deleting" if Prior::of(vm).is_noted() => "Restarting",
            "deleting" => LOSS,
            doing => under_way(&server.status).unwrap_or_else(|| task(doing)),
        });
    }
    if let Some(word) = under_way(&server.status) {
        return Plan::Wait(word);
    }
    if Prior::of(vm).leaves_drift() {
        return as_it_is(&server.status).map_or(Plan::Strange, Plan::Keep);
    }
    if server.status == "ERROR" {
        return failed(vm, server, now, server.launched.as_ref().map(|_| ServerAction::Reboot { hard: true }));
    }
    if case.flavor_name.as_ref().is_none_or(|name| *name == server.flavor.original_name) {
        return power(vm, server, now);
    }
    let can_resize = matches!(server.status.as_str(), "ACTIVE" | "SHUTOFF");
    match (&case.flavor, power(vm, server, now)) {
        (Ok(flavor), _) if can_resize => match Prior::of(vm).reason() {
            // that was asked for, and it rests again as it was
            Some("Resizing") => Plan::Refused,
            Some(NOT_RESIZED) if !restart::is_due(vm.status.as_ref(), now) => Plan::Refused,
            _ => Plan::Act(ServerAction::Resize { flavor_id: flavor.clone() }, "Resizing"),
        },
        (Err(Some(why)), Plan::Keep(_)) => Plan::Lack(why.clone()),
        (_, plan) => plan,
    }
}

/// What nobody carries out is not asked for there, but for a deletion. One that is not to run can wait for its host, and so for its disk.
fn on_dead_host(vm: &VirtualMachine, server: &Server, now: Timestamp) -> Plan {
    if server.task_state.as_deref() == Some("deleting") {
        return if vm.adopts() { Plan::Wait(LOSS) } else { Plan::Replace };
    }
    match vm.power_state() {
        Some(PowerState::Running) if Prior::of(vm).leaves_drift() => Plan::Strange,
        Some(PowerState::Running) => failed(vm, server, now, None),
        Some(PowerState::Stopped) => Plan::Keep("Stopped"),
        Some(PowerState::Suspended) => Plan::Keep("Suspended"),
        None => Plan::Strange,
    }
}

fn as_it_is(state: &str) -> Option<&'static str> {
    match state {
        "ACTIVE" => Some("Running"),
        "SHUTOFF" => Some("Stopped"),
        "SUSPENDED" => Some("Suspended"),
        _ => None,
    }
}

fn power(vm: &VirtualMachine, server: &Server, now: Timestamp) -> Plan {
    use PowerState::{Running, Stopped, Suspended};
    let Some(wanted) = vm.power_state() else { return as_it_is(&server.status).map_or(Plan::Strange, Plan::Keep) };
    match (wanted, server.status.as_str()) {
        (Running, "ACTIVE") => Plan::Keep("Running"),
        (Stopped, "SHUTOFF") => Plan::Keep("Stopped"),
        (Suspended, "SUSPENDED") => Plan::Keep("Suspended"),
        (Running, "SHUTOFF") if Prior::of(vm).knows(server) => failed(vm, server, now, Some(ServerAction::Start)),
        (Running | Suspended, "SHUTOFF") => Plan::Act(ServerAction::Start, "Starting"),
        (Running, "SUSPENDED") => Plan::Act(ServerAction::Resume, "Starting"),
        // Nova stops and suspends only what is active
        (Stopped, "SUSPENDED") => Plan::Act(ServerAction::Resume, "Stopping"),
        (_, "PAUSED") => Plan::Act(ServerAction::Unpause, "Starting"),
        (Stopped, "ACTIVE") => Plan::Act(ServerAction::Stop, "Stopping"),
        (Suspended, "ACTIVE") => Plan::Act(ServerAction::Suspend, "Suspending"),
        _ => Plan::Strange,
    }
}

/// What becomes of a VM that does not run, by its policy and its pace. Without a cure it has to be made anew, which nothing tells
/// how to of one that was adopted.
fn failed(vm: &VirtualMachine, server: &Server, now: Timestamp, cure: Option<ServerAction>) -> Plan {
    let was_shut_down = cure == Some(ServerAction::Start);
    match vm.restart_policy() {
        RestartPolicy::Never => return Plan::Leave,
        RestartPolicy::OnFailure if was_shut_down => return Plan::Leave,
        _ if vm.adopts() && cure.is_none() => return Plan::Leave,
        RestartPolicy::Always | RestartPolicy::OnFailure => {}
    }
    if !restart::is_noted(vm.status.as_ref(), server) {
        return Plan::Note;
    }
    match cure {
        _ if !restart::is_due(vm.status.as_ref(), now) => Plan::Pause,
        Some(cure) => Plan::Act(cure, "Starting"),
        None => Plan::Replace,
    }
}

#[cfg(test)]
mod tests;
