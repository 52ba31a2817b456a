//! Namespaces with VMs in them, and what those need.

use std::{collections::BTreeMap, fmt::Debug, time::Duration};

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, ListParams, PostParams},
    core::NamespaceResourceScope,
    runtime::{WatchStreamExt, watcher},
};
use kupenstack_api::{
    HasConditions,
    resources::{ClusterImage, Flavor, Network, PROJECT_ID, Subnet, VirtualMachine},
};
use kupenstack_core::conditions;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::{sync::watch, task::JoinHandle, time::Instant};

use crate::stage::{AT_ONCE, Scene, Stage, namespace, source, until};

/// Longer than VMs take whose time is not the figure in question.
const LONGEST: Duration = Duration::from_hours(1);

/// What VMs need.
pub(crate) fn scene(build_time: Duration) -> Scene {
    Scene {
        controllers: "projects,clusterimage,flavor,network,subnet,port,router,externalnetwork,floatingip,virtualmachine,image,\
                      keypair,securitygroup",
        services: &["Keystone", "Glance", "Nova", "Neutron"],
        build_time,
        written: &[
            "virtualmachines",
            "ports",
            "floatingips",
            "routers",
            "networks",
            "subnets",
            "externalnetworks",
            "flavors",
            "images",
            "clusterimages",
            "keypairs",
            "securitygroups",
            "namespaces",
            "secrets",
            "events",
        ],
    }
}

fn is_ready<K: HasConditions + Resource>(object: &K) -> bool {
    conditions::is_ready(object.conditions(), object.meta().generation)
}

/// An object with this spec.
fn object<K: Resource<DynamicType = ()> + DeserializeOwned>(name: &str, spec: &Value) -> K {
    let (version, kind) = (K::api_version(&()), K::kind(&()));
    let object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec});
    serde_json::from_value(object).unwrap()
}

impl Stage {
    /// All objects of a kind.
    async fn all<K>(&self) -> Vec<K>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        Api::all(self.client.clone()).list(&ListParams::default().match_any()).await.unwrap().items
    }

    /// Waits until all objects of a kind are as declared.
    pub(crate) async fn all_ready<K>(&self)
    where
        K: Resource<DynamicType = ()> + HasConditions + Clone + DeserializeOwned + Debug,
    {
        let what = format!("readiness of every {}", K::kind(&()));
        until(&what, Duration::from_millis(200), async || self.all::<K>().await.iter().all(is_ready)).await;
    }

    /// Declares one object of the whole cluster.
    pub(crate) async fn declare_for_all<K>(&self, name: &str, spec: Value)
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + serde::Serialize + Debug,
    {
        Api::<K>::all(self.client.clone()).create(&PostParams::default(), &object(name, &spec)).await.unwrap();
    }

    /// Declares one object of a namespace.
    pub(crate) async fn declare_in<K>(&self, namespace: &str, name: &str, spec: Value)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + serde::Serialize
            + Debug,
    {
        let api = Api::<K>::namespaced(self.client.clone(), namespace);
        api.create(&PostParams::default(), &object(name, &spec)).await.unwrap();
    }

    /// Makes what VMs need: an image and a flavor for all, and in each namespace a network with a subnet.
    pub(crate) async fn furnish(&self) {
        self.declare_for_all::<ClusterImage>("linux", json!({"src": source().await, "format": "raw"})).await;
        self.declare_for_all::<Flavor>("small", json!({"vcpus": 1, "ram": "512Mi", "disk": "1Gi"})).await;
        let networks = stream::iter(0..self.namespaces).map(|number| async move {
            let place = namespace(number);
            self.declare_in::<Network>(&place, "net", json!({})).await;
            self.declare_in::<Subnet>(&place, "sub", json!({"network": "net", "cidr": "10.0.0.0/22"})).await;
        });
        networks.buffer_unordered(AT_ONCE).for_each(|()| async {}).await;
        self.all_ready::<ClusterImage>().await;
        self.all_ready::<Flavor>().await;
        self.all_ready::<Subnet>().await;
    }

    /// Makes a namespace and waits for its project.
    pub(crate) async fn namespace_with_project(&self, name: &str) -> String {
        let api: Api<Namespace> = Api::all(self.client.clone());
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        api.create(&PostParams::default(), &namespace).await.unwrap();
        let has_one = async || api.get(name).await.unwrap().annotations().contains_key(PROJECT_ID);
        until("project", Duration::from_millis(200), has_one).await;
        name.to_owned()
    }

    /// Declares VMs of the namespaces in turn, of which every so many'th is to be stopped.
    pub(crate) async fn declare_vms(&self, from: usize, to: usize, stopped: usize) {
        let made = stream::iter(from..to).map(|number| async move {
            let state = if number % stopped == stopped - 1 { "Stopped" } else { "Running" };
            let spec = json!({
                "clusterImage": "linux", "flavor": "small", "networks": [{"network": "net"}], "powerState": state,
            });
            self.declare_in::<VirtualMachine>(&namespace(number % self.namespaces), &vm(number), spec).await;
        });
        made.buffer_unordered(AT_ONCE).for_each(|()| async {}).await;
    }
}

/// None is to be stopped.
pub(crate) const NONE: usize = usize::MAX;

/// Name of a VM.
pub(crate) fn vm(number: usize) -> String {
    format!("vm-{number}")
}

/// When VMs were first seen to be as declared.
pub(crate) struct Readiness {
    seen: watch::Receiver<BTreeMap<String, Instant>>,
    watching: JoinHandle<()>,
}

impl Readiness {
    pub(crate) fn watch(client: &Client) -> Self {
        let (sender, seen) = watch::channel(BTreeMap::new());
        let api = Api::<VirtualMachine>::all(client.clone());
        let watching = tokio::spawn(async move {
            let mut events =
                std::pin::pin!(watcher(api, watcher::Config::default()).default_backoff().applied_objects());
            while let Some(event) = events.next().await {
                let Ok(vm) = event else { continue };
                let name = vm.name_any();
                sender.send_if_modified(|seen| {
                    let is_news = is_ready(&vm) && !seen.contains_key(&name);
                    is_news.then(|| seen.insert(name, Instant::now())).is_some()
                });
            }
        });
        Self { seen, watching }
    }

    /// Waits until so many were, and returns when the last of them was.
    pub(crate) async fn of(&self, number: usize) -> Instant {
        let mut seen = self.seen.clone();
        let enough = seen.wait_for(|seen| seen.len() >= number);
        let enough = tokio::time::timeout(LONGEST, enough).await;
        let enough = enough.unwrap_or_else(|_| panic!("only {} of {number} VMs were ready", self.seen.borrow().len()));
        enough.unwrap().values().max().copied().unwrap()
    }

    /// Waits for one.
    pub(crate) async fn of_one(&self, name: &str) -> Instant {
        let mut seen = self.seen.clone();
        let there = tokio::time::timeout(LONGEST, seen.wait_for(|seen| seen.contains_key(name))).await;
        there.unwrap_or_else(|_| panic!("{name} was never ready")).unwrap()[name]
    }
}

impl Drop for Readiness {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

/// Deletes all objects of a kind in a namespace, as the namespace's controller does.
pub(crate) async fn delete_all<K>(client: &Client, namespace: &str)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    let api = Api::<K>::namespaced(client.clone(), namespace);
    drop(api.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap());
}

/// How many objects of a kind there are in a namespace.
pub(crate) async fn left<K>(client: &Client, namespace: &str) -> usize
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
{
    Api::<K>::namespaced(client.clone(), namespace).list(&ListParams::default()).await.unwrap().items.len()
}
