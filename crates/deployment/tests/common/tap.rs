//! A reverse proxy between the operator (and its Helm) and the API server: it names each request, counts, and holds
//! one for ever when the test wants its sender to be killed there.

use std::{
    collections::BTreeMap,
    fmt,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    response::Response,
};
use http::{Method, StatusCode, header};
use kube::{Client, Config};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::json;
use tokio::{net::TcpListener, sync::Notify};

/// Process ids of the Helms that were started.
const PIDS: &str = "pids";

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Who {
    Operator,
    /// Helm, while it runs this command.
    Helm(&'static str),
}

/// Before a request reaches the API server, or after it was carried out and before its sender knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Phase {
    Before,
    After,
}

/// A place in the operator's work: a request, with generated parts of names left out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Point {
    pub(crate) who: Who,
    pub(crate) verb: String,
    pub(crate) what: String,
    pub(crate) phase: Phase,
}

impl Point {
    /// Whether it changes anything.
    pub(crate) fn writes(&self) -> bool {
        !matches!(self.verb.as_str(), "GET" | "WATCH") && !self.verb.starts_with("TRY")
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phase = if self.phase == Phase::Before { "before" } else { "after" };
        match self.who {
            Who::Operator => write!(f, "{phase} {} {}", self.verb, self.what),
            Who::Helm(command) => write!(f, "{phase} {} {} (helm {command})", self.verb, self.what),
        }
    }
}

/// What becomes of those who come to a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sentence {
    Pass,
    /// The operator dies, and its Helm with it, as all processes of a container do.
    Operator,
    /// Helm alone dies.
    Helm,
    /// The API server dies and comes back; nobody hears what became of the request.
    ApiServer,
}

/// Decides at every point.
type Verdict = Box<dyn FnMut(&Point) -> Sentence + Send>;

#[derive(Default)]
struct Rules {
    verdict: Option<Verdict>,
    /// The operator is condemned: nothing passes any more.
    closed: bool,
    counts: BTreeMap<(Who, String, String), usize>,
    /// Requests that changed something.
    changes: BTreeMap<String, usize>,
}

pub(crate) struct Tap {
    upstream: Client,
    rules: Mutex<Rules>,
    helm: Mutex<&'static str>,
    condemned: Notify,
    outage: Notify,
    operator_url: String,
    folder: tempfile::TempDir,
}

impl Tap {
    /// Listens on two ports of the loopback interface, one for the operator and one for Helm.
    pub(crate) async fn start(upstream: Client) -> Arc<Self> {
        let listeners = [listener().await, listener().await];
        let [operator_url, helm_url] = [0, 1].map(|i: usize| format!("http://{}", listeners[i].local_addr().unwrap()));
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("kubeconfig"), kubeconfig(&helm_url)).unwrap();
        let tap = Arc::new(Self {
            upstream,
            rules: Mutex::default(),
            helm: Mutex::new(""),
            condemned: Notify::new(),
            outage: Notify::new(),
            operator_url,
            folder,
        });
        for (listener, is_helm) in listeners.into_iter().zip([false, true]) {
            let app = Router::new().fallback(pass).with_state((Arc::clone(&tap), is_helm));
            tokio::spawn(async move { axum::serve(listener, app).await });
        }
        tap
    }

    /// A client whose requests go through the tap. It belongs to the runtime it is made in.
    pub(crate) fn client(&self) -> Client {
        Client::try_from(Config::new(self.operator_url.parse().unwrap())).unwrap()
    }

    /// Helm's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// From now on `verdict` is asked at every point, until the operator is to die.
    pub(crate) fn arm(&self, verdict: impl FnMut(&Point) -> Sentence + Send + 'static) {
        let mut rules = self.rules();
        rules.verdict = Some(Box::new(verdict));
        rules.closed = false;
    }

    /// From now on nobody dies any more. Whether that comes in time: somebody may be condemned already.
    pub(crate) fn spare(&self) -> bool {
        let mut rules = self.rules();
        rules.verdict = None;
        !rules.closed
    }

    /// Everything passes again.
    pub(crate) fn open(&self) {
        let mut rules = self.rules();
        rules.verdict = None;
        rules.closed = false;
    }

    /// Waits until the operator is condemned.
    pub(crate) async fn condemned(&self) {
        loop {
            let condemned = self.condemned.notified();
            if self.rules().closed {
                return;
            }
            condemned.await;
        }
    }

    /// How many requests have come so far.
    pub(crate) fn requests(&self) -> usize {
        self.rules().counts.values().sum()
    }

    /// Requests that passed, by who, verb and object.
    pub(crate) fn counts(&self) -> BTreeMap<(Who, String, String), usize> {
        self.rules().counts.clone()
    }

    /// Requests that changed something, by what they are.
    pub(crate) fn changes(&self) -> BTreeMap<String, usize> {
        self.rules().changes.clone()
    }

    /// Which command Helm runs from now on.
    pub(crate) fn helm_runs(&self, command: &'static str) {
        *self.helm.lock().unwrap_or_else(PoisonError::into_inner) = command;
    }

    /// Goes past a point, or never returns; false when the API server is gone.
    pub(crate) async fn reach(&self, point: &Point) -> bool {
        match self.sentence(point) {
            Sentence::Pass => return true,
            Sentence::Operator => self.condemned.notify_waiters(),
            Sentence::Helm => self.kill_helm(),
            Sentence::ApiServer => {
                self.outage.notify_one();
                return false;
            }
        }
        std::future::pending().await
    }

    /// Waits until the API server is to die.
    pub(crate) async fn outage(&self) {
        self.outage.notified().await;
    }

    /// Kills the Helm that was started last.
    fn kill_helm(&self) {
        let pids = std::fs::read_to_string(self.folder.path().join(PIDS)).unwrap();
        let pid = pids.lines().last().and_then(|pid| Pid::from_raw(pid.parse().ok()?)).unwrap();
        kill_process_group(pid, Signal::KILL).unwrap();
    }

    /// A program that is this Helm and lets the tap know which process it is.
    pub(crate) fn helm_program(&self, helm: &Path) -> PathBuf {
        let (program, pids) = (self.folder.path().join("helm"), self.folder.path().join(PIDS));
        let script = format!("#!/bin/sh\necho $$ >>'{}'\nexec '{}' \"$@\"\n", pids.display(), helm.display());
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        program
    }

    fn sentence(&self, point: &Point) -> Sentence {
        let mut rules = self.rules();
        if point.phase == Phase::Before && !rules.closed {
            *rules.counts.entry((point.who, point.verb.clone(), point.what.clone())).or_default() += 1;
        }
        if rules.closed {
            return Sentence::Operator;
        }
        let sentence = rules.verdict.as_mut().map_or(Sentence::Pass, |verdict| verdict(point));
        if sentence != Sentence::Pass {
            tracing::info!(%point, ?sentence, "strikes");
        }
        rules.closed = sentence == Sentence::Operator;
        sentence
    }

    fn rules(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

fn kubeconfig(server: &str) -> String {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "tap", "cluster": {"server": server}}],
        "users": [{"name": "tap", "user": {}}],
        "contexts": [{"name": "tap", "context": {"cluster": "tap", "user": "tap"}}],
        "current-context": "tap",
    })
    .to_string()
}

async fn pass(State((tap, is_helm)): State<(Arc<Tap>, bool)>, request: Request) -> Response {
    let who = if is_helm { Who::Helm(*tap.helm.lock().unwrap_or_else(PoisonError::into_inner)) } else { Who::Operator };
    let (parts, body) = request.into_parts();
    let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
    let (verb, mut what) = name(&parts.method, &parts.uri);
    if parts.method == Method::POST {
        what = format!("{what}/{}", made(&bytes));
    }
    let mut point = Point { who, verb, what, phase: Phase::Before };
    if !tap.reach(&point).await {
        return unreachable();
    }
    let path = parts.uri.path_and_query().map_or("/", |p| p.as_str());
    let mut forwarded = Request::new(kube::client::Body::from(bytes.to_vec()));
    *forwarded.method_mut() = parts.method;
    *forwarded.uri_mut() = path.parse().unwrap();
    *forwarded.headers_mut() = parts.headers;
    for own in [header::HOST, header::CONNECTION, header::CONTENT_LENGTH] {
        forwarded.headers_mut().remove(own);
    }
    let answer = tap.upstream.send(forwarded).await;
    if point.writes() && answer.as_ref().is_ok_and(|a| a.status().is_success()) {
        let what = format!("{} {} ({who:?})", point.verb, point.what);
        *tap.rules().changes.entry(what).or_default() += 1;
    }
    point.phase = Phase::After;
    let heard = tap.reach(&point).await;
    match answer {
        Ok(answer) if heard => answer.map(Body::new),
        _ => unreachable(),
    }
}

fn unreachable() -> Response {
    let mut response = Response::new(Body::from("the API server is gone"));
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    response
}

/// Verb and object of a request. Namespaces, generated parts of names and values of selectors are left out.
fn name(method: &Method, uri: &http::Uri) -> (String, String) {
    let query = uri.query().unwrap_or_default();
    let mut segments: Vec<&str> = uri.path().split('/').filter(|s| !s.is_empty()).collect();
    if let Some(i) = segments.iter().position(|s| *s == "namespaces")
        && segments.len() > i + 2
    {
        segments.drain(i..i + 2);
    }
    let one_of_many = segments.iter().any(|s| matches!(*s, "events" | "pods"));
    let names: Vec<_> = segments.iter().map(|s| without_generated(s)).collect();
    let mut what = if one_of_many && names.len() > 4 { names[..4].join("/") + "/*" } else { names.join("/") };
    if let Some(selector) = query.split('&').find_map(|q| q.strip_prefix("labelSelector=")) {
        let decoded = selector.replace("%3D", "=").replace("%2C", ",").replace("%2F", "/");
        let keys: Vec<_> = decoded.split(',').map(|t| t.split('=').next().unwrap_or_default().to_owned()).collect();
        what = format!("{what}?{}", keys.join(","));
    }
    let asks = |flag: &str| query.split('&').any(|q| q.strip_prefix(flag).is_some_and(|q| q.starts_with('=')));
    let verb = match (asks("watch"), asks("dryRun")) {
        (true, _) => "WATCH".to_owned(),
        (_, true) => format!("TRY {method}"),
        _ => method.to_string(),
    };
    (verb, what)
}

/// Name of the object that is made, if it is said in JSON. Events have generated ones.
fn made(body: &[u8]) -> String {
    let object: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    if object["kind"] == "Event" {
        return "*".to_owned();
    }
    without_generated(object["metadata"]["name"].as_str().unwrap_or("?"))
}

/// Without hashes and revisions.
pub(crate) fn without_generated(name: &str) -> String {
    let is_hash = |s: &str| s.len() >= 8 && s.bytes().all(|b| b.is_ascii_hexdigit());
    if let Some((start, revision)) = name.rsplit_once(".v")
        && revision.bytes().all(|b| b.is_ascii_digit())
    {
        return format!("{start}.v#");
    }
    match name.rsplit_once('-') {
        Some((start, end)) if is_hash(end) => format!("{}-#", without_generated(start)),
        _ => name.to_owned(),
    }
}
