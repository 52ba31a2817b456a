//! Which hosts are dead, and what Nova is to be told of them, as a pure function of what Nova and Kubernetes say.

use kupenstack_core::ownership::ClusterId;
use kupenstack_openstack::{ComputeService, ServiceChanges};

use crate::nodes::Presence;

/// The longest reason in Nova.
const LONGEST: usize = 255;
/// What comes before the reason that an administrator gave for the same host.
const BEFORE: &str = "; disabled before: ";

/// What is to be made of a host.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is as it is to be.
    Fine,
    /// Its node is gone, and its heartbeats are not: they cease within a minute, unless it is alive.
    Doubtful,
    /// It is dead, and Nova knows.
    Fenced,
    /// The same, because of us, and there is no node that it could come back on.
    Gone,
    /// It is dead, and Nova is to be told.
    Fence(ServiceChanges),
    /// It is not dead any more, and Nova is to be told.
    Release(ServiceChanges),
}

/// Judges each host. Where more than half of all seem to be gone it is rather that hosts are no nodes, or that nodes are not seen.
pub(super) fn of<'a>(
    cluster: &ClusterId,
    services: &'a [ComputeService],
    presence: impl Fn(&str) -> Presence,
) -> Vec<(&'a ComputeService, Verdict)> {
    let absent = services.iter().filter(|service| presence(&service.host) == Presence::Absent).count();
    let can_be_gone = absent * 2 <= services.len();
    let judge = |service: &'a ComputeService| {
        let verdict = match presence(&service.host) {
            Presence::There if is_ours(cluster, service) => Verdict::Release(as_before(service)),
            Presence::There => Verdict::Fine,
            Presence::Absent if !can_be_gone => Verdict::Fine,
            Presence::Absent if service.is_up() => Verdict::Doubtful,
            Presence::Absent if service.forced_down && is_ours(cluster, service) => Verdict::Gone,
            Presence::OutOfService | Presence::Absent if service.forced_down => Verdict::Fenced,
            Presence::OutOfService | Presence::Absent => Verdict::Fence(down(cluster, service)),
        };
        (service, verdict)
    };
    services.iter().map(judge).collect()
}

/// What a reason begins with that we gave.
fn mark(cluster: &ClusterId) -> String {
    format!("kupenstack:{cluster}: node out of service")
}

fn is_ours(cluster: &ClusterId, service: &ComputeService) -> bool {
    service.disabled_reason.as_ref().is_some_and(|reason| reason.starts_with(&mark(cluster)))
}

/// That a host is down, with all that is needed to say one day that it is not.
fn down(cluster: &ClusterId, service: &ComputeService) -> ServiceChanges {
    let given = service.disabled_reason.as_deref().unwrap_or_default();
    let reason = match service.status.as_str() {
        _ if is_ours(cluster, service) => given.to_owned(),
        "disabled" => format!("{}{BEFORE}{given}", mark(cluster)),
        _ => mark(cluster),
    };
    let disabled_reason = Some(reason.chars().take(LONGEST).collect());
    ServiceChanges { status: "disabled", disabled_reason, forced_down: true }
}

/// What an administrator had said of a host before we said that it is down.
fn as_before(service: &ComputeService) -> ServiceChanges {
    let before = service.disabled_reason.as_ref().and_then(|reason| reason.split_once(BEFORE));
    let disabled_reason = before.map(|(_, before)| before.to_owned()).filter(|before| !before.is_empty());
    let status = if before.is_some() { "disabled" } else { "enabled" };
    ServiceChanges { status, disabled_reason, forced_down: false }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn cluster() -> ClusterId {
        "6f2b6a2e-1f0a-4a55-9c58-0d4f3ad0f7a1".parse().unwrap()
    }

    fn service(host: &str, state: &str) -> ComputeService {
        let text = |text: &str| text.to_owned();
        ComputeService {
            id: text(host),
            binary: text("nova-compute"),
            host: text(host),
            state: text(state),
            status: text("enabled"),
            disabled_reason: None,
            forced_down: false,
        }
    }

    /// Nova does what it is told.
    fn told(service: &ComputeService, changes: ServiceChanges) -> ComputeService {
        let ServiceChanges { status, disabled_reason, forced_down } = changes;
        let state = if forced_down { "down" } else { "up" }.to_owned();
        ComputeService { status: status.to_owned(), disabled_reason, forced_down, state, ..service.clone() }
    }

    fn verdict(service: &ComputeService, presence: Presence) -> Verdict {
        let services = [service.clone(), self::service("other", "up")];
        let present = |host: &str| if host == "other" { Presence::There } else { presence };
        of(&cluster(), &services, present).swap_remove(0).1
    }

    #[rstest]
    #[case(Presence::There, "up", true)]
    #[case(Presence::There, "down", true)]
    #[case(Presence::OutOfService, "up", false)]
    #[case(Presence::OutOfService, "down", false)]
    #[case(Presence::Absent, "down", false)]
    fn only_a_fact_makes_a_host_dead(#[case] presence: Presence, #[case] state: &str, #[case] is_fine: bool) {
        let verdict = verdict(&service("node", state), presence);
        assert_eq!(verdict == Verdict::Fine, is_fine, "{verdict:?}");
        assert_eq!(matches!(verdict, Verdict::Fence(_)), !is_fine, "{verdict:?}");
    }

    #[test]
    fn one_whose_node_is_gone_is_believed_as_long_as_it_speaks() {
        assert_eq!(verdict(&service("node", "up"), Presence::Absent), Verdict::Doubtful);
    }

    #[rstest]
    #[case::enabled("enabled", None)]
    #[case::disabled("disabled", None)]
    #[case::disabled_for_a_reason("disabled", Some("new disks; soon"))]
    fn what_an_administrator_had_said_comes_back(#[case] status: &str, #[case] reason: Option<&str>) {
        let mut host = service("node", "up");
        (host.status, host.disabled_reason) = (status.to_owned(), reason.map(ToOwned::to_owned));
        let Verdict::Fence(changes) = verdict(&host, Presence::OutOfService) else { panic!("not fenced") };
        assert!(changes.forced_down && changes.status == "disabled");
        let fenced = told(&host, changes);
        assert_eq!(verdict(&fenced, Presence::OutOfService), Verdict::Fenced);
        assert_eq!(verdict(&fenced, Presence::Absent), Verdict::Gone);
        let Verdict::Release(changes) = verdict(&fenced, Presence::There) else { panic!("not released") };
        assert_eq!(told(&fenced, changes), host);
    }

    #[test]
    fn what_others_said_is_theirs_to_take_back() {
        let host = ComputeService { forced_down: true, ..service("node", "down") };
        assert_eq!(verdict(&host, Presence::OutOfService), Verdict::Fenced);
        assert_eq!(verdict(&host, Presence::Absent), Verdict::Fenced, "it may be a host that is no node");
        assert_eq!(verdict(&host, Presence::There), Verdict::Fine);
    }

    #[test]
    fn a_host_that_was_said_to_be_up_too_early_is_down_again() {
        let host = service("node", "up");
        let Verdict::Fence(changes) = verdict(&host, Presence::OutOfService) else { panic!("not fenced") };
        let early = ComputeService { forced_down: false, ..told(&host, changes.clone()) };
        assert_eq!(verdict(&early, Presence::OutOfService), Verdict::Fence(changes));
    }

    #[test]
    fn a_long_reason_is_cut() {
        let mut host = service("node", "up");
        (host.status, host.disabled_reason) = ("disabled".to_owned(), Some("ä".repeat(250)));
        let Verdict::Fence(changes) = verdict(&host, Presence::OutOfService) else { panic!("not fenced") };
        assert_eq!(changes.disabled_reason.unwrap().chars().count(), LONGEST);
    }

    #[rstest]
    #[case(1, true)]
    #[case(2, true)]
    #[case(3, false)]
    fn more_than_half_can_not_be_gone(#[case] absent: usize, #[case] are_gone: bool) {
        let hosts: Vec<_> = (0..4).map(|n| service(&n.to_string(), "down")).collect();
        let presence = |host: &str| {
            if host.parse::<usize>().unwrap() < absent { Presence::Absent } else { Presence::There }
        };
        let fenced = of(&cluster(), &hosts, presence);
        let fenced = fenced.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Fence(_))).count();
        assert_eq!(fenced, if are_gone { absent } else { 0 });
    }
}
