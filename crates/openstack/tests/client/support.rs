//! A simulated cloud: Keystone's tokens, and whatever a test mounts beside them.

use std::{
    io,
    sync::{
        Mutex, Once,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use kupenstack_openstack::{
    Budget, Client, CloudConfig, Credentials, DomainRef, Interface, Options, ProjectScope, RetryPolicy,
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use wiremock::{
    Mock, MockServer, Request, Respond, ResponseTemplate,
    matchers::{method, path, path_regex},
};

pub(crate) const PASSWORD: &str = "correct-horse";
pub(crate) const IMAGE_ID: &str = "4f1ab1a4-0000-5000-8000-000000000001";

/// What a process does before its first client. All tests share one log, at the most talkative level.
pub(crate) fn set_up_process() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        rustls::crypto::ring::default_provider().install_default().unwrap();
        let all = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_ansi(false);
        tracing::subscriber::set_global_default(all.with_writer(|| Log).finish()).unwrap();
    });
}

static LOGGED: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Log;

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOGGED.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Everything that was traced so far.
pub(crate) fn log() -> String {
    String::from_utf8_lossy(&LOGGED.lock().unwrap()).into_owned()
}

pub(crate) fn credentials() -> Credentials {
    Credentials {
        username: "operator".to_owned(),
        password: PASSWORD.to_owned().into(),
        user_domain: DomainRef::default(),
        project: Some(ProjectScope::Name { name: "admin".to_owned(), domain: DomainRef::Name("Default".to_owned()) }),
    }
}

pub(crate) fn config(url: &str) -> CloudConfig {
    set_up_process();
    CloudConfig {
        auth_url: url.parse().unwrap(),
        credentials: credentials(),
        region: Some("RegionOne".to_owned()),
        interface: Interface::Internal,
        ca_certificate: None,
    }
}

/// The defaults, with delays and limits that do not hold up a test.
pub(crate) fn options() -> Options {
    Options {
        retry: RetryPolicy { first_delay: Duration::from_millis(1), ..RetryPolicy::default() },
        budget: Budget::new(64),
        upload_answer_timeout: Duration::from_secs(5),
        ..Options::default()
    }
}

pub(crate) fn client_at(url: &str, options: Options) -> Client {
    Client::new(config(url), options).unwrap()
}

/// Hands out `token-1`, `token-2`, …
pub(crate) struct Tokens {
    image_url: String,
    delay: Duration,
    issued: AtomicUsize,
}

impl Respond for Tokens {
    fn respond(&self, _: &Request) -> ResponseTemplate {
        let number = self.issued.fetch_add(1, Ordering::SeqCst) + 1;
        token_answer(number, &self.image_url).set_delay(self.delay)
    }
}

/// A token of one hour, and a catalogue with Glance, Nova and Neutron, all at one address.
pub(crate) fn token_answer(number: usize, url: &str) -> ResponseTemplate {
    let endpoint = |interface: &str, url: &str| json!({"interface": interface, "region_id": "RegionOne", "region": "RegionOne", "url": url});
    let service = |kind: &str, name: &str| {
        let endpoints = [endpoint("internal", url), endpoint("public", "http://public.invalid")];
        json!({"type": kind, "name": name, "id": name, "endpoints": endpoints})
    };
    let body = json!({"token": {
        "methods": ["password"],
        "user": {"id": "u1", "name": "operator", "domain": {"id": "default", "name": "Default"}},
        "project": {"id": "p1", "name": "admin"},
        "issued_at": "2026-11-27T10:00:00.000000Z",
        "expires_at": "2026-11-27T11:00:00.000000Z",
        "catalog": [service("image", "glance"), service("compute", "nova"), service("network", "neutron")],
    }});
    ResponseTemplate::new(201).insert_header("X-Subject-Token", format!("token-{number}")).set_body_json(body)
}

pub(crate) struct Cloud {
    pub(crate) server: MockServer,
}

impl Cloud {
    pub(crate) async fn start() -> Self {
        Self::with_slow_tokens(Duration::ZERO).await
    }

    pub(crate) async fn with_slow_tokens(delay: Duration) -> Self {
        let server = MockServer::start().await;
        let image_url = server.uri();
        Self::assemble(server, image_url, delay).await
    }

    /// Glance is somewhere else.
    pub(crate) async fn with_image_at(image_url: String) -> Self {
        Self::assemble(MockServer::start().await, image_url, Duration::ZERO).await
    }

    async fn assemble(server: MockServer, image_url: String, delay: Duration) -> Self {
        let tokens = Tokens { image_url, delay, issued: AtomicUsize::new(0) };
        Mock::given(method("POST")).and(path("/v3/auth/tokens")).respond_with(tokens).mount(&server).await;
        Self { server }
    }

    pub(crate) fn client(&self) -> Client {
        client_at(&self.server.uri(), options())
    }

    pub(crate) async fn answer(&self, verb: &str, at: &str, answer: ResponseTemplate) {
        Mock::given(method(verb)).and(path(at)).respond_with(answer).mount(&self.server).await;
    }

    /// Answers whatever is asked of a service, but not logins.
    pub(crate) async fn answer_all(&self, answer: ResponseTemplate) {
        let services = "^/(v2/images|v3/projects|v3/users|v3/roles)";
        Mock::given(path_regex(services)).respond_with(answer).mount(&self.server).await;
    }

    pub(crate) async fn requests(&self, verb: &str, at: &str) -> Vec<Request> {
        let all = self.server.received_requests().await.unwrap();
        all.into_iter().filter(|request| request.method.as_str() == verb && request.url.path() == at).collect()
    }

    pub(crate) async fn logins(&self) -> usize {
        self.requests("POST", "/v3/auth/tokens").await.len()
    }

    /// Requests other than logins.
    pub(crate) async fn calls(&self) -> usize {
        self.server.received_requests().await.unwrap().len() - self.logins().await
    }
}

pub(crate) fn image_body() -> Value {
    json!({
        "id": IMAGE_ID, "name": "cirros", "status": "active", "visibility": "private", "min_disk": 0, "min_ram": 0,
        "created_at": "2026-11-27T10:00:00Z", "updated_at": "2026-11-27T10:00:00Z", "os_distro": "cirros",
    })
}

pub(crate) fn image_at() -> String {
    format!("/v2/images/{IMAGE_ID}")
}

/// A service that a test plays byte by byte.
pub(crate) struct RawServer {
    listener: TcpListener,
}

impl RawServer {
    pub(crate) async fn bind() -> Self {
        Self { listener: TcpListener::bind("127.0.0.1:0").await.unwrap() }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.listener.local_addr().unwrap())
    }

    pub(crate) async fn accept(&self) -> TcpStream {
        self.listener.accept().await.unwrap().0
    }

    /// The next connection, with the request's head already read.
    pub(crate) async fn accept_request(&self) -> TcpStream {
        let mut stream = self.accept().await;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        stream
    }
}

pub(crate) async fn write_answer(stream: &mut TcpStream, status: &str, body: &str) {
    let answer = format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(answer.as_bytes()).await.unwrap();
}

/// Lets the client's clock jump. The simulated cloud lives on a thread of its own and does not notice.
pub(crate) async fn jump(seconds: u64) {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(seconds)).await;
    tokio::time::resume();
}
