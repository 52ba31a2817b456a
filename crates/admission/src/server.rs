//! HTTPS: `POST /validate`, and the paths of an aggregated API.

use std::{convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use kupenstack_core::admission::Rule;
use kupenstack_runtime::metrics::Metrics;
use rustls::{ServerConfig, pki_types::CertificateDer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    aggregated::{Aggregated, Question},
    review::{self, Verdict},
};

/// Where API servers ask.
const PATH: &str = "/validate";
/// Largest review: an object may have 1.5 MiB in etcd, and a review may hold it twice.
const LARGEST: usize = 4 << 20;
/// Open connections. Each API server keeps some.
const MOST_CONNECTIONS: usize = 256;
/// Reviews at the same time, which bounds the memory that they take: a multiple of their size once they are read.
const MOST_REVIEWS: usize = 4;
/// An API server waits for 5 s, after which nobody reads the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// An API server closes what it does not use after 90 s. If we did, a request that is just on its way would be lost.
const IDLE: Duration = Duration::from_mins(2);
/// After a connection could not be accepted: for want of file descriptors, of which nothing tells when one is free.
const PAUSE: Duration = Duration::from_secs(1);

/// What answers reviews.
pub(crate) struct Judge {
    pub(crate) rules: Vec<Rule>,
    pub(crate) metrics: Arc<Metrics>,
}

/// Serves until `stop`; requests under way are finished.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    judge: Judge,
    aggregated: Option<Aggregated>,
    stop: CancellationToken,
) {
    let acceptor = TlsAcceptor::from(tls);
    let reviews = Arc::new(Semaphore::new(MOST_REVIEWS));
    let service = Service { judge: Arc::new(judge), reviews, aggregated: aggregated.map(Arc::new) };
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let connections = TaskTracker::new();
    while let Some(Ok(place)) = stop.run_until_cancelled(Arc::clone(&room).acquire_owned()).await {
        match stop.run_until_cancelled(listener.accept()).await {
            None => break,
            Some(Ok((stream, _))) => {
                let (acceptor, service, stop) = (acceptor.clone(), service.clone(), stop.clone());
                connections.spawn(async move {
                    connection(stream, &acceptor, service, stop).await;
                    drop(place);
                });
            }
            Some(Err(error)) => {
                tracing::warn!(%error, "a connection to the webhook could not be accepted");
                stop.run_until_cancelled(sleep(PAUSE)).await;
            }
        }
    }
    connections.close();
    connections.wait().await;
}

/// Serves a connection to its end. What goes wrong with it is its other end's concern.
async fn connection(stream: TcpStream, acceptor: &TlsAcceptor, service: Service, stop: CancellationToken) {
    let stream = match timeout(PATIENCE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "no TLS with a client of the webhook"),
        Err(_) => return,
    };
    let chain = stream.get_ref().1.peer_certificates().map(<[_]>::to_vec).unwrap_or_default();
    let chain: Arc<[CertificateDer<'static>]> = chain.into();
    let handler = service_fn(move |request| {
        let (service, chain) = (service.clone(), Arc::clone(&chain));
        async move { Ok::<_, Infallible>(service.answer(request, &chain).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(IDLE);
    let connection = builder.serve_connection(TokioIo::new(stream), handler);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection to the webhook broke off");
    }
}

#[derive(Clone)]
struct Service {
    judge: Arc<Judge>,
    reviews: Arc<Semaphore>,
    aggregated: Option<Arc<Aggregated>>,
}

/// What is sent back.
pub(crate) type Answer = Response<Full<Bytes>>;

impl Service {
    /// Answers a client that has shown these certificates.
    async fn answer(&self, request: Request<Incoming>, chain: &[CertificateDer<'_>]) -> Answer {
        if let Some(aggregated) = self.aggregated.as_ref().filter(|_| Aggregated::covers(request.uri().path())) {
            let (method, uri, headers) = (request.method(), request.uri(), request.headers());
            return aggregated.answer(&Question { method, uri, headers, chain }).await;
        }
        if request.uri().path() != PATH {
            return plain(StatusCode::NOT_FOUND, "the webhook answers at /validate only");
        }
        if request.method() != Method::POST {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "a review is posted");
        }
        let review = timeout(PATIENCE, self.review(request.into_body())).await;
        review.unwrap_or_else(|_| plain(StatusCode::REQUEST_TIMEOUT, "the review did not arrive in time"))
    }

    async fn review(&self, body: Incoming) -> Answer {
        let Ok(_turn) = self.reviews.acquire().await else {
            return plain(StatusCode::SERVICE_UNAVAILABLE, "stopping");
        };
        let body = match Limited::new(body, LARGEST).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                return plain(StatusCode::PAYLOAD_TOO_LARGE, "the review is too large");
            }
            Err(_) => return plain(StatusCode::BAD_REQUEST, "the review broke off"),
        };
        let judge = Arc::clone(&self.judge);
        // a large configuration takes milliseconds, in which a controller's thread has better things to do
        let answered = tokio::task::spawn_blocking(move || judge.answer(&body)).await;
        answered.unwrap_or_else(|_| plain(StatusCode::INTERNAL_SERVER_ERROR, "the review broke down"))
    }
}

impl Judge {
    fn answer(&self, body: &[u8]) -> Answer {
        match review::answer(&self.rules, body) {
            Ok((body, verdict, rule)) => {
                let verdict = match verdict {
                    Verdict::Allowed => "allowed",
                    Verdict::Warned => "warned",
                    Verdict::Refused => "refused",
                };
                self.metrics.reviewed(rule.map_or("other", Rule::plural), verdict);
                let mut answer = Response::new(Full::from(body));
                answer.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
                answer
            }
            Err(error) => {
                self.metrics.reviewed("other", "unreadable");
                plain(StatusCode::BAD_REQUEST, &error.to_string())
            }
        }
    }
}

fn plain(status: StatusCode, text: &str) -> Answer {
    let mut answer = Response::new(Full::from(text.to_owned()));
    *answer.status_mut() = status;
    answer
}
