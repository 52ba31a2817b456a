//! The operator as a program of its own.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::{
    fs::File,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
};

use kupenstack_testkit::{repository, within};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    process::{Child, Command},
};

use crate::stage::{CLOUD, OPERATOR};

/// The program.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_kupenstack");

/// A running operator.
pub(crate) struct Operator {
    process: Child,
    address: SocketAddr,
    log: PathBuf,
}

impl Operator {
    /// Starts it. What it writes goes beside its kubeconfig.
    pub(crate) fn run(name: &str, kubeconfig: &Path, arguments: &[&str]) -> Self {
        let log = kubeconfig.with_file_name(format!("operator-{name}.log"));
        let address = free_address();
        let process = Command::new(PROGRAM)
            .args(["controller", "--listen", &address.to_string()])
            .arg("--charts")
            .arg(repository().join("charts/openstack"))
            .arg("--work-dir")
            .arg(kubeconfig.with_file_name(format!("work-{name}")))
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
    pub(crate) async fn passes(&self, controller: &str) -> usize {
        let metrics = self.get("/metrics").await.unwrap_or_default();
        let line = |l: &&str| l.starts_with("kupenstack_reconciles_total{") && l.contains("result=\"ok\"");
        let ours = metrics.lines().filter(line).filter(|l| l.contains(&format!("controller=\"{controller}\"")));
        ours.filter_map(|l| l.rsplit(' ').next()?.parse::<usize>().ok()).sum()
    }

    /// Memory that it holds, in bytes.
    pub(crate) fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
        let kilobytes = line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok());
        kilobytes.expect("a number") * 1024
    }

    /// Asks it to stop, waits for its end and returns what it logged.
    pub(crate) async fn stop(self) -> String {
        self.signal("TERM").await;
        let (success, log) = self.end().await;
        assert!(success, "{log}");
        log
    }

    pub(crate) async fn signal(&self, name: &str) {
        let id = self.id().to_string();
        let told = Command::new("kill").args([&format!("-{name}"), &id]).status().await.expect("kill");
        assert!(told.success());
    }

    /// Waits for its end. Whether that was a good one, and what it logged.
    pub(crate) async fn end(mut self) -> (bool, String) {
        let ended = within(self.process.wait(), "the operator's end").await.expect("its status");
        (ended.success(), std::fs::read_to_string(&self.log).expect("its log"))
    }

    fn id(&self) -> u32 {
        self.process.id().expect("it runs")
    }
}

/// An address on which nobody listens.
pub(crate) fn free_address() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|l| l.local_addr()).expect("a free port")
}
