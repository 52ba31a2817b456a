use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, pinned_kind};
use kube::runtime::wait::{await_condition, conditions::is_crd_established};
use kube::{Client, ResourceExt};
use serde_json::Value;
use tokio::time::timeout;

/// CRDs are served within a second of their creation.
const CRD_LIMIT: Duration = Duration::from_mins(1);

/// Applies every document; an object without a namespace that needs one goes to `default`.
pub(crate) async fn apply(client: &Client, yaml: &str) {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(yaml).unwrap_or_else(|error| panic!("not YAML: {error}\n{yaml}"));
    let objects = documents.into_iter().filter(|document| !document.is_null()).map(|document| {
        serde_json::from_value(document).unwrap_or_else(|error| panic!("not a Kubernetes object: {error}\n{yaml}"))
    });
    let objects: Vec<DynamicObject> = objects.collect();
    // each definition has the API server describe all that it serves anew, or all of them together
    for together in objects.chunk_by(|one, next| is_definition(one) && is_definition(next)) {
        join_all(together.iter().map(|object| async {
            let applied = apply_one(client, object).await;
            applied.unwrap_or_else(|error| panic!("cannot apply {}: {error}", object.name_any()));
        }))
        .await;
    }
}

fn is_definition(object: &DynamicObject) -> bool {
    object.types.as_ref().is_some_and(|types| types.kind == "CustomResourceDefinition")
}

async fn apply_one(client: &Client, object: &DynamicObject) -> Result<(), kube::Error> {
    let types = object.types.clone().unwrap_or_default();
    let kind = GroupVersionKind::try_from(&types).unwrap_or_else(|error| panic!("{types:?}: {error}"));
    let (resource, capabilities) = pinned_kind(client, &kind).await?;
    let api: Api<DynamicObject> = match capabilities.scope {
        Scope::Cluster => Api::all_with(client.clone(), &resource),
        Scope::Namespaced => {
            let namespace = object.metadata.namespace.as_deref().unwrap_or("default");
            Api::namespaced_with(client.clone(), namespace, &resource)
        }
    };
    let name = object.name_any();
    api.patch(&name, &PatchParams::apply("testkit").force(), &Patch::Apply(object)).await?;
    if is_definition(object) {
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        let established = await_condition(definitions.clone(), &name, is_crd_established());
        let served = matches!(timeout(CRD_LIMIT, established).await, Ok(Ok(_)));
        assert!(served, "{name} is not served after {CRD_LIMIT:?}");
        let definition = definitions.get(&name).await?;
        timeout(CRD_LIMIT, discoverable(client, &definition)).await.unwrap_or_else(|_| panic!("{name} is not listed"));
    }
    Ok(())
}

/// Waits until the kind is listed, which comes a little after it is served; nothing tells of that.
async fn discoverable(client: &Client, definition: &CustomResourceDefinition) {
    let spec = &definition.spec;
    for version in spec.versions.iter().filter(|version| version.served) {
        let kind = GroupVersionKind::gvk(&spec.group, &version.name, &spec.names.kind);
        while pinned_kind(client, &kind).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
