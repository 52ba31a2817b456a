//! The HTTP side of the tap. It speaks to hyper directly since a web framework always answers.

use std::{error::Error, fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::StreamExt;
use http::{Method, Response, StatusCode, header};
use http_body_util::{BodyExt, BodyStream, StreamBody, combinators::UnsyncBoxBody};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use kube::client::Body;
use serde_json::json;
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::{Fate, Phase, Point, Shared, Who, lock, point};

/// News of a watch that wait for their time.
const HELD_BACK: usize = 256;

type Answer = Response<UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>>;

/// Passes requests on until it is dropped, and every connection with it.
pub(super) async fn run(listener: TcpListener, shared: Arc<Shared>, is_helm: bool) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        connections.spawn(serve(stream, Arc::clone(&shared), is_helm));
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>, is_helm: bool) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| pass(request, &shared, is_helm));
    // an error is what a request without an answer, or a client that left, looks like from here
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// The end of a connection without an answer.
#[derive(Debug)]
struct Unanswered;

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no answer, as a test wants it")
    }
}

impl Error for Unanswered {}

async fn pass(request: http::Request<Incoming>, shared: &Shared, is_helm: bool) -> Result<Answer, Unanswered> {
    let who = if is_helm { Who::Helm(*lock(&shared.helm)) } else { Who::Operator };
    let (parts, body) = request.into_parts();
    let bytes = body.collect().await.map_err(|_| Unanswered)?.to_bytes();
    let (verb, mut what) = point::name(&parts.method, &parts.uri);
    if parts.method == Method::POST {
        what = format!("{what}/{}", point::made(&bytes));
    }
    let mut point = Point { who, verb, what, phase: Phase::Before };
    if let Some(instead) = instead(shared.reach(&point).await) {
        return instead;
    }
    let answer = forward(shared, parts, bytes).await;
    if point.writes() && answer.as_ref().is_ok_and(|answer| answer.status().is_success()) {
        let what = format!("{} {} ({who:?})", point.verb, point.what);
        *shared.rules().changes.entry(what).or_default() += 1;
    }
    point.phase = Phase::After;
    if let Some(instead) = instead(shared.reach(&point).await) {
        return instead;
    }
    let Ok(answer) = answer else { return Ok(gone()) };
    let lag = if point.verb == "WATCH" { shared.options.watch_lag } else { Duration::ZERO };
    Ok(answer.map(|body| if lag.is_zero() { boxed(body) } else { late(body, lag) }))
}

async fn forward(shared: &Shared, parts: http::request::Parts, body: Bytes) -> kube::Result<Response<Body>> {
    let sent = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let path = shared.options.route.as_ref().map_or_else(|| sent.to_owned(), |route| route(sent));
    let mut request = http::Request::new(Body::from(body));
    *request.method_mut() = parts.method;
    *request.uri_mut() = path.parse().unwrap_or_else(|error| panic!("{path}: {error}"));
    *request.headers_mut() = parts.headers;
    for own in [header::HOST, header::CONNECTION, header::CONTENT_LENGTH] {
        request.headers_mut().remove(own);
    }
    shared.upstream.send(request).await
}

/// What comes instead of the API server's answer.
fn instead(fate: Fate) -> Option<Result<Answer, Unanswered>> {
    match fate {
        Fate::Passed => None,
        Fate::Refused(status) => Some(Ok(refusal(status))),
        Fate::Unheard => Some(Err(Unanswered)),
        Fate::Gone => Some(Ok(gone())),
    }
}

fn gone() -> Answer {
    plain(StatusCode::BAD_GATEWAY, "the API server is gone".to_owned())
}

/// A refusal as the API server words it.
fn refusal(status: u16) -> Answer {
    let code = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let reason = match code {
        StatusCode::CONFLICT => "Conflict",
        StatusCode::FORBIDDEN => "Forbidden",
        StatusCode::TOO_MANY_REQUESTS => "TooManyRequests",
        StatusCode::SERVICE_UNAVAILABLE => "ServiceUnavailable",
        _ => "InternalError",
    };
    let body = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
        "message": "refused, as a test wants it", "reason": reason, "code": status,
    });
    let mut answer = plain(code, body.to_string());
    answer.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    answer
}

fn plain(status: StatusCode, text: String) -> Answer {
    let mut answer = Response::new(boxed(Body::from(text.into_bytes())));
    *answer.status_mut() = status;
    answer
}

fn boxed(body: Body) -> UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>> {
    body.map_err(Into::into).boxed_unsync()
}

/// Each piece of it so much later, in its order.
fn late(body: Body, lag: Duration) -> UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>> {
    let delayed = BodyStream::new(body).map(move |frame| async move {
        tokio::time::sleep(lag).await;
        frame
    });
    StreamBody::new(delayed.buffered(HELD_BACK)).map_err(Into::into).boxed_unsync()
}
