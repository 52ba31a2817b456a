use std::path::PathBuf;
use std::time::Duration;

use tokio::time::timeout;
use tracing::debug;

use crate::{Error, Guard, Progress, Proxies, Scratch, Source, Workspace};

mod answer;
mod asking;
mod clients;
mod failure;
mod transfer;
mod verdicts;

use answer::Identity;
use asking::Asking;
use clients::Clients;
use transfer::Transfer;
use verdicts::Verdicts;

/// What a fetch may cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest file, in bytes.
    pub max_bytes: u64,
    /// How many redirects are followed.
    pub max_redirects: usize,
    /// How long it may take to connect, TLS included.
    pub connect: Duration,
    /// How long the server may be silent.
    pub idle: Duration,
    /// How long the whole may take: a server that sends a byte now and then is not silent.
    pub total: Duration,
    /// How often in a row a broken transfer is continued without getting on.
    pub continuations: usize,
    /// The pause before the first continuation; it doubles with each that does not get on, with jitter.
    pub pause: Duration,
}

impl Default for Limits {
    /// 100 GiB, 5 redirects, 10 s, 30 s, 4 h, 5 continuations after 1 s and more.
    fn default() -> Self {
        Self {
            max_bytes: 100 << 30,
            max_redirects: 5,
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(30),
            total: Duration::from_hours(4),
            continuations: 5,
            pause: Duration::from_secs(1),
        }
    }
}

/// How images are fetched.
#[derive(Clone, Debug, Default)]
pub struct FetchSettings {
    /// What a fetch may cost.
    pub limits: Limits,
    /// Where it may go.
    pub guard: Guard,
    /// Through which proxies.
    pub proxies: Proxies,
    /// A file with certificates (PEM) of authorities to trust beside the system's. A change of it is seen by the next
    /// fetch.
    pub ca_bundle: Option<PathBuf>,
}

/// Fetches images over HTTP.
#[derive(Debug)]
pub struct Fetcher {
    limits: Limits,
    clients: Clients,
    verdicts: Verdicts,
}

/// A fetched file, removed when this value is dropped.
#[derive(Debug)]
pub struct Download {
    /// The file.
    pub file: Scratch,
    /// Its length.
    pub bytes: u64,
    /// Its SHA-256 in hexadecimal digits.
    pub sha256: String,
    /// Where the redirects led to, without credentials and query.
    pub final_url: String,
    /// How the file can be known again; nothing when it came in parts that nobody vouches for.
    identity: Option<Identity>,
}

impl Fetcher {
    /// A fetcher that trusts the system's certificate authorities and those of the settings.
    ///
    /// The process must have installed a `rustls` crypto provider before. Fails when a proxy's address or the
    /// certificates cannot be used.
    pub fn new(settings: FetchSettings) -> Result<Self, Error> {
        let limits = settings.limits.clone();
        Ok(Self { limits, clients: Clients::new(settings)?, verdicts: Verdicts::default() })
    }

    /// Fetches a file into the workspace and verifies its checksum. A transfer that breaks is continued. Dropping the
    /// future removes what was fetched.
    ///
    /// A file that was found wrong is not fetched again before it changes or a day has passed.
    pub async fn fetch(
        &self,
        source: &Source,
        workspace: &Workspace,
        on_progress: impl FnMut(Progress) + Send,
    ) -> Result<Download, Error> {
        let limit = self.limits.total;
        timeout(limit, self.fetch_in_any_time(source, workspace, on_progress))
            .await
            .unwrap_or_else(|_| Err(Error::TooSlow { url: source.location(), limit }))
    }

    /// Remembers that a fetched file is not what it should be, so that [`Self::fetch`] fails with the same error as
    /// long as the server offers the same file. Errors that are not about the file are not remembered.
    pub fn reject(&self, source: &Source, download: &Download, error: &Error) {
        if let Some(identity) = &download.identity {
            self.verdicts.remember(source, identity.clone(), error);
        }
    }

    async fn fetch_in_any_time(
        &self,
        source: &Source,
        workspace: &Workspace,
        on_progress: impl FnMut(Progress) + Send,
    ) -> Result<Download, Error> {
        let asking = Asking { clients: self.clients.current().await?, source, limits: &self.limits };
        let known = self.verdicts.known(source);
        let response = asking.first(known.as_ref()).await?;
        if let Some(known) = known.filter(|known| known.identity.is_of(&response)) {
            debug!(url = source.location(), "the file is still the one that was found wrong");
            return Err(known.error);
        }
        let mut transfer = Transfer::begin(asking, response, workspace).await?;
        transfer.run(on_progress).await?;
        let (download, digests) = transfer.finish().await?;
        if let Some(Err(error)) = source.checksum().map(|checksum| digests.verify(checksum)) {
            self.reject(source, &download, &error);
            return Err(error);
        }
        debug!(url = download.final_url, bytes = download.bytes, sha256 = download.sha256, "fetched an image");
        Ok(download)
    }
}
