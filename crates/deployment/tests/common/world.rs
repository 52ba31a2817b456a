//! A namespace on a cluster whose nodes are played, and what a test looks at in it.

use std::{collections::BTreeMap, env, fmt::Debug, path::PathBuf, sync::Arc, time::Duration};

use k8s_openapi::api::{
    apps::v1::{Deployment, StatefulSet},
    batch::v1::{CronJob, Job},
    core::v1::{ConfigMap, Pod, Secret},
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams},
    core::NamespaceResourceScope,
    runtime::wait::await_condition,
};
use kupenstack_api::{
    cluster::{Keystone, ServiceResource},
    crds,
};
use kupenstack_core::conditions;
use kupenstack_deployment::Patience;
use kupenstack_testkit::{ControlPlane, Options, crate_folder, repository, tap::Tap};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use tracing_subscriber::{EnvFilter, filter::LevelFilter};

use super::{
    eventually,
    operator::{Operator, Plan, Tapped},
    player::Player,
};

/// A label of the cluster that a whole record of an object does not depend on.
type Fingerprints = BTreeMap<String, String>;

pub(crate) struct World {
    pub(crate) namespace: String,
    pub(crate) client: Client,
    pub(crate) tap: Arc<Tap>,
    pub(crate) helm: Arc<Tapped>,
    pub(crate) player: Player,
    pub(crate) plan: Plan,
}

/// The control plane of this test binary. Jobs are the player's.
pub(crate) async fn plane() -> &'static ControlPlane {
    static PLANE: OnceCell<ControlPlane> = OnceCell::const_new();
    PLANE.get_or_init(own_plane).await
}

/// A control plane of a test's own.
pub(crate) async fn own_plane() -> ControlPlane {
    // shown by RUST_LOG
    let filter = EnvFilter::builder().with_default_directive(LevelFilter::OFF.into()).from_env_lossy();
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_test_writer().try_init();
    let without = &["job-controller", "cronjob-controller"];
    let plane = ControlPlane::start_with(Options { controller_manager: true, without }).await;
    let yaml: Vec<_> = crds::all().iter().map(|crd| serde_saphyr::to_string(crd).unwrap()).collect();
    plane.apply_yaml(&yaml.join("---\n")).await;
    plane
}

/// The Helm that `HELM_BIN` names.
pub(crate) fn helm4() -> PathBuf {
    env::var_os("HELM_BIN").map_or_else(|| PathBuf::from("helm"), PathBuf::from)
}

/// Charts in OpenStack-Helm's dialect.
pub(crate) fn dialect() -> PathBuf {
    crate_folder().join("tests/dialect/charts")
}

/// The charts that the operator brings along.
pub(crate) fn built_in() -> PathBuf {
    repository().join("charts/openstack")
}

impl World {
    /// A namespace of its own, with nothing in it.
    pub(crate) async fn new(prefix: &str, charts: PathBuf, controllers: &'static [&'static str]) -> Self {
        Self::with_helm(prefix, charts, controllers, helm4()).await
    }

    pub(crate) async fn with_helm(
        prefix: &str,
        charts: PathBuf,
        controllers: &'static [&'static str],
        program: PathBuf,
    ) -> Self {
        Self::on(plane().await, prefix, charts, controllers, program).await
    }

    pub(crate) async fn on(
        plane: &ControlPlane,
        prefix: &str,
        charts: PathBuf,
        controllers: &'static [&'static str],
        program: PathBuf,
    ) -> Self {
        let namespace = plane.create_namespace(prefix).await;
        let client = plane.client().await;
        let tap = Tap::start(client.clone()).await;
        let helm = Tapped::new(&program, &tap).await;
        // nothing here takes long, and what fails goes on failing
        let moment = Duration::from_secs(1);
        let patience = Patience { pods: moment, jobs: moment, answer: moment, surroundings: 10 * moment };
        let plan = Plan {
            tap: Arc::clone(&tap),
            helm: Arc::clone(&helm),
            charts,
            namespace: namespace.clone(),
            patience,
            controllers,
        };
        let player = Player::start(&client, &namespace);
        Self { namespace, client, tap, helm, player, plan }
    }

    pub(crate) fn operator(&self) -> Operator {
        Operator::start(&self.plan)
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    fn dynamic(&self, kind: &str) -> Api<DynamicObject> {
        let resource = ApiResource {
            group: "cluster.kupenstack.io".to_owned(),
            version: "v1".to_owned(),
            api_version: "cluster.kupenstack.io/v1".to_owned(),
            kind: kind.to_owned(),
            plural: format!("{}s", kind.to_lowercase()),
        };
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    /// Declares a service; `spec` is what it has besides the release.
    pub(crate) async fn declare(&self, kind: &str, spec: &Value) {
        let mut object = json!({
            "apiVersion": "cluster.kupenstack.io/v1", "kind": kind,
            "metadata": {"name": kind.to_lowercase()}, "spec": {"release": "2026.2"},
        });
        for (key, value) in spec.as_object().into_iter().flatten() {
            object["spec"][key] = value.clone();
        }
        let params = PatchParams::apply("user").force();
        self.dynamic(kind).patch(&kind.to_lowercase(), &params, &Patch::Apply(&object)).await.unwrap();
    }

    /// Labels a service's object.
    pub(crate) async fn label(&self, kind: &str, labels: &Value) {
        let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
        self.dynamic(kind).patch_metadata(&kind.to_lowercase(), &PatchParams::default(), &patch).await.unwrap();
    }

    pub(crate) async fn delete(&self, kind: &str) {
        self.dynamic(kind).delete(&kind.to_lowercase(), &DeleteParams::default()).await.unwrap();
    }

    /// A service that says it is ready, with nobody behind it.
    pub(crate) async fn pretend_ready(&self, kind: &str) {
        let name = kind.to_lowercase();
        self.declare(kind, &json!({})).await;
        let condition = json!({"type": "Ready", "status": "True", "reason": "Ready", "message": "", "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let status = json!({"status": {"conditions": [condition]}});
        self.dynamic(kind).patch_status(&name, &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("{name}-credentials")},
            "stringData": {"root-password": "root", "memcache-secret-key": "cache"},
        });
        let name = format!("{name}-credentials");
        self.api::<Secret>().patch(&name, &PatchParams::apply("user"), &Patch::Apply(&secret)).await.unwrap();
        self.player.elsewhere(&["mariadb", "memcached"]);
    }

    /// Waits until an object fits.
    pub(crate) async fn until<K>(&self, name: &str, fits: impl Fn(&K) -> bool + Send) -> K
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    {
        let condition = |object: Option<&K>| object.is_some_and(&fits);
        let found = async {
            loop {
                // an error is an API server that is gone for a moment
                match await_condition(self.api::<K>(), name, condition).await {
                    Ok(found) => return found.unwrap(),
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                }
            }
        };
        if let Ok(found) = tokio::time::timeout(super::PATIENCE, found).await {
            return found;
        }
        panic!("{name}: {:#?}", self.api::<K>().get_opt(name).await)
    }

    /// Waits until a service is ready as it is declared now.
    pub(crate) async fn ready<K>(&self) -> K
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + ServiceResource,
        K: Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    {
        self.until(&K::kind(&()).to_lowercase(), |k: &K| {
            conditions::is_ready(k.conditions(), k.meta().generation)
                && k.status().is_some_and(|s| s.observed_generation == k.meta().generation)
        })
        .await
    }

    /// Waits until a change of Keystone was taken back.
    pub(crate) async fn keystone_taken_back(&self) -> Keystone {
        let taken_back = |k: &Keystone| {
            let ready = k.status.as_ref().and_then(|s| conditions::find(&s.conditions, conditions::READY));
            ready.is_some_and(|c| c.reason == "RolledBack" && c.observed_generation == k.metadata.generation)
        };
        self.until("keystone", taken_back).await
    }

    /// Waits until there is no such object.
    pub(crate) async fn gone<K>(&self, name: &str)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    {
        let gone = async {
            while await_condition(self.api::<K>(), name, |object: Option<&K>| object.is_none()).await.is_err() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        eventually(&format!("the end of {name}"), gone).await;
    }

    /// Every object in the namespace that matters to a cloud, with its version.
    pub(crate) async fn versions(&self) -> Fingerprints {
        let mut all = BTreeMap::new();
        self.collect::<Deployment>(&mut all).await;
        self.collect::<StatefulSet>(&mut all).await;
        self.collect::<Job>(&mut all).await;
        self.collect::<CronJob>(&mut all).await;
        self.collect::<Pod>(&mut all).await;
        self.collect::<Secret>(&mut all).await;
        self.collect::<ConfigMap>(&mut all).await;
        for kind in ["MariaDB", "Memcached", "Keystone", "Glance"] {
            for object in self.dynamic(kind).list(&ListParams::default()).await.unwrap() {
                all.insert(format!("{kind}/{}", object.name_any()), object.resource_version().unwrap_or_default());
            }
        }
        all
    }

    async fn collect<K>(&self, all: &mut Fingerprints)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + DeserializeOwned + Debug,
    {
        for object in self.api::<K>().list_metadata(&ListParams::default()).await.unwrap() {
            let key = format!("{}/{}", K::kind(&()), object.name_any());
            all.insert(key, object.metadata.resource_version.unwrap_or_default());
        }
    }

    /// Names of the objects of a kind that have these labels.
    pub(crate) async fn names<K>(&self, labels: &str) -> Vec<String>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + DeserializeOwned + Debug,
    {
        let params = ListParams::default().labels(labels);
        self.api::<K>().list_metadata(&params).await.unwrap().iter().map(ResourceExt::name_any).collect()
    }

    /// States of a release's records, oldest first.
    pub(crate) async fn records(&self, release: &str) -> Vec<String> {
        let params = ListParams::default().labels(&format!("owner=helm,name={release}"));
        let records = self.api::<Secret>().list_metadata(&params).await.unwrap();
        let mut states: Vec<(u32, String)> =
            records.iter().map(|r| (r.labels()["version"].parse().unwrap(), r.labels()["status"].clone())).collect();
        states.sort();
        states.into_iter().map(|(_, state)| state).collect()
    }
}
