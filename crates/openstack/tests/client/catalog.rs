//! Finding services, and proving that they are up.

use kupenstack_openstack::{Client, ErrorKind, Interface};
use rstest::rstest;
use wiremock::ResponseTemplate;

use crate::support::{Cloud, IMAGE_ID, client_at, config, image_at, image_body, jump, options};

#[rstest]
#[case::interface(Some("RegionOne"), Interface::Admin, "interface admin, region RegionOne")]
#[case::region(Some("RegionTwo"), Interface::Internal, "interface internal, region RegionTwo")]
#[case::any_region(None, Interface::Admin, "interface admin, any region")]
#[tokio::test]
async fn a_missing_endpoint_is_named(#[case] region: Option<&str>, #[case] interface: Interface, #[case] named: &str) {
    let cloud = Cloud::start().await;
    let mut config = config(&cloud.server.uri());
    config.region = region.map(str::to_owned);
    config.interface = interface;
    let error = Client::new(config, options()).unwrap().image().get(IMAGE_ID).await.unwrap_err();
    assert_eq!(error.to_string(), format!("no endpoint for service type image, {named} in the catalogue"));
    assert_eq!((error.kind(), error.reason()), (ErrorKind::Unavailable, "EndpointMissing"));
    assert_eq!(cloud.calls().await, 0);
}

#[tokio::test]
async fn an_endpoint_that_appears_is_found_by_a_new_login() {
    let elsewhere = Cloud::with_image_at("not a url".to_owned()).await;
    let client = elsewhere.client();
    for _ in 0..3 {
        assert_eq!(client.image().get(IMAGE_ID).await.unwrap_err().reason(), "EndpointMissing");
    }
    assert_eq!(elsewhere.logins().await, 1, "a young catalogue is believed");
    elsewhere.server.reset().await;
    let cloud = Cloud::start().await;
    let login = crate::support::token_answer(2, &cloud.server.uri());
    elsewhere.answer("POST", "/v3/auth/tokens", login).await;
    cloud.answer("GET", &image_at(), ResponseTemplate::new(200).set_body_json(image_body())).await;
    jump(11).await;
    assert!(client.image().get(IMAGE_ID).await.unwrap().is_some());
}

#[rstest]
#[case(200)]
#[case(300)]
#[case(404)]
#[case(503)]
#[tokio::test]
async fn a_probe_tells_the_status_and_shows_no_token(#[case] status: u16) {
    let cloud = Cloud::start().await;
    cloud.answer("GET", "/healthcheck", ResponseTemplate::new(status)).await;
    assert_eq!(cloud.client().probe("image", "/healthcheck").await.unwrap(), status);
    let probes = cloud.requests("GET", "/healthcheck").await;
    assert_eq!(probes.len(), 1, "a probe is not repeated");
    assert!(!probes[0].headers.contains_key("x-auth-token"));
}

#[tokio::test]
async fn keystone_is_probed_without_a_login() {
    let cloud = Cloud::start().await;
    cloud.answer("GET", "/", ResponseTemplate::new(300)).await;
    assert_eq!(cloud.client().probe("identity", "/").await.unwrap(), 300);
    assert_eq!(cloud.logins().await, 0);
}

#[tokio::test]
async fn a_probe_of_nothing_fails() {
    let client = client_at("http://127.0.0.1:1", options());
    assert_eq!(client.probe("identity", "/").await.unwrap_err().kind(), ErrorKind::Unavailable);
}
