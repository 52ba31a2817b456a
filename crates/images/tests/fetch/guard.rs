//! Fetching from where users must not get through us.

use kupenstack_images::{AddressClass, Error, FetchSettings, Guard, Source};
use rstest::rstest;
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::{Place, file, made, settings, short};

/// What an operator's fetcher says without any settings.
async fn refusal(url: &str) -> Error {
    let (place, source) = (Place::new(), Source::http(url, None).unwrap());
    let fetcher = made(FetchSettings { limits: short(), ..FetchSettings::default() }).unwrap();
    fetcher.fetch(&source, &place.workspace, |_| {}).await.map(drop).unwrap_err()
}

fn port(server: &MockServer) -> u16 {
    server.address().port()
}

#[rstest]
#[case::plain("127.0.0.1")]
#[case::hexadecimal("0x7f.1")]
#[case::mapped("[::ffff:127.0.0.1]")]
#[case::by_name("localhost")]
#[tokio::test]
async fn nobody_is_asked_at_a_denied_address(#[case] host: &str) {
    let server = MockServer::start().await;
    Mock::given(any()).respond_with(file()).mount(&server).await;
    let error = refusal(&format!("http://user:secret@{host}:{}/x?token=secret", port(&server))).await;
    let text = error.to_string();
    assert!(matches!(error, Error::ForbiddenAddress { class: AddressClass::Loopback, .. }), "{error:?}");
    assert!(text.contains("loopback") && !text.contains("secret"), "{text}");
    assert!(server.received_requests().await.unwrap().is_empty());
}

/// Whether something is there or not, the answer is the same.
#[tokio::test]
async fn a_refusal_does_not_tell_what_is_there() {
    let server = MockServer::start().await;
    let open = refusal(&format!("http://127.0.0.1:{}/x", port(&server))).await.to_string();
    let closed = refusal("http://127.0.0.1:1/x").await.to_string();
    assert_eq!(open.replace(&port(&server).to_string(), "1"), closed);
}

#[rstest]
#[case("http://169.254.169.254/latest/meta-data", AddressClass::LinkLocal)]
#[case("http://10.96.0.1/api", AddressClass::Protected("the Kubernetes API server"))]
#[case("https://0xa600001/api", AddressClass::Protected("the Kubernetes API server"))]
#[case("http://10.200.0.1/x", AddressClass::Denied)]
#[tokio::test]
async fn every_redirect_is_judged(#[case] to: &str, #[case] expected: AddressClass) {
    let server = MockServer::start().await;
    let answer = ResponseTemplate::new(302).insert_header("Location", to);
    Mock::given(any()).respond_with(answer).mount(&server).await;
    let guard = Guard::new(vec!["127.0.0.1/32".parse().unwrap()], vec!["10.200.0.0/16".parse().unwrap()])
        .protecting("10.96.0.1".parse().unwrap(), "the Kubernetes API server");
    let fetcher = made(FetchSettings { guard, ..settings(short()) }).unwrap();
    let (place, source) = (Place::new(), Source::http(&format!("{}/x", server.uri()), None).unwrap());
    let error = fetcher.fetch(&source, &place.workspace, |_| {}).await.map(drop).unwrap_err();
    assert!(matches!(&error, Error::ForbiddenAddress { class, .. } if *class == expected), "{error:?}");
    assert_eq!(error.reason(), "ForbiddenAddress");
}

/// An internal host that may be asked must not become a way to scan the network: a closed port, a silent one and one
/// that speaks something else look the same.
#[tokio::test]
async fn an_internal_host_that_gives_no_file_tells_no_more() {
    let mut seen = Vec::new();
    for url in [
        "http://127.0.0.1:1/disk.img".to_owned(),
        crate::servers::silent(""),
        crate::servers::plain("SSH-2.0-OpenSSH_9.2\r\n"),
        crate::servers::plain("SSH-2.0-OpenSSH_9.2\r\n").replace("http:", "https:"),
    ] {
        let error = Place::new().failure(&url).await;
        seen.push((error.reason(), error.to_string().replace(&url, "URL")));
    }
    assert!(seen.iter().all(|one| *one == seen[0]), "{seen:#?}");
}
