//! The life of a namespace, which becomes a project with a user of its own.

use kube::{
    ResourceExt,
    api::{DeleteParams, PostParams},
};
use kupenstack_api::resources::PROJECT_ID;
use kupenstack_openstack::CloudConfig;
use secrecy::ExposeSecret;
use serde_json::json;

use crate::{
    check::Census,
    life::Life,
    patience::{answered, appears, attempt, eventually, gone},
    point::Phase,
    stage::Stage,
};

#[derive(Clone)]
pub(crate) struct ProjectLife;

fn secret_name(stage: &Stage) -> String {
    format!("project-{}", stage.name)
}

/// The password in the namespace's Secret.
async fn password(stage: &Stage) -> Option<String> {
    let (api, name) = (stage.secrets(), secret_name(stage));
    let secret = answered(|| api.get_opt(&name)).await?;
    let text = String::from_utf8(secret.data?.remove("clouds.yaml")?.0).ok()?;
    let config = CloudConfig::from_clouds_yaml(&text, &stage.name).ok()?;
    Some(config.credentials.password.expose_secret().to_owned())
}

impl Life for ProjectLife {
    const KIND: &'static str = "project";
    const ENDS_ITS_STAGE: bool = true;
    const CONTROLLERS: &'static [&'static str] = &["projects"];

    async fn prepare(&self, _: &Stage) {}

    async fn create(&self, stage: &Stage) {
        let namespace = serde_json::from_value(json!({"metadata": {"name": stage.name}})).unwrap();
        attempt(|| async { stage.namespaces().create(&PostParams::default(), &namespace).await.map(drop) }).await;
    }

    /// Its credentials get lost, and others are made.
    async fn edit(&self, stage: &Stage) {
        attempt(|| async { stage.secrets().delete(&secret_name(stage), &DeleteParams::default()).await.map(drop) })
            .await;
        self.nudge(stage).await;
    }

    async fn delete(&self, stage: &Stage) {
        attempt(|| async { stage.namespaces().delete(&stage.name, &DeleteParams::default()).await.map(drop) }).await;
    }

    async fn nudge(&self, stage: &Stage) {
        stage.nudge().await;
    }

    async fn settled(&self, stage: &Stage, phase: Phase) {
        match phase {
            Phase::Start => {}
            Phase::Delete => gone(stage.namespaces(), &stage.name).await,
            Phase::Create | Phase::Update => {
                appears(stage.namespaces(), &stage.name, |namespace| namespace.annotations().contains_key(PROJECT_ID))
                    .await;
                // there is no condition of ours that would tell of the credentials
                eventually(|| self.check(stage, phase)).await;
            }
        }
    }

    fn adds(&self) -> Census {
        Census::from([("projects", 1), ("users", 1), ("grants", 2), ("Secrets", 1)])
    }

    async fn check(&self, stage: &Stage, _: Phase) -> Result<(), String> {
        let api = stage.namespaces();
        let namespace = answered(|| api.get_opt(&stage.name)).await.ok_or("the namespace is gone")?;
        let id = namespace.annotations().get(PROJECT_ID).cloned().unwrap_or_default();
        let password = password(stage).await.ok_or("no credentials")?;
        let cloud = stage.sim.cloud();
        cloud.keystone.get("projects", &id).ok_or_else(|| format!("the annotation tells of project {id}"))?;
        let name = format!("{}-{}", stage.name, namespace.uid().unwrap_or_default());
        let user = cloud.keystone.find("users", &name).ok_or_else(|| format!("no user {name}"))?;
        if user.secret.as_ref() != Some(&password) {
            return Err("Keystone has another password than the Secret".to_owned());
        }
        match ["member", "reader"].iter().find(|role| !cloud.keystone.has_role(&id, &user.id, role)) {
            Some(role) => Err(format!("the user is no {role}")),
            None => Ok(()),
        }
    }

    async fn shown(&self, stage: &Stage) -> String {
        let api = stage.namespaces();
        serde_json::to_string(&answered(|| api.get_opt(&stage.name)).await).unwrap()
    }
}
