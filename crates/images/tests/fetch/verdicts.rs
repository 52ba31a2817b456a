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

#[rstest]
#[case::said_by_the_server("ETag: \"v1\"\r\n", "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\n\r\n", "if-none-match")]
#[case::seen_by_the_time(
    "Last-Modified: Fri, 27 Nov 2026 10:00:00 GMT\r\n",
    "HTTP/1.1 304 Not Modified\r\n\r\n",
    "if-modified-since"
)]
#[tokio::test]
async fn an_unchanged_file_is_not_read_again(#[case] headers: &str, #[case] then: &str, #[case] condition: &str) {
    let wrong = answer(headers, "another file");
    let right = answer("ETag: \"v2\"\r\n", std::str::from_utf8(CONTENT).unwrap());
    let script = scripted(vec![wrong.clone(), then.to_owned(), wrong, right]);
    let fetcher = fetcher(short());
    let (first, read) = fetch(&fetcher, &script).await;
    assert_eq!((first.as_ref().unwrap_err().reason(), read), ("ChecksumMismatch", 12));
    for _ in 0..2 {
        let (again, read) = fetch(&fetcher, &script).await;
        assert_eq!(again.unwrap_err().to_string(), first.as_ref().unwrap_err().to_string());
        assert_eq!(read, 0, "by its answer or by its marks, the file is known to be the same");
    }
    assert!(script.requests()[1].header(condition).is_some(), "{:?}", script.requests());
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
