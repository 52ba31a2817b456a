//! Clients of many users.

use std::num::NonZeroUsize;

use kupenstack_openstack::{Client, ClientCache, ErrorKind};
use wiremock::{Mock, ResponseTemplate, matchers::path};

use crate::support::{Cloud, credentials, token_answer};

fn cache(base: Client, capacity: usize) -> ClientCache {
    ClientCache::new(base, NonZeroUsize::new(capacity).unwrap())
}

#[tokio::test]
async fn a_kept_client_keeps_its_token() {
    let cloud = Cloud::start().await;
    let cache = cache(cloud.client(), 2);
    assert!(cache.get("shop").is_none());
    cloud.answer_all(ResponseTemplate::new(404)).await;
    cache.insert("shop", credentials()).image().get("x").await.unwrap();
    cache.get("shop").unwrap().image().get("x").await.unwrap();
    assert_eq!(cloud.logins().await, 1);
}

#[tokio::test]
async fn the_least_recently_used_gives_way() {
    let cloud = Cloud::start().await;
    let cache = cache(cloud.client(), 2);
    cache.insert("a", credentials());
    cache.insert("b", credentials());
    cache.get("a").unwrap();
    cache.insert("b", credentials());
    cache.get("a").unwrap();
    cache.insert("c", credentials());
    assert!(cache.get("a").is_some());
    assert!(cache.get("b").is_none());
    assert!(cache.get("c").is_some());
    cache.evict("a");
    assert!(cache.get("a").is_none());
}

#[tokio::test]
async fn refused_credentials_are_not_handed_out_again() {
    let cloud = wiremock::MockServer::start().await;
    Mock::given(path("/v3/auth/tokens")).respond_with(ResponseTemplate::new(401)).up_to_n_times(1).mount(&cloud).await;
    Mock::given(path("/v3/auth/tokens")).respond_with(token_answer(1, &cloud.uri())).mount(&cloud).await;
    let cache = cache(crate::support::client_at(&cloud.uri(), crate::support::options()), 2);
    let error = cache.insert("shop", credentials()).image().get("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthorized);
    assert!(cache.get("shop").is_none());
    cache.insert("shop", credentials()).authenticate().await.unwrap();
    assert!(cache.get("shop").is_some());
}
