//! Where lives take place: a namespace, a cloud, and operators that see nothing else.
//!
//! Each stage has a cloud and a tap of its own, so that many lives go on at the same time without meeting each other's
//! requests or faults. Of the cluster an operator sees what is named like its stage: the tap leads its lists and watches
//! to one namespace, or to one object where they are not of a namespace.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::{
    core::v1::{Namespace, Secret},
    events::v1::Event,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use kupenstack_api::resources::PROJECT_ID;
use kupenstack_testkit::{
    sim::{Sim, SimOptions},
    tap::{Route, Tap, TapOptions},
};
use serde_json::{Value, json};

use crate::{
    check::Census,
    common::{
        cluster::{ADMIN_SECRET, CLOUD, Cluster},
        operator::Operator,
    },
    patience::{answered, appears, attempt},
    said::{self, Said},
};

/// As in real life: a list that is due now and then is no part of a life, and would be taken for one if it came often. What an
/// old answer has hidden is seen that late.
const OBSERVED: Duration = Duration::from_mins(1);
/// What comes after a last request comes sooner than this.
const QUIET: Duration = Duration::from_millis(300);
/// Kinds without a namespace of which a stage has one object.
const NAMED_LIKE_THE_STAGE: [&str; 4] = ["namespaces", "clusterimages", "externalnetworks", "flavors"];
/// Kinds without a namespace of which a stage has those with its label.
const LABELLED: [&str; 1] = ["nodes"];
/// The label that tells whose a node is.
pub(crate) const STAGE: &str = "stage";
/// Kinds without a namespace that stages share.
const SHARED: [&str; 1] = ["openstacks"];

/// What a life has around it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Surroundings {
    /// How late the operator hears of changes.
    pub(crate) lag: Duration,
    /// How many operators take themselves for the only one.
    pub(crate) operators: usize,
    /// Whether the API server goes away now and then.
    pub(crate) outages: bool,
    /// The controllers that an operator has; all, when none is named. What others ask at their start comes in their own
    /// kinds' lives, and would take most of the time.
    pub(crate) controllers: &'static [&'static str],
}

impl Surroundings {
    /// Whether something may be set right only after all has come to rest once.
    pub(crate) fn are_restless(&self) -> bool {
        self.operators > 1 || self.outages
    }
}

impl Default for Surroundings {
    fn default() -> Self {
        Self { lag: Duration::ZERO, operators: 1, outages: false, controllers: &[] }
    }
}

pub(crate) struct Stage {
    pub(crate) cluster: &'static Cluster,
    pub(crate) client: Client,
    /// Name of the namespace, and of every object that is in none.
    pub(crate) name: String,
    pub(crate) sim: Sim,
    pub(crate) tap: Arc<Tap>,
    pub(crate) surroundings: Surroundings,
    /// What is said of objects that are in no namespace, of all stages.
    said: Said,
    folder: tempfile::TempDir,
}

impl Stage {
    /// A stage of a number of its own. Stages share a client: each connection of another one costs a handshake.
    pub(crate) async fn new(
        cluster: &'static Cluster,
        client: &Client,
        prefix: &str,
        surroundings: Surroundings,
    ) -> Self {
        let name = format!("{}-{}", prefix.to_lowercase(), crate::common::cluster::number());
        Self::named(cluster, client, name, surroundings).await
    }

    pub(crate) async fn named(
        cluster: &'static Cluster,
        client: &Client,
        name: String,
        surroundings: Surroundings,
    ) -> Self {
        let client = client.clone();
        let sim = Sim::start(SimOptions::default());
        // the API server may be dying for another stage
        let secret = admin_secret(&name);
        attempt(|| cluster.give_admin(&client, &secret, &sim)).await;
        let options = TapOptions { route: Some(route(&name)), watch_lag: surroundings.lag };
        let tap = Tap::start_with(client.clone(), options).await;
        let (said, folder) = (said::of_all_stages(cluster).await, tempfile::tempdir().unwrap());
        Self { cluster, client, name, sim, tap, surroundings, said, folder }
    }

    /// Operators that remember nothing, as many as there are to be.
    pub(crate) fn operators(&self) -> Vec<Operator> {
        let folder = |index: usize| self.folder.path().join(index.to_string());
        let start = |index| {
            Operator::start_with(self.tap.config(), folder(index), self.surroundings.controllers, |settings, _| {
                settings.observe_every = OBSERVED;
            })
        };
        (0..self.surroundings.operators).map(start).collect()
    }

    /// Removes what other stages would have to look past. There may be nothing else in the operator's namespace.
    pub(crate) async fn end(self) {
        let secrets = self.secrets();
        for name in self.operators_secrets() {
            attempt(|| async { secrets.delete(&name, &DeleteParams::default()).await.map(drop) }).await;
        }
        let (own, all) = (format!("-{}", self.name), ListParams::default());
        let left = answered(|| secrets.list_metadata(&all)).await;
        let left: Vec<_> = left.iter().map(ResourceExt::name_any).filter(|name| name.ends_with(&own)).collect();
        assert!(left.is_empty(), "left: {left:?}");
    }

    /// Names of the Secrets about the stage that are for the operator only.
    fn operators_secrets(&self) -> [String; 2] {
        [admin_secret(&self.name), format!("project-{}", self.name)]
    }

    pub(crate) fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), CLOUD)
    }

    pub(crate) fn namespaces(&self) -> Api<Namespace> {
        Api::all(self.client.clone())
    }

    /// Makes the namespace, and waits for its project.
    pub(crate) async fn has_a_project(&self) {
        let namespace = serde_json::from_value(json!({"metadata": {"name": self.name}})).unwrap();
        attempt(|| async { self.namespaces().create(&PostParams::default(), &namespace).await.map(drop) }).await;
        appears(self.namespaces(), &self.name, |namespace| namespace.annotations().contains_key(PROJECT_ID)).await;
    }

    /// Secrets that the namespace's own people read.
    pub(crate) fn own_secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// Annotates the namespace.
    pub(crate) async fn annotate(&self, annotations: Value) {
        let (api, params) = (self.namespaces(), PatchParams::default());
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        attempt(|| async { api.patch(&self.name, &params, &patch).await.map(drop) }).await;
    }

    /// Has the namespace looked at without a change.
    pub(crate) async fn nudge(&self) {
        self.annotate(json!({"test/nudge": crate::common::cluster::number().to_string()})).await;
    }

    /// Waits until nothing was asked for a while.
    pub(crate) async fn rests(&self) {
        let asked = || (self.tap.requests(), self.sim.cloud().journal.total());
        let mut seen = None;
        while seen != Some(asked()) {
            seen = Some(asked());
            tokio::time::sleep(QUIET + self.surroundings.lag).await;
        }
    }

    /// Everything that there is, in the cloud and of the operator's own.
    pub(crate) async fn census(&self) -> Census {
        let (of_cloud, of_users, all) = (self.secrets(), self.own_secrets(), ListParams::default());
        let mut secrets = answered(|| of_users.list_metadata(&all)).await.items.len();
        for name in self.operators_secrets() {
            secrets += usize::from(answered(|| of_cloud.get_metadata_opt(&name)).await.is_some());
        }
        let folders = std::fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let files = folders.map(|folder| std::fs::read_dir(folder).unwrap().count()).sum();
        let cloud = self.sim.cloud();
        // Neutron makes one called default by itself, and ports for what is its own
        let (groups, ports) = (cloud.neutron.all("security-groups"), cloud.neutron.all("ports"));
        let interfaces =
            cloud.neutron.all("ports").filter(|port| port.text("device_owner") == "network:router_interface");
        let keystone = |collection| cloud.keystone.all(collection).count();
        Census::from([
            ("images", cloud.glance.len()),
            ("flavors", cloud.nova.flavors().count()),
            ("aggregates", cloud.nova.aggregates().count()),
            ("servers", cloud.nova.servers().count()),
            ("server groups", cloud.nova.server_groups().count()),
            ("key pairs", cloud.nova.key_pairs().count()),
            ("networks", cloud.neutron.all("networks").count()),
            ("ports", ports.filter(|port| !port.text("device_owner").starts_with("network:")).count()),
            ("subnets", cloud.neutron.all("subnets").count()),
            ("floating IPs", cloud.neutron.all("floatingips").count()),
            ("routers", cloud.neutron.all("routers").count()),
            ("router interfaces", interfaces.count()),
            ("security groups", groups.filter(|group| group.text("name") != "default").count()),
            ("projects", keystone("projects")),
            ("users", keystone("users")),
            ("application credentials", keystone("application_credentials")),
            ("limits", keystone("limits")),
            ("grants", cloud.keystone.grants().count()),
            ("Secrets", secrets),
            ("files", files),
        ])
    }

    /// Events about anything on this stage.
    pub(crate) async fn events(&self) -> Vec<Event> {
        let (all, here) = (ListParams::default(), Api::<Event>::namespaced(self.client.clone(), &self.name));
        let mut found = answered(|| here.list(&all)).await.items;
        let elsewhere = self.said.all().into_iter().filter(|event| self.is_about_it(event));
        found.extend(elsewhere.map(Arc::unwrap_or_clone));
        found
    }

    fn is_about_it(&self, event: &Event) -> bool {
        event.regarding.as_ref().is_some_and(|object| object.name.as_ref() == Some(&self.name))
    }
}

fn admin_secret(stage: &str) -> String {
    format!("{ADMIN_SECRET}-{stage}")
}

/// Leads an operator to its stage.
fn route(stage: &str) -> Route {
    let stage = stage.to_owned();
    Box::new(move |sent| {
        let (path, query) = sent.split_once('?').unwrap_or((sent, ""));
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let version = if segments.first() == Some(&"apis") { 3 } else { 2 };
        let Some((version, rest)) = segments.split_at_checked(version) else { return sent.to_owned() };
        let version = version.join("/");
        match rest {
            [kind] if SHARED.contains(kind) => sent.to_owned(),
            [kind] if NAMED_LIKE_THE_STAGE.contains(kind) => {
                format!("{path}?{query}&fieldSelector=metadata.name%3D{stage}")
            }
            [kind] if LABELLED.contains(kind) => format!("{path}?{query}&labelSelector={STAGE}%3D{stage}"),
            [kind] => format!("/{version}/namespaces/{stage}/{kind}?{query}"),
            ["namespaces", CLOUD, "secrets", ADMIN_SECRET] => {
                format!("/{version}/namespaces/{CLOUD}/secrets/{}?{query}", admin_secret(&stage))
            }
            _ => sent.to_owned(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_sees_its_stage_only() {
        let route = route("image-7");
        for (sent, reached) in [
            ("/api/v1/namespaces?limit=1", "/api/v1/namespaces?limit=1&fieldSelector=metadata.name%3Dimage-7"),
            ("/api/v1/nodes?limit=1", "/api/v1/nodes?limit=1&labelSelector=stage%3Dimage-7"),
            ("/apis/kupenstack.io/v1/images?watch=true", "/apis/kupenstack.io/v1/namespaces/image-7/images?watch=true"),
            ("/apis/cluster.kupenstack.io/v1/openstacks", "/apis/cluster.kupenstack.io/v1/openstacks"),
            (
                "/api/v1/namespaces/cloud/secrets/openstack-admin",
                "/api/v1/namespaces/cloud/secrets/openstack-admin-image-7?",
            ),
            ("/api/v1/namespaces/image-7", "/api/v1/namespaces/image-7"),
        ] {
            assert_eq!(route(sent), reached);
        }
    }
}
