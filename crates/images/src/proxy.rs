use std::env;
use std::fmt;

use hyper_util::client::proxy::matcher::Matcher;
use reqwest::{NoProxy, Proxy};
use url::Url;

use crate::Error;

/// Through which proxies images are fetched, in the words of the usual variables of the environment.
#[derive(Clone, Default)]
pub struct Proxies {
    /// For `http` addresses, as in `HTTP_PROXY`.
    pub http: Option<String>,
    /// For `https` addresses, as in `HTTPS_PROXY`.
    pub https: Option<String>,
    /// Hosts that are asked directly, as in `NO_PROXY`: names with all below them, addresses, ranges, or `*`.
    pub none_for: String,
}

/// A proxy's address may carry a password.
impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (http, https) = (self.http.is_some(), self.https.is_some());
        f.debug_struct("Proxies").field("http", &http).field("https", &https).field("none_for", &self.none_for).finish()
    }
}

impl Proxies {
    /// From `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, in capitals or not.
    pub fn from_env() -> Self {
        Self::from_variables(|name| env::var(name).ok())
    }

    fn from_variables(get: impl Fn(&str) -> Option<String>) -> Self {
        let either = |name: &str| get(name).or_else(|| get(&name.to_lowercase())).filter(|value| !value.is_empty());
        let all = either("ALL_PROXY");
        Self {
            http: either("HTTP_PROXY").or_else(|| all.clone()),
            https: either("HTTPS_PROXY").or(all),
            none_for: either("NO_PROXY").unwrap_or_default(),
        }
    }

    /// What the HTTP client needs; nothing without proxies.
    pub(crate) fn for_client(&self) -> Result<Vec<Proxy>, Error> {
        let http = self.http.as_deref().map(Proxy::http);
        let https = self.https.as_deref().map(Proxy::https);
        let except = NoProxy::from_string(&self.none_for);
        let proxies = http.into_iter().chain(https).map(|proxy| Ok(proxy?.no_proxy(except.clone())));
        proxies.collect::<Result<_, _>>().map_err(Error::Client)
    }

    /// The hosts that are proxies.
    pub(crate) fn hosts(&self) -> Vec<String> {
        let host = |address: &String| {
            let url = Url::parse(address)
                .ok()
                .filter(Url::has_host)
                .or_else(|| Url::parse(&format!("http://{address}")).ok());
            url.as_ref().and_then(Url::host_str).map(str::to_owned)
        };
        [&self.http, &self.https].into_iter().flatten().filter_map(host).collect()
    }

    /// What tells which addresses go through a proxy, by the same rules as the client's.
    pub(crate) fn matcher(&self) -> Matcher {
        let (http, https) = (self.http.clone().unwrap_or_default(), self.https.clone().unwrap_or_default());
        Matcher::builder().http(http).https(https).no(self.none_for.clone()).build()
    }
}

/// Whether an address goes through a proxy.
pub(crate) fn intercepts(matcher: &Matcher, url: &Url) -> bool {
    url.as_str().parse().is_ok_and(|uri| matcher.intercept(&uri).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn from(variables: &[(&str, &str)]) -> Proxies {
        let variables: HashMap<_, _> = variables.iter().copied().collect();
        Proxies::from_variables(|name| variables.get(name).map(|&value| value.to_owned()))
    }

    #[test]
    fn the_environment_is_read_as_everywhere() {
        let proxies =
            from(&[("https_proxy", "proxy:3128"), ("ALL_PROXY", "http://all:1"), ("NO_PROXY", ".svc,10.0.0.0/8")]);
        assert_eq!(proxies.http.as_deref(), Some("http://all:1"));
        assert_eq!(proxies.https.as_deref(), Some("proxy:3128"));
        let matcher = proxies.matcher();
        let goes = |url: &str| intercepts(&matcher, &Url::parse(url).unwrap());
        assert!(goes("https://images.example/a.img") && goes("http://images.example/a.img"));
        assert!(!goes("https://files.images.svc/a.img") && !goes("http://10.1.2.3/a.img"));
        assert_eq!(proxies.for_client().unwrap().len(), 2);
        assert_eq!(proxies.hosts(), ["all", "proxy"]);
    }

    #[test]
    fn no_variables_mean_no_proxy() {
        let proxies = from(&[("HTTP_PROXY", "")]);
        assert!(!intercepts(&proxies.matcher(), &Url::parse("http://images.example/").unwrap()));
        assert!(proxies.for_client().unwrap().is_empty());
    }

    #[test]
    fn a_password_is_not_shown() {
        let proxies = from(&[("HTTP_PROXY", "http://user:secret@proxy:3128")]);
        assert!(!format!("{proxies:?}").contains("secret"));
    }
}
