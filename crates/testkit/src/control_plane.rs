use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::{Api, ObjectMeta, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::wait::await_condition;
use kube::{Client, Config};
use serde_json::json;
use tokio::sync::OnceCell;
use tokio::time::{sleep, timeout};

use crate::pki::{self, Authority, Identity};
use crate::processes::Processes;

/// The variable that names the multi-call binary with all of Kubernetes in it.
const KUBEBOX: &str = "KUPENSTACK_KUBEBOX";
/// A quiet machine needs 3 to 5 s; one that builds at the same time needs much more.
const START_LIMIT: Duration = Duration::from_mins(2);
/// Between two looks at a server that cannot be watched because it is not up yet.
const LOOK: Duration = Duration::from_millis(50);

/// Name by which the API server makes itself known to those that it passes requests on to.
const FRONT_PROXY: &str = "front-proxy-client";

/// What a control plane consists of.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Runs the controller manager too: garbage collection, namespaces' end, service accounts, Deployments and Jobs
    /// (whose pods stay pending, since there is no node), and the roles `view`, `edit` and `admin`, which are
    /// aggregated and have no rules without it.
    pub controller_manager: bool,
    /// Controllers of the controller manager that are left out, by their names in its `--controllers`: those that a
    /// test plays itself.
    pub without: &'static [&'static str],
}

/// A real etcd and kube-apiserver on the loopback interface. Everything ends with this value, or with the process.
pub struct ControlPlane {
    kubeconfig: Kubeconfig,
    kubeconfig_path: PathBuf,
    namespaces: AtomicU32,
    api_server: Vec<String>,
    processes: Mutex<Processes>,
}

impl ControlPlane {
    /// The control plane that all tests of a test binary share, without a controller manager. Use own
    /// [namespaces](Self::create_namespace) in it, and [`Self::start`] for what is not in a namespace.
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();
        SHARED.get_or_init(Self::start).await
    }

    /// Starts etcd and the API server and waits until the latter is ready.
    pub async fn start() -> Self {
        Self::start_with(Options::default()).await
    }

    /// Starts what the options say and waits until it is ready.
    pub async fn start_with(options: Options) -> Self {
        crate::install_tls_provider();
        let Some(kubebox) = std::env::var_os(KUBEBOX) else {
            panic!("{KUBEBOX} is not set: run the tests by `./dev/test`, which builds Kubernetes and sets it");
        };
        let mut processes = Processes::new(Path::new(&kubebox)).unwrap_or_else(|error| panic!("{error}"));
        let Launched { kubeconfig, api_server, manager } = launch(&mut processes, options)
            .unwrap_or_else(|error| panic!("cannot start {}: {error}", kubebox.display()));
        let plane = Self {
            kubeconfig,
            kubeconfig_path: processes.folder().join("admin.kubeconfig"),
            namespaces: AtomicU32::new(0),
            api_server,
            processes: Mutex::new(processes),
        };
        plane.ready(manager).await
    }

    /// A client of the administrator. It belongs to the runtime it is made in: tests do not share clients.
    pub async fn client(&self) -> Client {
        self.client_with(|_| {}).await
    }

    /// A client that acts as another user, with no more rights than that user has.
    pub async fn client_as(&self, user: &str, groups: &[&str]) -> Client {
        self.client_with(|config| {
            config.auth_info.impersonate = Some(user.to_owned());
            config.auth_info.impersonate_groups = Some(groups.iter().map(|&group| group.to_owned()).collect());
        })
        .await
    }

    /// The administrator's kubeconfig file, for programs.
    pub fn kubeconfig_path(&self) -> &Path {
        &self.kubeconfig_path
    }

    /// Applies YAML documents in their order, on the server and by force. Waits for CRDs to be served.
    pub async fn apply_yaml(&self, yaml: &str) {
        crate::manifests::apply(&self.client().await, yaml).await;
    }

    /// Kills the API server, as a crash does, and starts it again. Ready when this returns.
    pub async fn restart_api_server(&self) {
        let restarted = self.processes().restart("kube-apiserver", &self.api_server);
        restarted.unwrap_or_else(|error| panic!("cannot restart the API server: {error}"));
        self.api_server_ready().await;
    }

    /// Makes a namespace that no other test has and returns its name, `<prefix>-<number>`.
    pub async fn create_namespace(&self, prefix: &str) -> String {
        let name = format!("{prefix}-{}", self.namespaces.fetch_add(1, Ordering::Relaxed));
        let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        let namespaces = Api::all(self.client().await);
        if let Err(error) = namespaces.create(&PostParams::default(), &namespace).await {
            panic!("cannot create namespace {name}: {error}");
        }
        name
    }

    async fn client_with(&self, change: impl FnOnce(&mut Config)) -> Client {
        let config = Config::from_custom_kubeconfig(self.kubeconfig.clone(), &KubeConfigOptions::default()).await;
        let client = config.map_err(kube::Error::InferKubeconfig).and_then(|mut config| {
            change(&mut config);
            Client::try_from(config)
        });
        client.unwrap_or_else(|error| panic!("no client for our own kubeconfig: {error}"))
    }

    fn processes(&self) -> MutexGuard<'_, Processes> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn api_server_ready(&self) {
        let client = self.client().await;
        let since = Instant::now();
        while !is_ready(&client).await {
            self.still_starts(since);
            sleep(LOOK).await;
        }
    }

    fn still_starts(&self, since: Instant) {
        let mut processes = self.processes();
        if let Some(end) = processes.ended() {
            panic!("{end}\n{}", processes.tails());
        }
        let late = since.elapsed() > START_LIMIT;
        assert!(!late, "the API server is not ready after {START_LIMIT:?}\n{}", processes.tails());
    }

    async fn ready(self, manager: Option<Vec<String>>) -> Self {
        self.api_server_ready().await;
        let client = self.client().await;
        if let Some(arguments) = manager {
            // Not before the API server is ready: it gives up on one that makes it wait.
            let started = self.processes().start("kube-controller-manager", &arguments);
            started.unwrap_or_else(|error| panic!("cannot start the controller manager: {error}"));
            // The first thing that shows that its controllers run.
            let accounts: Api<ServiceAccount> = Api::namespaced(client, "default");
            let appears = await_condition(accounts, "default", |account: Option<&ServiceAccount>| account.is_some());
            let works = matches!(timeout(START_LIMIT, appears).await, Ok(Ok(_)));
            assert!(works, "the controller manager does not work\n{}", self.processes().tails());
        }
        self
    }
}

async fn is_ready(client: &Client) -> bool {
    let request = http::Request::get("/readyz").body(Vec::new());
    match request {
        Ok(request) => client.request_text(request).await.is_ok(),
        Err(_) => false,
    }
}

/// What [`launch`] leaves.
struct Launched {
    kubeconfig: Kubeconfig,
    /// How the API server was started.
    api_server: Vec<String>,
    /// How the controller manager is to be started, if it is.
    manager: Option<Vec<String>>,
}

/// Starts etcd and the API server; they need not be ready when this returns.
fn launch(processes: &mut Processes, options: Options) -> io::Result<Launched> {
    let address = own_address();
    let [etcd, peers, api, controllers] = free_ports(address)?;
    let server = format!("https://{address}:{api}");
    let folder = processes.folder().to_owned();

    let authority = Authority::new("testkit-ca").map_err(io::Error::other)?;
    std::fs::write(folder.join("ca.crt"), authority.certificate())?;
    authority.server(address).map_err(io::Error::other)?.write(&folder, "apiserver")?;
    pki::write_token_keys(&folder)?;
    // who may name users in headers is none of those who are users themselves
    let front_proxy = Authority::new("testkit-front-proxy-ca").map_err(io::Error::other)?;
    std::fs::write(folder.join("front-proxy-ca.crt"), front_proxy.certificate())?;
    front_proxy.user(FRONT_PROXY, None).map_err(io::Error::other)?.write(&folder, "front-proxy")?;
    let admin = authority.user("admin", Some("system:masters")).map_err(io::Error::other)?;
    let kubeconfig = write_kubeconfig(&folder, "admin", &server, &authority, &admin)?;

    processes.start("etcd", &etcd_arguments(address, etcd, peers))?;
    let api_server = apiserver_arguments(address, api, etcd);
    processes.start("kube-apiserver", &api_server)?;
    let manager = if options.controller_manager {
        let manager = authority.user("system:kube-controller-manager", None).map_err(io::Error::other)?;
        write_kubeconfig(&folder, "controllers", &server, &authority, &manager)?;
        Some(controller_manager_arguments(address, controllers, options.without))
    } else {
        None
    };
    Ok(Launched { kubeconfig, api_server, manager })
}

/// A loopback address that only this control plane uses, so that a free port on it stays free until the server takes it.
fn own_address() -> Ipv4Addr {
    static NUMBER: AtomicU8 = AtomicU8::new(0);
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    // a process has a number below 2^22, so these two bits are left for those of one process
    let number = 1 + NUMBER.fetch_add(1, Ordering::Relaxed) % 3;
    Ipv4Addr::new(127, high | number << 6, middle, low)
}

fn free_ports<const N: usize>(address: Ipv4Addr) -> io::Result<[u16; N]> {
    // All at once: a port that is let go might be given out again.
    let listeners: [io::Result<TcpListener>; N] = std::array::from_fn(|_| TcpListener::bind((address, 0)));
    let mut ports = [0; N];
    for (port, listener) in ports.iter_mut().zip(listeners) {
        *port = listener?.local_addr()?.port();
    }
    Ok(ports)
}

fn etcd_arguments(address: Ipv4Addr, clients: u16, peers: u16) -> Vec<String> {
    let (clients, peers) = (format!("http://{address}:{clients}"), format!("http://{address}:{peers}"));
    vec![
        "--name=testkit".into(),
        "--data-dir=etcd-data".into(),
        // Nothing has to survive the machine's failure.
        "--unsafe-no-fsync".into(),
        "--log-level=warn".into(),
        format!("--listen-client-urls={clients}"),
        format!("--advertise-client-urls={clients}"),
        format!("--listen-peer-urls={peers}"),
        format!("--initial-advertise-peer-urls={peers}"),
        format!("--initial-cluster=testkit={peers}"),
    ]
}

fn apiserver_arguments(address: Ipv4Addr, port: u16, etcd: u16) -> Vec<String> {
    vec![
        format!("--etcd-servers=http://{address}:{etcd}"),
        format!("--bind-address={address}"),
        format!("--advertise-address={address}"),
        format!("--secure-port={port}"),
        // A loopback address is not one that may be published.
        "--endpoint-reconciler-type=none".into(),
        "--service-cluster-ip-range=10.96.0.0/16".into(),
        "--allow-privileged".into(),
        "--authorization-mode=Node,RBAC".into(),
        "--client-ca-file=ca.crt".into(),
        "--tls-cert-file=apiserver.crt".into(),
        "--tls-private-key-file=apiserver.key".into(),
        "--service-account-issuer=https://kubernetes.default.svc".into(),
        "--service-account-key-file=tokens.pub".into(),
        "--service-account-signing-key-file=tokens.key".into(),
        "--requestheader-client-ca-file=front-proxy-ca.crt".into(),
        format!("--requestheader-allowed-names={FRONT_PROXY}"),
        "--requestheader-username-headers=X-Remote-User".into(),
        "--requestheader-group-headers=X-Remote-Group".into(),
        "--requestheader-extra-headers-prefix=X-Remote-Extra-".into(),
        "--proxy-client-cert-file=front-proxy.crt".into(),
        "--proxy-client-key-file=front-proxy.key".into(),
        "--profiling=false".into(),
    ]
}

fn controller_manager_arguments(address: Ipv4Addr, port: u16, without: &[&str]) -> Vec<String> {
    let controllers = std::iter::once("*".to_owned()).chain(without.iter().map(|name| format!("-{name}")));
    vec![
        format!("--controllers={}", controllers.collect::<Vec<_>>().join(",")),
        "--kubeconfig=controllers.kubeconfig".into(),
        format!("--bind-address={address}"),
        format!("--secure-port={port}"),
        "--leader-elect=false".into(),
        "--use-service-account-credentials".into(),
        "--root-ca-file=ca.crt".into(),
        "--service-account-private-key-file=tokens.key".into(),
        "--profiling=false".into(),
    ]
}

/// Writes `<name>.kubeconfig` as JSON, which is YAML.
fn write_kubeconfig(
    folder: &Path,
    name: &str,
    server: &str,
    authority: &Authority,
    user: &Identity,
) -> io::Result<Kubeconfig> {
    let base64 = |text: &str| k8s_openapi::ByteString(text.as_bytes().to_vec());
    let cluster = json!({"server": server, "certificate-authority-data": base64(&authority.certificate())});
    let user = json!({"client-certificate-data": base64(&user.certificate), "client-key-data": base64(&user.key)});
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "testkit", "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": "testkit", "context": {"cluster": "testkit", "user": name}}],
        "current-context": "testkit",
    });
    std::fs::write(folder.join(format!("{name}.kubeconfig")), config.to_string())?;
    Ok(serde_json::from_value(config)?)
}
