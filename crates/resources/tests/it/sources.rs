//! Where images come from, and where they must not.

use serde_json::json;
use wiremock::{Mock, ResponseTemplate, matchers::path};

use crate::world::{self, disk, is_ready, shown};

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_users_must_not_reach_is_refused_with_who_can_allow_it() {
    let tenant = world::shared().await.tenant().await;
    tenant.create("metadata", json!({"src": "http://169.254.169.254/latest/user-data", "format": "raw"})).await;
    let image = tenant.until("metadata", |image| shown(image).0 == "ForbiddenAddress").await;
    let (_, message) = shown(&image);
    for word in ["spec.src", "a link-local address", "imageSources.allow"] {
        assert!(message.contains(word), "{word}: {message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_file_is_read_once_until_it_changes() {
    let tenant = world::shared().await.tenant().await;
    let (wrong, right, file) = (disk(8192), disk(4096), format!("/{}-wrong.img", tenant.name));
    let serve = async |content: &[u8], tag: &str, times: u64| {
        let answer = ResponseTemplate::new(200).set_body_bytes(content).insert_header("ETag", tag);
        Mock::given(path(file.as_str())).respond_with(answer).up_to_n_times(times).mount(&tenant.world.web).await;
    };
    serve(&wrong, "\"v1\"", 3).await;
    let checksum = format!("sha256:{}", kupenstack_core::hash::of_bytes(&right));
    let src = format!("{}{file}", tenant.world.web.uri());
    tenant.create("wrong", json!({"src": src, "format": "raw", "checksum": checksum})).await;
    tenant.until("wrong", |image| shown(image).0 == "ChecksumMismatch").await;
    let asked = async || {
        let requests = tenant.world.web.received_requests().await.unwrap();
        requests.into_iter().filter(|request| request.url.path() == file).collect::<Vec<_>>()
    };
    tenant.nudge("wrong").await;
    while asked().await.len() < 2 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(asked().await[1].headers.get("if-none-match").unwrap(), "\"v1\"");
    serve(&right, "\"v2\"", u64::MAX).await;
    tenant.nudge("wrong").await;
    while !is_ready(&tenant.images().get("wrong").await.unwrap()) {
        tenant.nudge("wrong").await;
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}
