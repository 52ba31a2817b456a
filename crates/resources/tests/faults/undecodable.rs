//! An object that this version can't decode, as another version may have left it, beside one that it can.

use std::sync::{Mutex, PoisonError};

use kube::{CustomResourceExt, api::DeleteParams};
use kupenstack_api::resources::Image;
use serde_json::{Value, json};

use crate::{
    common::cluster::Cluster,
    life::Life,
    patience::{attempt, gone},
    point::Point,
    queue::{Outcome, Queue},
    run::{Progress, Run, prepare},
    stage::{Stage, Surroundings},
    suite::points_of,
};

/// Name of the one stage that has such an object.
const STAGE: &str = "beside";

/// Stores the object, which takes a definition that allows for it. The right one has to come after it.
pub(crate) async fn store(cluster: &Cluster) {
    let mut definition = serde_json::to_value(Image::crd()).unwrap();
    for version in definition["spec"]["versions"].as_array_mut().unwrap() {
        version["schema"]["openAPIV3Schema"] = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    }
    let object: Value = json!({
        "apiVersion": "kupenstack.io/v1", "kind": "Image", "metadata": {"name": "undecodable", "namespace": STAGE},
        "spec": {"src": ["a", "list"], "format": 7},
    });
    cluster.plane.apply_yaml(&definition.to_string()).await;
    cluster.make_namespace(STAGE, &[]).await;
    cluster.plane.apply_yaml(&object.to_string()).await;
}

/// Lives beside it, with an operator that is killed after each write, and the end of their namespace.
pub(crate) async fn is_survived<L: Life>(cluster: &'static Cluster, life: L) {
    let stage = Stage::named(cluster, &cluster.client().await, STAGE.to_owned(), Surroundings::default()).await;
    let progress = Mutex::<Progress>::default();
    let run = |points: Vec<Point>| {
        let (stage, life, progress) = (&stage, &life, &progress);
        async move { Run { stage, life, points: &points, progress }.whole().await }
    };
    prepare(&stage, &life).await;
    run(Vec::new()).await;
    let journal = std::mem::take(&mut progress.lock().unwrap_or_else(PoisonError::into_inner).journal);
    let points = points_of::<L>(&journal.into_values().flatten().collect());
    let queue = Queue::new(points.into_iter().filter(Point::is_death_after_a_write).collect());
    loop {
        let batch = queue.take();
        if batch.is_empty() {
            break;
        }
        run(batch.iter().map(|(point, _)| point.clone()).collect()).await;
        let survived = std::mem::take(&mut progress.lock().unwrap_or_else(PoisonError::into_inner).survived);
        queue.done(batch, &survived, None);
    }
    let Outcome { covered, lives, missed, failures } = queue.result();
    println!("fault suite: {} beside an undecodable object: {covered} points in {lives} lives", L::KIND);
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert_eq!(missed, [""; 0]);

    let operators = stage.operators();
    attempt(|| async { stage.namespaces().delete(STAGE, &DeleteParams::default()).await.map(drop) }).await;
    gone(stage.namespaces(), STAGE).await;
    drop(operators);
}
