//! Image data.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use kupenstack_openstack::{Error, ErrorKind, Options};
use rstest::rstest;
use tokio::{io::AsyncReadExt, net::TcpStream};
use wiremock::{
    Mock, ResponseTemplate,
    matchers::{header, method, path},
};

use crate::support::{Cloud, IMAGE_ID, RawServer, client_at, image_at, image_body, options, write_answer};

fn file() -> String {
    format!("{}/file", image_at())
}

fn chunks(count: usize) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    stream::iter((0..count).map(|number| Ok(Bytes::from(vec![b'a' + u8::try_from(number % 26).unwrap(); 1000]))))
}

/// A fault that comes late enough for all that went before to have been sent.
fn broken() -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    stream::once(async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        Err(io::Error::new(io::ErrorKind::InvalidData, "digest mismatch"))
    })
}

/// Reads until the client hangs up.
async fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut body = Vec::new();
    // A reset is a way to hang up, too.
    let _ = stream.take(1 << 28).read_to_end(&mut body).await;
    assert!(body.len() < 1 << 28, "the client goes on for ever");
    body
}

#[rstest]
#[case::known_length(Some(50_000))]
#[case::unknown_length(None)]
#[tokio::test]
async fn the_data_arrives_as_it_is(#[case] length: Option<u64>) {
    let cloud = Cloud::start().await;
    cloud.answer("PUT", &file(), ResponseTemplate::new(204)).await;
    cloud.client().image().upload(IMAGE_ID, length, chunks(50)).await.unwrap();
    let request = cloud.requests("PUT", &file()).await.pop().unwrap();
    let expected: Vec<u8> = chunks(50).map(Result::unwrap).collect::<Vec<_>>().await.concat();
    assert!(request.body == expected);
    assert_eq!(request.headers["content-type"], "application/octet-stream");
    assert_eq!(request.headers["x-auth-token"], "token-1");
    assert_eq!(request.headers.get("content-length").map(|value| value.to_str().unwrap()), length.map(|_| "50000"));
    assert_eq!(request.headers.get("transfer-encoding").is_some(), length.is_none());
}

#[rstest]
#[case::known_length(Some(0))]
#[case::unknown_length(None)]
#[tokio::test]
async fn no_data_is_data(#[case] length: Option<u64>) {
    let cloud = Cloud::start().await;
    cloud.answer("PUT", &file(), ResponseTemplate::new(204)).await;
    cloud.client().image().upload(IMAGE_ID, length, stream::empty()).await.unwrap();
    assert!(cloud.requests("PUT", &file()).await.pop().unwrap().body.is_empty());
}

/// Glance must never take what came before a fault for a whole image.
#[rstest]
#[case::midway(Some(50_000), chunks(10).chain(broken()).boxed(), io::ErrorKind::InvalidData, "digest mismatch")]
#[case::midway_chunked(None, chunks(10).chain(broken()).boxed(), io::ErrorKind::InvalidData, "digest mismatch")]
#[case::at_the_very_end(Some(10_000), chunks(10).chain(broken()).boxed(), io::ErrorKind::InvalidData, "digest mismatch")]
#[case::at_the_very_end_chunked(None, chunks(10).chain(broken()).boxed(), io::ErrorKind::InvalidData, "digest mismatch")]
#[case::too_short(Some(10_001), chunks(10).boxed(), io::ErrorKind::UnexpectedEof, "10000 of the announced 10001 bytes")]
#[case::too_long(Some(9_999), chunks(10).boxed(), io::ErrorKind::InvalidData, "more than the announced 9999 bytes")]
#[case::too_long_by_a_chunk(Some(9_000), chunks(10).boxed(), io::ErrorKind::InvalidData, "more than the announced 9000 bytes")]
#[tokio::test]
async fn a_failing_source_breaks_off(
    #[case] length: Option<u64>,
    #[case] source: stream::BoxStream<'static, io::Result<Bytes>>,
    #[case] kind: io::ErrorKind,
    #[case] text: &str,
) {
    let glance = RawServer::bind().await;
    let cloud = Cloud::with_image_at(glance.url()).await;
    // A source that fails at once may not even leave time for the request's head.
    let server = tokio::spawn(async move { rest(&mut glance.accept().await).await });
    let error = cloud.client().image().upload(IMAGE_ID, length, source).await.unwrap_err();
    assert_eq!((error.kind(), error.reason()), (ErrorKind::Source, "SourceFailed"));
    let Error::Source(source) = error else { panic!("{error:?}") };
    assert_eq!((source.kind(), source.to_string().as_str()), (kind, text));
    let received = server.await.unwrap();
    let body = received.windows(4).position(|window| window == b"\r\n\r\n").map_or(0, |head| received.len() - head - 4);
    match length {
        Some(length) => assert!((body as u64) < length, "complete: {body} bytes"),
        None => assert!(!received.ends_with(b"0\r\n\r\n"), "the body was closed properly"),
    }
}

#[rstest]
#[case::quota("413 Payload Too Large", ErrorKind::Quota)]
#[case::not_queued("409 Conflict", ErrorKind::Conflict)]
#[case::gone("404 Not Found", ErrorKind::NotFound)]
#[tokio::test]
async fn an_early_answer_is_heard(#[case] status: &'static str, #[case] kind: ErrorKind) {
    let glance = RawServer::bind().await;
    let cloud = Cloud::with_image_at(glance.url()).await;
    let server = tokio::spawn(async move {
        let mut stream = glance.accept_request().await;
        write_answer(&mut stream, status, "denied early").await;
        rest(&mut stream).await
    });
    let endless = stream::repeat_with(|| Ok(Bytes::from(vec![0; 65_536])));
    let error = cloud.client().image().upload(IMAGE_ID, Some(1 << 40), endless).await.unwrap_err();
    assert_eq!(error.kind(), kind);
    assert_eq!(error.to_string(), format!("image PUT {}: {status}: denied early", file()));
    server.await.unwrap();
}

#[tokio::test]
async fn an_early_success_is_not_believed() {
    let glance = RawServer::bind().await;
    let cloud = Cloud::with_image_at(glance.url()).await;
    let server = tokio::spawn(async move {
        let mut stream = glance.accept_request().await;
        write_answer(&mut stream, "204 No Content", "").await;
        rest(&mut stream).await
    });
    let source = chunks(1).chain(stream::pending());
    let error = cloud.client().image().upload(IMAGE_ID, None, source).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
    server.await.unwrap();
}

#[tokio::test]
async fn a_source_that_stalls_is_to_blame() {
    let cloud = Cloud::start().await;
    cloud.answer("PUT", &file(), ResponseTemplate::new(204)).await;
    let client = client_at(&cloud.server.uri(), Options { upload_idle_timeout: Duration::from_secs(1), ..options() });
    let source = chunks(10).chain(stream::pending());
    let error = client.image().upload(IMAGE_ID, None, source).await.unwrap_err();
    let Error::Source(source) = error else { panic!("{error:?}") };
    assert_eq!(source.kind(), io::ErrorKind::TimedOut);
}

#[tokio::test]
async fn a_service_that_stalls_is_to_blame_and_nothing_piles_up() {
    let glance = RawServer::bind().await;
    let cloud = Cloud::with_image_at(glance.url()).await;
    let server = tokio::spawn(async move {
        let stream = glance.accept_request().await;
        std::future::pending::<()>().await;
        drop(stream);
    });
    let client = client_at(&cloud.server.uri(), Options { upload_idle_timeout: Duration::from_secs(1), ..options() });
    let taken = Arc::new(AtomicU64::new(0));
    let source = stream::repeat_with({
        let taken = Arc::clone(&taken);
        move || {
            taken.fetch_add(1 << 20, Ordering::SeqCst);
            Ok(Bytes::from(vec![0; 1 << 20]))
        }
    });
    let error = client.image().upload(IMAGE_ID, None, source).await.unwrap_err();
    assert_eq!((error.kind(), error.reason()), (ErrorKind::Unavailable, "TimedOut"));
    // What the kernel's socket buffers hold, not what the source has.
    assert!(taken.load(Ordering::SeqCst) < 32 << 20, "{taken:?} bytes were taken from the source");
    server.abort();
}

#[tokio::test]
async fn a_slow_upload_that_moves_is_not_cut_off() {
    let cloud = Cloud::start().await;
    cloud.answer("PUT", &file(), ResponseTemplate::new(204)).await;
    // on a machine that is busy a chunk may take much longer than its pause
    let quick = Duration::from_secs(2);
    let client = client_at(&cloud.server.uri(), Options { timeout: quick, upload_idle_timeout: quick, ..options() });
    let source = chunks(8).then(move |chunk| async move {
        tokio::time::sleep(quick / 5).await;
        chunk
    });
    client.image().upload(IMAGE_ID, Some(8000), source).await.unwrap();
}

#[tokio::test]
async fn a_service_that_thinks_for_too_long_is_told() {
    let cloud = Cloud::start().await;
    cloud.answer("PUT", &file(), ResponseTemplate::new(204).set_delay(Duration::from_mins(1))).await;
    let client =
        client_at(&cloud.server.uri(), Options { upload_answer_timeout: Duration::from_millis(200), ..options() });
    let error = client.image().upload(IMAGE_ID, None, chunks(1)).await.unwrap_err();
    assert_eq!(error.to_string(), format!("image PUT {}: no answer within 200ms", file()));
}

#[rstest]
#[case(503)]
#[case(500)]
#[tokio::test]
async fn an_upload_is_tried_once(#[case] status: u16) {
    let cloud = Cloud::start().await;
    cloud.answer("PUT", &file(), ResponseTemplate::new(status)).await;
    let error = cloud.client().image().upload(IMAGE_ID, None, chunks(1)).await.unwrap_err();
    assert_eq!(error.status(), Some(status));
    assert_eq!(cloud.calls().await, 1);
}

#[tokio::test]
async fn a_refused_token_is_not_used_for_the_next_try() {
    let cloud = Cloud::start().await;
    let put = |token| Mock::given(method("PUT")).and(path(file())).and(header("x-auth-token", token));
    put("token-1").respond_with(ResponseTemplate::new(401)).mount(&cloud.server).await;
    put("token-2").respond_with(ResponseTemplate::new(204)).mount(&cloud.server).await;
    cloud.answer("GET", &image_at(), ResponseTemplate::new(200).set_body_json(image_body())).await;
    let image = cloud.client().image();
    let error = image.upload(IMAGE_ID, None, chunks(1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthorized);
    image.upload(IMAGE_ID, None, chunks(1)).await.unwrap();
}
