//! A reverse proxy between an operator (and its Helm) and the API server: it names each request, writes it down, and
//! lets go wrong what a test wants to: its sender is held there for ever, to be killed, or gets no answer, or another.

mod point;
mod server;

use std::{
    collections::BTreeMap,
    fmt,
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kube::{Client, Config};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::json;
use tokio::{net::TcpListener, sync::Notify, task::AbortHandle};

pub use self::point::{Phase, Point, Who, without_generated};

/// Process ids of the Helms that were started.
const PIDS: &str = "pids";

/// What becomes of those who come to a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sentence {
    /// Nothing.
    Pass,
    /// The operator dies, and its Helm with it, as all processes of a container do.
    Operator,
    /// Helm alone dies.
    Helm,
    /// The API server dies and comes back; nobody hears what became of the request, which waits for [`Tap::let_go`].
    ApiServer,
    /// The request is answered with this status, as by an API server that refuses it, whatever became of it.
    Refuse(u16),
    /// The connection ends without an answer.
    Drop,
}

/// How it goes on from a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// As if there were no tap.
    Passed,
    /// With a refusal of this status.
    Refused(u16),
    /// Without an answer.
    Unheard,
    /// With the word of a gateway that the API server is gone.
    Gone,
}

/// Where a request goes: the path and the query it was sent to, to those it is to reach.
pub type Route = Box<dyn Fn(&str) -> String + Send + Sync>;

/// What a tap does to all that passes.
#[derive(Default)]
pub struct TapOptions {
    /// Leads requests elsewhere, if set. They keep the names that they were sent to.
    pub route: Option<Route>,
    /// How late the news of watches come; lists are as new as ever.
    pub watch_lag: Duration,
}

impl fmt::Debug for TapOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { route, watch_lag } = self;
        f.debug_struct("TapOptions").field("routed", &route.is_some()).field("watch_lag", watch_lag).finish()
    }
}

/// Decides at every point.
type Verdict = Box<dyn FnMut(&Point) -> Sentence + Send>;

#[derive(Default)]
struct Rules {
    verdict: Option<Verdict>,
    /// The operator is condemned: nothing passes any more.
    closed: bool,
    /// What was asked, in its order.
    journal: Vec<Point>,
    /// Requests that changed something.
    changes: BTreeMap<String, usize>,
}

/// The proxy. It ends with this value.
pub struct Tap {
    shared: Arc<Shared>,
    operator_url: String,
    folder: tempfile::TempDir,
    servers: [AbortHandle; 2],
}

/// What the proxy's connections and the test share.
struct Shared {
    upstream: Client,
    options: TapOptions,
    rules: Mutex<Rules>,
    helm: Mutex<&'static str>,
    pids: PathBuf,
    condemned: Notify,
    outage: Notify,
    let_go: Notify,
}

impl Tap {
    /// Listens on two ports of the loopback interface, one for the operator and one for Helm.
    pub async fn start(upstream: Client) -> Arc<Self> {
        Self::start_with(upstream, TapOptions::default()).await
    }

    /// The same, with options.
    pub async fn start_with(upstream: Client, options: TapOptions) -> Arc<Self> {
        let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("a folder for the tap: {error}"));
        let [(operator, operator_address), (helm, helm_address)] = [listener().await, listener().await];
        let config = kubeconfig(&format!("http://{helm_address}"));
        write(&folder.path().join("kubeconfig"), &config);
        let shared = Arc::new(Shared {
            upstream,
            options,
            rules: Mutex::default(),
            helm: Mutex::new(""),
            pids: folder.path().join(PIDS),
            condemned: Notify::new(),
            outage: Notify::new(),
            let_go: Notify::new(),
        });
        let serve =
            |listener, is_helm| tokio::spawn(server::run(listener, Arc::clone(&shared), is_helm)).abort_handle();
        let servers = [serve(operator, false), serve(helm, true)];
        Arc::new(Self { shared, operator_url: format!("http://{operator_address}"), folder, servers })
    }

    /// The settings of a client whose requests go through the tap.
    pub fn config(&self) -> Config {
        let url = self.operator_url.parse().unwrap_or_else(|error| panic!("{}: {error}", self.operator_url));
        Config::new(url)
    }

    /// A client whose requests go through the tap. It belongs to the runtime it is made in.
    pub fn client(&self) -> Client {
        Client::try_from(self.config()).unwrap_or_else(|error| panic!("a client of the tap: {error}"))
    }

    /// Helm's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// From now on `verdict` is asked at every point, until the operator is to die.
    pub fn arm(&self, verdict: impl FnMut(&Point) -> Sentence + Send + 'static) {
        let mut rules = self.shared.rules();
        rules.verdict = Some(Box::new(verdict));
        rules.closed = false;
    }

    /// From now on nobody dies any more. Whether that comes in time: somebody may be condemned already.
    pub fn spare(&self) -> bool {
        let mut rules = self.shared.rules();
        rules.verdict = None;
        !rules.closed
    }

    /// Everything passes again.
    pub fn open(&self) {
        let mut rules = self.shared.rules();
        rules.verdict = None;
        rules.closed = false;
    }

    /// From now on nothing passes any more: the operator is dead, and what it still sends was never sent.
    pub fn close(&self) {
        self.shared.rules().closed = true;
    }

    /// Waits until the operator is condemned.
    pub async fn condemned(&self) {
        loop {
            let condemned = self.shared.condemned.notified();
            if self.shared.rules().closed {
                return;
            }
            condemned.await;
        }
    }

    /// How many requests have come so far.
    pub fn requests(&self) -> usize {
        self.shared.rules().journal.len()
    }

    /// The requests that have come since there were so many, in their order.
    pub fn journal(&self, since: usize) -> Vec<Point> {
        self.shared.rules().journal.get(since..).unwrap_or_default().to_vec()
    }

    /// How many requests have come, by who, verb and object.
    pub fn counts(&self) -> BTreeMap<(Who, String, String), usize> {
        let mut counts = BTreeMap::new();
        for Point { who, verb, what, .. } in &self.shared.rules().journal {
            *counts.entry((*who, verb.clone(), what.clone())).or_default() += 1;
        }
        counts
    }

    /// Requests that changed something, by what they are.
    pub fn changes(&self) -> BTreeMap<String, usize> {
        self.shared.rules().changes.clone()
    }

    /// Which command Helm runs from now on.
    pub fn helm_runs(&self, command: &'static str) {
        *lock(&self.shared.helm) = command;
    }

    /// Goes past a point, or never returns when its sender is to die there.
    pub async fn reach(&self, point: &Point) -> Fate {
        self.shared.reach(point).await
    }

    /// Waits until the API server is to die.
    pub async fn outage(&self) {
        self.shared.outage.notified().await;
    }

    /// The API server dies now: who waits for that is told that it is gone.
    pub fn let_go(&self) {
        self.shared.let_go.notify_waiters();
    }

    /// A program that is this Helm and lets the tap know which process it is.
    pub fn helm_program(&self, helm: &Path) -> PathBuf {
        let program = self.folder.path().join("helm");
        let pids = self.shared.pids.display();
        write(&program, &format!("#!/bin/sh\necho $$ >>'{pids}'\nexec '{}' \"$@\"\n", helm.display()));
        let executable = std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755));
        executable.unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        program
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.servers.iter().for_each(AbortHandle::abort);
    }
}

impl Shared {
    async fn reach(&self, point: &Point) -> Fate {
        match self.sentence(point) {
            Sentence::Pass => return Fate::Passed,
            Sentence::Refuse(status) => return Fate::Refused(status),
            Sentence::Drop => return Fate::Unheard,
            Sentence::Operator => self.condemned.notify_waiters(),
            Sentence::Helm => self.kill_helm(),
            Sentence::ApiServer => {
                let let_go = self.let_go.notified();
                self.outage.notify_one();
                let_go.await;
                return Fate::Gone;
            }
        }
        std::future::pending().await
    }

    /// Kills the Helm that was started last.
    fn kill_helm(&self) {
        let pids = std::fs::read_to_string(&self.pids).unwrap_or_default();
        let pid = pids.lines().last().and_then(|pid| Pid::from_raw(pid.parse().ok()?));
        let killed = pid.map(|pid| kill_process_group(pid, Signal::KILL));
        assert!(matches!(killed, Some(Ok(()))), "no Helm to kill: {killed:?}");
    }

    fn sentence(&self, point: &Point) -> Sentence {
        let mut rules = self.rules();
        if rules.closed {
            return Sentence::Operator;
        }
        if point.phase == Phase::Before {
            rules.journal.push(point.clone());
        }
        let sentence = rules.verdict.as_mut().map_or(Sentence::Pass, |verdict| verdict(point));
        if sentence != Sentence::Pass {
            tracing::info!(%point, ?sentence, "strikes");
        }
        rules.closed = sentence == Sentence::Operator;
        sentence
    }

    fn rules(&self) -> MutexGuard<'_, Rules> {
        lock(&self.rules)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn listener() -> (TcpListener, SocketAddr) {
    let bound = async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        Ok::<_, std::io::Error>((listener, address))
    };
    bound.await.unwrap_or_else(|error| panic!("a port for the tap: {error}"))
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
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
