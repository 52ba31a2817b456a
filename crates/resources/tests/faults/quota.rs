//! The life of a `ResourceQuota`, which becomes limits of the namespace's project.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ResourceQuota;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use kupenstack_api::resources::PROJECT_ID;
use kupenstack_testkit::sim::Entity;
use serde_json::json;

use crate::{
    check::Census,
    life::Life,
    patience::{answered, attempt, eventually, gone},
    point::Phase,
    stage::Stage,
};

const NAME: &str = "openstack";
const COUNT: &str = "image_count_total";
const SIZE: &str = "image_size_total";
const STAGING: &str = "image_stage_total";
const UPLOADS: &str = "image_count_uploading";

#[derive(Clone)]
pub(crate) struct QuotaLife;

/// What the project is limited to while the quota lives.
fn expected(phase: Phase) -> BTreeMap<&'static str, i64> {
    match phase {
        Phase::Start | Phase::Delete => BTreeMap::new(),
        Phase::Create => BTreeMap::from([(COUNT, 5), (SIZE, 1024), (UPLOADS, 3)]),
        Phase::Update => BTreeMap::from([(COUNT, 0), (SIZE, 2048), (STAGING, 512)]),
    }
}

fn quotas(stage: &Stage) -> Api<ResourceQuota> {
    Api::namespaced(stage.client.clone(), &stage.name)
}

impl Life for QuotaLife {
    const KIND: &'static str = "quota";
    const CONTROLLERS: &'static [&'static str] = &["projects", "quotas"];

    async fn prepare(&self, stage: &Stage) {
        let now = stage.sim.clock().now();
        for resource in [COUNT, SIZE, STAGING, UPLOADS] {
            stage.sim.cloud().keystone.register_limit(now, "image", resource, -1);
        }
        stage.has_a_project().await;
    }

    async fn create(&self, stage: &Stage) {
        // the token of before ends, so that a login is part of the life
        stage.sim.clock().advance(stage.sim.options().token_life);
        let hard = json!({
            "kupenstack.io/images": "5", "kupenstack.io/image-storage": "1Gi", "kupenstack.io/image-uploads": "3",
        });
        let quota = serde_json::from_value(json!({"metadata": {"name": NAME}, "spec": {"hard": hard}})).unwrap();
        attempt(|| async { quotas(stage).create(&PostParams::default(), &quota).await.map(drop) }).await;
    }

    /// One is changed, one is changed to 0, one is lifted, and another one added.
    async fn edit(&self, stage: &Stage) {
        let hard = json!({
            "kupenstack.io/images": "0", "kupenstack.io/image-storage": "2Gi", "kupenstack.io/image-staging": "512Mi",
            "kupenstack.io/image-uploads": null,
        });
        let (api, params, patch) =
            (quotas(stage), PatchParams::default(), Patch::Merge(json!({"spec": {"hard": hard}})));
        attempt(|| async { api.patch(NAME, &params, &patch).await.map(drop) }).await;
    }

    async fn delete(&self, stage: &Stage) {
        attempt(|| async { quotas(stage).delete(NAME, &DeleteParams::default()).await.map(drop) }).await;
    }

    async fn nudge(&self, stage: &Stage) {
        stage.nudge().await;
    }

    /// A quota has no condition of ours that would tell.
    async fn settled(&self, stage: &Stage, phase: Phase) {
        if phase == Phase::Delete {
            gone(quotas(stage), NAME).await;
        }
        eventually(|| self.check(stage, phase)).await;
    }

    fn adds(&self) -> Census {
        Census::from([("limits", 3)])
    }

    async fn check(&self, stage: &Stage, phase: Phase) -> Result<(), String> {
        let api = stage.namespaces();
        let namespace = answered(|| api.get_opt(&stage.name)).await.ok_or("the namespace is gone")?;
        let (uid, cloud) = (namespace.uid().unwrap_or_default(), stage.sim.cloud());
        let is_ours = |limit: &&Entity| {
            let project = namespace.annotations().get(PROJECT_ID).map(String::as_str);
            project == Some(limit.text("project_id")) && limit.text("description").ends_with(&uid)
        };
        let limits = cloud.keystone.all("limits").filter(is_ours);
        let found: BTreeMap<_, _> = limits
            .map(|limit| (limit.text("resource_name"), limit.body["resource_limit"].as_i64().unwrap_or(-1)))
            .collect();
        let wanted = expected(phase);
        if found == wanted { Ok(()) } else { Err(format!("limits {found:?} instead of {wanted:?}")) }
    }

    async fn shown(&self, stage: &Stage) -> String {
        let api = quotas(stage);
        serde_json::to_string(&answered(|| api.get_opt(NAME)).await).unwrap()
    }
}
