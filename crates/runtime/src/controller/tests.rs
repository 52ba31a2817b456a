//! A controller beside an API server whose watch is late.

use std::convert::Infallible;

use axum::body::Body;
use futures::FutureExt;
use http::{Method, Request, Response};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::*;
use crate::apply;

const FINALIZER: &str = "kupenstack.io/test";

fn object(version: &str, finalizers: &[&str]) -> Value {
    let metadata = json!({
        "name": "a", "namespace": "n", "uid": "u", "resourceVersion": version, "finalizers": finalizers,
    });
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
}

/// An API server with one object at version 5, which a patch takes to version 9. What its watch shows is sent to it.
fn cluster() -> (Client, UnboundedSender<Value>) {
    let (show, shown) = unbounded_channel::<Value>();
    let shown = Arc::new(std::sync::Mutex::new(Some(shown)));
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let answer = match (request.method(), request.uri().query().unwrap_or_default()) {
            (&Method::PATCH, _) => Body::from(
                json!({
                    "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
                    "metadata": object("9", &[FINALIZER])["metadata"],
                })
                .to_string(),
            ),
            (_, query) if query.contains("watch=") => match shown.lock().unwrap().take() {
                Some(shown) => watch(shown),
                None => Body::from_stream(stream::pending::<Result<String, Infallible>>()),
            },
            _ => Body::from(
                json!({
                    "apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "5"},
                    "items": [object("5", &[])],
                })
                .to_string(),
            ),
        };
        ready(Ok::<_, Infallible>(Response::new(answer)))
    });
    (Client::new(service, "n"), show)
}

fn watch(shown: UnboundedReceiver<Value>) -> Body {
    let lines = stream::unfold(shown, |mut shown| async move {
        let object = shown.recv().await?;
        Some((format!("{}\n", json!({"type": "MODIFIED", "object": object})), shown))
    });
    Body::from_stream(lines.map(Ok::<_, Infallible>))
}

/// Puts a finalizer on the object, and tells at which version each pass has seen it.
struct Finalizes {
    client: Client,
    seen: UnboundedSender<String>,
}

impl Reconcile<ConfigMap> for Finalizes {
    fn reconcile(&self, object: Arc<ConfigMap>) -> BoxFuture<'_, Result<Outcome, Failure>> {
        async move {
            let api = Api::namespaced(self.client.clone(), "n");
            assert!(apply::add_finalizer(&api, object.as_ref(), FINALIZER).await?);
            self.seen.send(object.metadata.resource_version.clone().unwrap()).unwrap();
            Ok(Outcome::Done { reason: "Ready", message: String::new() })
        }
        .boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn no_pass_sees_an_object_as_it_was_before_the_last_one_wrote_to_it() {
    let (client, show) = cluster();
    let context = Context::new(client.clone(), Arc::default(), CancellationToken::new());
    let (seen, mut passes) = unbounded_channel();
    let (call, calls) = unbounded_channel::<ObjectRef<ConfigMap>>();
    let calls = stream::unfold(calls, |mut calls| async move { Some((calls.recv().await?, calls)) });
    let controller = Controller::<ConfigMap>::new("test", &context).trigger(calls.boxed());
    let running = tokio::spawn(controller.run(Arc::new(Finalizes { client, seen }), context.clone()));
    assert_eq!(passes.recv().await.as_deref(), Some("5"));
    let another_reason = || call.send(ObjectRef::new("a").within("n")).unwrap();
    another_reason();
    another_reason();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(passes.try_recv().is_err(), "the watch has not shown yet what was written");
    show.send(object("9", &[FINALIZER])).unwrap();
    assert_eq!(passes.recv().await.as_deref(), Some("9"), "the pass that was put off");
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(passes.try_recv().is_err(), "one pass for both reasons");
    show.send(object("10", &[FINALIZER])).unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(passes.try_recv().is_err(), "what no pass waits for is no reason for one");
    context.stop.cancel();
    running.await.unwrap();
}
