//! Stops Helm in the middle of its work: a webhook that the API server asks about every ConfigMap of a namespace, and
//! that gives no answer while the gate is shut.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use kupenstack_testkit::ControlPlane;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

pub(crate) struct Gate {
    shut: Arc<AtomicBool>,
    waiting: mpsc::UnboundedReceiver<TcpStream>,
}

impl Gate {
    /// A gate that is shut, and known to the API server.
    pub(crate) async fn shut(plane: &ControlPlane, namespace: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        plane.apply_yaml(&webhook(namespace, &listener.local_addr().unwrap().to_string())).await;
        let (sender, waiting) = mpsc::unbounded_channel();
        let shut = Arc::new(AtomicBool::new(true));
        let keeper = Arc::clone(&shut);
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                // When the gate is open the connection is closed at once, which counts as a yes.
                if keeper.load(Ordering::SeqCst) && sender.send(connection).is_err() {
                    return;
                }
            }
        });
        let mut gate = Self { shut, waiting };
        gate.known(Api::namespaced(plane.client().await, namespace)).await;
        gate
    }

    /// Waits until somebody stands before the gate.
    pub(crate) async fn reached(&mut self) {
        self.waiting.recv().await.map(std::mem::forget).expect("the gate's keeper is gone");
    }

    /// Lets everybody pass from now on.
    pub(crate) fn open(self) {
        self.shut.store(false, Ordering::SeqCst);
    }

    /// The API server learns of its webhooks by a watch: tries until a request does not pass.
    async fn known(&mut self, maps: Api<ConfigMap>) {
        let probe: ConfigMap = serde_json::from_value(json!({"metadata": {"generateName": "probe-"}})).unwrap();
        let try_only = PostParams { dry_run: true, ..PostParams::default() };
        loop {
            tokio::select! {
                connection = self.waiting.recv() => return drop(connection),
                passed = maps.create(&try_only, &probe) => { passed.unwrap(); }
            }
        }
    }
}

fn webhook(namespace: &str, address: &str) -> String {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": format!("gate-{namespace}")},
        "webhooks": [{
            "name": "gate.testkit.io",
            "clientConfig": {"url": format!("https://{address}/")},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
                       "operations": ["CREATE", "UPDATE"]}],
            "failurePolicy": "Ignore",
            "sideEffects": "None",
            "timeoutSeconds": 30,
            "admissionReviewVersions": ["v1"],
        }],
    })
    .to_string()
}
