//! The program itself, with the rights of its accounts and no more.

use std::{
    fs::File,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use kube::{
    Api,
    api::{DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    process::{Child, Command},
    time::timeout,
};

use crate::stage::{CLOUD, OPERATOR, PATIENCE, Stage, account, eventually, free_address, objects, shared};

const CLUSTER: &str = "cluster.kupenstack.io";
const PROGRAM: &str = env!("CARGO_BIN_EXE_kupenstack");

/// A running operator.
pub(crate) struct Operator {
    process: Child,
    address: SocketAddr,
    log: PathBuf,
}

impl Operator {
    fn start(stage: &Stage, name: &str, controllers: &str) -> Self {
        Self::run(stage, name, &acting_as(stage, name), &["--controllers", controllers])
    }

    pub(crate) fn run(stage: &Stage, name: &str, kubeconfig: &Path, arguments: &[&str]) -> Self {
        let folder = stage.plane.kubeconfig_path().parent().expect("it is a file");
        let log = folder.join(format!("operator-{name}.log"));
        let address = free_address();
        let process = Command::new(PROGRAM)
            .args(["controller", "--listen", &address.to_string()])
            .arg("--charts")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/openstack"))
            .arg("--work-dir")
            .arg(folder.join(format!("work-{name}")))
            .args(["--cloud-namespace", CLOUD, "--operator-namespace", OPERATOR])
            .args(arguments)
            .env("POD_NAME", name)
            .env("KUBECONFIG", kubeconfig)
            .stdout(File::create(&log).expect("a log"))
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts");
        Self { process, address, log }
    }

    /// The body of an answer with status 200.
    pub(crate) async fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.address).await.ok()?;
        stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        head.contains(" 200 ").then(|| body.to_owned())
    }

    /// Passes of a controller that did not fail.
    pub(crate) async fn passes(&self, controller: &str) -> u64 {
        let metrics = self.get("/metrics").await.unwrap_or_default();
        let line = |l: &&str| l.starts_with("kupenstack_reconciles_total{") && l.contains("result=\"ok\"");
        let ours = metrics.lines().filter(line).filter(|l| l.contains(&format!("controller=\"{controller}\"")));
        ours.filter_map(|l| l.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    }

    /// Asks it to stop, waits for its end and returns what it logged.
    pub(crate) async fn stop(self) -> String {
        self.signal("TERM").await;
        let (success, log) = self.end().await;
        assert!(success, "{log}");
        log
    }

    pub(crate) async fn signal(&self, name: &str) {
        let id = self.process.id().expect("it runs").to_string();
        let told = Command::new("kill").args([&format!("-{name}"), &id]).status().await.expect("kill");
        assert!(told.success());
    }

    /// Waits for its end. Whether that was a good one, and what it logged.
    pub(crate) async fn end(mut self) -> (bool, String) {
        let ended = timeout(PATIENCE, self.process.wait()).await.expect("it ends").expect("its status");
        (ended.success(), std::fs::read_to_string(&self.log).expect("its log"))
    }
}

/// A kubeconfig of the administrator acting as an account.
pub(crate) fn acting_as(stage: &Stage, name: &str) -> PathBuf {
    let admin = stage.plane.kubeconfig_path();
    let mut config: Value = serde_json::from_slice(&std::fs::read(admin).expect("readable")).expect("JSON");
    config["users"][0]["user"]["as"] = json!(account(name));
    config["users"][0]["user"]["as-groups"] = json!(["system:serviceaccounts", "system:authenticated"]);
    let path = admin.with_file_name(format!("operator-{name}.kubeconfig"));
    std::fs::write(&path, config.to_string()).expect("writable");
    path
}

/// Lines of a log that tell of a missing right.
pub(crate) fn refusals(log: &str) -> Vec<&str> {
    log.lines().filter(|l| l.contains("orbidden")).collect()
}

async fn reason(api: &Api<DynamicObject>, name: &str) -> String {
    let object = api.get_opt(name).await.expect("an answer");
    let ready = object.and_then(|o| o.data["status"]["conditions"].as_array()?.first().cloned());
    ready.and_then(|c| c["reason"].as_str().map(str::to_owned)).unwrap_or_default()
}

#[tokio::test]
async fn the_cloud_account_suffices_to_roll_out_and_the_program_ends_when_asked() {
    let stage = shared().await;
    let clouds = objects(stage.plane.client().await, CLUSTER, "OpenStack", None);
    let cloud = json!({"apiVersion": "cluster.kupenstack.io/v1", "kind": "OpenStack",
        "metadata": {"name": "default"}, "spec": {"release": "2026.2"}});
    clouds.patch("default", &PatchParams::apply("test"), &Patch::Apply(cloud)).await.expect("a cloud");

    let operator = Operator::start(stage, "cloud", "openstack,mariadb,memcached,keystone,glance");
    eventually("ready", || async { operator.get("/readyz").await.is_some() }).await;
    assert_eq!(operator.get("/livez").await.as_deref(), Some("ok"));
    for (kind, name, expected) in [
        ("MariaDB", "mariadb", "RollingOut"),
        ("Memcached", "memcached", "RollingOut"),
        ("Keystone", "keystone", "DependencyNotReady"),
        ("Glance", "glance", "DependencyNotReady"),
    ] {
        let services = objects(stage.plane.client().await, CLUSTER, kind, Some(CLOUD));
        eventually(&format!("{kind} {expected}"), || async { reason(&services, name).await == expected }).await;
    }
    let log = operator.stop().await;
    assert_eq!(refusals(&log), Vec::<&str>::new());
    assert!(log.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "not JSON: {log}");
    assert!(log.contains("\"signal\":\"SIGTERM\"") && log.contains("\"message\":\"stopped\""), "{log}");
}

#[tokio::test]
async fn the_resources_account_suffices_to_watch_and_to_tell() {
    let stage = shared().await;
    let namespace = stage.plane.create_namespace("told").await;
    let images = objects(stage.plane.client().await, "kupenstack.io", "Image", Some(&namespace));
    let image = json!({"apiVersion": "kupenstack.io/v1", "kind": "Image", "metadata": {"name": "image"},
        "spec": {"src": "http://a.example/i", "format": "raw"}});
    images.patch("image", &PatchParams::apply("test"), &Patch::Apply(image)).await.expect("an image");

    let operator = Operator::start(stage, "resources", "projects,image");
    eventually("namespaces are looked at", || async { operator.passes("projects").await > 0 }).await;
    eventually("the image says what it waits for", || async { !reason(&images, "image").await.is_empty() }).await;
    let log = operator.stop().await;
    assert_eq!(refusals(&log), Vec::<&str>::new());
}

#[tokio::test]
async fn what_cannot_run_ends_with_an_error() {
    let stage = shared().await;
    for (argument, words) in [
        ("--controllers=projects,nova", "no controller is named nova; there are: openstack,"),
        ("--work-dir=/dev/null/work", "/dev/null/work (--work-dir)"),
    ] {
        let mut command = Command::new(PROGRAM);
        command.args(["controller", "--listen=127.0.0.1:0", "--controllers=projects", argument]);
        command.env("KUBECONFIG", stage.plane.kubeconfig_path()).kill_on_drop(true);
        let output = timeout(PATIENCE, command.output()).await.expect("it ends").expect("it starts");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && message.contains(words), "{message}");
    }
}
