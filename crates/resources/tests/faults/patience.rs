//! Waiting, also while the API server is gone for a moment.

use std::{fmt::Debug, future::Future, time::Duration};

use kube::{Api, Resource, runtime::wait::await_condition};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout};

/// What is waited for longest by itself is a quota, for a minute; and the machine may be busy.
const LIMIT: Duration = Duration::from_secs(150);
/// Between two looks at what can't be watched: each is several requests, and many look at the same time.
const LOOK: Duration = Duration::from_millis(250);

/// Waits until there is an object of the name that fits.
pub(crate) async fn appears<K>(api: Api<K>, name: &str, fits: impl Fn(&K) -> bool + Send + Sync)
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let condition = |object: Option<&K>| object.is_some_and(&fits);
    watched(&api, name, condition, "as declared").await;
}

/// Waits until there is no object of the name.
pub(crate) async fn gone<K>(api: Api<K>, name: &str)
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    watched(&api, name, |object: Option<&K>| object.is_none(), "gone").await;
}

async fn watched<K>(api: &Api<K>, name: &str, condition: impl Fn(Option<&K>) -> bool + Send + Sync, what: &str)
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    let comes = async {
        while await_condition(api.clone(), name, &condition).await.is_err() {
            sleep(LOOK).await;
        }
    };
    let came = timeout(LIMIT, comes).await;
    assert!(came.is_ok(), "{name} is not {what} after {LIMIT:?}: {:#?}", api.get_opt(name).await);
}

/// Waits until a check finds nothing wrong.
pub(crate) async fn eventually<F: Future<Output = Result<(), String>>>(check: impl Fn() -> F) {
    let since = Instant::now();
    while let Err(problem) = check().await {
        assert!(since.elapsed() < LIMIT, "after {LIMIT:?}: {problem}");
        sleep(LOOK).await;
    }
}

/// What the API server answers to a question, which can be asked again.
pub(crate) async fn answered<T, F: Future<Output = kube::Result<T>>>(ask: impl Fn() -> F) -> T {
    let since = Instant::now();
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => assert!(since.elapsed() < LIMIT, "after {LIMIT:?}: {error}"),
        }
        sleep(LOOK).await;
    }
}

/// Asks something of the API server until it answers. That it was done already is an answer to a repeat.
pub(crate) async fn attempt<F: Future<Output = kube::Result<()>>>(ask: impl Fn() -> F) {
    let since = Instant::now();
    loop {
        match ask().await {
            Ok(()) => return,
            Err(kube::Error::Api(status)) if status.code < 500 && status.code != 429 => {
                assert!(matches!(status.code, 404 | 409), "{status:?}");
                return;
            }
            Err(error) => assert!(since.elapsed() < LIMIT, "after {LIMIT:?}: {error}"),
        }
        sleep(LOOK).await;
    }
}
