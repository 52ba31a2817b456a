//! A cluster with a cloud in it, and the controllers at work.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    future::Future,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use futures::future::join_all;
use k8s_openapi::{
    ByteString,
    api::{
        core::v1::{Namespace, Secret},
        events::v1::Event,
    },
};
use kube::{
    Api, Client, Config, Resource, ResourceExt,
    api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
    runtime::{conditions::is_deleted, wait::await_condition},
};
use kupenstack_api::{
    cluster::OpenStack,
    resources::{Image, PROJECT_ID},
};
use kupenstack_core::conditions::{self, READY};
use kupenstack_resources::Settings;
use kupenstack_runtime::{Context, metrics::Metrics};
use kupenstack_testkit::{ControlPlane, Options};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::{runtime::Runtime, task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;
use wiremock::{Mock, MockServer, ResponseTemplate, matchers::path};

use crate::fake::{ADMIN_PASSWORD, Fake};

/// Identifier of the cluster in marks.
pub(crate) const CLUSTER: &str = "6f2b6a2e-1f0a-4a55-9c58-0d4f3ad0f7a1";
/// Namespace of the cloud.
pub(crate) const CLOUD: &str = "cloud";
/// Two cores build and test at the same time.
const LIMIT: Duration = Duration::from_mins(2);

pub(crate) struct World {
    pub(crate) plane: ControlPlane,
    pub(crate) fake: Fake,
    pub(crate) web: MockServer,
    pub(crate) folder: tempfile::TempDir,
    next: AtomicU32,
}

/// The controllers at work, in a runtime of their own as in a process of their own.
pub(crate) struct Operator {
    stop: CancellationToken,
    controllers: JoinHandle<()>,
    runtime: Runtime,
}

impl Operator {
    /// Lets passes under way end.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.controllers.await.unwrap();
        self.runtime.shutdown_background();
    }

    /// Ends everything where it is, as a crash does.
    pub(crate) fn crash(self) {
        self.runtime.shutdown_background();
    }
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
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
        // shown by RUST_LOG; another world of this process may have set it up
        let filter = tracing_subscriber::EnvFilter::from_default_env();
        let _ = tracing_subscriber::fmt().with_env_filter(filter).with_test_writer().try_init();
        let plane = ControlPlane::start_with(Options { controller_manager: true, ..Options::default() }).await;
        let crds: Vec<_> = kupenstack_api::crds::all().iter().map(|crd| serde_json::to_string(crd).unwrap()).collect();
        plane.apply_yaml(&crds.join("\n---\n")).await;
        let (fake, web) = (Fake::start().await, MockServer::start().await);
        let world = Self { plane, fake, web, folder: tempfile::tempdir().unwrap(), next: AtomicU32::new(0) };
        let namespaces: Api<Namespace> = Api::all(world.client().await);
        for name in [CLOUD, "operator"] {
            namespaces.create(&PostParams::default(), &namespace(name, &[])).await.unwrap();
        }
        world
    }

    pub(crate) async fn client(&self) -> Client {
        self.plane.client().await
    }

    /// Declares the cloud, and says that it is ready.
    pub(crate) async fn declare_cloud(&self) {
        let client = self.client().await;
        let text = format!(
            "clouds: {{admin: {{auth: {{auth_url: '{}', username: admin, password: {ADMIN_PASSWORD}, project_name: admin, \
             user_domain_name: Default, project_domain_name: Default}}, region_name: RegionOne, interface: internal}}}}",
            self.fake.auth_url()
        );
        let secrets: Api<Secret> = Api::namespaced(client.clone(), CLOUD);
        let secret = Secret {
            metadata: ObjectMeta { name: Some("openstack-admin".to_owned()), ..ObjectMeta::default() },
            data: Some(BTreeMap::from([("clouds.yaml".to_owned(), ByteString(text.into_bytes()))])),
            ..Secret::default()
        };
        let force = PatchParams::apply("test").force();
        secrets.patch("openstack-admin", &force, &Patch::Apply(&secret)).await.unwrap();
        let cloud = json!({
            "apiVersion": "cluster.kupenstack.io/v1",
            "kind": "OpenStack",
            "metadata": {"name": "default"},
            "spec": {"namespace": CLOUD, "release": "2026.2"},
        });
        let clouds: Api<OpenStack> = Api::all(client);
        clouds.patch("default", &force, &Patch::Apply(&cloud)).await.unwrap();
        self.set_services(&[("Keystone", true), ("Glance", true)]).await;
    }

    /// Sets which services are ready.
    pub(crate) async fn set_services(&self, services: &[(&str, bool)]) {
        let services: Vec<_> = services
            .iter()
            .map(|(kind, ready)| json!({"kind": kind, "ready": ready, "reason": "Test", "message": "1/2 pods"}))
            .collect();
        let status = json!({"status": {"clusterId": CLUSTER, "services": services}});
        let clouds: Api<OpenStack> = Api::all(self.client().await);
        clouds.patch_status("default", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
    }

    /// Sets which namespaces get projects.
    pub(crate) async fn admit(&self, selector: &Value) {
        let patch = json!({"spec": {"projects": {"selector": selector}}});
        let clouds: Api<OpenStack> = Api::all(self.client().await);
        clouds.patch("default", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    }

    /// Starts the controllers, with nothing remembered.
    pub(crate) fn operator(&self) -> Operator {
        let (runtime, stop) = (runtime(), CancellationToken::new());
        let settings =
            Settings { operator_namespace: "operator".to_owned(), work_dir: self.folder.path().join("images") };
        let (kubeconfig, stopped) = (self.plane.kubeconfig_path().to_owned(), stop.clone());
        let controllers = runtime.spawn(async move {
            let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
            let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
            let client = Client::try_from(config).unwrap();
            let context = Context { client, metrics: Arc::<Metrics>::default(), stop: stopped };
            let controllers = kupenstack_resources::controllers(&context, &settings).unwrap();
            join_all(controllers.into_iter().map(|(_, controller)| controller)).await;
        });
        Operator { stop, controllers, runtime }
    }

    /// Serves a file and returns its address.
    pub(crate) async fn serve(&self, content: &[u8]) -> String {
        let name = format!("/{}.img", self.next.fetch_add(1, Ordering::Relaxed));
        let answer = ResponseTemplate::new(200).set_body_bytes(content);
        Mock::given(path(name.as_str())).respond_with(answer).mount(&self.web).await;
        format!("{}{name}", self.web.uri())
    }

    /// A new namespace.
    pub(crate) async fn namespace(&self, annotations: &[(&str, &str)]) -> Tenant<'_> {
        let name = format!("shop-{}", self.next.fetch_add(1, Ordering::Relaxed));
        self.namespace_named(&name, annotations).await
    }

    pub(crate) async fn namespace_named(&self, name: &str, annotations: &[(&str, &str)]) -> Tenant<'_> {
        let client = self.client().await;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        namespaces.create(&PostParams::default(), &namespace(name, annotations)).await.unwrap();
        Tenant { world: self, client, name: name.to_owned() }
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
}

fn namespace(name: &str, annotations: &[(&str, &str)]) -> Namespace {
    let annotations = annotations.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
    let metadata = ObjectMeta { name: Some(name.to_owned()), annotations: Some(annotations), ..ObjectMeta::default() };
    Namespace { metadata, ..Namespace::default() }
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

    pub(crate) fn images(&self) -> Api<Image> {
        Api::namespaced(self.client.clone(), &self.name)
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

    pub(crate) fn is_known_to_keystone(&self) -> bool {
        let state = self.world.fake.state();
        state.keystone.project(&self.name).is_some() || state.keystone.user(&self.name).is_some()
    }

    /// Puts an image into the project, as if somebody had made it.
    pub(crate) async fn put_image(&self, attributes: Value, data: &[u8]) {
        let project = self.project().await;
        self.world.fake.state().glance.put(&project, attributes, data);
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

    pub(crate) async fn create(&self, name: &str, spec: Value) -> Image {
        let image = json!({
            "apiVersion": "kupenstack.io/v1", "kind": "Image", "metadata": {"name": name}, "spec": spec,
        });
        self.images().create(&PostParams::default(), &serde_json::from_value(image).unwrap()).await.unwrap()
    }

    /// An image that is ready.
    pub(crate) async fn ready_image(&self, name: &str) -> Image {
        let src = self.world.serve(&disk(4096)).await;
        self.create(name, json!({"src": src, "format": "raw"})).await;
        self.until(name, is_ready).await
    }

    pub(crate) async fn edit(&self, name: &str, spec: Value) -> Image {
        let patch = json!({"spec": spec});
        self.images().patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap()
    }

    /// Has an image looked at now: a change of its annotations makes a pass.
    pub(crate) async fn nudge(&self, name: &str) {
        let value = self.world.next.fetch_add(1, Ordering::Relaxed).to_string();
        let patch = json!({"metadata": {"annotations": {"test/nudge": value}}});
        self.images().patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
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
        let gone = await_condition(self.images(), name, |image: Option<&Image>| image.is_none());
        within(gone, &format!("the end of {name}")).await.unwrap();
    }

    /// Deletes the namespace and waits until it is gone.
    pub(crate) async fn end(&self) {
        let uid = self.namespaces().get(&self.name).await.unwrap().uid().unwrap();
        self.namespaces().delete(&self.name, &DeleteParams::default()).await.unwrap();
        let gone = await_condition(self.namespaces(), &self.name, is_deleted(&uid));
        within(gone, &format!("the end of namespace {}", self.name)).await.unwrap();
    }

    /// Reasons of the events about an object.
    pub(crate) async fn events(&self, name: &str) -> Vec<String> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), &self.name);
        let about = ListParams::default().fields(&format!("regarding.name={name}"));
        events.list(&about).await.unwrap().into_iter().filter_map(|event| event.reason).collect()
    }
}

/// Waits for an object that fits, and shows the last one when none does.
pub(crate) async fn until<K>(api: Api<K>, name: &str, fits: impl Fn(&K) -> bool + Send + Sync) -> K
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let fitting = await_condition(api.clone(), name, |object: Option<&K>| object.is_some_and(&fits));
    let Ok(object) = timeout(LIMIT, fitting).await else {
        panic!("{name} never came to fit: {:#?}", api.get_opt(name).await);
    };
    object.unwrap().unwrap()
}

/// Waits for something, but not for ever.
pub(crate) async fn within<T>(future: impl Future<Output = T>, what: &str) -> T {
    timeout(LIMIT, future).await.unwrap_or_else(|_| panic!("waited too long for {what}"))
}

/// Content that looks like a disk: not all of it is text.
pub(crate) fn disk(size: usize) -> Vec<u8> {
    (0..size).map(|index| u8::try_from(index % 251).unwrap()).collect()
}

pub(crate) fn is_ready(image: &Image) -> bool {
    let conditions = image.status.as_ref().map_or(&[][..], |status| &status.conditions);
    conditions::is_ready(conditions, image.metadata.generation)
}

/// Reason and message of `Ready`.
pub(crate) fn shown(image: &Image) -> (String, String) {
    let conditions = image.status.as_ref().map_or(&[][..], |status| &status.conditions);
    conditions::find(conditions, READY).map(|c| (c.reason.clone(), c.message.clone())).unwrap_or_default()
}

pub(crate) fn id(image: &Image) -> String {
    image.status.as_ref().and_then(|status| status.id.clone()).unwrap_or_default()
}
