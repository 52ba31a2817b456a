//! A simulated OpenStack: Keystone, Glance, Nova and Neutron over HTTP, with states that take time, quotas, isolation of projects, a
//! journal of all requests, and faults by rule.
//!
//! ```no_run
//! use kupenstack_testkit::sim::{Effect, Rule, Sim, SimOptions};
//!
//! let sim = Sim::start(SimOptions::default());
//! sim.cloud().faults.add(Rule::on("image", "POST", "/v2/images", Effect::Drop { commit: true }).once());
//! // … a client at sim.auth_url() …
//! assert_eq!(sim.cloud().journal.count("POST", "/v2/images"), 2);
//! ```
//!
//! What a client can see is meant to be what it sees of the real services; the contract suite compares the two. What
//! the simulation does not have, it refuses.

mod clock;
mod cloud;
mod control;
mod fault;
mod glance;
mod http;
mod ids;
mod journal;
mod keystone;
mod neutron;
mod nova;
mod quota;
mod server;
mod service;
mod table;

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    ops::DerefMut,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use tokio::sync::{broadcast, oneshot, watch};

pub use self::{
    clock::Clock,
    cloud::Cloud,
    fault::{Effect, Faults, Rule},
    glance::{Glance, Image, Member},
    http::{Answer, Outcome, Refusal, Request, Upload},
    ids::Ids,
    journal::{Entry, Journal},
    keystone::{Entity, Keystone},
    neutron::{Agent, Item, Neutron},
    nova::{Aggregate, ComputeService, Flavor, HostLife, KeyPair, Nova, Server, ServerFault, ServerGroup},
    quota::Quotas,
    service::{Access, Call, Caller, Microversions, Route, Service, Version},
    table::{Row, Table},
};

/// What a simulated cloud is like.
#[derive(Debug, Clone)]
pub struct SimOptions {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The password of the user `admin` in the project `admin`.
    pub admin_password: String,
    /// The name of the region.
    pub region: String,
    /// Determines identifiers and which requests a fault of a certain probability meets.
    pub seed: u64,
    /// Whether time passes by itself, or only by [`Clock::advance`].
    pub standing_clock: bool,
    /// How long a token lives.
    pub token_life: Duration,
    /// How long each request takes at least, in real time.
    pub latency: Duration,
    /// How long an image is `saving` after its last byte has come. Glance does not answer before; here it does, so
    /// that no test has to wait, and the state is seen.
    pub saving: Duration,
    /// How long whatever Nova does with a server takes. Without, it is done when the server is looked at again.
    pub build_time: Duration,
    /// The hosts that run servers.
    pub hosts: Vec<String>,
    /// How many requests the journal remembers.
    pub journal: usize,
    /// For how long it is remembered what lists were: see [`Effect::Stale`].
    pub history: Duration,
    /// Up to how many bytes of an image's data are kept, to be downloaded. Of more, only size and digests are known.
    pub keep_data: usize,
    /// Whether Neutron keeps DNS names. One that is not configured to takes them, and forgets and shows none.
    pub network_dns: bool,
}

impl Default for SimOptions {
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            admin_password: "admin-password".to_owned(),
            region: "RegionOne".to_owned(),
            seed: 1,
            standing_clock: false,
            token_life: Duration::from_hours(1),
            latency: Duration::ZERO,
            saving: Duration::ZERO,
            build_time: Duration::ZERO,
            hosts: vec!["node1".to_owned()],
            journal: 100_000,
            history: Duration::from_mins(1),
            keep_data: 1 << 20,
            network_dns: true,
        }
    }
}

/// A simulated cloud that runs, on a thread of its own: a test's paused clock does not reach it. It ends with this
/// value.
pub struct Sim {
    shared: Arc<Shared>,
    options: SimOptions,
    url: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What the server's tasks and the test share.
struct Shared {
    cloud: Mutex<Cloud>,
    clock: Arc<Clock>,
    arrivals: broadcast::Sender<Entry>,
    /// How many requests were left hanging so far.
    hung: watch::Sender<u64>,
    latency: Duration,
    keep_data: usize,
}

impl Shared {
    fn cloud(&self) -> MutexGuard<'_, Cloud> {
        self.cloud.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many requests a reader of [`Sim::arrivals`] may be behind.
const ARRIVALS: usize = 4096;

impl Sim {
    /// Starts a cloud with Keystone's bootstrap done: the domain `Default`, the usual roles, the project and the user
    /// `admin`, and a catalogue of all services.
    pub fn start(options: SimOptions) -> Self {
        let listener = TcpListener::bind(options.listen)
            .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
            .unwrap_or_else(|error| panic!("listen on {}: {error}", options.listen));
        let address = listener.local_addr().unwrap_or_else(|error| panic!("local address: {error}"));
        let url = format!("http://{address}");
        let clock = Arc::new(if options.standing_clock { Clock::standing() } else { Clock::running() });
        let shared = Arc::new(Shared {
            cloud: Mutex::new(Cloud::new(&options, Arc::clone(&clock), url.clone())),
            clock,
            arrivals: broadcast::channel(ARRIVALS).0,
            hung: watch::channel(0).0,
            latency: options.latency,
            keep_data: options.keep_data,
        });
        let (stop, stopped) = oneshot::channel();
        let of_server = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.unwrap_or_else(|error| panic!("runtime: {error}"));
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener);
                let listener = listener.unwrap_or_else(|error| panic!("listener: {error}"));
                server::run(listener, of_server, stopped).await;
            });
        });
        Self { shared, options, url, stop: Some(stop), thread: Some(thread) }
    }

    /// Where the cloud is. Each service has its type as a prefix there, such as `/image`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where to log in.
    pub fn auth_url(&self) -> String {
        format!("{}/{}/v3", self.url, Keystone::TYPE)
    }

    /// What the cloud was started with.
    pub fn options(&self) -> &SimOptions {
        &self.options
    }

    /// A `clouds.yaml` with the administrator as the cloud `sim`.
    pub fn clouds_yaml(&self) -> String {
        let SimOptions { admin_password, region, .. } = &self.options;
        let auth = serde_json::json!({
            "auth_url": self.auth_url(),
            "username": "admin",
            "password": admin_password,
            "project_name": "admin",
            "user_domain_name": "Default",
            "project_domain_name": "Default",
        });
        // JSON is YAML
        serde_json::json!({"clouds": {"sim": {"auth": auth, "region_name": region, "identity_api_version": 3}}})
            .to_string()
    }

    /// What the cloud holds, with everything done that has fallen due. No request is answered while it is held.
    pub fn cloud(&self) -> impl DerefMut<Target = Cloud> {
        let mut cloud = self.shared.cloud();
        cloud.settle();
        cloud
    }

    /// The cloud's time.
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// How many requests were left without an answer by [`Effect::Hang`] so far, those counted that were carried out
    /// when they have been.
    pub fn hung(&self) -> watch::Receiver<u64> {
        self.shared.hung.subscribe()
    }

    /// Every request as it comes, before it is carried out.
    pub fn arrivals(&self) -> broadcast::Receiver<Entry> {
        self.shared.arrivals.subscribe()
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // Its panic is in the test's output already.
            let _ = thread.join();
        }
    }
}
