//! Texts of objects, read by an API server's front proxy. Reads through the API server are tested where there are texts.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures::future::join_all;
use kupenstack_admission::TextApi;
use kupenstack_core::text::{NotRead, Reading, TextSource};
use kupenstack_testkit::eventually;
use tokio::sync::Semaphore;

use crate::{
    OWN,
    stage::{Running, Stage, client, word},
};

/// As many as are read at the same time.
const MOST: usize = 8;
const TEXT: &str = "/apis/sub.example.org/v1/namespaces/shop/words/w/text";

/// Gives as many texts as there are permits, and has the others wait.
struct Slow {
    asked: AtomicUsize,
    permits: Semaphore,
}

impl TextSource for Slow {
    fn read<'a>(&'a self, namespace: &'a str, name: &'a str, lines: u32) -> Reading<'a> {
        Box::pin(async move {
            self.asked.fetch_add(1, Ordering::Relaxed);
            let permit = self.permits.acquire().await.map_err(|closed| NotRead::Failed(closed.to_string()))?;
            permit.forget();
            Ok(format!("{namespace} {name} {lines}"))
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_so_many_are_read_at_a_time_and_webhooks_are_not_held_up() {
    let stage = Stage::set("Fail").await;
    let source = Arc::new(Slow { asked: AtomicUsize::new(0), permits: Semaphore::new(0) });
    let texts = TextApi {
        group: "sub.example.org".to_owned(),
        resource: "words".to_owned(),
        kind: "Word".to_owned(),
        subresource: "text".to_owned(),
        source: Arc::clone(&source) as Arc<dyn TextSource>,
    };
    let server = Running::start_with(&stage, OWN, texts).await;
    let trusted = stage.trusted().await;
    let [proxy, other] = ["front-proxy", "apiserver"].map(|name| client(&trusted, Some(stage.identity(name))));
    let read = async || {
        let asked = proxy.get(format!("https://{}{TEXT}", server.address));
        let answer =
            asked.header("X-Remote-User", "u").header("X-Remote-Group", "system:masters").send().await.unwrap();
        (answer.status().as_u16(), answer.headers().contains_key("retry-after"), answer.text().await.unwrap())
    };
    let under_way = async { join_all((0..MOST).map(|_| read())).await };
    let meanwhile = async {
        eventually("all are being read", || async { source.asked.load(Ordering::Relaxed) == MOST }).await;
        let (code, again, answer) = read().await;
        assert!(code == 429 && again && answer.contains(r#""reason":"TooManyRequests""#), "{code} {answer}");
        // whatever certificate a client shows, or none
        let review = other.post(format!("https://{}/validate", server.address)).json(&word(&["fine"]));
        assert_eq!(review.send().await.unwrap().status(), 200);
        assert_eq!(server.ask(&trusted, word(&["fine"])).await, Ok(200));
        source.permits.add_permits(MOST + 1);
    };
    let (answers, ()) = tokio::join!(under_way, meanwhile);
    for answer in answers.into_iter().chain([read().await]) {
        assert_eq!(answer, (200, false, "shop w 500".to_owned()));
    }
    server.stop().await;
}
