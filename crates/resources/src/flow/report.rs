//! What an object's status says, and how often it is written.

use std::sync::{Arc, Mutex, PoisonError};

use futures::{FutureExt, channel::mpsc::UnboundedSender, future::BoxFuture};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Api, ResourceExt, runtime::events::EventType};
use kupenstack_api::Conditions;
use kupenstack_core::{
    Outcome,
    conditions::{self, READY, STALLED},
};
use kupenstack_runtime::{Events, Failure, ObjectRef, apply};

use crate::{
    actuator::{Aside, Kind, Progress},
    queue::Call,
};

/// Who is told of objects beside their status.
#[derive(Clone)]
pub(crate) struct Tellers<K: Kind> {
    pub(crate) events: Events,
    /// Objects that are to be looked at.
    pub(crate) calls: UnboundedSender<ObjectRef<K>>,
}

/// Writes the status of one object in one pass.
pub(crate) struct Report<K: Kind> {
    noun: &'static str,
    api: Api<K>,
    tellers: Tellers<K>,
    object: Arc<K>,
    state: tokio::sync::Mutex<State<K::Status>>,
    /// What a long step says that has not been written yet.
    said: Mutex<Option<Outcome>>,
}

struct State<S> {
    written: Option<S>,
    next: S,
    id: Option<String>,
    conditions: Conditions,
    aside: Aside,
}

impl<K: Kind> Report<K> {
    pub(crate) fn new(noun: &'static str, api: Api<K>, tellers: Tellers<K>, object: Arc<K>) -> Self {
        let written = object.status().cloned();
        let next = written.clone().unwrap_or_default();
        let id = K::id(&next).map(ToOwned::to_owned);
        let conditions = object.conditions().to_vec();
        let state = tokio::sync::Mutex::new(State { written, next, id, conditions, aside: Aside::AsBefore });
        Self { noun, api, tellers, object, state, said: Mutex::default() }
    }

    pub(crate) fn object(&self) -> &Arc<K> {
        &self.object
    }

    pub(crate) fn reference(&self) -> ObjectReference {
        self.object.object_ref(&())
    }

    /// Whether the object was as declared, in its present generation, when the pass began.
    pub(crate) fn was_ready(&self) -> bool {
        conditions::is_ready(self.object.conditions(), self.object.meta().generation)
    }

    /// Whether the object said this word, in its present generation, when the pass began.
    pub(crate) fn shows(&self, reason: &str) -> bool {
        let ready = conditions::find(self.object.conditions(), READY);
        ready.is_some_and(|c| c.reason == reason && c.observed_generation == self.object.meta().generation)
    }

    /// Takes over what was observed of the resource.
    pub(crate) async fn observed(
        &self,
        id: &str,
        aside: Aside,
        describe: impl FnOnce(&mut K::Status) -> Outcome,
    ) -> Outcome {
        let mut state = self.state.lock().await;
        (state.id, state.aside) = (Some(id.to_owned()), aside);
        describe(&mut state.next)
    }

    /// From now on no resource belongs to the object.
    pub(crate) async fn forget_id(&self) {
        let mut state = self.state.lock().await;
        (state.id, state.aside) = (None, Aside::None);
    }

    /// Writes what the pass came to, and publishes it if that is news. An object that is gone has no status.
    pub(crate) async fn conclude(&self, outcome: &Outcome) -> Result<(), Failure> {
        if outcome.is_done() && self.object.meta().deletion_timestamp.is_some() {
            return Ok(());
        }
        self.write(outcome).await?;
        if self.object.meta().deletion_timestamp.is_none() {
            self.tellers.events.transition(&self.reference(), self.object.conditions(), outcome).await;
        }
        Ok(())
    }

    /// Writes what a long step said last, if there is news.
    pub(crate) async fn flush(&self) -> Result<(), Failure> {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner).take();
        match said {
            // what failed before is tried again quietly: it would go to and fro between stalled and reconciling
            Some(outcome) if !self.was_stalled() => self.write(&outcome).await,
            _ => Ok(()),
        }
    }

    /// Whether the object has been deleted, or replaced, since the pass began.
    pub(crate) async fn is_outdated(&self) -> Result<bool, Failure> {
        let now = self.api.get_metadata_opt(&self.object.name_any()).await?;
        Ok(now.is_none_or(|now| now.uid() != self.object.uid() || now.metadata.deletion_timestamp.is_some()))
    }

    /// From now on this resource belongs to the object. Whether that is news.
    async fn belongs(&self, id: &str) -> bool {
        self.state.lock().await.id.replace(id.to_owned()).is_none_or(|old| old != id)
    }

    async fn tell_of_creation(&self, id: &str) {
        let note = format!("{} {id} created", self.noun);
        self.tellers.events.publish(&self.reference(), EventType::Normal, "Created", &note).await;
    }

    fn was_stalled(&self) -> bool {
        let stalled = conditions::find(self.object.conditions(), STALLED);
        stalled.is_some_and(|c| c.observed_generation == self.object.meta().generation)
    }

    async fn write(&self, outcome: &Outcome) -> Result<(), Failure> {
        let mut state = self.state.lock().await;
        let generation = self.object.meta().generation;
        let now = Timestamp::now();
        let mut conditions = conditions::render(outcome, generation, &state.conditions, now);
        match &state.aside {
            Aside::AsBefore => conditions.extend(conditions::others(&state.conditions).cloned()),
            Aside::None => {}
            Aside::Not { kind, reason, message } => {
                conditions.push(conditions::one(kind, false, reason, message, generation, &state.conditions, now));
            }
        }
        let mut status = state.next.clone();
        K::set_common(&mut status, state.id.clone(), conditions.clone(), generation);
        apply::status(&self.api, self.object.as_ref(), state.written.as_ref(), &status).await?;
        (state.written, state.conditions) = (Some(status), conditions);
        Ok(())
    }
}

impl<K: Kind> Progress for Report<K> {
    fn say(&self, reason: &'static str, message: String) {
        *self.said.lock().unwrap_or_else(PoisonError::into_inner) = Some(Outcome::waiting(reason, message));
    }

    fn made<'a>(&'a self, id: &'a str) -> BoxFuture<'a, ()> {
        async move {
            if self.belongs(id).await {
                self.tell_of_creation(id).await;
            }
        }
        .boxed()
    }

    fn created<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<(), Failure>> {
        async move {
            let news = self.belongs(id).await;
            let said = self.said.lock().unwrap_or_else(PoisonError::into_inner).take();
            self.write(&said.unwrap_or_else(|| Outcome::waiting("Creating", "being made"))).await?;
            if news {
                self.tell_of_creation(id).await;
            }
            Ok(())
        }
        .boxed()
    }

    fn call(&self) -> Call {
        let (calls, key) = (self.tellers.calls.clone(), ObjectRef::from(self.object.as_ref()));
        // without a listener the controller has ended
        Box::new(move || drop(calls.unbounded_send(key)))
    }
}
