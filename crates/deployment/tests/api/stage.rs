//! A namespace on the shared API server, the operator in it, and a player of the kubelet.

use std::{collections::BTreeMap, fmt::Debug, sync::Arc, time::Duration};

use k8s_openapi::{
    ByteString,
    api::{
        apps::v1::Deployment,
        batch::v1::Job,
        core::v1::{ConfigMap, Secret},
    },
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams},
    client::Body,
    core::NamespaceResourceScope,
    discovery::ApiResource,
};
use kupenstack_api::{
    HasConditions,
    cluster::{Keystone, OpenStack},
    crds,
};
use kupenstack_core::conditions;
use kupenstack_deployment::{Patience, Prober, Settings, controllers};
use kupenstack_helm::{Cli, Helm};
use kupenstack_runtime::Context;
use kupenstack_testkit::{ControlPlane, helm_program, repository};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Longest wait for anything; the machine may be busy with other tests.
const PATIENCE: Duration = Duration::from_secs(90);

pub(crate) struct Stage {
    pub(crate) namespace: String,
    client: Client,
    helm: Arc<dyn Helm>,
}

/// There is one `OpenStack` in a cluster, which the tests of this process share.
pub(crate) async fn only_cloud() -> tokio::sync::MutexGuard<'static, ()> {
    static ONLY: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    ONLY.lock().await
}

/// A running operator.
pub(crate) struct Running {
    stop: CancellationToken,
    context: Context,
    tasks: tokio::task::JoinSet<()>,
}

impl Running {
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }

    /// Waits until that many passes have ended.
    pub(crate) async fn passes(&self, n: u64) {
        eventually("a pass", || async {
            let text = self.context.metrics.text();
            let passes = text.lines().filter(|l| l.starts_with("kupenstack_reconciles_total{"));
            let count: u64 = passes.filter_map(|l| l.rsplit(' ').next()?.parse::<u64>().ok()).sum();
            (count >= n).then_some(())
        })
        .await;
    }
}

impl Stage {
    pub(crate) async fn set(prefix: &str) -> Self {
        Self::set_with(prefix, "helm").await.expect("there is always a program to try")
    }

    /// With the Helm of that label; `None` where there is none of it.
    pub(crate) async fn set_with(prefix: &str, label: &str) -> Option<Self> {
        let helm = find_helm(label).await?;
        let plane = ControlPlane::shared().await;
        let yaml: Vec<_> = crds::all().iter().map(|crd| serde_saphyr::to_string(crd).unwrap()).collect();
        plane.apply_yaml(&yaml.join("---\n")).await;
        let namespace = plane.create_namespace(prefix).await;
        Some(Self { namespace, client: plane.client().await, helm })
    }

    /// Goes on with another Helm; `false` where there is none of that label.
    pub(crate) async fn change_helm(&mut self, label: &str) -> bool {
        let found = find_helm(label).await;
        let there = found.is_some();
        self.helm = found.unwrap_or_else(|| Arc::clone(&self.helm));
        there
    }

    /// Who comes in between: `act` is done before each request of the operators that are started from now on.
    pub(crate) fn meddle<F>(&mut self, act: impl Fn(&http::Request<Body>) -> F + Send + Sync + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (client, act) = (self.client.clone(), Arc::new(act));
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let (client, first) = (client.clone(), act(&request));
            async move {
                first.await;
                client.send(request).await
            }
        });
        self.client = Client::new(service, &self.namespace);
    }

    /// Starts some controllers, as a fresh operator process would.
    pub(crate) fn run(&self, names: &[&str]) -> Running {
        self.run_with(names, Arc::new(kupenstack_deployment::Requests), Patience::default())
    }

    /// The same, with services that are proven by somebody else, and so much patience with them.
    pub(crate) fn run_with(&self, names: &[&str], prober: Arc<dyn Prober>, patience: Patience) -> Running {
        let stop = CancellationToken::new();
        let context = Context::new(self.client.clone(), Arc::default(), stop.clone());
        let charts = repository().join("charts/openstack");
        let settings = Settings {
            helm: Arc::clone(&self.helm),
            charts,
            cloud_namespace: self.namespace.clone(),
            prober,
            patience,
        };
        let mut tasks = tokio::task::JoinSet::new();
        for (name, controller) in controllers(&context, &settings) {
            if names.contains(&name) {
                tasks.spawn(controller);
            }
        }
        Running { stop, context, tasks }
    }

    pub(crate) fn dynamic(&self, kind: &str) -> Api<DynamicObject> {
        let gvk = GroupVersionKind::gvk("cluster.kupenstack.io", "v1", kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, &format!("{}s", kind.to_lowercase()));
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    pub(crate) async fn apply(&self, kind: &str, name: &str, spec: Value) {
        self.apply_as("user", kind, name, spec).await;
    }

    /// Another manager than the one that owns the object's other fields.
    pub(crate) async fn patch_foreign(&self, kind: &str, name: &str, spec: Value) {
        self.apply_as("somebody-else", kind, name, spec).await;
    }

    async fn apply_as(&self, manager: &str, kind: &str, name: &str, spec: Value) {
        let object =
            json!({"apiVersion": "cluster.kupenstack.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec});
        self.dynamic(kind).patch(name, &PatchParams::apply(manager), &Patch::Apply(&object)).await.unwrap();
    }

    /// A service object that says it is ready, with nobody behind it.
    pub(crate) async fn pretend_ready(&self, kind: &str, name: &str) {
        self.apply(kind, name, json!({"release": "2026.2"})).await;
        let condition = json!({"type": "Ready", "status": "True", "reason": "Ready", "message": "", "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let status = json!({"status": {"conditions": [condition]}});
        self.dynamic(kind).patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("{name}-credentials")},
            "stringData": {"root-password": "root", "memcache-secret-key": "cache"},
        });
        let name = format!("{name}-credentials");
        self.api::<Secret>().patch(&name, &PatchParams::apply("user"), &Patch::Apply(&secret)).await.unwrap();
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) async fn until<K>(&self, name: &str, fits: impl Fn(&K) -> bool) -> K
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + DeserializeOwned + Debug,
    {
        let api = self.api::<K>();
        eventually(name, || async { api.get_opt(name).await.unwrap().filter(|k| fits(k)) }).await
    }

    pub(crate) async fn job(&self, name: &str) -> Job {
        self.until(name, |_| true).await
    }

    /// ConfigMaps and Secrets that were made for jobs.
    pub(crate) async fn copies(&self) -> usize {
        let selector = ListParams::default().labels("kupenstack.io/plan");
        let secrets = self.api::<Secret>().list_metadata(&selector).await.unwrap().items.len();
        secrets + self.api::<ConfigMap>().list_metadata(&selector).await.unwrap().items.len()
    }

    pub(crate) async fn releases(&self) -> usize {
        self.api::<Secret>().list_metadata(&ListParams::default().labels("owner=helm")).await.unwrap().items.len()
    }

    pub(crate) async fn secrets(&self) -> BTreeMap<String, Option<BTreeMap<String, ByteString>>> {
        let all = self.api::<Secret>().list(&ListParams::default()).await.unwrap();
        all.into_iter().map(|s| (s.name_any(), s.data)).collect()
    }

    /// Plays the kubelet: the Deployment's pods are there and serve.
    pub(crate) async fn roll_out(&self, name: &str) {
        let deployment: Deployment = self.until(name, |_| true).await;
        let wanted = deployment.spec.as_ref().and_then(|s| s.replicas).unwrap_or(1);
        let status = json!({"status": {
            "observedGeneration": deployment.metadata.generation, "replicas": wanted,
            "updatedReplicas": wanted, "availableReplicas": wanted, "readyReplicas": wanted,
        }});
        self.api::<Deployment>().patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
    }

    /// Version of the Keystone object, once it waits for its first job.
    pub(crate) async fn settled_keystone(&self) -> Option<String> {
        let message = |k: &Keystone| conditions::find(k.conditions(), conditions::READY).map(|c| c.message.clone());
        let running = |k: &Keystone| message(k).is_some_and(|m| m == "Job keystone-db-init: running");
        self.until("keystone", running).await.resource_version()
    }

    pub(crate) fn clouds(&self) -> Api<OpenStack> {
        Api::all(self.client.clone())
    }

    pub(crate) async fn apply_cloud(&self, spec: Value) {
        let object = json!({"apiVersion": "cluster.kupenstack.io/v1", "kind": "OpenStack", "metadata": {"name": "default"}, "spec": spec});
        self.clouds().patch("default", &PatchParams::apply("user"), &Patch::Apply(&object)).await.unwrap();
    }

    pub(crate) async fn until_cloud(&self, fits: impl Fn(&OpenStack) -> bool) -> OpenStack {
        eventually("OpenStack default", || async {
            self.clouds().get_opt("default").await.unwrap().filter(|c| fits(c))
        })
        .await
    }

    /// Deletes the cloud and waits until it and its services are gone.
    pub(crate) async fn delete_cloud(&self) {
        self.clouds().delete("default", &DeleteParams::default()).await.unwrap();
        eventually("the end of the cloud", || async {
            self.clouds().get_opt("default").await.unwrap().is_none().then_some(())
        })
        .await;
        assert!(self.api::<Keystone>().get_opt("keystone").await.unwrap().is_none());
    }
}

async fn find_helm(label: &str) -> Option<Arc<dyn Helm>> {
    let settings = kupenstack_helm::Settings {
        program: helm_program(label)?,
        kubeconfig: Some(ControlPlane::shared().await.kubeconfig_path().to_owned()),
        ..kupenstack_helm::Settings::from_env()
    };
    Some(Arc::new(Cli::new(settings).await.expect("helm: set HELM_BIN, or run ./dev/test")))
}

/// Plays the job controller: the job's pod succeeded.
pub(crate) async fn completed(stage: &Stage, job: &Job) {
    let now = "2026-01-01T00:00:00Z";
    let condition =
        |kind: &str| json!({"type": kind, "status": "True", "lastProbeTime": now, "lastTransitionTime": now});
    let status = json!({"status": {
        "startTime": now, "completionTime": now, "succeeded": 1, "uncountedTerminatedPods": {},
        "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
    }});
    let jobs = stage.api::<Job>();
    jobs.patch_status(&job.name_any(), &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
}

/// Reason of the object's `Ready` condition, empty when it has none.
pub(crate) fn reason<K: HasConditions>(object: &K) -> String {
    conditions::find(object.conditions(), conditions::READY).map(|c| c.reason.clone()).unwrap_or_default()
}

pub(crate) async fn eventually<T, F>(what: &str, look: impl Fn() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let looking = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.unwrap_or_else(|_| panic!("{what}: not within {PATIENCE:?}"))
}
