//! Where images come from, and where they must not.

use kupenstack_api::resources::Image;
use kupenstack_testkit::sim::{Effect, Rule};
use rstest::rstest;
use serde_json::json;
use wiremock::{Mock, ResponseTemplate, matchers::path};

use crate::{
    common::look::eventually,
    world::{self, disk, is_ready, shown},
};

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_users_must_not_reach_is_refused_with_who_can_allow_it() {
    let tenant = world::shared().await.tenant().await;
    tenant
        .create::<Image>("metadata", json!({"src": "http://169.254.169.254/latest/user-data", "format": "raw"}))
        .await;
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
    serve(&wrong, "\"v1\"", 2).await;
    serve(&right, "\"v2\"", u64::MAX).await;
    let checksum = format!("sha256:{}", kupenstack_core::hash::of_bytes(&right));
    let src = format!("{}{file}", tenant.world.web.uri());
    tenant.create::<Image>("wrong", json!({"src": src, "format": "raw", "checksum": checksum})).await;
    tenant.until("wrong", |image| shown(image).0 == "ChecksumMismatch").await;
    let asked = async || {
        let requests = tenant.world.web.received_requests().await.unwrap();
        requests.into_iter().filter(|request| request.url.path() == file).collect::<Vec<_>>()
    };
    tenant.nudge::<Image>("wrong").await;
    eventually("the second request", async || asked().await.len() > 1).await;
    assert_eq!(asked().await[1].headers.get("if-none-match").unwrap(), "\"v1\"");
    tenant.nudge::<Image>("wrong").await;
    tenant.until("wrong", is_ready).await;
}

/// Glance forgets what arrived of an upload that broke; the file is still here.
#[rstest]
#[case::away(Effect::refusal(503))]
#[case::reset(Effect::Reset { commit: false })]
#[case::token_refused(Effect::refusal(401))]
#[tokio::test(flavor = "multi_thread")]
async fn a_broken_upload_is_repeated_without_fetching_the_file_again(#[case] effect: Effect) {
    let tenant = world::shared().await.tenant().await;
    let upload = Rule::on("image", "PUT", "/v2/images/*/file", effect);
    tenant.world.fail_next(upload.in_project(&tenant.project().await));
    let name = format!("broken-{}", tenant.name);
    let image = tenant.ready_image(&name).await;
    let src = image.spec.src.clone().unwrap();
    let requests = tenant.world.web.received_requests().await.unwrap();
    assert_eq!(requests.iter().filter(|request| src.ends_with(request.url.path())).count(), 1);
    assert_eq!(tenant.world.count("PUT", &world::id(&image)), 2);
    assert_eq!(tenant.world.named(&name).len(), 1);
}
