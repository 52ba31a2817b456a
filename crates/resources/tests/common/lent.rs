//! Control planes that tests have one after the other: to start one, and to describe our kinds to it, takes most of the time
//! that a short test takes.

use std::{
    collections::VecDeque,
    ops::Deref,
    sync::{Mutex, MutexGuard, PoisonError},
};

use futures::{FutureExt, future::join_all};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        core::v1::{ConfigMap, Namespace, Node, Secret},
        events::v1::Event,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    kube_aggregator::pkg::apis::apiregistration::v1::APIService,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use kupenstack_testkit::{ControlPlane, Options};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::{
    cluster::{CLOUD, OPERATOR},
    look::gone,
};

/// Those that nobody has now, the longest idle first: what a test had on its way there has come by then.
static IDLE: Mutex<VecDeque<ControlPlane>> = Mutex::new(VecDeque::new());

/// Control planes at the same time. Each takes its time to start, and a tenth of a processor as long as it runs: with one for
/// every test that wants one, two processors do little else. Who waits for one costs nothing.
static PLANES: Semaphore = Semaphore::const_new(6);

/// A control plane for one test alone, as long as it takes. Our kinds are defined in it, and there is nothing else.
pub(crate) struct Lent {
    /// None once it is given back.
    plane: Option<ControlPlane>,
    _turn: SemaphorePermit<'static>,
}

impl Lent {
    pub(crate) async fn new() -> Self {
        let turn = PLANES.acquire().await.unwrap();
        let idle = idle().pop_front();
        let is_used = idle.is_some();
        let plane = match idle {
            Some(plane) => plane,
            None => ControlPlane::start_with(Options { controller_manager: true, ..Options::default() }).await,
        };
        let lent = Self { plane: Some(plane), _turn: turn };
        if is_used {
            clear(&lent.client().await).await;
        } else {
            lent.define().await;
        }
        lent
    }

    /// Applies the definitions of our kinds.
    pub(crate) async fn define(&self) {
        let crds: Vec<_> = definitions().iter().map(|crd| serde_json::to_string(crd).unwrap()).collect();
        self.apply_yaml(&crds.join("\n---\n")).await;
    }
}

impl Deref for Lent {
    type Target = ControlPlane;

    fn deref(&self) -> &ControlPlane {
        self.plane.as_ref().unwrap()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // that of a test that fails ends here, and shows its logs
        if !std::thread::panicking() {
            idle().extend(self.plane.take());
        }
    }
}

fn idle() -> MutexGuard<'static, VecDeque<ControlPlane>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn definitions() -> Vec<CustomResourceDefinition> {
    kupenstack_api::crds::all()
}

/// Removes all that a test has made, whoever holds it.
async fn clear(client: &Client) {
    let all = ListParams::default();
    // as long as there is one that nobody serves, no namespace ends
    let services: Api<APIService> = Api::all(client.clone());
    for service in services.list(&all).await.unwrap().items.iter().filter(|one| is_passed_on(one)) {
        remove(&services, service).await;
    }
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let made = namespaces.list(&all).await.unwrap().items.into_iter().filter(|one| !is_of_kubernetes(&one.name_any()));
    let (kept, made): (Vec<_>, Vec<_>) = made.partition(|one| is_for_all(&one.name_any()));
    // first, so that what is let go is not made again
    join_all(made.iter().map(|one| remove(&namespaces, one))).await;
    join_all(definitions().iter().map(|definition| clear_kind(client, definition))).await;
    join_all(kept.iter().filter_map(|one| Some(empty(client, one.metadata.name.as_deref()?)))).await;
    // Kubernetes takes its time for each: more than for all else here. What has a name for itself may go beside the next test.
    let is_awaited = |name: &&str| !name.ends_with(|c: char| c.is_ascii_digit());
    let awaited = made.iter().filter_map(|one| one.metadata.name.as_deref()).filter(is_awaited);
    join_all(awaited.map(|name| gone(namespaces.clone(), name))).await;
    Api::<Node>::all(client.clone()).delete_collection(&DeleteParams::default(), &all).await.unwrap();
    let events: Api<Event> = Api::namespaced(client.clone(), "default");
    events.delete_collection(&DeleteParams::default(), &all).await.unwrap();
}

/// Whether a namespace of this name is one that every test has.
fn is_for_all(namespace: &str) -> bool {
    [CLOUD, OPERATOR].contains(&namespace)
}

/// Removes all that tests have in a namespace beside our kinds.
async fn empty(client: &Client, namespace: &str) {
    join_all([
        remove_all::<Secret>(client, namespace).boxed(),
        remove_all::<ConfigMap>(client, namespace).boxed(),
        remove_all::<Event>(client, namespace).boxed(),
    ])
    .await;
}

async fn remove_all<K>(client: &Client, namespace: &str)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let all: Api<K> = Api::namespaced(client.clone(), namespace);
    all.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
}

fn is_of_kubernetes(namespace: &str) -> bool {
    namespace == "default" || namespace.starts_with("kube-")
}

/// Whether it is not for the API server itself to serve.
fn is_passed_on(service: &APIService) -> bool {
    service.spec.as_ref().is_some_and(|spec| spec.service.is_some())
}

/// Removes all objects of a kind.
async fn clear_kind(client: &Client, definition: &CustomResourceDefinition) {
    let spec = &definition.spec;
    let kind = GroupVersionKind::gvk(&spec.group, &spec.versions[0].name, &spec.names.kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, &spec.names.plural);
    let everywhere: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let found = everywhere.list(&ListParams::default()).await.unwrap().items;
    join_all(found.iter().map(|object| async {
        let api = match object.namespace() {
            Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &resource),
            None => everywhere.clone(),
        };
        remove(&api, object).await;
        gone(api, &object.name_any()).await;
    }))
    .await;
}

/// Deletes an object that nobody holds any more then. It may go by itself at any time.
async fn remove<K>(api: &Api<K>, object: &K)
where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    let name = object.name_any();
    // a namespace that goes later is nothing to anybody
    let free = Patch::Merge(json!({"metadata": {"finalizers": null, "annotations": null}}));
    for result in [
        api.delete(&name, &DeleteParams::default()).await.map(drop),
        api.patch_metadata(&name, &PatchParams::default(), &free).await.map(drop),
    ] {
        match result {
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            result => result.unwrap(),
        }
    }
}
