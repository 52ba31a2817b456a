//! From a service kind to the engine and back.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture, stream::BoxStream};
use k8s_openapi::api::{batch::v1::Job, core::v1::Secret};
use kube::{
    Api, Resource, ResourceExt,
    core::{NamespaceResourceScope, PartialObjectMeta},
    runtime::watcher,
};
use kupenstack_api::{
    FINALIZER,
    cluster::{ServiceResource, ServiceStatus},
};
use kupenstack_core::{Outcome, conditions, reason};
use kupenstack_runtime::{Context, Controller, Events, Failure, ObjectRef, Reconcile, apply, changes_of};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use crate::{
    board::Board,
    engine::{Engine, Passed},
    jobs::SERVICE,
    references::References,
    service::{Request, Service},
};

/// The controller of one service kind in the cloud's namespace.
pub(crate) fn controller<K>(
    service: &'static dyn Service,
    context: &Context,
    engine: &Arc<Engine>,
    board: &Arc<Board>,
    references: &References,
    namespace: &str,
) -> (&'static str, BoxFuture<'static, ()>)
where
    K: ServiceResource + Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    K: Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
{
    let name = service.kind().object();
    let object = ObjectRef::<K>::new(name).within(namespace);
    let controller = Controller::<K>::in_namespace(name, context, namespace)
        .concurrency(1)
        .trigger(board.changes(object.clone()))
        .trigger(references.changes(service.kind(), object.clone(), Arc::clone(board)))
        .trigger(changes::<K, Secret>(context, namespace, name, SERVICE))
        .trigger(changes::<K, Job>(context, namespace, name, "release_group"))
        .trigger(engine.inventory.changes(name, &object));
    let (events, stop) = (Events::new(context.client.clone()), context.stop.clone());
    let reconciler = ServiceController { service, engine: Arc::clone(engine), events, stop };
    (name, controller.run(Arc::new(reconciler), context.clone()).boxed())
}

/// News of objects that carry the service's name in a label, metadata only.
fn changes<K, W>(context: &Context, namespace: &str, service: &str, label: &str) -> BoxStream<'static, ObjectRef<K>>
where
    K: Resource<DynamicType = ()> + 'static,
    W: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    W: Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
{
    let object = ObjectRef::<K>::new(service).within(namespace);
    let config = watcher::Config::default().labels(&format!("{label}={service}"));
    let api: Api<PartialObjectMeta<W>> = Api::namespaced(context.client.clone(), namespace);
    changes_of(api, config, context, move |_| vec![object.clone()])
}

struct ServiceController {
    service: &'static dyn Service,
    engine: Arc<Engine>,
    events: Events,
    stop: CancellationToken,
}

impl<K> Reconcile<K> for ServiceController
where
    K: ServiceResource + Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    K: Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
{
    fn reconcile(&self, object: Arc<K>) -> BoxFuture<'_, Result<Outcome, Failure>> {
        async move {
            let namespace = object.namespace().unwrap_or_default();
            let api: Api<K> = Api::namespaced(self.engine.client.clone(), &namespace);
            // read anew: the watch may lag behind our own last write, and a pass compares with what is stored
            let Some(object) = api.get_opt(&object.name_any()).await? else {
                return Ok(Outcome::ready("gone"));
            };
            let request = request(&object);
            if request.deleting {
                return self.remove(&api, &object, &request).await;
            }
            if !apply::add_finalizer(&api, &object, FINALIZER).await? {
                return Ok(Outcome::ready("gone"));
            }
            match self.engine.pass(self.service, &request).await {
                Ok(Passed { outcome, status, notes }) => {
                    apply::status(&api, &object, object.status(), &status).await?;
                    let reference = object.object_ref(&());
                    for note in notes {
                        self.events.publish(&reference, note.type_, note.reason, &note.message).await;
                    }
                    self.events.transition(&reference, object.conditions(), &outcome).await;
                    Ok(outcome)
                }
                // an operator that stops has no news of the service: its own watches have ended
                Err(error) if self.stop.is_cancelled() => Err(error.into()),
                Err(error) => {
                    let needs_a_person = error.needs_a_person();
                    let failure = Failure::from(error);
                    let outcome = if needs_a_person {
                        Outcome::blocked(failure.reason(), failure.message())
                    } else {
                        Outcome::waiting(failure.reason(), failure.message())
                    };
                    apply::status(&api, &object, object.status(), &with_outcome(&request, &outcome)).await?;
                    Err(failure)
                }
            }
        }
        .boxed()
    }
}

impl ServiceController {
    async fn remove<K>(&self, api: &Api<K>, object: &K, request: &Request) -> Result<Outcome, Failure>
    where
        K: ServiceResource + Resource<DynamicType = ()>,
        K: Clone + DeserializeOwned + std::fmt::Debug + Send + Sync + 'static,
    {
        if !apply::has_finalizer(object, FINALIZER) {
            return Ok(Outcome::ready("gone"));
        }
        let outcome = self.engine.remove(self.service, request).await?;
        if outcome.is_done() {
            apply::remove_finalizer(api, object, FINALIZER).await?;
            return Ok(outcome);
        }
        let status = with_outcome(request, &outcome);
        apply::status(api, object, object.status(), &status).await?;
        Ok(while_leaving(outcome))
    }
}

/// How soon a service that is to go is looked at again: users may delete at any time what keeps it.
fn while_leaving(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Blocked { message, .. } => Outcome::waiting(reason::DELETING, message),
        other => other,
    }
}

/// The status as it was, with other conditions.
fn with_outcome(request: &Request, outcome: &Outcome) -> ServiceStatus {
    let (generation, before) = (request.generation, &request.status);
    let mut conditions = conditions::render(outcome, generation, &before.conditions, jiff::Timestamp::now());
    conditions.extend(conditions::others(&before.conditions).cloned());
    ServiceStatus { conditions, observed_generation: generation, ..before.clone() }
}

/// What a pass reads of the object.
pub(crate) fn request<K: ServiceResource + Resource<DynamicType = ()>>(object: &K) -> Request {
    let annotation = |name: &str| object.meta().annotations.as_ref().and_then(|all| all.get(name)).cloned();
    Request {
        namespace: object.namespace().unwrap_or_default(),
        generation: object.meta().generation,
        deleting: object.meta().deletion_timestamp.is_some(),
        owner: object.controller_owner_ref(&()).unwrap_or_default(),
        common: object.common().clone(),
        replicas: object.replicas(),
        nodes: object.nodes(),
        own: object.own(),
        volume: object.volume().cloned(),
        status: object.status().cloned().unwrap_or_default(),
        retry: annotation(crate::RETRY),
        replace: annotation(crate::REPLACE),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_keeps_a_service_is_looked_at_as_soon_as_its_removal_says() {
        let soon = Outcome::waiting(reason::DELETING, "pods").within(Duration::from_secs(3));
        assert_eq!(while_leaving(soon.clone()), soon);
        assert_eq!(while_leaving(Outcome::blocked("InUse", "VMs")), Outcome::waiting(reason::DELETING, "VMs"));
    }
}
