//! How soon a VM that failed is started again, as Kubernetes does with containers: at once, then after 10 s, 20 s and so on up
//! to 5 minutes; and at once again if it ran for 10 minutes.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kupenstack_api::resources::VirtualMachineStatus;
use kupenstack_openstack::Server;

const SHORTEST: SignedDuration = SignedDuration::from_secs(10);
const LONGEST: SignedDuration = SignedDuration::from_mins(5);
/// As soon as there may be room.
const AGAIN: SignedDuration = SignedDuration::from_mins(1);
/// One that ran for so long is not about to fail at once.
const STEADY: SignedDuration = SignedDuration::from_mins(10);

/// When a server failed or stopped. The same failure is told by the same time, however old what is known of it is.
pub(super) fn failed_at(server: &Server) -> Option<Timestamp> {
    let fault = server.fault.as_ref().filter(|_| server.status == "ERROR");
    // one that never got a host fails for that from its beginning
    let since = if server.status == "BUILD" { &server.created } else { &server.updated };
    fault.map_or(since, |fault| &fault.created).parse().ok()
}

/// Whether the status has taken in that the server failed.
pub(super) fn is_noted(status: Option<&VirtualMachineStatus>, server: &Server) -> bool {
    let Some(status) = status.filter(|status| status.id.as_deref() == Some(&server.id)) else { return false };
    let noted = status.failed_at.as_ref().map(|Time(at)| *at);
    noted.is_some() && noted == failed_at(server)
}

/// Takes in that the VM has failed at a time, beside what is known of it `before`: a status may be described several times in
/// a pass.
pub(super) fn count(
    before: &VirtualMachineStatus,
    status: &mut VirtualMachineStatus,
    failed_at: Option<Timestamp>,
    now: Timestamp,
) {
    let rest = rest(before, now);
    status.restarts = before.restarts + 1;
    status.failed_at = Some(Time(failed_at.unwrap_or(now)));
    status.retry_at = Some(Time(now.saturating_add(rest).unwrap_or(Timestamp::MAX)));
}

/// Has what Nova did not do asked for again after a minute, and says how long that is.
pub(super) fn postpone(before: &VirtualMachineStatus, status: &mut VirtualMachineStatus, now: Timestamp) -> Duration {
    if is_due(Some(before), now) {
        status.retry_at = Some(Time(now.saturating_add(AGAIN).unwrap_or(Timestamp::MAX)));
    }
    wait(status, now)
}

fn rest(status: &VirtualMachineStatus, now: Timestamp) -> SignedDuration {
    let (Some(Time(failed)), Some(Time(retried))) = (&status.failed_at, &status.retry_at) else {
        return SignedDuration::ZERO;
    };
    if now.duration_since(*retried) > STEADY {
        return SignedDuration::ZERO;
    }
    (retried.duration_since(*failed) * 2).clamp(SHORTEST, LONGEST)
}

/// Whether the time has come.
pub(super) fn is_due(status: Option<&VirtualMachineStatus>, now: Timestamp) -> bool {
    status.is_none_or(|status| wait(status, now).is_zero())
}

/// How long it is until then.
pub(super) fn wait(status: &VirtualMachineStatus, now: Timestamp) -> Duration {
    let Some(Time(at)) = &status.retry_at else { return Duration::ZERO };
    Duration::try_from(at.duration_since(now)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_is_that_of_containers() {
        let mut status = VirtualMachineStatus::default();
        let mut now = Timestamp::UNIX_EPOCH;
        let mut rests = Vec::new();
        for _ in 0..8 {
            count(&status.clone(), &mut status, None, now);
            let rest = wait(&status, now);
            assert!(rest.is_zero() || !is_due(Some(&status), now));
            rests.push(rest.as_secs());
            // it fails again a second after it was started
            now += rest + Duration::from_secs(1);
            assert!(is_due(Some(&status), now));
        }
        assert_eq!(rests, [0, 10, 20, 40, 80, 160, 300, 300]);
        now += STEADY;
        count(&status.clone(), &mut status, None, now);
        assert_eq!((wait(&status, now), status.restarts), (Duration::ZERO, 9));
    }
}
