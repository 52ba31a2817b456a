//! News of the Secrets and `ConfigMaps` that configurations name.

use std::sync::Arc;

use futures::{StreamExt, stream::BoxStream};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api, Resource,
    core::{NamespaceResourceScope, PartialObjectMeta},
    runtime::watcher,
};
use kupenstack_runtime::{Context, ObjectRef, Shared};
use serde::de::DeserializeOwned;

use crate::{
    board::Board,
    config::{Holder, Reference},
    service::Kind,
};

/// Helm's records are many, large, changed by every rollout, and nobody's configuration.
const NOT_HELMS: &str = "type!=helm.sh/release.v1";

/// One watch of the metadata of all Secrets and one of all `ConfigMaps` in the cloud's namespace, for all services.
pub(crate) struct References {
    secrets: Arc<Shared<PartialObjectMeta<Secret>>>,
    config_maps: Arc<Shared<PartialObjectMeta<ConfigMap>>>,
}

impl References {
    pub(crate) fn start(context: &Context, namespace: &str) -> Self {
        let all = watcher::Config::default();
        let secrets = Shared::start(api(context, namespace), all.clone().fields(NOT_HELMS), context);
        Self { secrets, config_maps: Shared::start(api(context, namespace), all, context) }
    }

    /// The service's object, whenever something that it names changed, came or went.
    pub(crate) fn changes<M>(
        &self,
        kind: Kind,
        object: ObjectRef<M>,
        board: Arc<Board>,
    ) -> BoxStream<'static, ObjectRef<M>>
    where
        M: Resource<DynamicType = ()> + 'static,
    {
        let concerned = move |holder, name: String| {
            let named = board.names(kind, &Reference { holder, name });
            if named { vec![object.clone()] } else { Vec::new() }
        };
        let of_map = concerned.clone();
        let secrets = self.secrets.changes(move |key, _| concerned(Holder::Secret, key.name.clone()));
        let config_maps = self.config_maps.changes(move |key, _| of_map(Holder::ConfigMap, key.name.clone()));
        futures::stream::select(secrets, config_maps).boxed()
    }
}

fn api<K>(context: &Context, namespace: &str) -> Api<PartialObjectMeta<K>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + 'static,
{
    Api::namespaced(context.client.clone(), namespace)
}
