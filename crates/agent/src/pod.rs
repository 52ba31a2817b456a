//! What a pod's object alone says. Pure.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateTerminated, ContainerStatus, Pod, PodCondition, PodStatus,
};
use kube::ResourceExt;

use crate::{Cause, SLOW, Severity};

/// What is wrong with a pod, and where more is to be learnt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) container: Option<String>,
    pub(crate) problem: String,
    pub(crate) cause: Option<Cause>,
    pub(crate) since: Option<Timestamp>,
    pub(crate) severity: Severity,
    /// Whether the container has run, so that it has a log.
    pub(crate) log: bool,
    /// Whether the pod's warnings may say more.
    pub(crate) events: bool,
}

impl Finding {
    fn failing(problem: String) -> Self {
        let severity = Severity::Failing;
        Self { container: None, problem, cause: None, since: None, severity, log: false, events: false }
    }

    fn slow(problem: String, since: Option<Timestamp>) -> Self {
        Self { severity: Severity::Slow, since, events: true, ..Self::failing(problem) }
    }

    fn of(self, container: &ContainerStatus) -> Self {
        Self { container: Some(container.name.clone()), ..self }
    }
}

/// The worst thing about the pod; `None` when it serves, is done or is merely starting.
pub(crate) fn look(pod: &Pod, now: Timestamp) -> Option<Finding> {
    let status = pod.status.as_ref()?;
    if let Some(end) = pod.metadata.deletion_timestamp.as_ref().map(|t| t.0) {
        return stuck_ending(pod, end, now);
    }
    match status.phase.as_deref() {
        Some("Succeeded") => None,
        Some("Failed") => failing_container(pod).or_else(|| Some(failed(status))),
        _ => failing_container(pod).or_else(|| unschedulable(status)).or_else(|| slow(pod, status, now)),
    }
}

/// Whether the pod belongs to a Job: then it is meant to end, and its dead predecessors tell what happened.
pub(crate) fn of_job(pod: &Pod) -> bool {
    pod.owner_references().iter().any(|o| o.kind == "Job") || pod.labels().contains_key("batch.kubernetes.io/job-name")
}

fn stuck_ending(pod: &Pod, end: Timestamp, now: Timestamp) -> Option<Finding> {
    if !passed(Some(end), now) {
        return None;
    }
    let held = if pod.finalizers().is_empty() {
        "its node does not report that it has ended".to_owned()
    } else {
        format!("held by the finalizers {}", pod.finalizers().join(", "))
    };
    Some(Finding::slow(format!("should have ended {} ago; {held}", span(now, end)), Some(end)))
}

/// A pod that failed as a whole: evicted, out of time, refused by its node.
fn failed(status: &PodStatus) -> Finding {
    let reason = status.reason.clone().unwrap_or_else(|| "Failed".to_owned());
    let message = status.message.clone().unwrap_or_default();
    Finding { cause: Cause::of_pod(&reason, &message), ..Finding::failing(joined(&reason, &message)) }
}

/// The scheduler has looked and found no node. Others may make room, so it is not a failure yet.
fn unschedulable(status: &PodStatus) -> Option<Finding> {
    let scheduled = condition(status, "PodScheduled").filter(|c| c.status == "False")?;
    let message = scheduled.message.clone().unwrap_or_default();
    let reason = scheduled.reason.as_deref().unwrap_or_default();
    (reason == "Unschedulable").then(|| Finding {
        cause: Some(Cause::of_scheduling(&message)),
        events: false,
        ..Finding::slow(joined("can't be scheduled", &message), transition(scheduled))
    })
}

fn containers(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    let status = pod.status.iter();
    status.flat_map(|s| s.init_container_statuses.iter().flatten().chain(s.container_statuses.iter().flatten()))
}

/// The first container that fails.
pub(crate) fn failing_container(pod: &Pod) -> Option<Finding> {
    containers(pod).find_map(|c| {
        let state = c.state.as_ref()?;
        waiting(c, state).or_else(|| ended(c, state)).or_else(|| restarting(c, state)).map(|f| f.of(c))
    })
}

/// A container that can't start, or not yet again.
fn waiting(container: &ContainerStatus, state: &ContainerState) -> Option<Finding> {
    let waiting = state.waiting.as_ref()?;
    let reason = waiting.reason.as_deref().unwrap_or_default();
    // being created and initialised is normal, everything else is not
    if matches!(reason, "" | "ContainerCreating" | "PodInitializing") {
        return None;
    }
    let message = waiting.message.as_deref().unwrap_or_default();
    let Some(end) = last_end(container) else {
        return Some(Finding {
            cause: Cause::of_waiting(reason, message),
            ..Finding::failing(joined(reason, message))
        });
    };
    let mut finding = of_end(end);
    if reason == "CrashLoopBackOff" {
        // its message only says how long it waits before the next try
        finding.problem = format!("{reason}, {}{}", finding.problem, restarts(container));
    } else {
        finding.problem = format!("{}, {}{}", joined(reason, message), finding.problem, restarts(container));
        finding.cause = Cause::of_waiting(reason, message).or(finding.cause);
    }
    Some(finding)
}

/// A container that has failed.
fn ended(container: &ContainerStatus, state: &ContainerState) -> Option<Finding> {
    let end = state.terminated.as_ref().filter(|t| t.exit_code != 0)?;
    let finding = of_end(end);
    Some(Finding { problem: format!("{}{}", finding.problem, restarts(container)), ..finding })
}

/// A container that runs between two crashes. One restart is no loop: it may have been too early the first time.
fn restarting(container: &ContainerStatus, state: &ContainerState) -> Option<Finding> {
    state.running.as_ref()?;
    let end = last_end(container).filter(|t| t.exit_code != 0)?;
    (container.restart_count > 1 && !container.ready).then(|| {
        let finding = of_end(end);
        Finding { problem: format!("runs again after {}{}", finding.problem, restarts(container)), ..finding }
    })
}

fn of_end(end: &ContainerStateTerminated) -> Finding {
    let reason = end.reason.as_deref().unwrap_or("Error");
    let message = end.message.as_deref().unwrap_or_default().trim();
    Finding {
        cause: Cause::of_end(reason, end.exit_code, message),
        since: end.finished_at.as_ref().map(|t| t.0),
        log: end.started_at.is_some(),
        // killed, and not for its memory: a warning says whether its probe had failed
        events: end.exit_code == 137 && reason != "OOMKilled",
        ..Finding::failing(joined(&format!("{reason}, exit code {}", end.exit_code), message))
    }
}

fn last_end(container: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    container.last_state.as_ref()?.terminated.as_ref()
}

fn restarts(container: &ContainerStatus) -> String {
    match container.restart_count {
        0 => String::new(),
        1 => ", 1 restart".to_owned(),
        n => format!(", {n} restarts"),
    }
}

/// What has not failed but should have got further by now.
fn slow(pod: &Pod, status: &PodStatus, now: Timestamp) -> Option<Finding> {
    let Some(scheduled) = condition(status, "PodScheduled").filter(|c| c.status == "True").and_then(transition) else {
        let made = pod.creation_timestamp().map(|t| t.0);
        // a pod that already has a node was put there by hand, without the scheduler
        let assigned = pod.spec.as_ref().is_some_and(|s| s.node_name.is_some());
        return if assigned { hanging(pod, status, made, now) } else { late(made, now, "has had no node for") };
    };
    hanging(pod, status, Some(scheduled), now)
}

fn hanging(pod: &Pod, status: &PodStatus, scheduled: Option<Timestamp>, now: Timestamp) -> Option<Finding> {
    if let Some(container) = running_init(pod).or_else(|| running_main(pod)) {
        let started = container.state.as_ref()?.running.as_ref()?.started_at.as_ref().map(|t| t.0);
        let finding = late(started, now, "has been running and is not done after")?;
        return Some(Finding { log: true, ..finding }.of(container));
    }
    // While an image is pulled after init containers, Kubernetes still calls that initialising.
    let creating = containers(pod).find(|c| c.state.as_ref().is_some_and(|s| s.waiting.is_some()));
    if let Some(container) = creating {
        let initialised = containers(pod).filter_map(|c| c.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref());
        let since = scheduled.max(initialised.map(|t| t.0).max());
        return late(since, now, "is still being created after").map(|f| f.of(container));
    }
    let mut main = status.container_statuses.iter().flatten();
    if let Some(container) = main.find(|c| !c.ready && c.state.as_ref().is_some_and(|s| s.running.is_some())) {
        let started = container.state.as_ref()?.running.as_ref()?.started_at.as_ref().map(|t| t.0);
        // what was ready once is unready since then, not since its start
        let unready = condition(status, "ContainersReady").filter(|c| c.status == "False").and_then(transition);
        let finding = late(started.max(unready), now, "runs but has not been ready for")?;
        return Some(Finding { log: true, ..finding }.of(container));
    }
    if status.container_statuses.is_none() {
        return late(scheduled, now, "has a node but has not been started for");
    }
    let ready = condition(status, "Ready").filter(|c| c.status != "True" && !of_job(pod))?;
    let finding = late(transition(ready), now, "has not been ready for")?;
    let said = [&ready.reason, &ready.message].map(|t| t.clone().unwrap_or_default());
    let problem = joined(&finding.problem, &said.into_iter().filter(|t| !t.is_empty()).collect::<Vec<_>>().join(": "));
    Some(Finding { problem, ..finding })
}

/// The init container that the pod waits for. A sidecar is meant to stay.
fn running_init(pod: &Pod) -> Option<&ContainerStatus> {
    let sidecar = |name: &str| {
        let declared = pod.spec.iter().flat_map(|s| s.init_containers.iter().flatten());
        declared.into_iter().any(|c| c.name == name && c.restart_policy.as_deref() == Some("Always"))
    };
    let mut statuses = pod.status.iter().flat_map(|s| s.init_container_statuses.iter().flatten());
    statuses.find(|c| c.state.as_ref().is_some_and(|s| s.running.is_some()) && !sidecar(&c.name))
}

/// The container that a Job waits for.
fn running_main(pod: &Pod) -> Option<&ContainerStatus> {
    let mut statuses = pod.status.iter().flat_map(|s| s.container_statuses.iter().flatten());
    statuses.find(|c| c.state.as_ref().is_some_and(|s| s.running.is_some())).filter(|_| of_job(pod))
}

/// Slowness since a time, once it is long enough ago.
fn late(since: Option<Timestamp>, now: Timestamp, what: &str) -> Option<Finding> {
    let since = since.filter(|_| passed(since, now))?;
    Some(Finding::slow(format!("{what} {}", span(now, since)), Some(since)))
}

fn passed(since: Option<Timestamp>, now: Timestamp) -> bool {
    let limit = SignedDuration::try_from(SLOW).unwrap_or(SignedDuration::MAX);
    since.is_some_and(|since| now.duration_since(since) >= limit)
}

/// Whole minutes, so that a message that says it stays the same for a while.
fn span(now: Timestamp, since: Timestamp) -> String {
    match now.duration_since(since).as_mins() {
        0 => "less than a minute".to_owned(),
        1 => "1 minute".to_owned(),
        minutes if minutes < 120 => format!("{minutes} minutes"),
        minutes => format!("{} hours", minutes / 60),
    }
}

fn condition<'a>(status: &'a PodStatus, kind: &str) -> Option<&'a PodCondition> {
    status.conditions.iter().flatten().find(|c| c.type_ == kind)
}

fn transition(condition: &PodCondition) -> Option<Timestamp> {
    condition.last_transition_time.as_ref().map(|t| t.0)
}

fn joined(what: &str, more: &str) -> String {
    if more.is_empty() { what.to_owned() } else { format!("{what}: {more}") }
}

#[cfg(test)]
mod tests;
