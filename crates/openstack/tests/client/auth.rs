//! Logging in, sharing the token, renewing it.

use std::time::Duration;

use futures::future::join_all;
use kupenstack_openstack::{CloudConfig, DomainRef, ErrorKind, ProjectScope};
use rstest::rstest;
use serde_json::{Value, json};
use wiremock::{
    Mock, ResponseTemplate,
    matchers::{header, method, path},
};

use crate::support::{Cloud, IMAGE_ID, PASSWORD, client_at, config, image_at, image_body, jump, options, token_answer};

fn shop(domain: DomainRef) -> ProjectScope {
    ProjectScope::Name { name: "shop".to_owned(), domain }
}

#[rstest]
#[case::by_name(
    Some(shop(DomainRef::Name("Default".to_owned()))),
    json!({"project": {"name": "shop", "domain": {"name": "Default"}}})
)]
#[case::by_name_and_domain_id(
    Some(shop(DomainRef::default())),
    json!({"project": {"name": "shop", "domain": {"id": "default"}}})
)]
#[case::by_id(Some(ProjectScope::Id("f00d".to_owned())), json!({"project": {"id": "f00d"}}))]
#[case::none(None, json!("unscoped"))]
#[tokio::test]
async fn the_login_is_what_keystone_expects(#[case] project: Option<ProjectScope>, #[case] scope: Value) {
    let cloud = Cloud::start().await;
    let mut config = config(&cloud.server.uri());
    config.credentials.project = project;
    let info = kupenstack_openstack::Client::new(config, options()).unwrap().authenticate().await.unwrap();
    assert_eq!((info.user_id.as_str(), info.project_id.as_deref()), ("u1", Some("p1")));
    assert_eq!(info.expires_at.to_string(), "2026-11-27T11:00:00Z");

    let logins = cloud.requests("POST", "/v3/auth/tokens").await;
    let body: Value = logins[0].body_json().unwrap();
    let user = json!({"name": "operator", "domain": {"id": "default"}, "password": PASSWORD});
    let identity = json!({"methods": ["password"], "password": {"user": user}});
    assert_eq!(body, json!({"auth": {"identity": identity, "scope": scope}}));
    assert_eq!(logins[0].headers["content-type"], "application/json");
}

#[tokio::test]
async fn fifty_calls_at_once_share_one_login() {
    let cloud = Cloud::with_slow_tokens(Duration::from_millis(100)).await;
    cloud.answer("GET", &image_at(), ResponseTemplate::new(200).set_body_json(image_body())).await;
    let client = cloud.client();
    let calls = (0..50).map(|_| {
        let image = client.image();
        async move { image.get(IMAGE_ID).await }
    });
    for result in join_all(calls).await {
        assert!(result.unwrap().is_some());
    }
    assert_eq!(cloud.logins().await, 1);
    assert_eq!(cloud.calls().await, 50);
}

#[tokio::test]
async fn fifty_calls_at_once_share_one_refusal() {
    let cloud = wiremock::MockServer::start().await;
    let answer = ResponseTemplate::new(401)
        .set_body_json(json!({"error": {"message": "The request you have made requires authentication."}}))
        .set_delay(Duration::from_millis(100));
    Mock::given(path("/v3/auth/tokens")).respond_with(answer).expect(1).mount(&cloud).await;
    let client = client_at(&cloud.uri(), options());
    let calls = (0..50).map(|_| {
        let image = client.image();
        async move { image.get(IMAGE_ID).await }
    });
    for result in join_all(calls).await {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unauthorized);
        assert_eq!(
            error.to_string(),
            "identity POST /v3/auth/tokens: 401 Unauthorized: The request you have made requires authentication."
        );
    }
}

#[rstest]
#[case::before(2870, 1)]
#[case::at_four_fifths_of_an_hour(2881, 2)]
#[case::after_the_end(3601, 2)]
#[tokio::test]
async fn a_token_is_renewed_at_four_fifths_of_its_life(#[case] seconds: u64, #[case] logins: usize) {
    let cloud = Cloud::start().await;
    cloud.answer("GET", &image_at(), ResponseTemplate::new(200).set_body_json(image_body())).await;
    let image = cloud.client().image();
    image.get(IMAGE_ID).await.unwrap();
    jump(seconds).await;
    image.get(IMAGE_ID).await.unwrap();
    assert_eq!(cloud.logins().await, logins);
    let last = cloud.requests("GET", &image_at()).await.pop().unwrap();
    assert_eq!(last.headers["x-auth-token"], format!("token-{logins}"));
}

#[tokio::test]
async fn an_ageing_token_outlives_a_sick_keystone() {
    let cloud = wiremock::MockServer::start().await;
    let logins = async || {
        let all = cloud.received_requests().await.unwrap();
        all.iter().filter(|request| request.url.path() == "/v3/auth/tokens").count()
    };
    let login = || Mock::given(method("POST")).and(path("/v3/auth/tokens"));
    login().respond_with(token_answer(1, &cloud.uri())).up_to_n_times(1).mount(&cloud).await;
    login().respond_with(ResponseTemplate::new(500)).mount(&cloud).await;
    let answer = ResponseTemplate::new(200).set_body_json(image_body());
    Mock::given(path(image_at())).respond_with(answer).mount(&cloud).await;
    let image = client_at(&cloud.uri(), options()).image();
    image.get(IMAGE_ID).await.unwrap();
    jump(3000).await;
    image.get(IMAGE_ID).await.unwrap();
    image.get(IMAGE_ID).await.unwrap();
    assert_eq!(logins().await, 2, "a sick Keystone is not asked by every call");
    jump(200).await;
    image.get(IMAGE_ID).await.unwrap();
    assert_eq!(logins().await, 3, "but now and then");
    jump(500).await;
    assert_eq!(image.get(IMAGE_ID).await.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn a_refused_token_is_replaced_once() {
    let cloud = Cloud::start().await;
    let get = |token| Mock::given(method("GET")).and(path(image_at())).and(header("x-auth-token", token));
    get("token-1").respond_with(ResponseTemplate::new(401)).expect(1).mount(&cloud.server).await;
    let answer = ResponseTemplate::new(200).set_body_json(image_body());
    get("token-2").respond_with(answer).expect(2).mount(&cloud.server).await;
    let image = cloud.client().image();
    assert!(image.get(IMAGE_ID).await.unwrap().is_some());
    assert!(image.get(IMAGE_ID).await.unwrap().is_some());
    assert_eq!(cloud.logins().await, 2);
}

#[tokio::test]
async fn a_token_refused_to_many_is_replaced_once() {
    let cloud = Cloud::with_slow_tokens(Duration::from_millis(20)).await;
    let get = |token| Mock::given(method("GET")).and(path(image_at())).and(header("x-auth-token", token));
    get("token-1").respond_with(ResponseTemplate::new(401)).mount(&cloud.server).await;
    get("token-2").respond_with(ResponseTemplate::new(200).set_body_json(image_body())).mount(&cloud.server).await;
    let client = cloud.client();
    let calls = (0..20).map(|_| {
        let image = client.image();
        async move { image.get(IMAGE_ID).await }
    });
    for result in join_all(calls).await {
        assert!(result.unwrap().is_some());
    }
    assert_eq!(cloud.logins().await, 2);
}

#[tokio::test]
async fn a_second_refusal_is_the_answer() {
    let cloud = Cloud::start().await;
    cloud.answer("GET", &image_at(), ResponseTemplate::new(401)).await;
    let error = cloud.client().image().get(IMAGE_ID).await.unwrap_err();
    assert_eq!((error.kind(), error.reason()), (ErrorKind::Unauthorized, "Unauthorized"));
    assert_eq!((cloud.logins().await, cloud.calls().await), (2, 2));
}

#[tokio::test]
async fn authenticate_asks_even_with_a_token_in_hand() {
    let cloud = Cloud::start().await;
    let client = cloud.client();
    client.authenticate().await.unwrap();
    client.authenticate().await.unwrap();
    assert_eq!(cloud.logins().await, 2);
}

#[rstest]
#[case::no_token_header(|answer: Value| ResponseTemplate::new(201).set_body_json(answer), "no X-Subject-Token")]
#[case::not_json(|_| ResponseTemplate::new(201).set_body_string("<html>"), "expected value at line 1 column 1")]
#[case::something_else(|_| ResponseTemplate::new(201).set_body_json(json!({"versions": []})), "no `token`")]
#[tokio::test]
async fn a_malformed_login_answer_is_told(#[case] answer: impl Fn(Value) -> ResponseTemplate, #[case] problem: &str) {
    let cloud = wiremock::MockServer::start().await;
    let token = json!({"token": {
        "user": {"id": "u"}, "issued_at": "2026-11-27T10:00:00.000000Z", "expires_at": "2026-11-27T11:00:00.000000Z",
    }});
    Mock::given(path("/v3/auth/tokens")).respond_with(answer(token)).mount(&cloud).await;
    let error = client_at(&cloud.uri(), options()).authenticate().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert_eq!(error.to_string(), format!("identity POST /v3/auth/tokens: malformed answer: {problem}"));
}

#[tokio::test]
async fn a_configuration_from_clouds_yaml_logs_in() {
    let cloud = Cloud::start().await;
    crate::support::set_up_process();
    let yaml = format!(
        "clouds:\n  one:\n    auth: {{auth_url: {}, username: operator, password: {PASSWORD}, project_name: admin}}\n",
        cloud.server.uri()
    );
    let config = CloudConfig::from_clouds_yaml(&yaml, "one").unwrap();
    kupenstack_openstack::Client::new(config, options()).unwrap().authenticate().await.unwrap();
}
