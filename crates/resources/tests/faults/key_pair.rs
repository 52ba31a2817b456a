//! The life of a `KeyPair`, of which Nova can change nothing.

use kube::Api;
use kupenstack_api::resources::KeyPair;
use kupenstack_testkit::sim::Cloud;
use serde_json::{Value, json};

use crate::{object::ObjectKind, point::Phase, stage::Stage};

const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIM5VUfJYhPwFhni7yWYee4vCC3W5DEUA804o6s0VRzzo";

impl ObjectKind for KeyPair {
    const COUNTED: &'static str = "key pairs";
    const CONTROLLERS: &'static [&'static str] = &["projects", "keypair"];

    type Given = ();

    fn api(stage: &Stage) -> Api<Self> {
        Api::namespaced(stage.client.clone(), &stage.name)
    }

    fn name(_: &Stage) -> &'static str {
        "it"
    }

    async fn prepare(stage: &Stage) {
        stage.has_a_project().await;
    }

    fn spec((): &(), _: &Stage) -> Value {
        json!({"publicKey": KEY})
    }

    fn edit() -> Value {
        json!({"deletionPolicy": "Delete"})
    }

    fn check(cloud: &Cloud, id: &str, _: Phase) -> Result<(), String> {
        let found = cloud.nova.key_pairs().find(|key_pair| key_pair.name == id);
        let found = found.ok_or_else(|| format!("the status tells of key pair {id}"))?;
        if found.public_key == KEY { Ok(()) } else { Err(format!("{} instead of {KEY}", found.public_key)) }
    }
}
