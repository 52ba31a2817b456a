//! A cluster with a cloud in it, and the controllers at work.

use std::{fmt::Debug, ops::Deref, sync::OnceLock, time::Duration};

use k8s_openapi::api::{
    core::v1::{Namespace, Secret},
    events::v1::Event,
};
use kube::{
    Api, Client, Config, Resource, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
    core::NamespaceResourceScope,
    runtime::{conditions::is_deleted, wait::await_condition},
};
use kupenstack_api::resources::{Image, PROJECT_ID, ResourceKind};
use kupenstack_testkit::sim::{self, Cloud, Entity, Rule, Sim, SimOptions};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

pub(crate) use crate::common::{
    cluster::CLOUD,
    look::{self, disk, eventually, gone, id, is_ready, object, shown, until, within},
};
use crate::common::{
    cluster::{ADMIN_SECRET, Cluster},
    operator::{Operator, runtime},
};

pub(crate) struct World {
    cluster: Cluster,
    pub(crate) sim: Sim,
    kubernetes: Config,
    folder: tempfile::TempDir,
}

impl Deref for World {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

/// The world that most tests share, each in a namespace of its own. It lives in a runtime of its own: a test's ends
/// with the test.
pub(crate) async fn shared() -> &'static World {
    static WORLD: OnceLock<(World, Operator, Runtime)> = OnceLock::new();
    let world = tokio::task::spawn_blocking(|| {
        WORLD.get_or_init(|| {
            let runtime = runtime();
            let (world, operator) = runtime.block_on(async {
                let world = World::start().await;
                world.declare_cloud().await;
                let operator = world.operator();
                (world, operator)
            });
            (world, operator, runtime)
        })
    });
    &world.await.unwrap().0
}

impl World {
    /// A cluster and a cloud that nobody has declared yet.
    pub(crate) async fn start() -> Self {
        Self::start_with(SimOptions::default()).await
    }

    /// The same with such a cloud.
    pub(crate) async fn start_with(options: SimOptions) -> Self {
        let cluster = Cluster::start().await;
        let kubeconfig = Kubeconfig::read_from(cluster.plane.kubeconfig_path()).unwrap();
        let kubernetes = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        let sim = Sim::start(options);
        Self { cluster, sim, kubernetes, folder: tempfile::tempdir().unwrap() }
    }

    /// Declares the cloud, and says that it is ready.
    pub(crate) async fn declare_cloud(&self) {
        self.cluster.give_admin(&self.client().await, ADMIN_SECRET, &self.sim).await.unwrap();
        self.cluster.declare_cloud().await;
    }

    /// Starts the controllers, with nothing remembered.
    pub(crate) fn operator(&self) -> Operator {
        Operator::start(self.kubernetes.clone(), self.folder.path().join("images"))
    }

    /// The same, and what fails is tried again by itself only after longer than any test waits.
    pub(crate) fn patient_operator(&self) -> Operator {
        let folder = self.folder.path().join("images");
        Operator::start_with(self.kubernetes.clone(), folder, &[], |_, context| context.retry = Duration::from_mins(5))
    }

    /// A new namespace.
    pub(crate) async fn namespace(&self, annotations: &[(&str, &str)]) -> Tenant<'_> {
        let name = format!("shop-{}", crate::common::cluster::number());
        self.namespace_named(&name, annotations).await
    }

    pub(crate) async fn namespace_named(&self, name: &str, annotations: &[(&str, &str)]) -> Tenant<'_> {
        self.make_namespace(name, annotations).await;
        Tenant { world: self, client: self.client().await, name: name.to_owned() }
    }

    /// A new namespace with its project.
    pub(crate) async fn tenant(&self) -> Tenant<'_> {
        let tenant = self.namespace(&[]).await;
        tenant.project().await;
        tenant
    }

    /// Files left in the folder for images.
    pub(crate) fn leftovers(&self) -> usize {
        std::fs::read_dir(self.folder.path().join("images")).unwrap().count()
    }

    /// Lets the next request that fits go wrong.
    pub(crate) fn fail_next(&self, rule: Rule) {
        self.sim.cloud().faults.add(rule.once());
    }

    /// From now on every request is answered with 503, or no longer.
    pub(crate) fn set_down(&self, down: bool) {
        let mut cloud = self.sim.cloud();
        cloud.faults.clear();
        if down {
            cloud.faults.add(Rule::outage());
        }
    }

    /// How many requests of this method had this text in their path.
    pub(crate) fn count(&self, method: &str, text: &str) -> usize {
        let cloud = self.sim.cloud();
        cloud.journal.entries().filter(|entry| entry.method == method && entry.path.contains(text)).count()
    }

    /// Waits until a list of everything is complete that began after this. Each has one request of this template.
    pub(crate) async fn lists(&self, template: &str) {
        let asked = || self.sim.cloud().journal.count("GET", template);
        let before = asked();
        // one under way may still have to ask, and the next one is complete when another one asks
        eventually("lists", async || asked() >= before + 3).await;
    }

    /// How many requests of any method had this text in their path.
    pub(crate) fn asked(&self, text: &str) -> usize {
        self.sim.cloud().journal.entries().filter(|entry| entry.path.contains(text)).count()
    }

    /// Images of this name, of whoever.
    pub(crate) fn named(&self, name: &str) -> Vec<sim::Image> {
        self.sim.cloud().glance.named(name).cloned().collect()
    }

    /// Changes an image behind our back.
    pub(crate) fn meddle(&self, id: &str, change: impl FnOnce(&mut sim::Image)) {
        let now = self.sim.clock().now();
        assert!(self.sim.cloud().glance.edit(now, id, change), "no image {id}");
    }

    /// Deletes an image behind our back.
    pub(crate) fn delete_image(&self, id: &str) {
        let now = self.sim.clock().now();
        assert!(self.sim.cloud().glance.remove(now, id), "no image {id}");
    }
}

/// A resource kind whose objects are in namespaces.
pub(crate) trait Namespaced:
    ResourceKind
    + Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}

impl<K> Namespaced for K where
    K: ResourceKind
        + Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// A namespace, and what tests do in it.
pub(crate) struct Tenant<'a> {
    pub(crate) world: &'a World,
    pub(crate) client: Client,
    pub(crate) name: String,
}

impl Tenant<'_> {
    pub(crate) fn namespaces(&self) -> Api<Namespace> {
        Api::all(self.client.clone())
    }

    /// The objects of a kind in the namespace.
    pub(crate) fn api<K: Namespaced>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), &self.name)
    }

    pub(crate) async fn create<K: Namespaced>(&self, name: &str, spec: Value) -> K {
        self.api().create(&PostParams::default(), &object(name, &spec)).await.unwrap()
    }

    pub(crate) async fn patch<K: Namespaced>(&self, name: &str, patch: Value) {
        self.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    }

    /// Has an object looked at now, unless it has just gone: a change of its annotations makes a pass.
    pub(crate) async fn nudge<K: Namespaced>(&self, name: &str) {
        look::nudge(self.api::<K>(), name).await;
    }

    /// Waits until an object is as declared.
    pub(crate) async fn ready<K: Namespaced>(&self, name: &str) -> K {
        until(self.api(), name, is_ready).await
    }

    /// Waits until an object says this word, and returns its message.
    pub(crate) async fn says<K: Namespaced>(&self, name: &str, word: &str) -> String {
        let object: K = until(self.api(), name, |object| shown(object).0 == word).await;
        shown(&object).1.to_owned()
    }

    pub(crate) fn images(&self) -> Api<Image> {
        self.api()
    }

    pub(crate) fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), CLOUD)
    }

    pub(crate) fn secret_name(&self) -> String {
        format!("project-{}", self.name)
    }

    /// Waits for the project and returns its id.
    pub(crate) async fn project(&self) -> String {
        let namespace = self.until_namespace(|n| n.annotations().contains_key(PROJECT_ID)).await;
        namespace.annotations()[PROJECT_ID].clone()
    }

    /// The namespace's user as Keystone has it.
    pub(crate) fn user(&self) -> Option<Entity> {
        user_of(&self.world.sim.cloud(), &self.name)
    }

    pub(crate) fn is_known_to_keystone(&self) -> bool {
        let cloud = self.world.sim.cloud();
        cloud.keystone.find("projects", &self.name).is_some() || user_of(&cloud, &self.name).is_some()
    }

    /// Puts an image into the project, as if somebody had made it.
    pub(crate) async fn put_image(&self, id: String, change: impl FnOnce(&mut sim::Image)) {
        let project = self.project().await;
        let now = self.world.sim.clock().now();
        let mut image = sim::Image::new(id, &project, now);
        change(&mut image);
        self.world.sim.cloud().glance.put(now, image);
    }

    pub(crate) async fn until_namespace(&self, fits: impl Fn(&Namespace) -> bool + Send + Sync) -> Namespace {
        until(self.namespaces(), &self.name, fits).await
    }

    pub(crate) async fn annotate(&self, annotations: Value) {
        let patch = json!({"metadata": {"annotations": annotations}});
        self.namespaces().patch(&self.name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    }

    pub(crate) async fn label(&self, labels: &Value) {
        let patch = json!({"metadata": {"labels": labels}});
        self.namespaces().patch(&self.name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    }

    /// An image that is ready.
    pub(crate) async fn ready_image(&self, name: &str) -> Image {
        let src = self.world.serve(&disk(4096)).await;
        self.create::<Image>(name, json!({"src": src, "format": "raw"})).await;
        self.until(name, is_ready).await
    }

    pub(crate) async fn edit(&self, name: &str, spec: Value) -> Image {
        let patch = json!({"spec": spec});
        self.images().patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap()
    }

    pub(crate) async fn until(&self, name: &str, fits: impl Fn(&Image) -> bool + Send + Sync) -> Image {
        until(self.images(), name, fits).await
    }

    /// Deletes an image, unless that is done already, and waits until it is gone.
    pub(crate) async fn delete(&self, name: &str) {
        match self.images().delete(name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => return,
            result => drop(result.unwrap()),
        }
        gone(self.images(), name).await;
    }

    /// Deletes the namespace and waits until it is gone.
    pub(crate) async fn end(&self) {
        let uid = self.namespaces().get(&self.name).await.unwrap().uid().unwrap();
        self.namespaces().delete(&self.name, &DeleteParams::default()).await.unwrap();
        let gone = await_condition(self.namespaces(), &self.name, is_deleted(&uid));
        within(gone, &format!("the end of namespace {}", self.name)).await.unwrap();
    }

    /// Waits for an event about the namespace.
    pub(crate) async fn told(&self, reason: &str) {
        let events: Api<Event> = Api::namespaced(self.client.clone(), "default");
        let about = ListParams::default().fields(&format!("regarding.name={}", self.name));
        let told = async || events.list(&about).await.unwrap().iter().any(|e| e.reason.as_deref() == Some(reason));
        eventually(reason, told).await;
    }

    /// Reasons of the events about an object.
    pub(crate) async fn events(&self, name: &str) -> Vec<String> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), &self.name);
        let about = ListParams::default().fields(&format!("regarding.name={name}"));
        events.list(&about).await.unwrap().into_iter().filter_map(|event| event.reason).collect()
    }
}

/// The only user whose name begins with a namespace's.
fn user_of(cloud: &Cloud, namespace: &str) -> Option<Entity> {
    let beginning = format!("{namespace}-");
    let mut all = cloud.keystone.all("users").filter(|user| user.text("name").starts_with(&beginning));
    let user = all.next().cloned();
    assert!(all.next().is_none(), "one user per namespace");
    user
}
