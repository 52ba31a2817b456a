//! What is refused, and told.

use kube::api::{DeleteParams, PostParams};
use kupenstack_api::resources::Image;
use kupenstack_core::conditions::{self, RECONCILING};
use kupenstack_testkit::sim::{Effect, Rule};
use rstest::rstest;
use serde_json::json;

use crate::{
    common::look::{disk, id, is_ready, is_stalled, shown},
    image::only,
    world::{self, Tenant},
};

enum Bad {
    Missing,
    Empty,
    Text,
    OtherContent,
    Untrusted,
    CannotBecomeIso,
}

#[rstest]
#[case::tf_404(Bad::Missing, "SourceNotFound", "spec.src")]
#[case::k_orc_903_zero_bytes(Bad::Empty, "SourceEmpty", "spec.src")]
#[case::text(Bad::Text, "UnsupportedFormat", "spec.src")]
#[case::checksum(Bad::OtherContent, "ChecksumMismatch", "spec.checksum")]
#[case::bad_tls(Bad::Untrusted, "TLSVerificationFailed", "spec.src")]
#[case::iso(Bad::CannotBecomeIso, "UnsupportedFormat", "spec.format")]
#[tokio::test(flavor = "multi_thread")]
async fn a_bad_source_is_told_by_field_and_leaves_nothing(#[case] bad: Bad, #[case] reason: &str, #[case] field: &str) {
    let tenant = world::shared().await.tenant().await;
    let good = tenant.world.serve(&disk(4096)).await;
    let spec = match bad {
        Bad::Missing => json!({"src": format!("{}/nothing-here", tenant.world.web.uri()), "format": "raw"}),
        Bad::Empty => json!({"src": tenant.world.serve(&[]).await, "format": "raw"}),
        Bad::Text => json!({"src": tenant.world.serve(b"<html>not an image</html>").await, "format": "raw"}),
        Bad::OtherContent => {
            json!({"src": good, "format": "raw", "checksum": format!("sha256:{}", "0".repeat(64))})
        }
        Bad::Untrusted => json!({"src": kubernetes_url(&tenant), "format": "raw"}),
        Bad::CannotBecomeIso => json!({"src": good, "format": "iso"}),
    };
    tenant.create::<Image>("bad", spec).await;
    let image = tenant.until("bad", |image| shown(image).0 == reason).await;
    assert!(shown(&image).1.starts_with(field), "{}", shown(&image).1);
    assert!(is_stalled(&image));
    let project = tenant.project().await;
    assert_eq!(tenant.world.sim.cloud().glance.images().filter(|image| image.owner == project).count(), 0);
    tenant.delete("bad").await;
}

#[rstest]
#[case::attribute("visibility", false)]
#[case::ours("kupenstack_mark", false)]
#[case::glances("os_glance_importing_to_stores", false)]
#[case::no_name("with space", false)]
#[case::fine("hw:cpu.policy-1", true)]
#[tokio::test(flavor = "multi_thread")]
async fn what_can_never_be_a_property_is_refused_at_once(#[case] name: &str, #[case] taken: bool) {
    let tenant = world::shared().await.tenant().await;
    let src = tenant.world.serve(&disk(4096)).await;
    let image = json!({
        "apiVersion": "kupenstack.io/v1", "kind": "Image", "metadata": {"name": "properties"},
        "spec": {"src": src, "format": "raw", "properties": {name: "x"}},
    });
    let image = serde_json::from_value(image).unwrap();
    match tenant.images().create(&PostParams::default(), &image).await {
        Ok(_) => assert!(taken, "{name} was taken"),
        Err(error) => assert!(!taken && error.to_string().contains("spec.properties"), "{error}"),
    }
}

/// An HTTPS server whose certificate nobody trusts who was not told to.
fn kubernetes_url(tenant: &Tenant<'_>) -> String {
    let text = std::fs::read_to_string(tenant.world.plane.kubeconfig_path()).unwrap();
    let config: serde_json::Value = serde_json::from_str(&text).unwrap();
    format!("{}/image", config["clusters"][0]["cluster"]["server"].as_str().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_667_a_quota_is_waited_for() {
    let tenant = world::shared().await.tenant().await;
    let src = tenant.world.serve(&disk(4096)).await;
    let project = tenant.project().await;
    tenant.world.sim.cloud().quotas.set(&project, "image_count_total", 0);
    tenant.create::<Image>("over-quota", json!({"src": src, "format": "raw"})).await;
    let image = tenant.until("over-quota", |image| shown(image).0 == "QuotaExceeded").await;
    assert!(conditions::find(&image.status.unwrap().conditions, RECONCILING).is_some());
    tenant.world.sim.cloud().quotas.set(&project, "image_count_total", 1);
    tenant.nudge::<Image>("over-quota").await;
    tenant.until("over-quota", is_ready).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn k_orc_378_delete_waits_while_the_image_is_in_use() {
    let tenant = world::shared().await.tenant().await;
    let first = id(&tenant.ready_image("in-use").await);
    let refusal = Effect::refusal_saying(409, "Image is in use by a volume");
    tenant.world.fail_next(Rule::on("image", "DELETE", &format!("/v2/images/{first}"), refusal));
    tenant.images().delete("in-use", &DeleteParams::default()).await.unwrap();
    let image = tenant.until("in-use", |image| shown(image).0 == "InUse").await;
    assert!(shown(&image).1.contains("in use by a volume"));
    tenant.nudge::<Image>("in-use").await;
    tenant.delete("in-use").await;
    assert!(tenant.world.named("in-use").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn capo_742_one_502_is_no_failure() {
    let tenant = world::shared().await.tenant().await;
    let creation = Rule::on("image", "POST", "/v2/images", Effect::refusal(502));
    tenant.world.fail_next(creation.in_project(&tenant.project().await));
    let src = tenant.world.serve(&disk(4096)).await;
    tenant.create::<Image>("one-502", json!({"src": src, "format": "raw"})).await;
    let image = tenant.until("one-502", |image| is_ready(image) || is_stalled(image)).await;
    assert!(!is_stalled(&image), "{:?}", shown(&image));
    only(&tenant, "one-502");
}

#[tokio::test(flavor = "multi_thread")]
async fn capo_2073_a_deletion_that_policy_forbids_is_told() {
    let tenant = world::shared().await.tenant().await;
    let first = id(&tenant.ready_image("protected").await);
    tenant.world.meddle(&first, |image| image.protected = true);
    tenant.images().delete("protected", &DeleteParams::default()).await.unwrap();
    let image = tenant.until("protected", |image| shown(image).0 == "Forbidden").await;
    assert!(shown(&image).1.contains("is protected"), "{}", shown(&image).1);
    tenant.world.meddle(&first, |image| image.protected = false);
    tenant.nudge::<Image>("protected").await;
    tenant.delete("protected").await;
    assert!(tenant.world.named("protected").is_empty());
}
