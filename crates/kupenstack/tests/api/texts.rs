//! What people see: columns and explanations.

use kube::{
    ResourceExt,
    api::{DynamicObject, Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::stage::{objects, shared};

#[tokio::test]
async fn columns_say_what_a_person_asks_first() {
    let stage = shared().await;
    let namespace = stage.plane.create_namespace("columns").await;
    let images = objects(stage.plane.client().await, "kupenstack.io", "Image", Some(&namespace));
    let spec = json!({"src": "http://a.example/i", "format": "raw"});
    let image: DynamicObject = serde_json::from_value(
        json!({"apiVersion": "kupenstack.io/v1", "kind": "Image", "metadata": {"name": "shown"}, "spec": spec}),
    )
    .unwrap();
    let image = images.create(&PostParams::default(), &image).await.unwrap();
    let ready = json!({"type": "Ready", "status": "False", "reason": "SourceNotFound", "message": "404 Not Found",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let status = json!({"status": {"id": "11111111-2222-3333-4444-555555555555", "size": 4096, "conditions": [ready]}});
    images.patch_status(&image.name_any(), &PatchParams::default(), &Patch::Merge(status)).await.unwrap();

    let narrow = stage.kubectl(["get", "kupenstack", "-n", &namespace]);
    for word in ["READY", "STATUS", "FORMAT", "SIZE", "AGE", "shown", "False", "SourceNotFound", "raw", "4096"] {
        assert!(narrow.contains(word), "{word} is not in\n{narrow}");
    }
    assert!(!narrow.contains("11111111"), "{narrow}");
    let wide = stage.kubectl(["get", "images.kupenstack.io", "-n", &namespace, "-o", "wide"]);
    assert!(wide.contains("11111111-2222") && wide.contains("404 Not Found"), "{wide}");
}

#[tokio::test]
async fn explain_has_a_text_for_every_kind_and_field() {
    let stage = shared().await;
    for (field, text) in [
        ("openstacks", "The OpenStack that this cluster carries"),
        ("openstacks.spec.region", "Region of the cloud"),
        ("keystones.spec.replicas.api", "API servers"),
        ("images.kupenstack.io", "A disk image in the namespace's project"),
        ("images.kupenstack.io.spec.minDisk", "in GiB"),
    ] {
        let explained = stage.kubectl(["explain", field]);
        assert!(explained.contains(text), "{text:?} is not in\n{explained}");
        assert!(!explained.contains("Auto-generated"), "{explained}");
    }
}
