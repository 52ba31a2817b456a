//! A cluster in which a cloud is declared.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU32, Ordering},
};

use k8s_openapi::{
    ByteString,
    api::core::v1::{Namespace, Secret},
};
use kube::{
    Api, Client,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use kupenstack_api::cluster::OpenStack;
use kupenstack_testkit::sim::Sim;
use serde_json::{Value, json};
use wiremock::{Mock, MockServer, ResponseTemplate, matchers::path};

use super::lent::Lent;

/// Identifier of the cluster in marks.
pub(crate) const CLUSTER: &str = "6f2b6a2e-1f0a-4a55-9c58-0d4f3ad0f7a1";
/// Namespace of the cloud.
pub(crate) const CLOUD: &str = "cloud";
/// Namespace of the operator.
pub(crate) const OPERATOR: &str = "operator";
/// Secret with the administrator's credentials.
pub(crate) const ADMIN_SECRET: &str = "openstack-admin";

/// A number that nobody else has, nor will have: what is called by it may go as late as it likes.
pub(crate) fn number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

pub(crate) struct Cluster {
    pub(crate) plane: Lent,
    /// Where images come from.
    pub(crate) web: MockServer,
}

impl Cluster {
    /// A cluster and a cloud that nobody has declared yet.
    pub(crate) async fn start() -> Self {
        // shown by RUST_LOG; another cluster of this process may have set it up
        let off = tracing_subscriber::filter::LevelFilter::OFF.into();
        let filter = tracing_subscriber::EnvFilter::builder().with_default_directive(off).from_env_lossy();
        let _ = tracing_subscriber::fmt().with_env_filter(filter).with_test_writer().try_init();
        let cluster = Self { plane: Lent::new().await, web: MockServer::start().await };
        let namespaces: Api<Namespace> = Api::all(cluster.client().await);
        for name in [CLOUD, OPERATOR] {
            // a control plane that another test had has them already
            if namespaces.get_opt(name).await.unwrap().is_none() {
                cluster.make_namespace(name, &[]).await;
            }
        }
        cluster
    }

    pub(crate) async fn client(&self) -> Client {
        self.plane.client().await
    }

    pub(crate) async fn make_namespace(&self, name: &str, annotations: &[(&str, &str)]) -> Namespace {
        let annotations = annotations.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
        let metadata =
            ObjectMeta { name: Some(name.to_owned()), annotations: Some(annotations), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        Api::all(self.client().await).create(&PostParams::default(), &namespace).await.unwrap()
    }

    /// Declares the cloud, and says that it is ready. Which one it is, says the administrator's Secret.
    pub(crate) async fn declare_cloud(&self) {
        let cloud = json!({
            "apiVersion": "cluster.kupenstack.io/v1",
            "kind": "OpenStack",
            "metadata": {"name": "default"},
            "spec": {"namespace": CLOUD, "release": "2026.2"},
        });
        let clouds: Api<OpenStack> = Api::all(self.client().await);
        clouds.patch("default", &PatchParams::apply("test").force(), &Patch::Apply(&cloud)).await.unwrap();
        self.set_services(&[("Keystone", true), ("Glance", true), ("Nova", true), ("Neutron", true)]).await;
    }

    /// Writes the administrator's credentials for a cloud into a Secret.
    pub(crate) async fn give_admin(&self, client: &Client, secret: &str, sim: &Sim) -> kube::Result<()> {
        let text = format!(
            "clouds: {{admin: {{auth: {{auth_url: '{}', username: admin, password: {}, project_name: admin, \
             user_domain_name: Default, project_domain_name: Default}}, region_name: RegionOne, interface: internal}}}}",
            sim.auth_url(),
            sim.options().admin_password
        );
        let secrets: Api<Secret> = Api::namespaced(client.clone(), CLOUD);
        let object = Secret {
            metadata: ObjectMeta { name: Some(secret.to_owned()), ..ObjectMeta::default() },
            data: Some(BTreeMap::from([("clouds.yaml".to_owned(), ByteString(text.into_bytes()))])),
            ..Secret::default()
        };
        secrets.patch(secret, &PatchParams::apply("test").force(), &Patch::Apply(&object)).await.map(drop)
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

    /// Says that the cloud is ready as a whole.
    pub(crate) async fn set_ready(&self) {
        let ready = json!({"type": "Ready", "status": "True", "reason": "Ready", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let clouds: Api<OpenStack> = Api::all(self.client().await);
        let status = json!({"status": {"conditions": [ready]}});
        clouds.patch_status("default", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
    }

    /// Sets which namespaces get projects.
    pub(crate) async fn admit(&self, selector: &Value) {
        let patch = json!({"spec": {"projects": {"selector": selector}}});
        let clouds: Api<OpenStack> = Api::all(self.client().await);
        clouds.patch("default", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    }

    /// Serves a file and returns its address.
    pub(crate) async fn serve(&self, content: &[u8]) -> String {
        let name = format!("/{}.img", number());
        let answer = ResponseTemplate::new(200).set_body_bytes(content);
        Mock::given(path(name.as_str())).respond_with(answer).mount(&self.web).await;
        format!("{}{name}", self.web.uri())
    }
}
