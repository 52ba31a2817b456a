//! The HTTP clients: one that goes to servers, guarded, and one that goes to proxies.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::{fs, io};

use hyper_util::client::proxy::matcher::Matcher;
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, ClientBuilder};
use url::Url;

use super::FetchSettings;
use crate::Error;
use crate::guard::{Denied, Resolver};
use crate::proxy::intercepts;

/// Makes clients, anew when the certificates to trust have changed.
#[derive(Debug)]
pub(super) struct Clients {
    settings: FetchSettings,
    resolver: Resolver,
    matcher: Arc<Matcher>,
    current: Mutex<Made>,
}

#[derive(Debug)]
struct Made {
    bundle: Option<Vec<u8>>,
    pair: Pair,
}

/// The clients of one fetch.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    direct: Client,
    proxied: Option<Client>,
    resolver: Resolver,
    matcher: Arc<Matcher>,
}

impl Clients {
    pub(super) fn new(settings: FetchSettings) -> Result<Self, Error> {
        let resolver = Resolver::new(settings.guard.clone());
        let matcher = Arc::new(settings.proxies.matcher());
        let bundle = settings.ca_bundle.as_deref().map(fs::read).transpose().map_err(unreadable)?;
        let pair = Pair::make(&settings, bundle.as_deref(), &resolver, &matcher)?;
        Ok(Self { settings, resolver, matcher, current: Mutex::new(Made { bundle, pair }) })
    }

    pub(super) async fn current(&self) -> Result<Pair, Error> {
        let bundle = match self.settings.ca_bundle.as_deref() {
            Some(path) => Some(read(path).await.map_err(unreadable)?),
            None => None,
        };
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.bundle != bundle {
            let pair = Pair::make(&self.settings, bundle.as_deref(), &self.resolver, &self.matcher)?;
            *current = Made { bundle, pair };
        }
        Ok(current.pair.clone())
    }
}

impl Pair {
    fn make(
        settings: &FetchSettings,
        bundle: Option<&[u8]>,
        resolver: &Resolver,
        matcher: &Arc<Matcher>,
    ) -> Result<Self, Error> {
        let extra = bundle.map(Certificate::from_pem_bundle).transpose().map_err(Error::Client)?.unwrap_or_default();
        let builder = || builder(settings, extra.clone());
        let direct = builder().no_proxy().dns_resolver(resolver.clone()).build().map_err(Error::Client)?;
        let chosen = settings.proxies.for_client()?;
        let proxied = if chosen.is_empty() {
            None
        } else {
            let builder = builder().dns_resolver(resolver.for_proxies(settings.proxies.hosts()));
            Some(chosen.into_iter().fold(builder, ClientBuilder::proxy).build().map_err(Error::Client)?)
        };
        Ok(Self { direct, proxied, resolver: resolver.clone(), matcher: Arc::clone(matcher) })
    }

    /// The client for an address, unless that is denied. A name that is connected to directly is judged when the
    /// connection is made, by the addresses that it is made to.
    pub(super) async fn of(&self, url: &Url) -> Result<&Client, Denied> {
        match &self.proxied {
            Some(client) if intercepts(&self.matcher, url) => {
                self.resolver.check_for_others(url).await?;
                Ok(client)
            }
            _ => self.resolver.check_literal(url).map(|()| &self.direct),
        }
    }

    /// Whether the host is one that must not be scanned through us.
    pub(super) fn is_internal(&self, url: &Url) -> bool {
        self.resolver.is_internal(url)
    }
}

fn builder(settings: &FetchSettings, extra: Vec<Certificate>) -> ClientBuilder {
    Client::builder()
        .user_agent(concat!("kupenstack/", env!("CARGO_PKG_VERSION")))
        .tls_certs_merge(extra)
        // Followed by hand: each step is checked and each failure has its own name.
        .redirect(Policy::none())
        // Fetches are rare: a connection that was kept would mostly be one that the server has closed.
        .pool_max_idle_per_host(0)
        .connect_timeout(settings.limits.connect)
        .read_timeout(settings.limits.idle)
}

async fn read(path: &Path) -> io::Result<Vec<u8>> {
    tokio::fs::read(path).await
}

fn unreadable(source: io::Error) -> Error {
    Error::io("read the extra certificates to trust")(source)
}
