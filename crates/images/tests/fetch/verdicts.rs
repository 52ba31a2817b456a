//! Files that were found wrong once.

use std::sync::Arc;

use kupenstack_images::{Error, Fetcher, Source};
use rstest::rstest;

use crate::servers::{Script, scripted};
use crate::{CONTENT, Place, SHA256, fetcher, short};

fn answer(headers: &str, content: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: {}\r\n\r\n{content}", content.len())
}

fn source(script: &Script) -> Source {
    Source::http(&script.url, Some(format!("sha256:{SHA256}").parse().unwrap())).unwrap()
}

async fn fetch(fetcher: &Fetcher, script: &Arc<Script>) -> (Result<u64, Error>, u64) {
    let (place, mut read) = (Place::new(), 0);
    let result = fetcher.fetch(&source(script), &place.workspace, |progress| read = progress.done).await;
    (result.map(|download| download.bytes), read)
}

const NOT_MODIFIED: &str = "HTTP/1.1 304 Not Modified\r\n\r\n";
const TIME: &str = "Last-Modified: Fri, 27 Nov 2026 10:00:00 GMT\r\n";

/// The first time the server may say so itself, the second time it has to be seen by the file's marks.
#[rstest]
#[case::by_its_tag("ETag: \"v1\"\r\n", Some(NOT_MODIFIED))]
#[case::by_its_time(TIME, None)]
#[case::by_its_length("", None)]
#[tokio::test]
async fn an_unchanged_file_is_not_read_again(#[case] headers: &str, #[case] then: Option<&str>) {
    let wrong = answer(headers, "another file");
    // Older than the wrong one: copied with the time it had elsewhere.
    let right = answer("Last-Modified: Mon, 01 Jun 2026 10:00:00 GMT\r\n", std::str::from_utf8(CONTENT).unwrap());
    let then = then.map_or_else(|| wrong.clone(), str::to_owned);
    let script = scripted(vec![wrong.clone(), then, wrong, right]);
    let fetcher = fetcher(short());
    let (first, read) = fetch(&fetcher, &script).await;
    assert_eq!((first.as_ref().unwrap_err().reason(), read), ("ChecksumMismatch", 12));
    for _ in 0..2 {
        let (again, read) = fetch(&fetcher, &script).await;
        assert_eq!(again.unwrap_err().to_string(), first.as_ref().unwrap_err().to_string());
        assert_eq!(read, 0);
    }
    let requests = script.requests();
    assert_eq!(requests[1].header("if-none-match"), headers.contains("ETag").then_some("\"v1\""));
    assert_eq!(requests[1].header("if-modified-since"), None, "an older file would count as unchanged");
    assert_eq!(fetch(&fetcher, &script).await.0.unwrap(), CONTENT.len() as u64, "a changed file is read");
}

#[tokio::test]
async fn what_is_found_wrong_later_is_remembered_too() {
    let script = scripted(vec![answer("ETag: \"v1\"\r\n", std::str::from_utf8(CONTENT).unwrap())]);
    let (fetcher, place) = (fetcher(short()), Place::new());
    let download = fetcher.fetch(&source(&script), &place.workspace, |_| {}).await.unwrap();
    fetcher.reject(&source(&script), &download, &Error::NoSpace { needed: None });
    fetch(&fetcher, &script).await.0.unwrap();
    fetcher.reject(&source(&script), &download, &Error::UnsafeImage { message: "it has a backing file".to_owned() });
    let (again, read) = fetch(&fetcher, &script).await;
    assert_eq!((again.unwrap_err().reason(), read), ("UnsafeImage", 0));
}

#[tokio::test]
async fn another_checksum_is_another_question() {
    let script = scripted(vec![answer("ETag: \"v1\"\r\n", "another file")]);
    let (fetcher, place) = (fetcher(short()), Place::new());
    fetch(&fetcher, &script).await.0.unwrap_err();
    let unchecked = Source::http(&script.url, None).unwrap();
    assert_eq!(fetcher.fetch(&unchecked, &place.workspace, |_| {}).await.unwrap().bytes, 12);
}
