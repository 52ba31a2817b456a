//! The kinds whose objects are made in a namespace's project, which stays until they are gone.

use std::fmt::Debug;

use futures::{FutureExt, future::BoxFuture};
use kube::{Api, Client, Resource, ResourceExt, api::ListParams, core::NamespaceResourceScope};
use kupenstack_api::{
    FINALIZER,
    resources::{FloatingIP, Image, KeyPair, Network, Port, Router, SecurityGroup, Subnet, VirtualMachine},
};
use kupenstack_runtime::{Failure, apply};
use serde::de::DeserializeOwned;

/// Objects of a kind in a namespace that still have something in the project, as Kubernetes has them now.
type Remaining = for<'a> fn(Client, &'a str) -> BoxFuture<'a, Result<Vec<String>, Failure>>;

/// Those of all kinds.
pub(super) const HELD: [Remaining; 9] = [
    remaining::<FloatingIP>,
    remaining::<Image>,
    remaining::<KeyPair>,
    remaining::<Network>,
    remaining::<Port>,
    remaining::<Router>,
    remaining::<SecurityGroup>,
    remaining::<Subnet>,
    remaining::<VirtualMachine>,
];

fn remaining<K>(client: Client, namespace: &str) -> BoxFuture<'_, Result<Vec<String>, Failure>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned + 'static,
{
    async move {
        let api: Api<K> = Api::namespaced(client, namespace);
        let list = api.list_metadata(&ListParams::default()).await?;
        let held = list.items.into_iter().filter(|object| apply::has_finalizer(object, FINALIZER));
        Ok(held.map(|object| format!("{} {}", K::kind(&()), object.name_any())).collect())
    }
    .boxed()
}
