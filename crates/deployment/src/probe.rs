//! Proofs by a real request that a service works.

use std::time::Duration;

use futures::future::BoxFuture;
use kupenstack_openstack::{Client, CloudConfig, Options};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// Longest a proof may take.
const LIMIT: Duration = Duration::from_secs(10);
/// Of so many hosts the names are told.
const NAMED: usize = 3;

/// Why a service is not proven to work.
#[derive(Debug, thiserror::Error)]
pub enum NotProven {
    /// Nobody listens there.
    #[error("no connection to {address}: {source}")]
    Connection {
        /// Host and port.
        address: String,
        /// Why.
        source: std::io::Error,
    },
    /// Somebody listens and says nothing.
    #[error("no answer from {address} within {} s", LIMIT.as_secs())]
    Timeout {
        /// Host and port.
        address: String,
    },
    /// The answer is not that of such a service.
    #[error("{address} gives an unexpected answer")]
    Answer {
        /// Host and port.
        address: String,
    },
    /// The service answers, and says what of it does not work.
    #[error("{0}")]
    Unwell(String),
    /// The service works, but not on all of its nodes. Their pods are replaced on demand, so no change has touched them.
    #[error("{0}")]
    NodesDown(String),
    /// Users have something there.
    #[error("{0}")]
    InUse(String),
    /// A request to an OpenStack API failed.
    #[error("{0}")]
    OpenStack(#[from] kupenstack_openstack::Error),
    /// The access to the cloud can't be used.
    #[error("{0}")]
    Config(#[from] kupenstack_openstack::ConfigError),
    /// There is no access to the cloud yet.
    #[error("the administrator's password is not known yet")]
    NoAccess,
}

impl NotProven {
    /// Whether it may be the fault of what was changed last.
    pub(crate) fn blames_the_change(&self) -> bool {
        !matches!(self, Self::NodesDown(_))
    }
}

/// Decides whether a service works, once its pods run.
pub trait Prober: Send + Sync {
    /// `request` is the service's own way to prove it: a real request to its address inside the cluster, sent when it
    /// is awaited.
    fn prove<'a>(
        &'a self,
        service: &'a str,
        request: BoxFuture<'a, Result<(), NotProven>>,
    ) -> BoxFuture<'a, Result<(), NotProven>>;
}

/// Asks the services themselves; for operators that reach the addresses inside the cluster.
#[derive(Clone, Copy, Debug, Default)]
pub struct Requests;

impl Prober for Requests {
    fn prove<'a>(
        &'a self,
        _service: &'a str,
        request: BoxFuture<'a, Result<(), NotProven>>,
    ) -> BoxFuture<'a, Result<(), NotProven>> {
        request
    }
}

/// Connects, says `greeting`, and expects an answer that `fits`.
pub(crate) async fn tcp(address: &str, greeting: &[u8], fits: impl Fn(&[u8]) -> bool) -> Result<(), NotProven> {
    let connection = |source| NotProven::Connection { address: address.to_owned(), source };
    let exchange = async {
        let mut stream = TcpStream::connect(address).await.map_err(connection)?;
        stream.write_all(greeting).await.map_err(connection)?;
        let mut answer = [0; 64];
        let n = stream.read(&mut answer).await.map_err(connection)?;
        if fits(answer.get(..n).unwrap_or_default()) {
            Ok(())
        } else {
            Err(NotProven::Answer { address: address.to_owned() })
        }
    };
    timeout(LIMIT, exchange).await.map_err(|_| NotProven::Timeout { address: address.to_owned() })?
}

/// Asks an HTTP server for `/`, without a token, and expects that it is content.
pub(crate) async fn http(address: &str) -> Result<(), NotProven> {
    let greeting = format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    tcp(address, greeting.as_bytes(), |answer| answer.starts_with(b"HTTP/1.1 200 ")).await
}

/// Those of one name that tell that they are there.
pub(crate) struct Heartbeats<'a> {
    /// What they are called.
    name: &'a str,
    /// The hosts where they are up.
    up: Vec<&'a str>,
    /// The hosts where they were, and are not any more.
    down: Vec<&'a str>,
}

impl<'a> Heartbeats<'a> {
    /// Each with its host, and whether it is up there.
    pub(crate) fn of(name: &'a str, all: impl IntoIterator<Item = (&'a str, bool)>) -> Self {
        let (mut up, mut down) = (Vec::new(), Vec::new());
        for (host, is_up) in all {
            if is_up { up.push(host) } else { down.push(host) }
        }
        Self { name, up, down }
    }

    /// What is to be said when so many are wanted and fewer are up.
    fn lack(&self, wanted: u32) -> Option<String> {
        let Self { name, up, down } = self;
        if u32::try_from(up.len()).map_or(true, |up| up >= wanted) {
            return None;
        }
        let told = format!("{} of {wanted} {name} up", up.len());
        let named = down.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
        Some(match down.len() {
            0 => told,
            1..=NAMED => format!("{told} (down: {named})"),
            all => format!("{told} (down: {named} and {} more)", all - NAMED),
        })
    }
}

/// Which are too few.
fn too_few<'a>(all: impl IntoIterator<Item = Heartbeats<'a>>, wanted: u32) -> Option<String> {
    let missing: Vec<_> = all.into_iter().filter_map(|beats| beats.lack(wanted)).collect();
    (!missing.is_empty()).then(|| missing.join(", "))
}

/// Whether one of each is up.
pub(crate) fn one_up<'a>(all: impl IntoIterator<Item = Heartbeats<'a>>) -> Result<(), NotProven> {
    too_few(all, 1).map_or(Ok(()), |few| Err(NotProven::Unwell(few)))
}

/// Whether each is up on every node that is to have it.
pub(crate) fn up_on<'a>(nodes: u32, all: impl IntoIterator<Item = Heartbeats<'a>>) -> Result<(), NotProven> {
    too_few(all, nodes).map_or(Ok(()), |few| Err(NotProven::NodesDown(few)))
}

/// A client of the cloud that gives up soon: a proof is repeated anyway.
pub(crate) fn client(access: Option<CloudConfig>) -> Result<Client, NotProven> {
    let options = Options { timeout: LIMIT, ..Options::default() };
    Ok(Client::new(access.ok_or(NotProven::NoAccess)?, options)?)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn only_the_expected_answer_is_a_proof() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.write_all(b"VERSION 1.6\r\n").await;
            }
        });
        assert!(tcp(&address, b"version\r\n", |a| a.starts_with(b"VERSION ")).await.is_ok());
        let wrong = tcp(&address, b"version\r\n", |a| a.starts_with(b"ERROR")).await;
        assert!(matches!(wrong, Err(NotProven::Answer { .. })), "{wrong:?}");
    }

    #[tokio::test]
    async fn a_server_that_is_not_content_proves_nothing() {
        for (status, proven) in [("200 OK", true), ("503 Service Unavailable", false)] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap().to_string();
            tokio::spawn(async move {
                let (mut stream, _) = listener.accept().await.unwrap();
                stream.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").as_bytes()).await.unwrap();
            });
            assert_eq!(http(&address).await.is_ok(), proven, "{status}");
        }
    }

    #[test]
    fn what_is_down_is_counted() {
        let two_up = || Heartbeats::of("nova-conductor", [("a", true), ("b", true)]);
        assert!(one_up([two_up()]).is_ok() && up_on(0, [Heartbeats::of("nova-compute", [])]).is_ok());
        let error = one_up([Heartbeats::of("nova-scheduler", []), two_up()]).unwrap_err();
        assert_eq!(error.to_string(), "0 of 1 nova-scheduler up");
        assert!(error.blames_the_change());
        let all = [("node1", true), ("node2", true), ("node3", false)];
        let error = up_on(
            3,
            [Heartbeats::of("ovn-controller", all.map(|(host, _)| (host, true))), Heartbeats::of("nova-compute", all)],
        );
        let error = error.unwrap_err();
        assert_eq!(error.to_string(), "2 of 3 nova-compute up (down: node3)");
        assert!(!error.blames_the_change(), "no change has touched the pods of nodes");
        let error = up_on(9, [Heartbeats::of("nova-compute", ["a", "b", "c", "d", "e"].map(|host| (host, false)))]);
        assert_eq!(error.unwrap_err().to_string(), "0 of 9 nova-compute up (down: a, b, c and 2 more)");
    }

    #[tokio::test]
    async fn a_closed_port_is_named() {
        let error = tcp("127.0.0.1:1", b"", |_| true).await.unwrap_err();
        assert!(error.to_string().contains("127.0.0.1:1"), "{error}");
    }
}
