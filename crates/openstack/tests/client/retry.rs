//! What is sent again, and what is not.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures::future::join_all;
use kupenstack_openstack::{
    Budget, Client, Error, ErrorKind, ImageChange, NewProject, Observation, Observer, Options, RetryPolicy,
};
use rstest::rstest;
use wiremock::ResponseTemplate;

use crate::support::{Cloud, IMAGE_ID, RawServer, client_at, image_at, image_body, options};

#[derive(Debug, Clone, Copy)]
enum Verb {
    Get,
    Head,
    Put,
    Delete,
    Post,
    Patch,
}

async fn call(client: &Client, verb: Verb) -> Result<(), Error> {
    match verb {
        Verb::Get => client.image().get(IMAGE_ID).await.map(drop),
        Verb::Head => client.identity().has_role("p", "u", "r").await.map(drop),
        Verb::Put => client.identity().assign_role("p", "u", "r").await,
        Verb::Delete => client.image().delete(IMAGE_ID).await.map(drop),
        Verb::Post => client.identity().create_project(&NewProject::default()).await.map(drop),
        Verb::Patch => client.image().update(IMAGE_ID, &[ImageChange::remove("a")]).await.map(drop),
    }
}

#[rstest]
#[tokio::test]
async fn a_status_is_repeated_where_that_is_safe(
    #[values(Verb::Get, Verb::Head, Verb::Put, Verb::Delete, Verb::Post, Verb::Patch)] verb: Verb,
    #[values(400, 409, 429, 500, 502, 503, 504)] status: u16,
) {
    let cloud = Cloud::start().await;
    cloud.answer_all(ResponseTemplate::new(status)).await;
    let error = call(&cloud.client(), verb).await.unwrap_err();
    assert_eq!(error.status(), Some(status));
    let idempotent = !matches!(verb, Verb::Post | Verb::Patch);
    let repeated = matches!(status, 429 | 503) || (idempotent && matches!(status, 502 | 504));
    assert_eq!(cloud.calls().await, if repeated { 4 } else { 1 });
}

#[tokio::test]
async fn a_passing_fault_is_not_seen() {
    let cloud = Cloud::start().await;
    wiremock::Mock::given(wiremock::matchers::path(image_at()))
        .respond_with(ResponseTemplate::new(503))
        .up_to_n_times(2)
        .mount(&cloud.server)
        .await;
    cloud.answer("GET", &image_at(), ResponseTemplate::new(200).set_body_json(image_body())).await;
    assert!(cloud.client().image().get(IMAGE_ID).await.unwrap().is_some());
    assert_eq!(cloud.calls().await, 3);
}

#[tokio::test]
async fn retry_after_is_waited_for() {
    let cloud = Cloud::start().await;
    wiremock::Mock::given(wiremock::matchers::path(image_at()))
        .respond_with(ResponseTemplate::new(429).insert_header("Retry-After", "1"))
        .up_to_n_times(1)
        .mount(&cloud.server)
        .await;
    cloud.answer("GET", &image_at(), ResponseTemplate::new(200).set_body_json(image_body())).await;
    let started = Instant::now();
    assert!(cloud.client().image().get(IMAGE_ID).await.unwrap().is_some());
    assert!(started.elapsed() >= Duration::from_secs(1));
}

#[rstest]
#[case::seconds("3600".to_owned())]
#[case::date((jiff::Timestamp::now() + Duration::from_hours(1)).strftime("%a, %d %b %Y %H:%M:%S GMT").to_string())]
#[tokio::test]
async fn a_long_retry_after_is_left_to_the_caller(#[case] value: String) {
    let cloud = Cloud::start().await;
    cloud.answer_all(ResponseTemplate::new(429).insert_header("Retry-After", value)).await;
    let error = cloud.client().image().get(IMAGE_ID).await.unwrap_err();
    assert_eq!((error.kind(), error.reason()), (ErrorKind::RateLimited, "RateLimited"));
    let retry_after = error.retry_after().unwrap();
    assert!(retry_after > Duration::from_secs(3590) && retry_after <= Duration::from_hours(1), "{retry_after:?}");
    assert_eq!(cloud.calls().await, 1);
}

#[rstest]
#[case(Verb::Get, 4)]
#[case(Verb::Delete, 4)]
#[case(Verb::Post, 1)]
#[tokio::test]
async fn a_lost_connection_is_repeated_where_that_is_safe(#[case] verb: Verb, #[case] attempts: usize) {
    // One server plays Keystone's login, then hangs up on everything else.
    let glance = RawServer::bind().await;
    let cloud = Cloud::with_image_at(glance.url()).await;
    let hang_ups = Arc::new(AtomicUsize::new(0));
    let server = tokio::spawn({
        let hang_ups = Arc::clone(&hang_ups);
        async move {
            loop {
                drop(glance.accept_request().await);
                hang_ups.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    let client = cloud.client();
    let result = match verb {
        Verb::Post => client.image().create(&crate::image::new_image()).await.map(drop),
        verb => call(&client, verb).await,
    };
    let error = result.unwrap_err();
    assert_eq!((error.kind(), error.reason()), (ErrorKind::Unavailable, "ConnectionLost"));
    assert_eq!(hang_ups.load(Ordering::SeqCst), attempts);
    server.abort();
}

#[rstest]
#[tokio::test]
async fn a_refused_connection_is_told_fast(#[values(Verb::Get, Verb::Post)] verb: Verb) {
    let unused = RawServer::bind().await.url();
    let observer = Arc::new(Recorder::default());
    let client = client_at(&unused, Options { observer: Some(observer.clone()), ..options() });
    let started = Instant::now();
    let error = call(&client, verb).await.unwrap_err();
    assert!(started.elapsed() < options().connect_timeout);
    assert_eq!((error.kind(), error.reason()), (ErrorKind::Unavailable, "Unreachable"));
    assert!(error.to_string().ends_with(": no connection"), "{error}");
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("Connection refused"), "{cause}");
    let attempts = observer.0.lock().unwrap().clone();
    assert_eq!(attempts.len(), 4, "{attempts:?}");
}

#[tokio::test]
async fn a_silent_service_is_not_waited_for_twice() {
    let cloud = Cloud::start().await;
    cloud.answer_all(ResponseTemplate::new(200).set_delay(Duration::from_mins(1))).await;
    let client = client_at(&cloud.server.uri(), Options { timeout: Duration::from_secs(2), ..options() });
    client.authenticate().await.unwrap();
    let error = client.image().get(IMAGE_ID).await.unwrap_err();
    assert_eq!((error.kind(), error.reason()), (ErrorKind::Unavailable, "TimedOut"));
    assert_eq!(error.to_string(), format!("image GET {}: no answer within 2s", image_at()));
    assert_eq!(cloud.calls().await, 1);
}

#[tokio::test]
async fn retries_can_be_switched_off() {
    let cloud = Cloud::start().await;
    cloud.answer_all(ResponseTemplate::new(503)).await;
    let retry = RetryPolicy { repeats: 0, ..RetryPolicy::default() };
    let client = client_at(&cloud.server.uri(), Options { retry, ..options() });
    client.image().get(IMAGE_ID).await.unwrap_err();
    assert_eq!(cloud.calls().await, 1);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Cloud::start().await;
    let cloud = Cloud::start().await;
    let target = format!("{}{}", elsewhere.server.uri(), image_at());
    cloud.answer_all(ResponseTemplate::new(302).insert_header("Location", target)).await;
    let error = cloud.client().image().get(IMAGE_ID).await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Protocol, Some(302)));
    assert!(elsewhere.server.received_requests().await.unwrap().is_empty());
}

#[tokio::test]
async fn all_users_of_a_cloud_share_its_budget() {
    let cloud = Cloud::start().await;
    let delay = Duration::from_millis(100);
    cloud.answer_all(ResponseTemplate::new(200).set_body_json(image_body()).set_delay(delay)).await;
    let one = client_at(&cloud.server.uri(), Options { budget: Budget::new(2), ..options() });
    let other = one.act_as(crate::support::credentials());
    one.authenticate().await.unwrap();
    other.authenticate().await.unwrap();
    let started = Instant::now();
    let calls = (0..4).flat_map(|_| [one.image(), other.image()]).map(|image| async move { image.get(IMAGE_ID).await });
    assert!(join_all(calls).await.iter().all(Result::is_ok));
    assert!(started.elapsed() >= delay * 4, "eight calls, two at a time");
}

#[derive(Default)]
struct Recorder(Mutex<Vec<String>>);

impl Observer for Recorder {
    fn request(&self, seen: &Observation<'_>) {
        self.0.lock().unwrap().push(format!("{} {} {}", seen.service, seen.method, seen.status));
    }
}

#[tokio::test]
async fn every_attempt_is_observed() {
    let cloud = Cloud::start().await;
    cloud.answer("GET", &image_at(), ResponseTemplate::new(404)).await;
    cloud.answer("DELETE", &image_at(), ResponseTemplate::new(500)).await;
    let recorder = Arc::new(Recorder::default());
    let client = client_at(&cloud.server.uri(), Options { observer: Some(recorder.clone()), ..options() });
    client.image().get(IMAGE_ID).await.unwrap();
    client.image().delete(IMAGE_ID).await.unwrap_err();
    let seen = recorder.0.lock().unwrap().clone();
    assert_eq!(seen, ["identity POST 2xx", "image GET 4xx", "image DELETE 5xx"]);
}

#[tokio::test]
async fn a_service_that_asks_to_be_left_alone_is_left_alone_by_all() {
    let cloud = Cloud::start().await;
    let (client, patient) = (cloud.client(), Duration::from_hours(1));
    let other = client.act_as(crate::support::credentials());
    let tired = ResponseTemplate::new(503).insert_header("retry-after", patient.as_secs().to_string());
    cloud.answer("GET", &image_at(), tired).await;
    cloud.answer("HEAD", "/v3/projects/p/users/u/roles/r", ResponseTemplate::new(204)).await;
    client.image().get(IMAGE_ID).await.unwrap_err();

    let error = other.image().get(IMAGE_ID).await.unwrap_err();
    assert!(matches!(error, Error::Held { .. }), "{error}");
    assert_eq!((error.kind(), error.status()), (ErrorKind::RateLimited, None));
    let left = error.retry_after().unwrap();
    assert!(left > Duration::from_secs(290) && left <= Duration::from_mins(5), "{left:?}, not for ever");
    assert!(other.identity().has_role("p", "u", "r").await.unwrap(), "other services are asked");
    assert_eq!(cloud.requests("GET", &image_at()).await.len(), 1);
}
