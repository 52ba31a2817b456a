//! The real Helm and a real control plane: what a release's life looks like to us.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod gate;
mod majors;

use std::collections::BTreeMap;

use common::{Chart, helm};
use gate::Gate;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kupenstack_helm::{Cli, ContentHash, Error, HASH_LABEL, Helm, ReleaseRef, ReleaseState, UpgradeOptions, Values};
use kupenstack_testkit::ControlPlane;
use rstest::rstest;
use serde_json::json;

struct World {
    plane: &'static ControlPlane,
    helm: Cli,
    chart: Chart,
    release: ReleaseRef,
}

impl World {
    /// A namespace of its own and the Helm of that label; `None` where there is none of it.
    async fn new(prefix: &str, label: &str) -> Option<Self> {
        let plane = ControlPlane::shared().await;
        let helm = helm(label, Some(plane.kubeconfig_path())).await?;
        let namespace = plane.create_namespace(prefix).await;
        Some(Self { plane, helm, chart: Chart::new(&[]), release: ReleaseRef::new(namespace, "one") })
    }

    async fn upgrade(&self, greeting: &str, hash: &str) -> Result<kupenstack_helm::Status, Error> {
        let values = Values::new(json!({"greeting": greeting, "secret": "s"}));
        self.helm.upgrade_install(&self.release, &self.chart.reference(), &values, &options(hash)).await
    }

    async fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.plane.client().await, &self.release.namespace)
    }

    async fn greeting(&self) -> String {
        let map = self.api::<ConfigMap>().await.get("one").await.unwrap();
        map.data.unwrap()["greeting"].clone()
    }

    async fn states(&self) -> BTreeMap<u32, ReleaseState> {
        let history = self.helm.history(&self.release).await.unwrap();
        history.into_iter().map(|revision| (revision.revision, revision.state)).collect()
    }

    /// Starts an upgrade and kills Helm in the middle of it.
    async fn upgrade_and_kill(&self, greeting: &str, hash: &str) {
        let mut gate = Gate::shut(self.plane, &self.release.namespace).await;
        tokio::select! {
            result = self.upgrade(greeting, hash) => panic!("it was not stopped: {result:?}"),
            () = gate.reached() => {}
        }
        gate.open();
    }
}

fn options(hash: &str) -> UpgradeOptions {
    UpgradeOptions::new(hash.parse::<ContentHash>().unwrap())
}

#[rstest]
#[tokio::test]
async fn a_release_is_installed_upgraded_rolled_back_and_removed(#[values("helm", "helm3")] label: &str) {
    let Some(world) = World::new("life", label).await else { return };
    let World { helm, release, .. } = &world;

    let installed = world.upgrade("one", "aaa").await.unwrap();
    assert_eq!((installed.revision, installed.state), (1, ReleaseState::Deployed));
    assert_eq!(helm.status(release).await.unwrap(), installed);
    assert_eq!(world.greeting().await, "one");

    let upgraded = world.upgrade("two", "bbb").await.unwrap();
    assert_eq!(helm.status(release).await.unwrap(), upgraded);
    assert_eq!(upgraded.hash.unwrap().as_str(), "bbb");
    assert_eq!(helm.get_values(release).await.unwrap().as_json()["greeting"], "two");
    let record = world.api::<Secret>().await.get(&release.record_name(2)).await.unwrap();
    assert_eq!(record.metadata.labels.unwrap()[HASH_LABEL], "bbb");

    helm.rollback(release, 1).await.unwrap();
    assert_eq!(world.greeting().await, "one");
    let status = helm.status(release).await.unwrap();
    assert_eq!((status.revision, status.hash.unwrap().as_str()), (3, "aaa"));
    let expected = [ReleaseState::Superseded, ReleaseState::Superseded, ReleaseState::Deployed];
    assert_eq!(world.states().await, (1..).zip(expected).collect());

    helm.uninstall(release).await.unwrap();
    assert!(world.api::<ConfigMap>().await.get_opt("one").await.unwrap().is_none());
    assert_eq!(helm.history(release).await.unwrap(), []);
}

#[rstest]
#[tokio::test]
async fn hooks_never_run(#[values("helm", "helm3")] label: &str) {
    let Some(world) = World::new("hooks", label).await else { return };
    world.upgrade("one", "aaa").await.unwrap();
    world.upgrade("two", "bbb").await.unwrap();
    world.helm.rollback(&world.release, 1).await.unwrap();
    assert!(world.api::<Job>().await.get_opt("one-hook").await.unwrap().is_none());
}

#[rstest]
#[tokio::test]
async fn what_is_not_there_is_told_apart_from_what_fails(#[values("helm", "helm3")] label: &str) {
    let Some(world) = World::new("absent", label).await else { return };
    let World { helm, release, .. } = &world;
    assert_eq!(helm.history(release).await.unwrap(), []);
    assert!(matches!(helm.status(release).await, Err(Error::ReleaseNotFound { .. })));
    assert!(matches!(helm.get_values(release).await, Err(Error::ReleaseNotFound { .. })));
    assert!(matches!(helm.rollback(release, 1).await, Err(Error::ReleaseNotFound { .. })));
    helm.uninstall(release).await.unwrap();
    let nowhere = ReleaseRef::new("no-such-namespace", "one");
    let result = helm.upgrade_install(&nowhere, &world.chart.reference(), &Values::default(), &options("a")).await;
    assert!(matches!(result, Err(Error::Failed { .. })), "{result:?}");
}

#[rstest]
#[tokio::test]
async fn five_revisions_are_kept(#[values("helm", "helm3")] label: &str) {
    let Some(world) = World::new("many", label).await else { return };
    for number in 1..=7 {
        world.upgrade(&number.to_string(), &format!("h{number}")).await.unwrap();
    }
    assert_eq!(world.states().await.into_keys().collect::<Vec<_>>(), [3, 4, 5, 6, 7]);
}

#[rstest]
#[tokio::test]
async fn a_failed_upgrade_says_why_and_the_next_one_goes_on(#[values("helm", "helm3")] label: &str) {
    let Some(world) = World::new("failed", label).await else { return };
    world.upgrade("one", "aaa").await.unwrap();
    world.chart.write("templates/bad.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name}\n");
    let error = world.upgrade("two", "bbb").await.unwrap_err();
    assert!(matches!(&error, Error::Failed { message, .. } if message.contains("Not_A_Name")), "{error:?}");
    let status = world.helm.status(&world.release).await.unwrap();
    assert_eq!((status.revision, status.state), (2, ReleaseState::Failed));
    assert_eq!(status.hash.unwrap().as_str(), "bbb", "the hash tells what was tried");

    world.chart.write("templates/bad.yaml", "");
    let status = world.upgrade("two", "ccc").await.unwrap();
    assert_eq!((status.revision, status.state), (3, ReleaseState::Deployed));
}

#[rstest]
#[tokio::test]
async fn an_interrupted_upgrade_is_recognised_and_can_be_gone_on_from(#[values("helm", "helm3")] label: &str) {
    let Some(world) = World::new("killed", label).await else { return };
    let World { helm, release, .. } = &world;
    world.upgrade("one", "aaa").await.unwrap();
    world.upgrade_and_kill("two", "bbb").await;

    let status = helm.status(release).await.unwrap();
    assert_eq!((status.revision, status.state), (2, ReleaseState::PendingUpgrade));
    assert_eq!(status.hash.unwrap().as_str(), "bbb", "the hash tells what was under way");
    assert!(matches!(world.upgrade("two", "bbb").await, Err(Error::PendingOperation { .. })));

    let records = world.api::<Secret>().await;
    records.delete(&release.record_name(2), &DeleteParams::default()).await.unwrap();
    let again = world.upgrade("two", "bbb").await.unwrap();
    assert_eq!((again.revision, again.state), (2, ReleaseState::Deployed));
    assert_eq!(world.greeting().await, "two");
}

#[rstest]
#[tokio::test]
async fn an_interrupted_upgrade_can_be_rolled_back(#[values("helm", "helm3")] label: &str) {
    let Some(world) = World::new("undone", label).await else { return };
    world.upgrade("one", "aaa").await.unwrap();
    world.upgrade_and_kill("two", "bbb").await;
    world.helm.rollback(&world.release, 1).await.unwrap();
    assert_eq!(world.greeting().await, "one");
    let states = world.states().await;
    assert_eq!(states[&2], ReleaseState::PendingUpgrade, "it stays in the history");
    assert_eq!(states[&3], ReleaseState::Deployed);
    world.upgrade("three", "ccc").await.unwrap();
}

#[rstest]
#[tokio::test]
async fn an_interrupted_install_is_recognised_and_can_be_gone_on_from(#[values("helm", "helm3")] label: &str) {
    let Some(world) = World::new("half", label).await else { return };
    world.upgrade_and_kill("one", "aaa").await;
    let status = world.helm.status(&world.release).await.unwrap();
    assert_eq!((status.revision, status.state), (1, ReleaseState::PendingInstall));
    assert!(matches!(world.upgrade("one", "aaa").await, Err(Error::PendingOperation { .. })));

    let made = world.api::<Secret>().await.get("one").await.unwrap().metadata.uid;
    let records = world.api::<Secret>().await;
    records.delete(&world.release.record_name(1), &DeleteParams::default()).await.unwrap();
    let again = world.upgrade("one", "aaa").await.unwrap();
    assert_eq!((again.revision, again.state), (1, ReleaseState::Deployed));
    let now = world.api::<Secret>().await.get("one").await.unwrap().metadata.uid;
    assert_eq!(now, made, "what the killed run made is adopted");
}

#[rstest]
#[tokio::test]
async fn somebodys_hand_edit_is_overruled(#[values("helm", "helm3")] label: &str) {
    let Some(world) = World::new("edited", label).await else { return };
    world.upgrade("one", "aaa").await.unwrap();
    let maps = world.api::<ConfigMap>().await;
    let edit = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"greeting": "edited", "own": "kept"}});
    maps.patch("one", &PatchParams::apply("somebody").force(), &Patch::Apply(edit)).await.unwrap();
    world.upgrade("one", "aaa").await.unwrap();
    assert_eq!(world.greeting().await, "one");
    assert_eq!(maps.get("one").await.unwrap().data.unwrap()["own"], "kept");
}

#[rstest]
#[tokio::test]
async fn an_unchanged_upgrade_writes_no_object_of_the_chart(#[values("helm", "helm3")] label: &str) {
    let Some(world) = World::new("same", label).await else { return };
    world.upgrade("one", "aaa").await.unwrap();
    let before = world.api::<ConfigMap>().await.get("one").await.unwrap().metadata.resource_version;
    let secret = world.api::<Secret>().await.get("one").await.unwrap().metadata.resource_version;
    world.upgrade("one", "aaa").await.unwrap();
    assert_eq!(world.api::<ConfigMap>().await.get("one").await.unwrap().metadata.resource_version, before);
    assert_eq!(world.api::<Secret>().await.get("one").await.unwrap().metadata.resource_version, secret);
}
