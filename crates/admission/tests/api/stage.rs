//! An API server with a kind of its own, and webhooks for it.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

use k8s_openapi::{
    ByteString,
    api::{admissionregistration::v1::ValidatingWebhookConfiguration, core::v1::Secret},
};
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams},
};
use kupenstack_admission::{Issuer, Settings, TextApi, Webhook};
use kupenstack_core::admission::{Findings, Rule};
use kupenstack_runtime::{Context, Failure, metrics::Metrics};
use kupenstack_testkit::{ControlPlane, within};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const OBJECT: &str = "kupenstack-webhook";
const NAMESPACE: &str = "default";

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: words.example.org}
spec:
  group: example.org
  names: {kind: Word, plural: words}
  scope: Cluster
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, properties: {words: {type: array, items: {type: string}}}}
            status: {type: object, x-kubernetes-preserve-unknown-fields: true}
";

/// `wrong` and `worse` are faults, `odd` is a warning.
fn rules() -> Vec<Rule> {
    vec![Rule::new("example.org", "words", |object: &Value| {
        let words: Vec<_> =
            object["spec"]["words"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let told = |known: &[&str]| {
            words.iter().filter(|w| known.contains(w)).map(|w| format!("spec.words: {w}")).collect::<Vec<_>>()
        };
        Findings { faults: told(&["wrong", "worse"]), warnings: told(&["odd"]) }
    })]
}

/// A review of an object that has these words.
pub(crate) fn word(words: &[&str]) -> Value {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": "CREATE", "name": "w", "userInfo": {},
        "kind": {"group": "example.org", "version": "v1", "kind": "Word"},
        "resource": {"group": "example.org", "version": "v1", "resource": "words"},
        "object": {"apiVersion": "example.org/v1", "kind": "Word", "metadata": {"name": "w"}, "spec": {"words": words}},
    }})
}

pub(crate) fn settings(listen: SocketAddr, issuer: Issuer) -> Settings {
    Settings {
        listen,
        names: vec!["127.0.0.1".to_owned()],
        namespace: NAMESPACE.to_owned(),
        object: OBJECT.to_owned(),
        api_service: None,
        issuer,
    }
}

pub(crate) struct Stage {
    plane: ControlPlane,
    client: Client,
    policy: &'static str,
    pub(crate) words: Api<DynamicObject>,
    secrets: Api<Secret>,
    configurations: Api<ValidatingWebhookConfiguration>,
}

impl Stage {
    /// With the Secret, and without a configuration.
    pub(crate) async fn set(policy: &'static str) -> Self {
        let plane = ControlPlane::start().await;
        plane.apply_yaml(DEFINITION).await;
        let client = plane.client().await;
        let kind = GroupVersionKind::gvk("example.org", "v1", "Word");
        let stage = Self {
            words: Api::all_with(client.clone(), &ApiResource::from_gvk_with_plural(&kind, "words")),
            secrets: Api::namespaced(client.clone(), NAMESPACE),
            configurations: Api::all(client.clone()),
            plane,
            client,
            policy,
        };
        stage.make_secret().await;
        stage
    }

    /// Has the API server ask there, or nobody, before long. Whom to trust stays as it is.
    pub(crate) async fn configure(&self, address: Option<SocketAddr>) {
        let Some(address) = address else {
            let _ = self.configurations.delete(OBJECT, &DeleteParams::default()).await;
            return;
        };
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": OBJECT},
            "webhooks": [{
                "name": "validate.example.org", "admissionReviewVersions": ["v1"], "sideEffects": "None",
                "failurePolicy": self.policy, "timeoutSeconds": 5,
                "clientConfig": {"url": format!("https://{address}/validate")},
                "rules": [{"apiGroups": ["example.org"], "apiVersions": ["v1"], "resources": ["*"],
                    "operations": ["CREATE", "UPDATE"]}],
            }],
        });
        let params = PatchParams::apply("chart").force();
        self.configurations.patch(OBJECT, &params, &Patch::Apply(configuration)).await.expect("a configuration");
    }

    /// Whom the API server is to trust.
    pub(crate) async fn announced(&self) -> String {
        let configuration = self.configurations.get(OBJECT).await.unwrap();
        let bundle = configuration.webhooks.unwrap_or_default().remove(0).client_config.ca_bundle;
        String::from_utf8(bundle.unwrap_or_default().0).unwrap()
    }

    pub(crate) async fn announce(&self, authority: &str) {
        let bundle = ByteString(authority.as_bytes().to_vec());
        let patch = json!({"webhooks": [{"name": "validate.example.org", "clientConfig": {"caBundle": bundle}}]});
        self.configurations.patch(OBJECT, &PatchParams::default(), &Patch::Strategic(patch)).await.expect("announced");
    }

    /// An authority that has nothing to do with the webhook: the API server's own.
    pub(crate) fn foreign_authority(&self) -> String {
        std::fs::read_to_string(self.plane.kubeconfig_path().with_file_name("ca.crt")).expect("readable")
    }

    /// A certificate of the API server's, and its key.
    pub(crate) fn identity(&self, name: &str) -> reqwest::Identity {
        let folder = self.plane.kubeconfig_path().with_file_name("");
        let pem = ["crt", "key"].map(|part| std::fs::read(folder.join(format!("{name}.{part}"))).expect("readable"));
        reqwest::Identity::from_pem(&pem.concat()).expect("a certificate and its key")
    }

    /// Writes an object. Returns the warnings, or why it was refused.
    pub(crate) async fn write(&self, name: &str, words: &[&str]) -> Result<Vec<String>, String> {
        let object = json!({"apiVersion": "example.org/v1", "kind": "Word", "metadata": {"name": name},
            "spec": {"words": words}});
        let request = kube::api::Request::new("/apis/example.org/v1/words");
        let params = PatchParams::apply("user").force();
        let request = request.patch(name, &params, &Patch::Apply(object)).unwrap().map(kube::client::Body::from);
        let response = self.client.send(request).await.map_err(|e| e.to_string())?;
        let warnings = response.headers().get_all("warning").iter();
        let warnings: Vec<_> = warnings.map(|w| w.to_str().unwrap().split('"').nth(1).unwrap().to_owned()).collect();
        if response.status().is_success() {
            return Ok(warnings);
        }
        let body = response.into_body().collect_bytes().await.map_err(|e| e.to_string())?;
        Err(String::from_utf8_lossy(&body).into_owned())
    }

    pub(crate) async fn secret(&self) -> BTreeMap<String, String> {
        let data = self.secrets.get(OBJECT).await.unwrap().data.unwrap_or_default();
        data.into_iter().map(|(key, value)| (key, String::from_utf8(value.0).unwrap())).collect()
    }

    pub(crate) async fn trusted(&self) -> String {
        self.secret().await.remove("ca.crt").unwrap_or_default()
    }

    pub(crate) async fn overwrite(&self, data: Value) {
        let patch = Patch::Merge(json!({"data": data}));
        self.secrets.patch(OBJECT, &PatchParams::default(), &patch).await.expect("overwritten");
    }

    /// As the chart makes it: without data.
    pub(crate) async fn make_secret(&self) {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": OBJECT}, "type": "Opaque"});
        self.secrets.patch(OBJECT, &PatchParams::apply("chart"), &Patch::Apply(secret)).await.expect("a Secret");
    }

    pub(crate) async fn remove_secret(&self) {
        self.secrets.delete(OBJECT, &DeleteParams::default()).await.expect("removed");
    }
}

/// A webhook at work.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) certified: CancellationToken,
    metrics: Arc<Metrics>,
    stop: CancellationToken,
    task: JoinHandle<Result<(), Failure>>,
}

impl Running {
    /// One that serves.
    pub(crate) async fn start(stage: &Stage, issuer: Issuer) -> Self {
        let running = Self::bind(stage, issuer).await;
        within(running.certified.cancelled(), "a certificate").await;
        running
    }

    /// One that may not serve yet.
    pub(crate) async fn bind(stage: &Stage, issuer: Issuer) -> Self {
        Self::bind_with(stage, issuer, None).await
    }

    /// One that serves these texts as well.
    pub(crate) async fn start_with(stage: &Stage, issuer: Issuer, texts: TextApi) -> Self {
        let running = Self::bind_with(stage, issuer, Some(texts)).await;
        within(running.certified.cancelled(), "a certificate").await;
        running
    }

    async fn bind_with(stage: &Stage, issuer: Issuer, texts: Option<TextApi>) -> Self {
        let stop = CancellationToken::new();
        let metrics = Arc::<Metrics>::default();
        let context = Context::new(stage.plane.client().await, Arc::clone(&metrics), stop.clone());
        let webhook = Webhook::bind(settings(([127, 0, 0, 1], 0).into(), issuer)).await.expect("a free port");
        let webhook = match texts {
            Some(texts) => webhook.with_texts(texts),
            None => webhook,
        };
        let (address, certified) = (webhook.address().expect("it listens"), webhook.certified());
        let task = tokio::spawn(webhook.run(rules(), context));
        Self { address, certified, metrics, stop, task }
    }

    /// How many reviews it has made.
    pub(crate) fn reviews(&self) -> u64 {
        let text = self.metrics.text();
        let counts = text.lines().filter(|line| line.starts_with("kupenstack_admission_reviews_total"));
        counts.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    }

    /// Asks it by itself, over a connection of its own. Returns the status, or why there is none.
    pub(crate) async fn ask(&self, trusted: &str, review: Value) -> Result<u16, String> {
        self.post(trusted, "/validate", review.to_string().into_bytes()).await
    }

    pub(crate) async fn post(&self, trusted: &str, path: &str, body: Vec<u8>) -> Result<u16, String> {
        let answer = client(trusted, None).post(format!("https://{}{path}", self.address)).body(body).send().await;
        answer.map(|a| a.status().as_u16()).map_err(|e| e.to_string())
    }

    /// Asks it to stop and waits for that.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        within(self.task, "it ends").await.expect("it does not panic").expect("nothing failed");
    }
}

/// A client that trusts these authorities, and perhaps shows a certificate.
pub(crate) fn client(trusted: &str, identity: Option<reqwest::Identity>) -> reqwest::Client {
    let trusted = reqwest::Certificate::from_pem_bundle(trusted.as_bytes()).expect("certificates");
    let builder = reqwest::Client::builder().tls_certs_only(trusted);
    let builder = match identity {
        Some(identity) => builder.identity(identity),
        None => builder,
    };
    builder.build().expect("a client")
}
