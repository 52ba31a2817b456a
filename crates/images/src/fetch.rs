use std::time::Duration;

use reqwest::header::{ACCEPT_ENCODING, CONTENT_ENCODING, ETAG, HeaderName, LAST_MODIFIED, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Response, StatusCode};
use tokio::fs::File;
use tokio::io::{AsyncWriteExt, BufWriter};
use tokio::time::timeout;
use tracing::debug;
use url::Url;

use crate::source::{Hasher, require_http, shown};
use crate::{Error, Progress, Scratch, Source, Workspace};

mod failure;

/// How much is collected before it is written to disk.
const WRITE_BUFFER: usize = 1 << 20;

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
}

impl Default for Limits {
    /// 100 GiB, 5 redirects, 10 s, 30 s, 4 h.
    fn default() -> Self {
        Self {
            max_bytes: 100 << 30,
            max_redirects: 5,
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(30),
            total: Duration::from_hours(4),
        }
    }
}

/// Fetches images over HTTP. Proxies are taken from the environment.
#[derive(Clone, Debug)]
pub struct Fetcher {
    client: Client,
    limits: Limits,
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
    /// The server's `ETag`, to ask later whether the file has changed.
    pub etag: Option<String>,
    /// The server's `Last-Modified`, for the same purpose.
    pub last_modified: Option<String>,
    /// Where the redirects led to, without credentials and query.
    pub final_url: String,
}

impl Fetcher {
    /// A fetcher that trusts the system's certificate authorities and those in `extra_ca` (PEM).
    ///
    /// The process must have installed a `rustls` crypto provider before.
    pub fn new(limits: Limits, extra_ca: Option<&[u8]>) -> Result<Self, Error> {
        let extra = extra_ca.map(Certificate::from_pem_bundle).transpose().map_err(Error::Client)?;
        let client = Client::builder()
            .user_agent(concat!("kupenstack/", env!("CARGO_PKG_VERSION")))
            .tls_certs_merge(extra.unwrap_or_default())
            // Followed by hand: each step is checked and each failure has its own name.
            .redirect(Policy::none())
            .connect_timeout(limits.connect)
            .read_timeout(limits.idle)
            .build()
            .map_err(Error::Client)?;
        Ok(Self { client, limits })
    }

    /// Fetches a file into the workspace and verifies its checksum. Dropping the future removes what was fetched.
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

    async fn fetch_in_any_time(
        &self,
        source: &Source,
        workspace: &Workspace,
        on_progress: impl FnMut(Progress) + Send,
    ) -> Result<Download, Error> {
        let response = self.open(source).await?;
        let url = shown(response.url());
        let announced = response.content_length();
        self.check_announced(&url, announced, workspace)?;
        let (etag, last_modified) = (header(&response, &ETAG), header(&response, &LAST_MODIFIED));
        let file = workspace.scratch()?;
        let mut hasher = Hasher::for_checksum(source.checksum());
        let bytes = self.store(response, &url, &file, &mut hasher, on_progress).await?;
        if bytes == 0 {
            return Err(Error::Empty { url });
        }
        let digests = hasher.finish();
        if let Some(checksum) = source.checksum() {
            digests.verify(checksum)?;
        }
        debug!(url, bytes, sha256 = digests.sha256, "fetched an image");
        Ok(Download { file, bytes, sha256: digests.sha256, etag, last_modified, final_url: url })
    }

    /// Asks for the file and follows redirects.
    async fn open(&self, source: &Source) -> Result<Response, Error> {
        let mut url = source.url().clone();
        for _ in 0..=self.limits.max_redirects {
            let request = self.client.get(url.clone()).header(ACCEPT_ENCODING, "identity");
            let response = request.send().await.map_err(|error| failure::of_request(&url, &error))?;
            match response.status() {
                StatusCode::OK => return plain(response, &url),
                StatusCode::NO_CONTENT => return Err(Error::Empty { url: shown(&url) }),
                status if status.is_redirection() => url = next(&url, &response, source.checksum().is_some())?,
                status => return Err(failure::of_status(&url, status)),
            }
        }
        Err(Error::TooManyRedirects { url: source.location(), limit: self.limits.max_redirects })
    }

    fn check_announced(&self, url: &str, announced: Option<u64>, workspace: &Workspace) -> Result<(), Error> {
        match announced {
            Some(0) => Err(Error::Empty { url: url.to_owned() }),
            Some(bytes) if bytes > self.limits.max_bytes => {
                Err(Error::TooLarge { bytes, limit: self.limits.max_bytes })
            }
            Some(bytes) => workspace.require_space(bytes),
            None => Ok(()),
        }
    }

    /// Writes the body to disk while hashing it, one chunk in memory at a time. Returns its length.
    async fn store(
        &self,
        mut response: Response,
        url: &str,
        file: &Scratch,
        hasher: &mut Hasher,
        mut on_progress: impl FnMut(Progress) + Send,
    ) -> Result<u64, Error> {
        let total = response.content_length();
        let file = File::create(file.path()).await.map_err(Error::writing(None))?;
        let mut file = BufWriter::with_capacity(WRITE_BUFFER, file);
        let mut done = 0;
        while let Some(chunk) = response.chunk().await.map_err(|error| failure::of_body(url, done, &error))? {
            let length = chunk.len() as u64;
            done += length;
            if done > self.limits.max_bytes {
                return Err(Error::TooLarge { bytes: done, limit: self.limits.max_bytes });
            }
            hasher.update(&chunk);
            file.write_all(&chunk).await.map_err(Error::writing(Some(length)))?;
            on_progress(Progress { done, total });
        }
        file.flush().await.map_err(Error::writing(None))?;
        match total {
            Some(total) if total != done => {
                let message = format!("{total} were announced");
                Err(Error::Truncated { url: url.to_owned(), received: done, message })
            }
            _ => Ok(done),
        }
    }
}

/// Refuses a body in a content encoding, which we did not ask for and would store as if it were the image.
fn plain(response: Response, url: &Url) -> Result<Response, Error> {
    match header(&response, &CONTENT_ENCODING).as_deref() {
        None | Some("identity") => Ok(response),
        Some(encoding) => Err(Error::UnsupportedFormat { message: format!("{} is sent as {encoding}", shown(url)) }),
    }
}

/// Where a redirect leads. Leaving TLS is safe only for a file whose checksum is known.
fn next(url: &Url, response: &Response, checksum_known: bool) -> Result<Url, Error> {
    let refuse = |message: String| Error::ForbiddenRedirect { url: shown(url), message };
    let Some(location) = header(response, &LOCATION) else {
        return Err(failure::of_status(url, response.status()));
    };
    let next = url.join(&location).map_err(|error| refuse(error.to_string()))?;
    require_http(&next).map_err(|scheme| refuse(format!("scheme `{scheme}` is not http or https")))?;
    if url.scheme() == "https" && next.scheme() == "http" && !checksum_known {
        return Err(refuse("from https to http without a checksum".to_owned()));
    }
    Ok(next)
}

fn header(response: &Response, name: &HeaderName) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}
