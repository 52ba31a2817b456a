//! Transfers that break.

use std::sync::Arc;
use std::time::Duration;

use kupenstack_images::{Download, Error, Limits, Source};
use rstest::rstest;

use crate::servers::{Script, scripted};
use crate::{CONTENT, Place, SHA256, fetcher, short};

const ETAG: &str = "ETag: \"v1\"\r\n";
const LENGTH: usize = CONTENT.len();

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// The whole file announced, and its first `sent` bytes.
fn cut(headers: &str, sent: usize) -> String {
    format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: {LENGTH}\r\n\r\n{}", text(&CONTENT[..sent]))
}

/// What follows the first `from` bytes, up to `to`.
fn rest(headers: &str, from: usize, to: usize) -> String {
    let (last, length) = (LENGTH - 1, LENGTH - from);
    let head = format!("HTTP/1.1 206 Partial Content\r\n{headers}Content-Range: bytes {from}-{last}/{LENGTH}\r\n");
    format!("{head}Content-Length: {length}\r\n\r\n{}", text(&CONTENT[from..to]))
}

async fn fetch(script: &Arc<Script>, limits: Limits, checksum: bool) -> Result<Download, Error> {
    let place = Place::new();
    let checksum = checksum.then(|| format!("sha256:{SHA256}").parse().unwrap());
    let source = Source::http(&script.url, checksum).unwrap();
    let result = fetcher(limits).fetch(&source, &place.workspace, |_| {}).await;
    match result {
        Ok(download) => {
            assert_eq!(std::fs::read(download.file.path()).unwrap(), CONTENT);
            Ok(download)
        }
        Err(error) => {
            assert_eq!(place.files(), 0, "a failed download stays on disk");
            Err(error)
        }
    }
}

#[rstest]
#[case::strong_tag(ETAG, Some("\"v1\""))]
#[case::time("Last-Modified: Fri, 27 Nov 2026 10:00:00 GMT\r\n", Some("Fri, 27 Nov 2026 10:00:00 GMT"))]
#[case::nothing_but_the_checksum("", None)]
#[tokio::test]
async fn a_broken_transfer_is_continued_where_it_broke(#[case] headers: &str, #[case] condition: Option<&str>) {
    let script = scripted(vec![cut(headers, 7), rest(headers, 7, 11), rest(headers, 11, LENGTH)]);
    let download = fetch(&script, short(), true).await.unwrap();
    assert_eq!((download.bytes, download.sha256.as_str()), (LENGTH as u64, SHA256));
    let requests = script.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[0].header("range"), None);
    assert_eq!(requests[1].header("range"), Some("bytes=7-"));
    assert_eq!(requests[2].header("range"), Some("bytes=11-"));
    assert_eq!(requests[1].header("if-range"), condition);
}

#[rstest]
#[case::weak_tag("ETag: W/\"v1\"\r\n")]
#[case::written_in_this_second(
    "Last-Modified: Fri, 27 Nov 2026 10:00:00 GMT\r\nDate: Fri, 27 Nov 2026 10:00:00 GMT\r\n"
)]
#[case::nothing("")]
#[tokio::test]
async fn what_nothing_vouches_for_begins_again_once(#[case] headers: &str) {
    let script = scripted(vec![cut(headers, 7), cut(headers, LENGTH)]);
    fetch(&script, short(), false).await.unwrap();
    assert!(script.requests().iter().all(|request| request.header("range").is_none()));

    let script = scripted(vec![cut(headers, 7), cut(headers, 9), cut(headers, LENGTH)]);
    let error = fetch(&script, short(), false).await.map(drop).unwrap_err();
    assert!(matches!(error, Error::Truncated { received: 9, .. }), "{error:?}");
}

#[tokio::test]
async fn a_server_that_ignores_ranges_sends_everything_again() {
    let script = scripted(vec![cut(ETAG, 7), cut(ETAG, LENGTH)]);
    fetch(&script, short(), false).await.unwrap();
    assert_eq!(script.requests().len(), 2, "the answer to the range is used");
}

#[rstest]
#[case::another_place(rest(ETAG, 9, LENGTH))]
#[case::another_length(rest(ETAG, 7, LENGTH).replace("/19", "/190"))]
#[case::another_tag(rest("ETag: \"v2\"\r\n", 7, LENGTH))]
#[case::no_place(rest(ETAG, 7, LENGTH).replace("Content-Range", "X-Range"))]
#[case::not_to_the_end(rest(ETAG, 7, LENGTH).replace("7-18", "7-17"))]
#[case::beyond_the_end("HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */5\r\nContent-Length: 0\r\n\r\n".to_owned())]
#[tokio::test]
async fn a_part_that_is_not_the_rest_begins_again(#[case] part: String) {
    let script = scripted(vec![cut(ETAG, 7), part, cut(ETAG, LENGTH)]);
    fetch(&script, short(), false).await.unwrap();
    assert_eq!(script.requests()[2].header("range"), None);
}

#[tokio::test]
async fn a_file_that_changes_is_read_anew_once() {
    let (second, third) = ("ETag: \"v2\"\r\n", "ETag: \"v3\"\r\n");
    let script = scripted(vec![cut(ETAG, 7), cut(second, LENGTH)]);
    fetch(&script, short(), false).await.unwrap();
    assert_eq!(script.requests().len(), 2, "what came of the new file is enough");

    let script = scripted(vec![cut(ETAG, 7), cut(second, 9), cut(third, LENGTH)]);
    let error = fetch(&script, short(), false).await.map(drop).unwrap_err();
    assert_eq!(error.reason(), "SourceChanged", "{error:?}");
}

#[tokio::test]
async fn a_server_that_is_away_for_a_moment_is_asked_again() {
    let away = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n".to_owned();
    let script = scripted(vec![cut(ETAG, 7), away.clone(), String::new(), rest(ETAG, 7, LENGTH)]);
    fetch(&script, short(), false).await.unwrap();

    let script = scripted(vec![cut(ETAG, 7), away.clone(), away.clone(), away.clone(), away]);
    let error = fetch(&script, short(), false).await.map(drop).unwrap_err();
    assert_eq!((error.reason(), script.requests().len()), ("SourceUnavailable", 4), "three continuations");
}

#[tokio::test]
async fn a_file_that_goes_away_is_gone() {
    let script = scripted(vec![cut(ETAG, 7), "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned()]);
    assert_eq!(fetch(&script, short(), false).await.map(drop).unwrap_err().reason(), "SourceNotFound");
}

#[tokio::test]
async fn what_breaks_for_ever_ends_all_the_same() {
    let script = scripted(vec![cut(ETAG, 7), rest(ETAG, 7, 7)]);
    let error = fetch(&script, short(), false).await.map(drop).unwrap_err();
    assert!(matches!(error, Error::Truncated { received: 7, .. }), "{error:?}");
    assert_eq!(script.requests().len(), 4);
    let limits = Limits { total: Duration::from_millis(300), pause: Duration::from_secs(1), ..short() };
    let error = fetch(&scripted(vec![cut(ETAG, 7)]), limits, false).await.map(drop).unwrap_err();
    assert_eq!(error.reason(), "SourceTimeout");
}

#[tokio::test]
async fn a_packed_file_is_refused_before_it_is_fetched() {
    let packed = crate::servers::answering(vec![
        [b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n".as_slice(), b"\xfd7zXZ\0\0\x04"].concat(),
    ]);
    let error = fetch(&packed, short(), false).await.map(drop).unwrap_err();
    assert!(matches!(&error, Error::UnsupportedFormat { message } if message.contains("unxz")), "{error:?}");
}
