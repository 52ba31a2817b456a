//! What people see: columns and explanations.

use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::stage::{objects, shared};

#[tokio::test]
async fn columns_say_what_a_person_asks_first() {
    let stage = shared().await;
    let namespace = stage.plane.create_namespace("columns").await;
    let keystones = objects(stage.plane.client().await, "cluster.kupenstack.io", "Keystone", Some(&namespace));
    let keystone = json!({"apiVersion": "cluster.kupenstack.io/v1", "kind": "Keystone", "metadata": {"name": "keystone"},
        "spec": {"release": "2026.2"}});
    let keystone: DynamicObject = serde_json::from_value(keystone).unwrap();
    keystones.create(&PostParams::default(), &keystone).await.unwrap();
    let ready = json!({"type": "Ready", "status": "False", "reason": "JobFailing", "message": "no route to the database",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let status = json!({"status": {"release": "2026.1", "revision": 7, "endpoint": "http://keystone.example", "conditions": [ready]}});
    keystones.patch_status("keystone", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();

    let narrow = stage.kubectl(["get", "kupenstack", "-n", &namespace]);
    for word in ["READY", "STATUS", "RELEASE", "REVISION", "AGE", "keystone", "False", "JobFailing", "2026.1", "7"] {
        assert!(narrow.contains(word), "{word} is not in\n{narrow}");
    }
    assert!(!narrow.contains("keystone.example"), "{narrow}");
    let wide = stage.kubectl(["get", "keystones", "-n", &namespace, "-o", "wide"]);
    assert!(wide.contains("http://keystone.example") && wide.contains("no route to the database"), "{wide}");
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
