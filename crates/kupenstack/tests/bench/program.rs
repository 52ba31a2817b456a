//! The operator as a program of its own, so that its memory is nobody else's.

use std::{
    fs::File,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::Path,
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    process::{Child, Command},
};

pub(crate) struct Program {
    process: Child,
    address: SocketAddr,
}

impl Program {
    /// Starts the resource controllers as the administrator of the cluster.
    pub(crate) fn start(kubeconfig: &Path, observe_seconds: u64) -> Self {
        let folder = kubeconfig.parent().unwrap();
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|l| l.local_addr()).unwrap();
        let log = File::options().create(true).append(true).open(folder.join("operator.log")).unwrap();
        let process = Command::new(env!("CARGO_BIN_EXE_kupenstack"))
            .args(["controller", "--controllers", "projects,image,clusterimage", "--listen", &address.to_string()])
            .args(["--cloud-namespace", crate::stage::CLOUD, "--operator-namespace", crate::stage::OPERATOR])
            .args([
                "--observe-seconds",
                &observe_seconds.to_string(),
                "--image-sources-allow",
                "127.0.0.0/8",
                "--without-lease",
            ])
            .arg("--work-dir")
            .arg(folder.join("work"))
            .env("KUBECONFIG", kubeconfig)
            .stdout(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self { process, address }
    }

    /// How many passes a controller has made.
    pub(crate) async fn passes(&self, controller: &str) -> usize {
        let metrics = self.metrics().await.unwrap_or_default();
        let label = format!("controller=\"{controller}\"");
        let lines =
            metrics.lines().filter(|line| line.starts_with("kupenstack_reconciles_total") && line.contains(&label));
        lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<usize>().ok()).sum()
    }

    /// Waits for so many passes.
    pub(crate) async fn passed(&self, controller: &str, passes: usize) {
        while self.passes(controller).await < passes {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Memory that it holds, in bytes.
    pub(crate) fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id().unwrap())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    /// Asks it to stop, and waits for its end.
    pub(crate) async fn stop(mut self) {
        let id = self.process.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().await.unwrap().success());
        assert!(self.process.wait().await.unwrap().success());
    }

    async fn metrics(&self) -> Option<String> {
        let mut stream = TcpStream::connect(self.address).await.ok()?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        Some(answer)
    }
}
