//! Warnings that Kubernetes has written about a pod.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::{Api, Client, ResourceExt, api::ListParams};

use crate::Cause;

/// Events that are read of one pod; equal ones are counted in one.
const LIMIT: u32 = 100;

/// A warning as it is shown.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Warning {
    pub(crate) text: String,
    pub(crate) cause: Option<Cause>,
}

/// The newest warning about the pod that says why it does not get on.
pub(crate) async fn newest(client: &Client, pod: &Pod) -> Result<Option<Warning>, kube::Error> {
    let events: Api<Event> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    let about = format!(
        "involvedObject.kind=Pod,involvedObject.name={},involvedObject.uid={},type=Warning",
        pod.name_any(),
        pod.uid().unwrap_or_default()
    );
    let found = events.list(&ListParams::default().fields(&about).limit(LIMIT)).await?;
    Ok(choose(&found.items))
}

/// One whose meaning is known comes first: the others often only say that it is tried again.
fn choose(events: &[Event]) -> Option<Warning> {
    let warnings = events.iter().map(|event| {
        let (reason, message) = (event.reason.as_deref().unwrap_or_default(), event.message.as_deref());
        let message = message.unwrap_or_default().trim();
        let cause = Cause::of_event(reason, message);
        (cause.is_some(), seen(event), Warning { text: format!("{reason}: {message}"), cause })
    });
    warnings.max_by_key(|(known, seen, _)| (*known, *seen)).map(|(.., warning)| warning)
}

/// When it was last so; writers of events fill different fields.
fn seen(event: &Event) -> Option<Timestamp> {
    let times = [
        event.series.as_ref().and_then(|s| s.last_observed_time.as_ref()).map(|t| t.0),
        event.last_timestamp.as_ref().map(|t| t.0),
        event.event_time.as_ref().map(|t| t.0),
        event.metadata.creation_timestamp.as_ref().map(|t| t.0),
    ];
    times.into_iter().flatten().max()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::Placement;

    fn event(reason: &str, message: &str, last: &str) -> Event {
        serde_json::from_value(json!({
            "metadata": {}, "involvedObject": {}, "reason": reason, "message": message, "lastTimestamp": last,
        }))
        .unwrap()
    }

    #[test]
    fn the_newest_warning_that_says_why_is_chosen() {
        let events = [
            event(
                "FailedMount",
                "MountVolume.SetUp failed for volume \"etc\" : secret \"etc\" not found",
                "2026-01-01T00:00:00Z",
            ),
            event("FailedMount", "Unable to attach or mount volumes: unmounted volumes=[data]", "2026-01-01T00:01:00Z"),
            event("Odd", "?", "2026-01-01T00:02:00Z"),
        ];
        let chosen = choose(&events).unwrap();
        assert_eq!(chosen.text, "FailedMount: Unable to attach or mount volumes: unmounted volumes=[data]");
        assert_eq!(choose(&events[2..]).unwrap(), Warning { text: "Odd: ?".to_owned(), cause: None });
        assert_eq!(choose(&[]), None);
    }

    #[rstest]
    #[case(
        "FailedMount",
        "MountVolume.SetUp failed for volume \"etc\" : secret \"keystone-etc\" not found",
        Cause::MissingConfiguration
    )]
    #[case(
        "FailedMount",
        "MountVolume.SetUp failed for volume \"bin\" : configmap \"keystone-bin\" not found",
        Cause::MissingConfiguration
    )]
    #[case(
        "FailedAttachVolume",
        "Multi-Attach error for volume \"pvc-1\" Volume is already used by pod(s) mariadb-0",
        Cause::VolumeNotMounted
    )]
    #[case(
        "FailedCreatePodSandBox",
        "Failed to create pod sandbox: plugin type=\"bridge\" failed (add)",
        Cause::PodNetwork
    )]
    #[case(
        "FailedScheduling",
        "0/1 nodes are available: 1 Insufficient memory.",
        Cause::Unschedulable(Placement::Resources)
    )]
    #[case("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 500", Cause::ProbeFailing)]
    #[case("Failed", "Failed to pull image \"x\": not found", Cause::ImagePull)]
    fn events_point_to_causes(#[case] reason: &str, #[case] message: &str, #[case] cause: Cause) {
        assert_eq!(Cause::of_event(reason, message), Some(cause));
    }
}
