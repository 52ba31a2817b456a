//! Charts whose render is another one each time, unless they are given what they would make up.

use std::path::Path;

use kupenstack_api::cluster::Glance;
use kupenstack_helm::{Capabilities, ChartRef, Cli, Helm, ReleaseRef, Values};
use serde_json::{Value, json};

use crate::{
    all_ready,
    common::world::{dialect, helm4},
    whole_cloud,
};

async fn render(chart: &Path, values: &Value) -> Vec<Value> {
    let settings = kupenstack_helm::Settings { program: helm4(), ..kupenstack_helm::Settings::from_env() };
    let helm = Cli::new(settings).await.unwrap();
    let (release, chart) = (ReleaseRef::new("openstack", "glance"), ChartRef::Path(chart.to_owned()));
    helm.template(&release, &chart, &Values::new(values.clone()), &Capabilities::default()).await.unwrap().objects
}

#[tokio::test]
async fn a_key_that_is_left_to_the_chart_makes_every_render_another_one() {
    let chart = dialect().join("glance");
    assert_ne!(render(&chart, &json!({})).await, render(&chart, &json!({})).await);
    let set = json!({"endpoints": {"oslo_cache": {"auth": {"memcache_secret_key": "key"}}}});
    assert_eq!(render(&chart, &set).await, render(&chart, &set).await);
}

/// The operator sets that key: an upgrade of something else rolls no pod.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_operator_leaves_no_chart_to_make_things_up() {
    let world = whole_cloud("render").await;
    let operator = world.operator();
    all_ready(&world).await;
    // a value that no template reads
    world.declare("Glance", &json!({"values": {"unread": true}})).await;
    world.until::<Glance>("glance", |g| g.status.as_ref().is_some_and(|s| s.revision == Some(2))).await;
    world.ready::<Glance>().await;
    operator.stop().await;
    let ledger = world.player.ledger();
    assert_eq!((ledger.rollouts("glance-api"), ledger.pods("glance-api")), (1, 1));
}
