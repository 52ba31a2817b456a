//! Fetching through a proxy.

use kupenstack_images::{AddressClass, Error, FetchSettings, Guard, Proxies, Source};

use crate::servers::{Authority, plain, proxy, secure};
use crate::{CONTENT, Place, made, settings, short};

const LOGIN: &str = "Basic dXNlcjpzZWNyZXQ=";

fn answer() -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", CONTENT.len(), std::str::from_utf8(CONTENT).unwrap())
}

fn through(proxy: &str) -> Proxies {
    Proxies { http: Some(proxy.to_owned()), https: Some(proxy.to_owned()), none_for: String::new() }
}

async fn fetch(settings: FetchSettings, url: &str) -> Result<u64, Error> {
    let (place, source) = (Place::new(), Source::http(url, None).unwrap());
    made(settings).unwrap().fetch(&source, &place.workspace, |_| {}).await.map(|download| download.bytes)
}

/// As behind a firewall: names of the outside cannot be resolved here, and the proxy itself is where the guard would
/// let nobody go.
#[tokio::test]
async fn the_proxy_is_asked_for_names_that_only_it_knows() {
    let proxy = proxy(None);
    let url = plain(&answer()).replace("127.0.0.1", "images.invalid");
    let settings = FetchSettings { guard: Guard::default(), proxies: through(&proxy.url), ..settings(short()) };
    assert_eq!(fetch(settings, &url).await.unwrap(), CONTENT.len() as u64);
    assert_eq!(proxy.requests()[0].line(), format!("GET {url} HTTP/1.1"));
}

#[tokio::test]
async fn tls_goes_through_a_tunnel_with_the_proxys_login_and_no_other() {
    let (proxy, authority) = (proxy(Some(LOGIN)), Authority::new());
    let url = secure(&authority.server("127.0.0.1"), &answer());
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ca.crt"), authority.pem()).unwrap();
    let with = |address: String| FetchSettings {
        proxies: through(&address),
        ca_bundle: Some(folder.path().join("ca.crt")),
        ..settings(short())
    };
    assert_eq!(fetch(with(format!("http://user:secret@{}", proxy.url)), &url).await.unwrap(), CONTENT.len() as u64);
    assert!(proxy.requests()[0].line().starts_with("CONNECT 127.0.0.1:"), "{:?}", proxy.requests());
    let error = fetch(with(format!("http://user:wrong@{}", proxy.url)), &url).await.unwrap_err();
    assert!(!error.to_string().contains("wrong"), "{error}");
    assert_eq!(error.reason(), "SourceUnavailable", "{error:?}");
}

#[tokio::test]
async fn what_needs_no_proxy_is_asked_directly() {
    let proxy = proxy(None);
    let proxies = Proxies { none_for: "10.0.0.0/8,127.0.0.0/8".to_owned(), ..through(&proxy.url) };
    fetch(FetchSettings { proxies, ..settings(short()) }, &plain(&answer())).await.unwrap();
    assert!(proxy.requests().is_empty());
}

/// The proxy may reach what users must not, too.
#[tokio::test]
async fn the_guard_judges_what_the_proxy_would_be_asked_for() {
    let proxy = proxy(None);
    let settings = || FetchSettings { guard: Guard::default(), proxies: through(&proxy.url), ..settings(short()) };
    for (url, expected) in [
        ("http://169.254.169.254/latest", AddressClass::LinkLocal),
        ("https://[::ffff:127.0.0.1]/x", AddressClass::Loopback),
        ("http://localhost:8080/x", AddressClass::Loopback),
    ] {
        let error = fetch(settings(), url).await.unwrap_err();
        assert!(matches!(&error, Error::ForbiddenAddress { class, .. } if *class == expected), "{error:?}");
    }
    assert!(proxy.requests().is_empty());
}

#[test]
fn a_proxy_that_is_none_is_refused_without_showing_its_password() {
    let error =
        made(FetchSettings { proxies: through("http://user:secret@"), ..FetchSettings::default() }).unwrap_err();
    assert!(!format!("{error:?}").contains("secret"), "{error:?}");
}
