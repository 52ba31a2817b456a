//! The life of the application credential that a namespace asks for: handed out, replaced when it is old, withdrawn.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kupenstack_api::resources::{
    APPLICATION_CREDENTIAL as REQUEST, APPLICATION_CREDENTIAL_SECRET as WHERE, CREDENTIAL_SECRET, PROJECT_ID,
};
use kupenstack_testkit::sim::{Cloud, Entity};
use serde_json::{Value, json};

use crate::{
    check::Census,
    life::Life,
    patience::{answered, appears, eventually},
    point::Phase,
    stage::Stage,
};

/// Days after which one ends by itself.
const LIFE: i64 = 37;
/// Days after which one is replaced for certain.
const OLD: i64 = 31;
/// Days for which the former one works at most.
const LAST: i64 = 2;
/// What tells of one that was made anew: it has more days left.
const YOUNG: i64 = LIFE - OLD;
/// Keys that say what to log in with.
const ID: &str = "OS_APPLICATION_CREDENTIAL_ID";
const SECRET: &str = "OS_APPLICATION_CREDENTIAL_SECRET";

#[derive(Clone)]
pub(crate) struct CredentialLife;

fn days(days: i64) -> SignedDuration {
    SignedDuration::from_hours(24 * days)
}

fn text(secret: &Secret, key: &str) -> String {
    let value = secret.data.as_ref().and_then(|data| data.get(key)).map(|value| value.0.clone());
    String::from_utf8(value.unwrap_or_default()).unwrap()
}

async fn secret(stage: &Stage) -> Option<Secret> {
    let api = stage.own_secrets();
    answered(|| api.get_opt(CREDENTIAL_SECRET)).await
}

fn in_keystone(cloud: &Cloud) -> usize {
    cloud.keystone.all("application_credentials").count()
}

fn is_young(credential: &Entity) -> bool {
    let ends: Timestamp = credential.text("expires_at").parse().unwrap();
    ends > Timestamp::now() + days(YOUNG)
}

/// Makes the credential in use look as old as this, and has the namespace looked at.
async fn ages(stage: &Stage, age: i64) {
    let id = secret(stage).await.map(|secret| text(&secret, ID)).unwrap_or_default();
    let ends = Timestamp::now() + days(LIFE - age);
    let Value::Object(attributes) = json!({"expires_at": ends.to_string()}) else { unreachable!() };
    let now = stage.sim.clock().now();
    stage.sim.cloud().keystone.edit(now, "application_credentials", &id, attributes);
    stage.nudge().await;
}

/// What is wrong with the credential that the namespace's programs log in with, or else the credential.
async fn handed_out(stage: &Stage) -> Result<Entity, String> {
    let secret = secret(stage).await.ok_or("no Secret")?;
    let api = stage.namespaces();
    let namespace = answered(|| api.get_opt(&stage.name)).await.ok_or("the namespace is gone")?;
    if namespace.annotations().get(WHERE).is_none_or(|name| name != CREDENTIAL_SECRET) {
        return Err("no annotation tells of the Secret".to_owned());
    }
    let (id, password) = (text(&secret, ID), text(&secret, SECRET));
    let cloud = stage.sim.cloud();
    let credential = cloud.keystone.get("application_credentials", &id);
    let credential = credential.ok_or_else(|| format!("Keystone has no credential {id:?}"))?;
    let yaml = text(&secret, "clouds.yaml");
    if credential.secret.as_ref() != Some(&password) || ![&id, &password].iter().all(|word| yaml.contains(*word)) {
        return Err("the Secret has not what the credential logs in with".to_owned());
    }
    if secret.data.iter().flatten().any(|(key, _)| key == "next") {
        return Err("another one is being made".to_owned());
    }
    if namespace.annotations().get(PROJECT_ID).is_none_or(|project| project != credential.text("project_id")) {
        return Err("it is for another project".to_owned());
    }
    Ok(credential.clone())
}

/// What is missing until the credential in use is another than before. The former one still works.
async fn is_replaced(stage: &Stage) -> Result<(), String> {
    let (credential, there_are) = (handed_out(stage).await?, in_keystone(&stage.sim.cloud()));
    match there_are {
        1 | 2 if is_young(&credential) => Ok(()),
        1 | 2 => Err("the old one is in use".to_owned()),
        more => Err(format!("{more} credentials instead of the former and the new one")),
    }
}

impl Life for CredentialLife {
    const KIND: &'static str = "credential";
    const CONTROLLERS: &'static [&'static str] = &["projects"];

    async fn prepare(&self, stage: &Stage) {
        stage.has_a_project().await;
    }

    async fn create(&self, stage: &Stage) {
        // the token of before ends, so that a login is part of the life
        stage.sim.clock().advance(stage.sim.options().token_life);
        stage.annotate(json!({REQUEST: "requested"})).await;
    }

    /// A month passes.
    async fn edit(&self, stage: &Stage) {
        ages(stage, OLD).await;
    }

    async fn delete(&self, stage: &Stage) {
        stage.annotate(json!({REQUEST: null})).await;
    }

    async fn nudge(&self, stage: &Stage) {
        stage.nudge().await;
    }

    async fn settled(&self, stage: &Stage, phase: Phase) {
        match phase {
            Phase::Start => {}
            Phase::Create => eventually(|| self.check(stage, phase)).await,
            Phase::Update => {
                eventually(|| is_replaced(stage)).await;
                // and some days more, which nothing but time can bring about
                ages(stage, LAST).await;
                eventually(|| self.check(stage, phase)).await;
            }
            Phase::Delete => {
                appears(stage.namespaces(), &stage.name, |namespace| !namespace.annotations().contains_key(WHERE))
                    .await;
            }
        }
    }

    fn adds(&self) -> Census {
        Census::from([("application credentials", 1), ("Secrets", 1)])
    }

    async fn check(&self, stage: &Stage, phase: Phase) -> Result<(), String> {
        let (credential, there_are) = (handed_out(stage).await?, in_keystone(&stage.sim.cloud()));
        if phase == Phase::Update && !is_young(&credential) {
            return Err("the old one is in use".to_owned());
        }
        if there_are == 1 { Ok(()) } else { Err(format!("{there_are} credentials instead of one")) }
    }

    async fn shown(&self, stage: &Stage) -> String {
        let api = stage.namespaces();
        serde_json::to_string(&answered(|| api.get_opt(&stage.name)).await).unwrap()
    }
}
