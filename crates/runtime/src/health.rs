//! Whether the process gets on, or is stuck in a way that only a restart cures.
//!
//! Two things are looked at: lists and watches under way, in which something has to move (an answer, an event, a
//! bookmark, which the API server sends every minute, or the end, after five at most), and the loops of controllers,
//! which have to come back to their task. A request that *fails* has moved: the API server that is away, or refuses, is
//! no reason for a restart, which would change nothing but lose what is known. Those failures are counted by
//! [`Metrics`](crate::metrics::Metrics), and so is the age of passes, which have limits of their own.

use std::{
    collections::HashMap,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::body::{Body, Bytes, HttpBody};
use futures::{FutureExt, StreamExt, future::BoxFuture};
use kube::{
    Client, Config,
    client::{Body as KubeBody, ClientBuilder},
};
use tokio::time::Instant;
use tower::{BoxError, Service, layer::layer_fn};

/// How long nothing may move.
const LIMIT: Duration = Duration::from_mins(10);
/// How long a connection may say nothing. The API server ends every watch sooner; without it, what waits for a
/// connection that broke unnoticed would wait for good.
const READ_TIMEOUT: Duration = Duration::from_mins(5);

/// Whether the process gets on. Clones are the same.
#[derive(Clone)]
pub struct Health(Arc<Pulses>);

struct Pulses {
    limit: Duration,
    next: AtomicU64,
    running: Mutex<HashMap<u64, Running>>,
}

struct Running {
    what: String,
    moved: Instant,
}

impl Default for Health {
    fn default() -> Self {
        Self::with_limit(LIMIT)
    }
}

impl Health {
    /// Takes what has not moved for `limit` for stuck.
    fn with_limit(limit: Duration) -> Self {
        Self(Arc::new(Pulses { limit, next: AtomicU64::new(0), running: Mutex::default() }))
    }

    /// A client of the Kubernetes API whose lists and watches are looked at. Fails as [`Client::try_from`] does.
    pub fn client(&self, mut config: Config) -> kube::Result<Client> {
        config.read_timeout.get_or_insert(READ_TIMEOUT);
        let health = self.clone();
        let layer = layer_fn(move |inner| Watched { inner, health: health.clone() });
        Ok(ClientBuilder::try_from(config)?.with_layer(&layer).build())
    }

    /// Runs the loop `name`, and looks at whether it comes back whenever it is called.
    pub async fn beating<W: Future>(&self, name: &str, work: W) -> W::Output {
        let pulse = self.pulse(format!("the loop of {name}"));
        let mut work = pin!(work);
        let mut beat = tokio::time::interval(self.0.limit / 20);
        loop {
            tokio::select! {
                biased;
                output = &mut work => return output,
                _ = beat.tick() => pulse.beat(),
            }
        }
    }

    /// What is stuck, for people.
    pub fn stuck(&self) -> Vec<String> {
        let running = self.0.running();
        let stuck = running.values().filter(|running| running.moved.elapsed() > self.0.limit);
        stuck.map(|running| format!("{}: nothing for {} s", running.what, running.moved.elapsed().as_secs())).collect()
    }

    fn pulse(&self, what: String) -> Pulse {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        self.0.running().insert(id, Running { what, moved: Instant::now() });
        Pulse { pulses: Arc::clone(&self.0), id }
    }

    /// Lists and watches have a query. Everything else is part of a pass, which shows its age.
    fn request(&self, request: &http::Request<KubeBody>) -> Option<Pulse> {
        let listed = request.method() == http::Method::GET && request.uri().query().is_some();
        listed.then(|| self.pulse(format!("GET {}", request.uri().path())))
    }
}

impl Pulses {
    fn running(&self) -> MutexGuard<'_, HashMap<u64, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something under way, as long as this is there.
struct Pulse {
    pulses: Arc<Pulses>,
    id: u64,
}

impl Pulse {
    fn beat(&self) {
        if let Some(running) = self.pulses.running().get_mut(&self.id) {
            running.moved = Instant::now();
        }
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.pulses.running().remove(&self.id);
    }
}

/// A client's transport, looked at.
struct Watched<S> {
    inner: S,
    health: Health,
}

impl<S, B> Service<http::Request<KubeBody>> for Watched<S>
where
    S: Service<http::Request<KubeBody>, Response = http::Response<B>>,
    S::Future: Send + 'static,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = http::Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<KubeBody>) -> Self::Future {
        let pulse = self.health.request(&request);
        let answer = self.inner.call(request);
        async move {
            let body = Body::new;
            Ok(answer.await?.map(|answered| match pulse {
                Some(pulse) => {
                    pulse.beat();
                    Body::from_stream(body(answered).into_data_stream().inspect(move |_| pulse.beat()))
                }
                None => body(answered),
            }))
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::stream;
    use kube::client::Body as KubeBody;
    use tokio::{sync::mpsc, time::sleep};
    use tower::{ServiceExt, service_fn};

    use super::*;

    const SHORT: Duration = Duration::from_millis(200);

    fn get(path: &str) -> http::Request<KubeBody> {
        http::Request::get(path).body(KubeBody::empty()).unwrap()
    }

    /// An API server that answers at once and sends what the test says.
    fn watched(health: &Health) -> (mpsc::Sender<&'static str>, impl Future<Output = http::Response<Body>>) {
        let (events, mut sent) = mpsc::channel::<&'static str>(1);
        let body = Body::from_stream(stream::poll_fn(move |context| {
            sent.poll_recv(context).map(|event| event.map(Ok::<_, Infallible>))
        }));
        let mut body = Some(body);
        let inner = service_fn(move |_| {
            let answer = body.take().map(http::Response::new).ok_or("asked twice");
            async move { answer }
        });
        let service = Watched { inner, health: health.clone() };
        (events, async move { service.oneshot(get("/api/v1/secrets?watch=true")).await.unwrap() })
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_without_events_is_stuck_until_one_comes_or_it_ends() {
        let health = Health::with_limit(SHORT);
        let (events, answer) = watched(&health);
        let mut body = answer.await.into_body().into_data_stream();
        assert_eq!(health.stuck(), Vec::<String>::new());
        sleep(SHORT * 2).await;
        assert!(health.stuck()[0].starts_with("GET /api/v1/secrets: nothing for"), "{:?}", health.stuck());
        events.send("event").await.unwrap();
        assert!(body.next().await.is_some());
        assert_eq!(health.stuck(), Vec::<String>::new());
        sleep(SHORT * 2).await;
        drop(body);
        assert_eq!(health.stuck(), Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn events_that_nobody_reads_are_no_progress() {
        let health = Health::with_limit(SHORT);
        let (events, answer) = watched(&health);
        let _unread = answer.await;
        events.send("event").await.unwrap();
        sleep(SHORT * 2).await;
        assert_eq!(health.stuck().len(), 1);
    }

    #[tokio::test]
    async fn an_api_server_that_is_away_or_refuses_is_no_reason_for_a_restart() {
        let health = Health::with_limit(SHORT);
        let config = Config::new("http://127.0.0.1:1".parse().unwrap());
        kupenstack_testkit::install_tls_provider();
        let client = health.client(config).unwrap();
        let pods = kube::Api::<k8s_openapi::api::core::v1::Pod>::all(client);
        for _ in 0..4 {
            assert!(pods.list(&kube::api::ListParams::default().labels("a=b")).await.is_err());
            sleep(SHORT / 2).await;
        }
        assert_eq!(health.stuck(), Vec::<String>::new());
    }

    #[tokio::test]
    async fn what_is_asked_for_within_a_pass_is_not_looked_at() {
        assert!(Health::default().request(&get("/api/v1/namespaces/a/secrets/b")).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_waits_gets_on() {
        let health = Health::with_limit(SHORT);
        let look = async {
            sleep(SHORT * 3).await;
            health.stuck()
        };
        tokio::select! {
            () = health.beating("waiting", std::future::pending()) => unreachable!(),
            stuck = look => assert_eq!(stuck, Vec::<String>::new()),
        }
    }

    #[tokio::test]
    async fn a_loop_that_does_not_come_back_is_stuck() {
        let health = Health::with_limit(SHORT);
        let ((ready, is_ready), (stuck, is_stuck)) = (std::sync::mpsc::channel(), std::sync::mpsc::channel());
        let watched = health.clone();
        std::thread::spawn(move || {
            is_ready.recv().unwrap();
            std::thread::sleep(SHORT * 2);
            stuck.send(watched.stuck()).unwrap();
        });
        // as a lock that nobody gives back would
        let blocked = async {
            ready.send(()).unwrap();
            is_stuck.recv().unwrap()
        };
        let stuck = health.beating("blocked", blocked).await;
        assert!(stuck[0].starts_with("the loop of blocked"), "{stuck:?}");
        assert_eq!(health.stuck(), Vec::<String>::new());
    }
}
