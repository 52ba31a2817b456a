//! Fetching, against servers that behave and servers that do not.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod guard;
mod proxy;
mod resume;
mod servers;
mod verdicts;

use std::fs;
use std::net::TcpListener;
use std::sync::mpsc;
use std::time::Duration;

use kupenstack_images::{
    Actor, Checksum, Download, Error, FetchSettings, Fetcher, Guard, Limits, Progress, Source, Workspace,
};
use rstest::rstest;
use servers::{Authority, plain, secure};
use tempfile::TempDir;
use wiremock::matchers::{header, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

const CONTENT: &[u8] = b"the bytes of a disk";
const SHA256: &str = "d6b9198431a9082c23c7ea56192312a643073a13dce4c2c39b7eee8da108afed";

struct Place {
    folder: TempDir,
    workspace: Workspace,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(folder.path(), None).unwrap();
        Self { folder, workspace }
    }

    fn files(&self) -> usize {
        fs::read_dir(self.folder.path()).unwrap().count()
    }

    async fn fetch(&self, url: &str) -> Result<Download, Error> {
        self.fetch_with(short(), url, None).await
    }

    async fn fetch_with(&self, limits: Limits, url: &str, checksum: Option<&str>) -> Result<Download, Error> {
        let fetcher = fetcher(limits);
        let checksum = checksum.map(|text| text.parse::<Checksum>().unwrap());
        fetcher.fetch(&Source::http(url, checksum).unwrap(), &self.workspace, |_| {}).await
    }

    /// Fetches what must fail, and checks that nothing of it stays.
    async fn failure(&self, url: &str) -> Error {
        let error = self.fetch(url).await.map(|download| download.bytes).unwrap_err();
        assert_eq!(self.files(), 0, "a failed download stays on disk");
        error
    }
}

/// Quick, with time for a machine that is busy.
fn short() -> Limits {
    let (idle, pause) = (Duration::from_secs(5), Duration::from_millis(5));
    Limits { idle, pause, continuations: 3, ..Limits::default() }
}

/// Settings that allow what is served from this machine.
fn settings(limits: Limits) -> FetchSettings {
    let guard = Guard::new(vec!["127.0.0.0/8".parse().unwrap()], Vec::new());
    FetchSettings { limits, guard, ..FetchSettings::default() }
}

fn made(settings: FetchSettings) -> Result<Fetcher, Error> {
    // The only error is that another test was first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Fetcher::new(settings)
}

fn fetcher(limits: Limits) -> Fetcher {
    made(settings(limits)).unwrap()
}

/// A fetcher that trusts an authority, and the file that names it.
fn trusting(authority: &Authority) -> (Fetcher, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("ca.crt");
    fs::write(&bundle, authority.pem()).unwrap();
    (made(FetchSettings { ca_bundle: Some(bundle), ..settings(short()) }).unwrap(), folder)
}

async fn server(route: &str, answer: ResponseTemplate) -> MockServer {
    let server = MockServer::start().await;
    Mock::given(path(route)).respond_with(answer).mount(&server).await;
    server
}

fn file() -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_bytes(CONTENT)
}

#[tokio::test]
async fn a_file_arrives_whole_with_its_digest_and_address() {
    let place = Place::new();
    let server = server("/disk.img", file()).await;
    let download = place.fetch(&format!("{}/disk.img?token=secret", server.uri())).await.unwrap();
    assert_eq!(fs::read(download.file.path()).unwrap(), CONTENT);
    assert_eq!((download.bytes, download.sha256.as_str()), (CONTENT.len() as u64, SHA256));
    assert_eq!(download.final_url, format!("{}/disk.img", server.uri()));
    drop(download);
    assert_eq!(place.files(), 0, "a dropped download stays on disk");
}

/// What runs in a thread can't be interrupted: it may come to the file when that is removed.
#[test]
fn a_download_that_is_given_up_at_its_beginning_leaves_nothing() {
    let place = Place::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build().unwrap();
    let (busy, free) = mpsc::channel::<()>();
    runtime.spawn_blocking(move || free.recv());
    runtime.block_on(async {
        let server = server("/disk.img", file()).await;
        let url = format!("{}/disk.img", server.uri());
        let begun = async {
            while place.files() == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            () = begun => {}
            fetched = place.fetch(&url) => panic!("{fetched:?} with no thread to open a file"),
        }
        busy.send(()).unwrap();
        // behind whatever else waits for the thread
        tokio::task::spawn_blocking(|| {}).await.unwrap();
    });
    assert_eq!(place.files(), 0);
}

#[tokio::test]
async fn progress_grows_to_the_announced_size() {
    let place = Place::new();
    let body = vec![7; 3 << 20];
    let server = server("/big", ResponseTemplate::new(200).set_body_bytes(body)).await;
    let mut seen: Vec<Progress> = Vec::new();
    let source = Source::http(&format!("{}/big", server.uri()), None).unwrap();
    fetcher(short()).fetch(&source, &place.workspace, |progress| seen.push(progress)).await.unwrap();
    assert!(seen.len() > 1 && seen.is_sorted_by_key(|progress| progress.done));
    assert_eq!(seen.last().unwrap(), &Progress { done: 3 << 20, total: Some(3 << 20) });
}

#[rstest]
#[case::the_right_one(true)]
#[case::another_one(false)]
#[tokio::test]
async fn the_checksum_decides(#[case] right: bool) {
    let place = Place::new();
    let server = server("/disk.img", file()).await;
    let digest = if right { SHA256.to_owned() } else { "0".repeat(64) };
    let url = format!("{}/disk.img", server.uri());
    let result = place.fetch_with(short(), &url, Some(&format!("sha256:{digest}"))).await;
    assert_eq!(result.is_ok(), right);
    if let Err(error) = result {
        assert_eq!((error.reason(), error.actor()), ("ChecksumMismatch", Actor::User));
        assert!(error.to_string().contains(SHA256), "{error}");
        assert_eq!(place.files(), 0);
    }
}

#[rstest]
#[case(404, "SourceNotFound", Actor::User)]
#[case(410, "SourceNotFound", Actor::User)]
#[case(401, "SourceForbidden", Actor::User)]
#[case(403, "SourceForbidden", Actor::User)]
#[case(429, "SourceUnavailable", Actor::Source)]
#[case(500, "SourceUnavailable", Actor::Source)]
#[case(503, "SourceUnavailable", Actor::Source)]
#[case(418, "SourceUnexpectedAnswer", Actor::Source)]
#[case(206, "SourceUnexpectedAnswer", Actor::Source)]
#[case(304, "SourceUnexpectedAnswer", Actor::Source)]
#[case(204, "SourceEmpty", Actor::User)]
#[tokio::test]
async fn every_refusal_has_a_name(#[case] status: u16, #[case] reason: &str, #[case] actor: Actor) {
    let server = server("/x", ResponseTemplate::new(status)).await;
    let error = Place::new().failure(&format!("{}/x?token=secret", server.uri())).await;
    assert_eq!((error.reason(), error.actor()), (reason, actor));
    assert!(!format!("{error:?}").contains("secret"), "{error:?}");
}

#[tokio::test]
async fn an_empty_file_is_refused_announced_or_not() {
    let announced = plain("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let not_announced = plain("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    for url in [announced, not_announced] {
        assert!(matches!(Place::new().failure(&url).await, Error::Empty { .. }));
    }
}

#[tokio::test]
async fn a_body_that_ends_early_is_noticed() {
    let cut = plain("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this");
    let cut_chunks = plain("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    for url in [cut, cut_chunks] {
        let error = Place::new().failure(&url).await;
        assert!(matches!(error, Error::Truncated { received: 5..=9, .. }), "{error:?}");
    }
}

#[tokio::test]
async fn too_large_is_refused_by_announcement_and_by_count() {
    let limits = Limits { max_bytes: 10, ..short() };
    let announced = plain("HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n");
    let counted = plain("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n01234567890");
    for url in [announced, counted] {
        let place = Place::new();
        let error = place.fetch_with(limits.clone(), &url, None).await.map(drop).unwrap_err();
        assert!(matches!(error, Error::TooLarge { bytes: 11, limit: 10 }), "{error:?}");
        assert_eq!(place.files(), 0);
    }
    let fits = plain("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789");
    Place::new().fetch_with(limits, &fits, None).await.unwrap();
}

#[tokio::test]
async fn what_cannot_fit_on_the_disk_is_refused_at_once() {
    let huge = plain(&format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\nx", 1_u64 << 62));
    let limits = Limits { max_bytes: u64::MAX, ..short() };
    let error = Place::new().fetch_with(limits, &huge, None).await.map(drop).unwrap_err();
    assert!(matches!(error, Error::NoSpace { needed: Some(_) }), "{error:?}");
}

/// Whatever the mix, the folder never holds more than its limit, and what found no room is told to wait.
#[tokio::test]
async fn sixteen_at_once_share_the_folder() {
    const SIZE: usize = 1 << 20;
    const FIT: usize = 3;
    let folder = tempfile::tempdir().unwrap();
    let workspace = Workspace::open(folder.path(), Some((FIT * SIZE) as u64)).unwrap();
    let body = vec![7; SIZE];
    let answer = ResponseTemplate::new(200).set_body_bytes(body).set_delay(Duration::from_millis(100));
    let server = server("/big", answer).await;
    let (fetcher, source) = (fetcher(short()), Source::http(&format!("{}/big", server.uri()), None).unwrap());
    let most = std::sync::atomic::AtomicU64::new(0);
    let look = |_| {
        let files = fs::read_dir(folder.path()).unwrap().filter_map(|entry| entry.ok()?.metadata().ok());
        most.fetch_max(files.map(|file| file.len()).sum(), std::sync::atomic::Ordering::Relaxed);
    };
    let all = (0..16).map(|_| fetcher.fetch(&source, &workspace, look));
    let results = futures::future::join_all(all).await;
    let (good, bad): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    assert_eq!(good.len(), FIT);
    assert!(bad.iter().all(|result| matches!(result, Err(Error::Crowded { .. }))), "{bad:?}");
    assert!(most.into_inner() <= (FIT * SIZE) as u64);
    drop(good);
    fetcher.fetch(&source, &workspace, |_| {}).await.unwrap();
}

/// A server that says no length gets room as it needs it.
#[tokio::test]
async fn a_file_of_unknown_length_stays_within_the_limit_too() {
    let endless = format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{}", "x".repeat(40 << 20));
    let folder = tempfile::tempdir().unwrap();
    let workspace = Workspace::open(folder.path(), Some(20 << 20)).unwrap();
    let source = Source::http(&plain(&endless), None).unwrap();
    let error = fetcher(short()).fetch(&source, &workspace, |_| {}).await.map(drop).unwrap_err();
    assert!(matches!(error, Error::NoSpace { .. }), "{error:?}");
}

#[tokio::test]
async fn a_content_encoding_that_nobody_asked_for_is_refused() {
    let server = server("/x", file().insert_header("Content-Encoding", "gzip")).await;
    assert!(matches!(Place::new().failure(&format!("{}/x", server.uri())).await, Error::UnsupportedFormat { .. }));
    let server = MockServer::start().await;
    Mock::given(header("accept-encoding", "identity")).respond_with(file()).mount(&server).await;
    Place::new().fetch(&server.uri()).await.unwrap();
}

#[rstest]
#[case::not_a_word("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")]
#[case::no_answer("")]
#[tokio::test]
async fn a_silent_server_is_left(#[case] said: &'static str) {
    let url = servers::silent(said);
    let place = Place::new();
    let limits = Limits { idle: Duration::from_millis(700), ..short() };
    let reason = place.fetch_with(limits, &url, None).await.map(drop).unwrap_err().reason();
    assert!(reason == "SourceTimeout" || reason == "SourceUnavailable" && said.is_empty(), "{reason}");
    assert_eq!(place.files(), 0);
}

#[tokio::test]
async fn a_server_that_drips_is_left_too() {
    let url = servers::dripping(Duration::from_millis(100));
    let place = Place::new();
    let limits = Limits { total: Duration::from_millis(600), ..short() };
    let error = place.fetch_with(limits, &url, None).await.map(drop).unwrap_err();
    assert!(matches!(error, Error::TooSlow { .. }), "{error:?}");
    assert_eq!(place.files(), 0);
}

#[tokio::test]
async fn no_server_and_an_unknown_host_are_told_apart() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = Place::new().failure(&format!("http://user:secret@{free}/x")).await;
    assert!(matches!(&error, Error::Unreachable { message, .. } if message.contains("no answer")), "{error:?}");
    assert!(!error.to_string().contains("secret"));
    let error = Place::new().failure("http://no-such-host.invalid/x").await;
    assert_eq!((error.reason(), error.actor()), ("SourceHostNotFound", Actor::User), "{error:?}");
}

#[rstest]
#[case(301)]
#[case(302)]
#[case(303)]
#[case(307)]
#[case(308)]
#[tokio::test]
async fn redirects_are_followed(#[case] status: u16) {
    let server = server("/new/disk.img", file()).await;
    let answer = ResponseTemplate::new(status).insert_header("Location", "../new/disk.img");
    Mock::given(path("/old/disk.img")).respond_with(answer).mount(&server).await;
    let download = Place::new().fetch(&format!("{}/old/disk.img", server.uri())).await.unwrap();
    assert_eq!(download.final_url, format!("{}/new/disk.img", server.uri()));
}

#[tokio::test]
async fn a_circle_of_redirects_is_left() {
    let server = server("/loop", ResponseTemplate::new(302).insert_header("Location", "/loop")).await;
    let error = Place::new().failure(&format!("{}/loop", server.uri())).await;
    assert!(matches!(error, Error::TooManyRedirects { limit: 5, .. }), "{error:?}");
    assert_eq!(server.received_requests().await.unwrap().len(), 6);
}

#[rstest]
#[case("file:///etc/passwd")]
#[case("ftp://host/x")]
#[case("http://[broken")]
#[tokio::test]
async fn redirects_out_of_http_are_not_followed(#[case] to: &str) {
    let server = server("/x", ResponseTemplate::new(302).insert_header("Location", to)).await;
    let error = Place::new().failure(&format!("{}/x", server.uri())).await;
    assert_eq!(error.reason(), "ForbiddenRedirect", "{error:?}");
}

#[tokio::test]
async fn a_certificate_of_a_known_authority_is_accepted_and_others_are_not() {
    let authority = Authority::new();
    let good = secure(&authority.server("127.0.0.1"), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let other_host = secure(&authority.server("10.9.8.7"), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let expired = secure(&authority.expired_server("127.0.0.1"), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let place = Place::new();
    let (trusting, _bundle) = trusting(&authority);
    let fetch = async |fetcher: &Fetcher, url: &str| {
        fetcher.fetch(&Source::http(url, None).unwrap(), &place.workspace, |_| {}).await.map(drop)
    };
    fetch(&trusting, &good).await.unwrap();
    for (fetcher, url) in [(&fetcher(short()), &good), (&trusting, &other_host), (&trusting, &expired)] {
        let error = fetch(fetcher, url).await.unwrap_err();
        assert_eq!(error.reason(), "TLSVerificationFailed", "{error:?}");
        assert!(error.to_string().to_lowercase().contains("certificate"), "{error}");
    }
}

#[tokio::test]
async fn tls_is_left_only_for_a_file_whose_checksum_is_known() {
    let authority = Authority::new();
    let http = server("/disk.img", file()).await;
    let answer = format!("HTTP/1.1 302 Found\r\nLocation: {}/disk.img\r\nContent-Length: 0\r\n\r\n", http.uri());
    let https = secure(&authority.server("127.0.0.1"), &answer);
    let (fetcher, _bundle) = trusting(&authority);
    let place = Place::new();
    let fetch = async |checksum: Option<&str>| {
        let source = Source::http(&https, checksum.map(|text| text.parse().unwrap())).unwrap();
        fetcher.fetch(&source, &place.workspace, |_| {}).await.map(drop)
    };
    assert!(matches!(fetch(None).await, Err(Error::ForbiddenRedirect { .. })));
    fetch(Some(&format!("sha256:{SHA256}"))).await.unwrap();
}

#[tokio::test]
async fn a_dropped_fetch_removes_its_file() {
    let place = Place::new();
    let url = servers::dripping(Duration::from_millis(20));
    let arrived = tokio::sync::Notify::new();
    let mut most = 0;
    let source = Source::http(&url, None).unwrap();
    let fetcher = fetcher(short());
    let on_progress = |_| {
        most = most.max(place.files());
        arrived.notify_one();
    };
    tokio::select! {
        result = fetcher.fetch(&source, &place.workspace, on_progress) => panic!("{result:?}"),
        () = arrived.notified() => {}
    }
    assert_eq!((most, place.files()), (1, 0));
}

#[tokio::test]
async fn certificates_that_are_exchanged_are_seen_by_the_next_fetch() {
    let (old, new) = (Authority::new(), Authority::new());
    let url = secure(&new.server("127.0.0.1"), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let (fetcher, folder) = trusting(&old);
    let (place, source) = (Place::new(), Source::http(&url, None).unwrap());
    let fetch = async || fetcher.fetch(&source, &place.workspace, |_| {}).await.map(drop);
    assert!(matches!(fetch().await, Err(Error::Tls { .. })));
    fs::write(folder.path().join("ca.crt"), new.pem()).unwrap();
    fetch().await.unwrap();
    fs::write(folder.path().join("ca.crt"), BROKEN).unwrap();
    assert_eq!(fetch().await.unwrap_err().reason(), "InvalidClientSettings");
}

const BROKEN: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

#[test]
fn bad_settings_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("ca.crt");
    let make = || made(FetchSettings { ca_bundle: Some(bundle.clone()), ..FetchSettings::default() });
    assert!(matches!(make(), Err(Error::Io { .. })), "there is none");
    fs::write(&bundle, BROKEN).unwrap();
    let error = make().unwrap_err();
    assert_eq!((error.reason(), error.actor()), ("InvalidClientSettings", Actor::Operator));
}
