//! No password and no token may be read from anything we print.

use kupenstack_openstack::{Credentials, Error, NewUser};
use serde_json::{Map, json};
use wiremock::{Mock, Request, ResponseTemplate, matchers::path};

use crate::support::{Cloud, IMAGE_ID, PASSWORD, client_at, config, credentials, image_at, image_body, log, options};

fn assert_secret(what: &str, printed: &str) {
    assert!(!printed.contains(PASSWORD) && !printed.contains("token-"), "{what} tells a secret: {printed}");
}

fn new_user() -> NewUser {
    NewUser {
        name: "shop".to_owned(),
        domain_id: "default".to_owned(),
        password: PASSWORD.to_owned().into(),
        description: String::new(),
        default_project_id: None,
        extra: Map::new(),
    }
}

fn assert_error_is_clean(error: &Error) {
    assert_secret("an error", &format!("{error} {error:?} {error:#?}"));
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        assert_secret("a cause", &format!("{error} {error:?}"));
        cause = error.source();
    }
}

#[tokio::test]
async fn debug_shows_none() {
    let cloud = Cloud::start().await;
    let client = cloud.client();
    client.authenticate().await.unwrap();
    let config = config(&cloud.server.uri());
    assert_secret("the configuration", &format!("{config:?}"));
    assert_secret("the client", &format!("{client:?} {:?} {:?}", client.image(), client.identity()));
    assert_secret("a new user", &format!("{:?}", new_user()));
    assert_secret("a clouds.yaml", &format!("{:?}", config.to_clouds_yaml("one").unwrap()));
    assert!(format!("{client:?}").contains("operator"), "the check above saw something");
}

#[tokio::test]
async fn a_service_that_echoes_the_request_is_not_repeated() {
    let cloud = Cloud::start().await;
    let echo = |request: &Request| {
        let said = String::from_utf8_lossy(&request.body).into_owned();
        ResponseTemplate::new(400).set_body_json(json!({"error": {"message": format!("I do not like {said}")}}))
    };
    Mock::given(path("/v3/users")).respond_with(echo).mount(&cloud.server).await;
    let error = cloud.client().identity().create_user(&new_user()).await.unwrap_err();
    assert!(error.to_string().contains("I do not like"), "{error}");
    assert_error_is_clean(&error);

    let cloud = wiremock::MockServer::start().await;
    Mock::given(path("/v3/auth/tokens")).respond_with(echo).mount(&cloud).await;
    let error = client_at(&cloud.uri(), options()).authenticate().await.unwrap_err();
    assert!(error.to_string().contains("I do not like"), "{error}");
    assert_error_is_clean(&error);
}

#[tokio::test]
async fn a_failed_connection_shows_none() {
    let error = client_at("http://127.0.0.1:1", options()).authenticate().await.unwrap_err();
    assert_error_is_clean(&error);
}

/// At the most talkative level, with the HTTP library's own words, and with those of the other tests that have run.
#[tokio::test]
async fn traces_show_none() {
    let cloud = Cloud::start().await;
    cloud.answer("GET", &image_at(), ResponseTemplate::new(200).set_body_json(image_body())).await;
    cloud.answer("DELETE", &image_at(), ResponseTemplate::new(409).set_body_string("in use")).await;
    let client = cloud.client();
    client.image().get(IMAGE_ID).await.unwrap();
    client.image().delete(IMAGE_ID).await.unwrap_err();
    client.identity().create_user(&new_user()).await.unwrap_err();
    client.act_as(Credentials { username: "shop".to_owned(), ..credentials() }).authenticate().await.unwrap();
    let log = log();
    for expected in [format!("image GET {}", image_at()), "hyper_util".to_owned()] {
        assert!(log.contains(&expected), "{expected} is not in the log, so the check proves nothing");
    }
    assert_secret("a trace", &log);
}
