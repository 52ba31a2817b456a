//! Evidence from logs, which nobody serves without a kubelet: the API server is played.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use kupenstack_agent::{Cause, Evidence, Severity, examine};
use serde_json::{Value, json};

/// One pod, and what is answered to requests for its log.
#[derive(Clone)]
struct Played {
    pod: Value,
    /// By whether the log of the previous container is asked for.
    log: fn(bool) -> Option<String>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Played {
    fn new(state: &Value, log: fn(bool) -> Option<String>) -> Self {
        let container =
            json!({"name": "db-sync", "image": "i", "imageID": "", "ready": true, "restartCount": 0, "state": state});
        let pod = json!({
            "metadata": {"name": "p", "namespace": "n", "labels": {"batch.kubernetes.io/job-name": "keystone-db-sync"}},
            "spec": {"nodeName": "node", "containers": []},
            "status": {"phase": "Running", "containerStatuses": [container]},
        });
        Self { pod, log, asked: Arc::default() }
    }

    fn answer(&self, request: &Request<Body>) -> Response<Body> {
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        let list = |kind: &str, items: Value| json!({"apiVersion": "v1", "kind": kind, "metadata": {}, "items": items});
        if path.ends_with("/pods") {
            return Response::new(list("PodList", json!([self.pod])).to_string().into_bytes().into());
        }
        if path.ends_with("/events") {
            return Response::new(list("EventList", json!([])).to_string().into_bytes().into());
        }
        assert_eq!(path, "/api/v1/namespaces/n/pods/p/log");
        self.asked.lock().unwrap().push(query.to_owned());
        match (self.log)(query.contains("previous=true")) {
            Some(text) => Response::new(text.into_bytes().into()),
            None => Response::builder().status(400).body(Body::empty()).unwrap(),
        }
    }

    async fn seen(&self) -> Evidence {
        let played = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let response = played.answer(&request);
            async move { Ok::<_, std::convert::Infallible>(response) }
        });
        let now = "2026-01-01T00:02:00Z".parse().unwrap();
        examine(&Client::new(service, "n"), "n", "a=b", now).await.unwrap().unwrap()
    }
}

fn failed() -> Value {
    json!({"terminated": {"exitCode": 1, "reason": "Error", "startedAt": "2026-01-01T00:00:00Z"}})
}

/// atmosphere 1452, 151; vanillastack 11: the user sees only that something timed out.
#[tokio::test]
async fn a_job_that_hangs_tells_what_at() {
    let running = json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}});
    let played = Played::new(&running, |_| {
        Some(
            "2026-01-01 00:00:50.123 1 WARNING oslo_db.sqlalchemy.engines [-] SQL connection failed. 5 attempts left.: \
             oslo_db.exception.DBConnectionError: (pymysql.err.OperationalError) (2003, \"Can't connect to MySQL server on \
             'mariadb' ([Errno 111] Connection refused)\")\n"
                .to_owned(),
        )
    });
    let evidence = played.seen().await;
    assert_eq!((evidence.severity, evidence.cause), (Severity::Slow, Some(Cause::DatabaseUnreachable)));
    assert_eq!(
        evidence.to_string(),
        "Pod p, container db-sync: has been running and is not done after 2 minutes; it says: \"SQL connection failed. 5 \
         attempts left.: oslo_db.exception.DBConnectionError: (pymysql.err.OperationalError) (2003, \"Can't connect to \
         MySQL server on 'mariadb' ([Errno 111] Connection refused)\")\"; probably the database is unreachable: is it up, \
         and are its host and port right?"
    );
}

#[tokio::test]
async fn a_node_that_is_not_fit_is_told_by_name_with_what_it_lacks_and_the_remedy() {
    let played = Played::new(&failed(), |_| {
        Some(
            "modprobe: FATAL: Module openvswitch not found in directory /lib/modules/6.12.0\n\
             the kernel of node worker2 has no module openvswitch: load it, or set conf.ovn_bridge_datapath_type to netdev \
             (datapath of the OVN object to userspace)\n"
                .to_owned(),
        )
    });
    let evidence = played.seen().await;
    assert_eq!((evidence.severity, evidence.cause), (Severity::Failing, Some(Cause::NodeUnfit)));
    let text = evidence.to_string();
    assert!(text.contains("the kernel of node worker2 has no module openvswitch: load it, or set"), "{text}");
    assert!(text.contains("(datapath of the OVN object to userspace)"), "{text}");
}

#[tokio::test]
async fn the_previous_container_is_asked_when_this_one_has_said_nothing() {
    let played = Played::new(&failed(), |previous| Some(if previous { "KeyError: 'x'\n" } else { "\n" }.to_owned()));
    assert_eq!(played.seen().await.log, ["KeyError: 'x'"]);
    let asked = played.asked.lock().unwrap().clone();
    assert_eq!(asked.len(), 2);
    for query in asked {
        assert!(query.contains("container=db-sync") && query.contains("tailLines=") && query.contains("limitBytes="));
    }
}

#[tokio::test]
async fn a_log_whose_lines_are_too_long_is_read_again_with_few() {
    let played = Played::new(&failed(), |_| Some(format!("{}\nthe end\n", "x ".repeat(100_000))));
    assert!(played.seen().await.log.last().unwrap().ends_with("the end"));
    let asked = played.asked.lock().unwrap().clone();
    assert!(asked[0].contains("tailLines=200") && asked[1].contains("tailLines=8"), "{asked:?}");
}

#[tokio::test]
async fn without_a_log_the_evidence_says_less() {
    let evidence = Played::new(&failed(), |_| None).seen().await;
    assert_eq!(evidence.to_string(), "Pod p, container db-sync: Error, exit code 1");
}
