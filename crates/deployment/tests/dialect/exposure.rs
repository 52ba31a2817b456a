//! What users are told of a service's URLs.

use std::collections::BTreeMap;

use kupenstack_api::cluster::Keystone;
use serde_json::json;

use crate::keystone_alone;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn public_urls_are_shown_as_long_as_the_cloud_is_exposed() {
    let world = keystone_alone("exposed").await;
    let operator = world.operator();
    assert_eq!(world.ready::<Keystone>().await.status.unwrap().public_endpoints, BTreeMap::new());
    let expose = json!({"type": "nodePort", "url": "http://192.0.2.10:{port}", "nodePorts": {"keystone": 31000}});
    world.declare("Keystone", &json!({"expose": expose})).await;
    let keystone = world
        .until::<Keystone>("keystone", |k| k.status.as_ref().is_some_and(|s| !s.public_endpoints.is_empty()))
        .await;
    let status = keystone.status.unwrap();
    assert_eq!(
        (status.public_endpoints["keystone"].as_str(), status.revision),
        ("http://192.0.2.10:31000/v3", Some(2))
    );
    world.declare("Keystone", &json!({})).await;
    let is_shut =
        |k: &Keystone| k.status.as_ref().is_some_and(|s| s.public_endpoints.is_empty() && s.revision == Some(3));
    world.until::<Keystone>("keystone", is_shut).await;
    operator.stop().await;
}
