//! Kubernetes Events about our objects.

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{
    Client,
    runtime::events::{Event, EventType, Recorder, Reporter},
};
use kupenstack_core::{Outcome, conditions, hash};

/// The API refuses longer notes.
const MAX_NOTE: usize = 1024;

/// Publishes events; repeats within some minutes are counted on one event. Clone it rather than making another.
#[derive(Clone)]
pub struct Events(Recorder);

impl Events {
    /// A publisher that reports as the operator.
    pub fn new(client: Client) -> Self {
        let instance = std::env::var("POD_NAME").ok();
        Self(Recorder::new(client, Reporter { controller: "kupenstack.io/controller".into(), instance }))
    }

    /// Publishes one event. An event that can't be published (a terminating namespace refuses them) is only logged:
    /// the condition says the same.
    pub async fn publish(&self, object: &ObjectReference, type_: EventType, reason: &str, note: &str) {
        let event = Event {
            type_,
            reason: reason.to_owned(),
            note: Some(conditions::truncate(note, MAX_NOTE)),
            // repeats are told apart by everything but the note: without its hash here, another text would be counted
            // as the first one said again
            action: format!("Reconcile-{}", hash::short(&hash::of_bytes(note.as_bytes()))),
            secondary: None,
        };
        if let Err(error) = self.0.publish(&event, object).await {
            tracing::debug!(%error, reason, "event not published");
        }
    }

    /// Publishes that an object became ready or got stuck; nothing when that was so before.
    pub async fn transition(&self, object: &ObjectReference, before: &[Condition], outcome: &Outcome) {
        let old = conditions::find(before, conditions::READY);
        let (type_, news) = match outcome {
            Outcome::Done { .. } => (EventType::Normal, old.is_none_or(|c| c.status != "True")),
            Outcome::Blocked { reason, .. } => (EventType::Warning, old.is_none_or(|c| c.reason != *reason)),
            Outcome::Waiting { .. } => (EventType::Normal, false),
        };
        if news {
            self.publish(object, type_, outcome.reason(), outcome.message()).await;
        }
    }
}
