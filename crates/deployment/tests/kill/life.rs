//! The life of a service, under operators that live or die.

use std::{collections::BTreeMap, path::PathBuf};

use k8s_openapi::api::{
    apps::v1::Deployment,
    batch::v1::{CronJob, Job},
    core::v1::{ConfigMap, PersistentVolumeClaim, Secret, Service, ServiceAccount},
};
use kupenstack_api::cluster::Keystone;
use kupenstack_core::conditions;
use kupenstack_testkit::tap::{Point, Sentence, without_generated};

use crate::{common::world::World, scenario::Scenario};

pub(crate) struct Life {
    pub(crate) world: World,
}

/// What a scenario leaves, as far as it must not depend on deaths.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Trace {
    /// Objects in the namespace, without generated parts of names.
    objects: Vec<String>,
    /// Runs of each job, up to now.
    runs: BTreeMap<String, usize>,
    /// How often a job was run for one and the same plan, at most.
    most: Option<usize>,
    /// Pod templates of each workload, and pods that came to serve, up to now.
    rollouts: [usize; 2],
    /// The newest record of the release.
    record: Option<String>,
    /// Status and reason of the conditions.
    conditions: BTreeMap<String, [String; 2]>,
}

impl Life {
    /// A namespace in which all that Keystone needs is said to be there.
    pub(crate) async fn begin(name: &str, charts: PathBuf) -> Self {
        Self::of(World::new(name, charts, &["keystone"]).await).await
    }

    pub(crate) async fn of(world: World) -> Self {
        world.pretend_ready("MariaDB").await;
        world.pretend_ready("Memcached").await;
        Self { world }
    }

    /// One scenario. Operators die at the points that `fatal` says; the next one is started at once.
    pub(crate) async fn go_through(
        &self,
        scenario: Scenario,
        fatal: impl FnMut(&Point) -> Sentence + Clone + Send + 'static,
    ) -> Trace {
        scenario.declare(&self.world).await;
        loop {
            self.world.tap.arm(fatal.clone());
            let operator = self.world.operator();
            let settled = async {
                scenario.takes_effect(&self.world).await;
                // what comes after the last word: events, and a pass that finds nothing to do
                operator.rests().await;
            };
            tokio::select! {
                biased;
                () = self.world.tap.condemned() => {
                    operator.kill().await;
                    continue;
                }
                () = settled => {}
            }
            // who is condemned between the last look and here would wait for answers for ever
            if !self.world.tap.spare() {
                operator.kill().await;
                continue;
            }
            operator.stop().await;
            self.world.tap.open();
            return self.trace().await;
        }
    }

    async fn trace(&self) -> Trace {
        let world = &self.world;
        let ledger = world.player.ledger();
        let mut copies = world.names::<Secret>("kupenstack.io/plan").await;
        copies.extend(world.names::<ConfigMap>("kupenstack.io/plan").await);
        assert!(copies.is_empty(), "what jobs mounted is left: {copies:?}");
        let mut objects = Vec::new();
        objects.extend(kinds::<Secret>(world, "owner!=helm").await);
        objects.extend(kinds::<ConfigMap>(world, "").await);
        objects.extend(kinds::<Deployment>(world, "").await);
        objects.extend(kinds::<Service>(world, "").await);
        objects.extend(kinds::<ServiceAccount>(world, "").await);
        objects.extend(kinds::<PersistentVolumeClaim>(world, "").await);
        objects.extend(kinds::<Job>(world, "").await);
        objects.extend(kinds::<CronJob>(world, "").await);
        objects.sort();
        Trace {
            objects,
            runs: ledger.runs().into_iter().fold(BTreeMap::new(), |mut all, ((job, _), runs)| {
                *all.entry(job).or_default() += runs;
                all
            }),
            most: ledger.runs().into_iter().filter(|((_, plan), _)| !plan.is_empty()).map(|(_, runs)| runs).max(),
            rollouts: [ledger.rollouts("keystone-api"), ledger.pods("keystone-api")],
            record: world.records("keystone").await.pop(),
            conditions: self.conditions().await,
        }
    }

    async fn conditions(&self) -> BTreeMap<String, [String; 2]> {
        let keystone = self.world.api::<Keystone>().get_opt("keystone").await.unwrap();
        let status = keystone.and_then(|k| k.status).unwrap_or_default();
        if conditions::find(&status.conditions, conditions::READY).is_some_and(|c| c.status == "True") {
            assert_eq!(status.revision, self.newest_revision().await, "status tells another revision");
        }
        status.conditions.into_iter().map(|c| (c.type_, [c.status, c.reason])).collect()
    }

    async fn newest_revision(&self) -> Option<i64> {
        let names = self.world.names::<Secret>("owner=helm,name=keystone").await;
        names.iter().filter_map(|name| name.rsplit_once(".v")?.1.parse().ok()).max()
    }
}

async fn kinds<K>(world: &World, labels: &str) -> Vec<String>
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let names = world.names::<K>(labels).await;
    names.iter().map(|name| format!("{} {}", K::kind(&()), without_generated(name))).collect()
}
