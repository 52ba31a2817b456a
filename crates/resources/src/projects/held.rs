//! The kinds whose objects are made in a namespace's project, which stays until they are gone.

use std::{fmt::Debug, sync::Arc};

use futures::{FutureExt, future::BoxFuture, stream::BoxStream};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::ListParams,
    core::{NamespaceResourceScope, PartialObjectMeta},
    runtime::watcher,
};
use kupenstack_api::{
    FINALIZER,
    resources::{FloatingIP, Image, KeyPair, Network, Port, Router, SecurityGroup, Subnet, VirtualMachine},
};
use kupenstack_runtime::{Context, Failure, ObjectRef, apply, changes_of};
use serde::de::DeserializeOwned;

use crate::{cloud::Cloud, wake};

/// All of them.
pub(super) static HELD: [Held; 9] = [
    Held::of::<FloatingIP>(),
    Held::of::<Image>(),
    Held::of::<KeyPair>(),
    Held::of::<Network>(),
    Held::of::<Port>(),
    Held::of::<Router>(),
    Held::of::<SecurityGroup>(),
    Held::of::<Subnet>(),
    Held::of::<VirtualMachine>(),
];

type Names<'a> = BoxFuture<'a, Result<Vec<String>, Failure>>;

/// One of the kinds.
pub(super) struct Held {
    /// Namespaces that are being deleted and lost an object of the kind, or are about to.
    pub(super) emptied: fn(&Arc<Cloud>, &Context) -> BoxStream<'static, ObjectRef<Namespace>>,
    /// Objects of the kind in a namespace that still have something in the project.
    pub(super) remaining: for<'a> fn(Client, &'a str) -> Names<'a>,
}

impl Held {
    const fn of<K>() -> Self
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + DeserializeOwned
            + Send
            + Sync
            + 'static,
    {
        Self { emptied: emptied::<K>, remaining: |client, namespace| remaining::<K>(client, namespace).boxed() }
    }
}

fn emptied<K>(cloud: &Arc<Cloud>, context: &Context) -> BoxStream<'static, ObjectRef<Namespace>>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Send + 'static,
{
    let cloud = Arc::clone(cloud);
    let api: Api<PartialObjectMeta<K>> = Api::all(cloud.kubernetes());
    changes_of(api, watcher::Config::default(), context, move |object| {
        let namespace = object.namespace().and_then(|name| cloud.namespace(&name));
        let leaving = namespace.filter(|namespace| namespace.metadata.deletion_timestamp.is_some());
        leaving.map(|namespace| wake::reference(&namespace)).into_iter().collect()
    })
}

async fn remaining<K>(client: Client, namespace: &str) -> Result<Vec<String>, Failure>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(client, namespace);
    let list = api.list_metadata(&ListParams::default()).await?;
    let held = list.items.into_iter().filter(|object| apply::has_finalizer(object, FINALIZER));
    Ok(held.map(|object| format!("{} {}", K::kind(&()), object.name_any())).collect())
}
