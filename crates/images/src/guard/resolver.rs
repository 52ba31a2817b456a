//! Names, resolved once and judged by what they resolve to: the addresses that pass are those that are connected to.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, io};

use futures::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::lookup_host;
use url::{Host, Url};

use super::{AddressClass, Guard, is_internal};

/// How many internal names are remembered. When there are more, every name is taken for one.
const MOST_NAMES: usize = 1024;

/// How names are looked up.
type Lookup = dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync;

/// A name leads to an address that is denied.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the name leads to {0}")]
pub(crate) struct Denied(pub(crate) AddressClass);

/// Resolves names for the HTTP client. A name with one denied address is denied as a whole: who answers for it could
/// answer with the others next time.
#[derive(Clone)]
pub(crate) struct Resolver {
    guard: Arc<Guard>,
    lookup: Arc<Lookup>,
    /// Names that led to an internal address at some time.
    internal: Arc<Mutex<HashSet<String>>>,
    /// Names of proxies, which the settings chose.
    chosen: Arc<[String]>,
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").field("guard", &self.guard).finish_non_exhaustive()
    }
}

impl Resolver {
    pub(crate) fn new(guard: Guard) -> Self {
        Self::with_lookup(guard, Arc::new(|name| Box::pin(system(name))))
    }

    pub(crate) fn with_lookup(guard: Guard, lookup: Arc<Lookup>) -> Self {
        Self { guard: Arc::new(guard), lookup, internal: Arc::default(), chosen: Arc::default() }
    }

    /// For a client that connects to proxies only: those are where the settings say.
    pub(crate) fn for_proxies(&self, names: Vec<String>) -> Self {
        Self { chosen: names.into(), ..self.clone() }
    }

    /// Judges an address in a URL, which the HTTP client connects to without asking for it.
    pub(crate) fn check_literal(&self, url: &Url) -> Result<(), Denied> {
        literal(url).map_or(Ok(()), |address| self.guard.check(address).map_err(Denied))
    }

    /// Judges a host that somebody else is going to connect to. What cannot be resolved from here passes.
    pub(crate) async fn check_for_others(&self, url: &Url) -> Result<(), Denied> {
        self.check_literal(url)?;
        let Some(Host::Domain(name)) = url.host() else { return Ok(()) };
        match (self.lookup)(name.to_owned()).await {
            Ok(addresses) => self.judge(name, &addresses),
            Err(_) => Ok(()),
        }
    }

    /// Whether the host is one that must not be scanned through us.
    pub(crate) fn is_internal(&self, url: &Url) -> bool {
        match (literal(url), url.host()) {
            (Some(address), _) => is_internal(address),
            (None, Some(Host::Domain(name))) => {
                let internal = self.internal.lock().unwrap_or_else(PoisonError::into_inner);
                internal.len() >= MOST_NAMES || internal.contains(name)
            }
            _ => true,
        }
    }

    fn judge(&self, name: &str, addresses: &[IpAddr]) -> Result<(), Denied> {
        if addresses.iter().copied().any(is_internal) {
            let mut internal = self.internal.lock().unwrap_or_else(PoisonError::into_inner);
            if internal.len() < MOST_NAMES {
                internal.insert(name.to_owned());
            }
        }
        addresses.iter().try_for_each(|&address| self.guard.check(address).map_err(Denied))
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = self.clone();
        Box::pin(async move {
            let addresses = (resolver.lookup)(name.as_str().to_owned()).await?;
            if !resolver.chosen.iter().any(|chosen| chosen == name.as_str()) {
                resolver.judge(name.as_str(), &addresses)?;
            }
            // The client puts its own port in the place of 0.
            let addresses: Addrs = Box::new(addresses.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}

async fn system(name: String) -> io::Result<Vec<IpAddr>> {
    Ok(lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
}

fn literal(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
        Host::Domain(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolver(answers: &'static [&'static str]) -> Resolver {
        let addresses: Vec<IpAddr> = answers.iter().map(|text| text.parse().unwrap()).collect();
        let lookup = move |_| -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
            let addresses = addresses.clone();
            Box::pin(
                async move { if addresses.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(addresses) } },
            )
        };
        Resolver::with_lookup(Guard::default(), Arc::new(lookup))
    }

    #[tokio::test]
    async fn one_denied_address_denies_the_name() {
        let name = || "images.example".parse().unwrap();
        let Err(error) = resolver(&["93.184.215.14", "169.254.169.254"]).resolve(name()).await.map(drop) else {
            panic!("passed")
        };
        assert!(error.downcast_ref::<Denied>().is_some_and(|denied| denied.0 == AddressClass::LinkLocal));
        let passed = resolver(&["93.184.215.14", "10.0.0.1"]).resolve(name()).await.unwrap();
        let expected: Vec<SocketAddr> = ["93.184.215.14:0", "10.0.0.1:0"].map(|text| text.parse().unwrap()).into();
        assert_eq!(passed.collect::<Vec<_>>(), expected);
    }

    #[tokio::test]
    async fn behind_a_proxy_only_what_is_known_to_be_denied_is_refused() {
        let url = Url::parse("http://images.example/a.img").unwrap();
        assert!(resolver(&["127.0.0.1"]).check_for_others(&url).await.is_err());
        assert!(resolver(&["93.184.215.14"]).check_for_others(&url).await.is_ok());
        assert!(resolver(&[]).check_for_others(&url).await.is_ok());
        let literal = Url::parse("http://169.254.169.254/a.img").unwrap();
        assert!(resolver(&[]).check_for_others(&literal).await.is_err());
    }

    #[tokio::test]
    async fn a_name_that_was_internal_once_stays_so() {
        let url = Url::parse("http://images.example/a.img").unwrap();
        let resolver = resolver(&["10.0.0.1"]);
        assert!(!resolver.is_internal(&url));
        resolver.resolve("images.example".parse().unwrap()).await.map(drop).unwrap();
        resolver.judge("images.example", &["8.8.8.8".parse().unwrap()]).unwrap();
        assert!(resolver.is_internal(&url));
        assert!(resolver.is_internal(&Url::parse("http://192.168.1.1/").unwrap()));
        for index in 0..MOST_NAMES {
            resolver.judge(&index.to_string(), &["10.0.0.1".parse().unwrap()]).unwrap();
        }
        assert!(resolver.is_internal(&Url::parse("http://another.example/").unwrap()), "more than can be told apart");
    }
}
