//! Whether what a VM is for works: a question at its floating IP, again and again, for as long as its object is looked at.
//!
//! Only floating IPs are asked: what the network inside calls an address may be somebody else's in the network that the operator
//! is in.

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kube::ResourceExt;
use kupenstack_api::{
    HasConditions,
    resources::{HttpGetProbe, ProbeScheme, ReadinessProbe, VirtualMachine},
};
use kupenstack_core::{Outcome, conditions};
use kupenstack_openstack::Server;
use kupenstack_runtime::{Failure, jittered};
use reqwest::redirect::Policy;
use tokio::{
    net::TcpStream,
    sync::Semaphore,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::task::AbortOnDropHandle;

use crate::{directory::Directory, needs::Key};

/// Reason of a VM that runs and does not answer as its probe expects.
const NOT_ANSWERING: &str = "NotAnswering";

/// Questions on their way at the same time.
const AT_ONCE: usize = 64;

/// An object that no pass has been over for so long is gone: each has its turn every ten minutes.
const GONE: Duration = Duration::from_mins(30);

/// Whoever waits is called when there is news. It looks again all the same, in case it was called in vain.
const AGAIN: Duration = Duration::from_mins(5);

/// What is known of a VM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Verdict {
    /// Too little to say.
    #[default]
    Unknown,
    Answers,
    /// With what came instead of the right answer.
    Fails(String),
}

/// Whom to ask, and what.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Question {
    probe: ReadinessProbe,
    address: IpAddr,
}

/// The question that is put for one object.
struct Asking {
    question: Question,
    verdict: Arc<Mutex<Verdict>>,
    /// Whether the pass that is going on has asked for it, and when one last did.
    is_wanted: bool,
    wanted_at: Instant,
    _task: AbortOnDropHandle<()>,
}

/// The probes of all VMs.
pub(super) struct Probes {
    directory: Arc<Directory>,
    http: reqwest::Client,
    turns: Arc<Semaphore>,
    /// By UID.
    all: Mutex<HashMap<String, Asking>>,
}

impl Probes {
    /// Probes that have `directory` look at the objects that they have news of.
    pub(super) fn new(directory: &Arc<Directory>) -> Result<Self, Failure> {
        let http = reqwest::Client::builder()
            .user_agent(concat!("kupenstack-probe/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .no_proxy()
            .danger_accept_invalid_certs(true)
            .tls_certs_only([])
            // each question is to find out whether a connection is taken
            .pool_max_idle_per_host(0)
            .build()
            .map_err(|error| Failure::new("Internal", format!("no HTTP client for probes: {error}")))?;
        Ok(Self {
            directory: Arc::clone(directory),
            http,
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            all: Mutex::default(),
        })
    }

    /// What keeps a VM that runs from being ready.
    pub(super) fn objection(&self, vm: &VirtualMachine, server: &Server) -> Option<Outcome> {
        let probe = vm.spec.readiness_probe.as_ref()?;
        let Some(address) = floating_ip(server) else {
            let message = "readinessProbe asks at a floating IP, and the VM has none: give it floatingIP, or a FloatingIP that \
                           names its port, and a router that leads there";
            return Some(Outcome::waiting(NOT_ANSWERING, message));
        };
        let question = Question { probe: probe.clone(), address };
        let asked = question.to_string();
        match self.verdict(vm, question) {
            Verdict::Answers => None,
            // an operator that has just begun has not asked often enough
            Verdict::Unknown if conditions::is_ready(vm.conditions(), vm.metadata.generation) => None,
            Verdict::Unknown => Some(waiting(format!("{asked} is not answered yet"))),
            Verdict::Fails(why) => Some(waiting(format!("{asked}: {why}"))),
        }
    }

    /// A pass is over: a VM that did not ask in it is not asked any more.
    pub(super) fn passed(&self, uid: &str) {
        let mut all = self.all();
        if all.get_mut(uid).is_some_and(|asking| !std::mem::take(&mut asking.is_wanted)) {
            all.remove(uid);
        }
    }

    /// What has come of a question, which is put from now on if it was not.
    fn verdict(&self, vm: &VirtualMachine, question: Question) -> Verdict {
        let (mut all, now) = (self.all(), Instant::now());
        all.retain(|_, asking| now.duration_since(asking.wanted_at) < GONE);
        let uid = vm.uid().unwrap_or_default();
        let asking = all.remove(&uid).filter(|asking| asking.question == question);
        let asking = asking.unwrap_or_else(|| self.ask(vm, question));
        let verdict = lock(&asking.verdict).clone();
        all.insert(uid, Asking { is_wanted: true, wanted_at: now, ..asking });
        verdict
    }

    fn ask(&self, vm: &VirtualMachine, question: Question) -> Asking {
        let verdict = Arc::new(Mutex::default());
        let rounds = rounds(
            question.clone(),
            self.http.clone(),
            Arc::clone(&self.turns),
            Arc::clone(&verdict),
            Arc::clone(&self.directory),
            Key::of(vm),
        );
        Asking {
            question,
            verdict,
            is_wanted: true,
            wanted_at: Instant::now(),
            _task: AbortOnDropHandle::new(tokio::spawn(rounds)),
        }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Asking>> {
        lock(&self.all)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn waiting(message: String) -> Outcome {
    Outcome::waiting(NOT_ANSWERING, message).within(AGAIN)
}

fn floating_ip(server: &Server) -> Option<IpAddr> {
    let all = server.addresses.values().flatten();
    all.filter(|address| address.is_floating()).find_map(|address| address.addr.parse().ok())
}

/// Asks at its pace, and calls the object when the verdict is another one.
async fn rounds(
    question: Question,
    http: reqwest::Client,
    turns: Arc<Semaphore>,
    verdict: Arc<Mutex<Verdict>>,
    directory: Arc<Directory>,
    vm: Key,
) {
    let mut tally = Tally::default();
    loop {
        let next = Instant::now() + jittered(question.period());
        let Ok(turn) = turns.acquire().await else { return };
        let answer = question.put(&http).await;
        drop(turn);
        if let Some(now) = tally.count(&question.probe, answer) {
            let before = std::mem::replace(&mut *lock(&verdict), now.clone());
            if before != now {
                directory.wake(std::slice::from_ref(&vm));
            }
        }
        sleep_until(next).await;
    }
}

/// How many answers of a sort have come in a row.
#[derive(Debug, Default)]
struct Tally {
    right: u32,
    wrong: u32,
    /// Wrong ones that were wrong for the same reason.
    same: u32,
    why: String,
}

impl Tally {
    /// The verdict, when these are enough for one. What fails goes on to fail for the reason that it first did, until another
    /// has come as often in a row: one that changes all the time is not told each time.
    fn count(&mut self, probe: &ReadinessProbe, answer: Result<(), String>) -> Option<Verdict> {
        match answer {
            Ok(()) => {
                (self.right, self.wrong, self.same) = (self.right.saturating_add(1), 0, 0);
                (self.right == probe.success_threshold.unwrap_or(1).max(1)).then_some(Verdict::Answers)
            }
            Err(why) => {
                (self.right, self.wrong) = (0, self.wrong.saturating_add(1));
                self.same = if self.why == why { self.same.saturating_add(1) } else { 1 };
                self.why.clone_from(&why);
                let enough = probe.failure_threshold.unwrap_or(3).max(1);
                (self.wrong == enough || self.wrong > enough && self.same == enough).then_some(Verdict::Fails(why))
            }
        }
    }
}

impl Question {
    fn period(&self) -> Duration {
        Duration::from_secs(self.probe.period_seconds.unwrap_or(10).into())
    }

    fn limit(&self) -> Duration {
        Duration::from_secs(self.probe.timeout_seconds.unwrap_or(1).into())
    }

    /// Puts it once. The error is for the VM's users, and the same for as long as the cause is.
    async fn put(&self, http: &reqwest::Client) -> Result<(), String> {
        let answer = async {
            match (&self.probe.http_get, &self.probe.tcp_socket) {
                (Some(get), _) => self.get(http, get).await,
                (None, Some(socket)) => {
                    let connected = TcpStream::connect(SocketAddr::new(self.address, socket.port)).await;
                    connected.map(drop).map_err(|error| error.to_string())
                }
                (None, None) => Ok(()),
            }
        };
        timeout(self.limit(), answer).await.unwrap_or_else(|_| Err(format!("no answer within {:?}", self.limit())))
    }

    async fn get(&self, http: &reqwest::Client, get: &HttpGetProbe) -> Result<(), String> {
        match http.get(self.url(get)).send().await.map(|answer| answer.status()) {
            Ok(status) if status.is_success() || status.is_redirection() => Ok(()),
            Ok(status) => Err(format!("answered {status}")),
            Err(error) if error.is_connect() => Err("no connection".to_owned()),
            Err(_) => Err("no answer in HTTP".to_owned()),
        }
    }

    fn url(&self, get: &HttpGetProbe) -> String {
        let scheme = match get.scheme.unwrap_or_default() {
            ProbeScheme::Http => "http",
            ProbeScheme::Https => "https",
        };
        let path = get.path.as_deref().unwrap_or("/");
        format!("{scheme}://{}{path}", SocketAddr::new(self.address, get.port))
    }
}

impl std::fmt::Display for Question {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.probe.http_get, &self.probe.tcp_socket) {
            (Some(get), _) => write!(f, "GET {}", self.url(get)),
            (None, Some(socket)) => write!(f, "connecting to {}", SocketAddr::new(self.address, socket.port)),
            (None, None) => f.write_str("a probe without a question"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_takes_as_many_answers_in_a_row_as_are_asked_for() {
        let probe = ReadinessProbe { success_threshold: Some(2), ..ReadinessProbe::default() };
        let mut tally = Tally::default();
        let mut verdicts = Vec::new();
        for answer in [Ok(()), Err("a"), Ok(()), Ok(()), Ok(()), Err("b"), Err("c"), Err("d"), Err("e")] {
            verdicts.push(tally.count(&probe, answer.map_err(str::to_owned)));
        }
        let mut wanted = vec![None; 9];
        wanted[3] = Some(Verdict::Answers);
        wanted[7] = Some(Verdict::Fails("d".to_owned()));
        assert_eq!(verdicts, wanted);
    }

    #[test]
    fn another_reason_is_told_once_it_stays() {
        let probe = ReadinessProbe { failure_threshold: Some(2), ..ReadinessProbe::default() };
        let mut tally = Tally::default();
        let told = ["slow", "slow", "closed", "slow", "closed", "closed", "closed"]
            .map(|why| tally.count(&probe, Err(why.to_owned())))
            .into_iter()
            .flatten();
        assert_eq!(told.collect::<Vec<_>>(), ["slow", "closed"].map(|why| Verdict::Fails(why.to_owned())));
    }

    #[test]
    fn addresses_of_either_family_are_asked_at_their_port() {
        let get = HttpGetProbe { port: 8080, path: Some("/healthz?full".to_owned()), scheme: Some(ProbeScheme::Https) };
        let probe = ReadinessProbe { http_get: Some(get.clone()), ..ReadinessProbe::default() };
        for (address, url) in [
            ("203.0.113.9", "https://203.0.113.9:8080/healthz?full"),
            ("fd00::9", "https://[fd00::9]:8080/healthz?full"),
        ] {
            let question = Question { probe: probe.clone(), address: address.parse().unwrap() };
            assert_eq!(question.url(&get), url);
        }
    }
}
