//! `OpenStack`: creates the service objects and sums them up.

use std::{collections::BTreeMap, sync::Arc};

use futures::{FutureExt, future::BoxFuture};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ApiResource, DynamicObject, Patch},
};
use kupenstack_api::{
    FINALIZER, HasConditions,
    cluster::{DeletionPolicy, GROUP, OpenStack, OpenStackStatus, ServiceSummary},
};
use kupenstack_core::{Outcome, conditions, hash, merge, reason};
use kupenstack_runtime::{Context, Controller, Events, Failure, ObjectRef, Reconcile, apply};
use serde_json::{Value, json};

use crate::{
    Settings,
    board::{Board, Standing, Version},
    removal::delete,
    service::{Format, Kind},
    services,
};

/// Annotation on a service's object: digest of what the cloud's spec set of it when that was applied last.
const DECLARED: &str = "kupenstack.io/declared";

/// The controller of the cloud.
pub(crate) fn controller(
    context: &Context,
    settings: &Settings,
    board: Arc<Board>,
) -> (&'static str, BoxFuture<'static, ()>) {
    let controller = Controller::<OpenStack>::new("openstack", context)
        .concurrency(1)
        .trigger(board.changes(ObjectRef::new("default")));
    let reconciler = Cloud {
        client: context.client.clone(),
        namespace: settings.cloud_namespace.clone(),
        board,
        events: Events::new(context.client.clone()),
    };
    ("openstack", controller.run(Arc::new(reconciler), context.clone()).boxed())
}

/// What the services' objects are now.
type Versions = BTreeMap<Kind, Version>;
/// How services stand that have an object.
type Standings = BTreeMap<Kind, Standing>;

struct Cloud {
    client: Client,
    namespace: String,
    board: Arc<Board>,
    events: Events,
}

impl Reconcile<OpenStack> for Cloud {
    fn reconcile(&self, cloud: Arc<OpenStack>) -> BoxFuture<'_, Result<Outcome, Failure>> {
        async move {
            self.board.ready().await?;
            let api: Api<OpenStack> = Api::all(self.client.clone());
            let Some(cloud) = api.get_opt(&cloud.name_any()).await? else { return Ok(Outcome::ready("gone")) };
            if cloud.meta().deletion_timestamp.is_none() && !apply::has_finalizer(&cloud, FINALIZER) {
                apply::add_finalizer(&api, &cloud, FINALIZER).await?;
                // nothing is made in this pass: the object may have been deleted before the finalizer could hold it
                return Ok(Outcome::waiting("Starting", "looked at again at once, with its finalizer"));
            }
            let (outcome, standings) = if cloud.meta().deletion_timestamp.is_some() {
                (self.remove(&api, &cloud).await?, self.standings(&Versions::new()))
            } else if let Some(refused) = self.refusal(&cloud) {
                (refused, self.standings(&Versions::new()))
            } else {
                let standings = self.standings(&self.apply(&cloud).await?);
                (judge(&cloud, &standings), standings)
            };
            self.report(&api, &cloud, &standings, &outcome).await?;
            Ok(outcome)
        }
        .boxed()
    }
}

impl Cloud {
    /// Why nothing can be made of the cloud's spec.
    fn refusal(&self, cloud: &OpenStack) -> Option<Outcome> {
        if let Some(message) = out_of_reach(cloud, &self.namespace) {
            return Some(Outcome::blocked(reason::INVALID_SPEC, message));
        }
        let unknown = crate::catalogue::Release::find(&cloud.spec.release).err();
        unknown.map(|message| Outcome::blocked("UnknownRelease", message))
    }

    /// Makes the services' objects as the cloud's spec has them, and says what these are now.
    async fn apply(&self, cloud: &OpenStack) -> Result<Versions, Failure> {
        let mut versions = Versions::new();
        for kind in Kind::ALL {
            if enabled(kind, cloud) {
                versions.insert(kind, self.apply_service(kind, cloud).await?);
            } else {
                self.switch_off(kind, cloud).await?;
            }
        }
        Ok(versions)
    }

    /// How every service stands. What was said of an earlier version of its object says nothing.
    fn standings(&self, versions: &Versions) -> Standings {
        let standing = |kind: Kind| {
            let standing = self.board.standing(kind)?;
            let is_old = versions.get(&kind).is_some_and(|newest| standing.version.is_before(newest));
            Some(if is_old { standing.changed_just_now() } else { standing })
        };
        Kind::ALL.into_iter().filter_map(|kind| Some((kind, standing(kind)?))).collect()
    }

    /// Applies the fields of a service's object that the cloud's spec sets, unless they are so already. What the object
    /// is then.
    async fn apply_service(&self, kind: Kind, cloud: &OpenStack) -> Result<Version, Failure> {
        let api = self.service_api(kind);
        let existing = api.get_opt(kind.object()).await?;
        let paused = existing.as_ref().is_some_and(|e| e.data["spec"]["paused"] == true);
        match existing {
            Some(existing) if paused || existing.meta().deletion_timestamp.is_some() => {
                Ok(Version::of(&existing.metadata))
            }
            existing => self.write_service(kind, cloud, existing.as_ref()).await,
        }
    }

    async fn write_service(
        &self,
        kind: Kind,
        cloud: &OpenStack,
        existing: Option<&DynamicObject>,
    ) -> Result<Version, Failure> {
        let spec = declared(kind, cloud);
        let digest = hash::of(&spec);
        // that all is so does not say that nothing more is: a field that was taken back is seen by the digest
        let applied = existing.filter(|e| e.annotations().get(DECLARED) == Some(&digest));
        if let Some(applied) = applied.filter(|e| contains(&e.data["spec"], &spec)) {
            return Ok(Version::of(&applied.metadata));
        }
        let object = json!({
            "apiVersion": format!("{GROUP}/v1"),
            "kind": kind.name(),
            "metadata": {
                "name": kind.object(),
                "ownerReferences": [cloud.controller_owner_ref(&())],
                "annotations": {DECLARED: digest},
            },
            "spec": spec,
        });
        let written = self.service_api(kind).patch(kind.object(), &apply::params(), &Patch::Apply(&object)).await?;
        Ok(Version::of(&written.metadata))
    }

    /// Deletes the object of a service that the cloud is not to have any more. It waits by itself for those that need it.
    async fn switch_off(&self, kind: Kind, cloud: &OpenStack) -> Result<(), Failure> {
        let api = self.service_api(kind);
        let Some(service) = api.get_opt(kind.object()).await? else { return Ok(()) };
        let paused = service.data["spec"]["paused"] == true;
        if !paused && is_ours(&service, cloud) && service.meta().deletion_timestamp.is_none() {
            delete(&api, kind.object()).await?;
        }
        Ok(())
    }

    /// Deletes the service objects; each goes when those that need it are gone.
    async fn remove(&self, api: &Api<OpenStack>, cloud: &OpenStack) -> Result<Outcome, Failure> {
        let mut left = Vec::new();
        for kind in Kind::ALL {
            let services = self.service_api(kind);
            let Some(service) = services.get_opt(kind.object()).await? else { continue };
            if !is_ours(&service, cloud) {
                continue;
            }
            if service.meta().deletion_timestamp.is_none() {
                // what the spec says last about data and release holds, though nobody may have had the time to apply it
                self.write_service(kind, cloud, Some(&service)).await?;
                delete(&services, kind.object()).await?;
            }
            left.push(kind.name());
        }
        if left.is_empty() {
            apply::remove_finalizer(api, cloud, FINALIZER).await?;
            return Ok(Outcome::ready("removed"));
        }
        Ok(Outcome::waiting(reason::DELETING, format!("waits until {} are gone", left.join(", "))))
    }

    async fn report(
        &self,
        api: &Api<OpenStack>,
        cloud: &OpenStack,
        standings: &Standings,
        outcome: &Outcome,
    ) -> Result<(), Failure> {
        if cloud.meta().deletion_timestamp.is_some() && outcome.is_done() {
            return Ok(());
        }
        let old = cloud.status.clone().unwrap_or_default();
        let cluster_id = match &old.cluster_id {
            Some(id) => Some(id.clone()),
            None => self.cluster_id().await?,
        };
        let services: Vec<_> = Kind::ALL.into_iter().filter_map(|kind| summary(kind, cloud, standings)).collect();
        let wanted: Vec<_> = Kind::ALL.into_iter().filter(|kind| enabled(*kind, cloud)).collect();
        let ready = wanted.iter().filter(|kind| standings.get(kind).is_some_and(|s| s.ready)).count();
        let generation = cloud.meta().generation;
        let status = OpenStackStatus {
            conditions: conditions::render(outcome, generation, &old.conditions, Timestamp::now()),
            observed_generation: generation,
            cluster_id,
            ready: Some(format!("{ready}/{}", wanted.len())),
            services,
        };
        apply::status(api, cloud, cloud.status.as_ref(), &status).await?;
        self.events.transition(&cloud.object_ref(&()), cloud.conditions(), outcome).await;
        Ok(())
    }

    /// The cluster's identity: the UID of a namespace that lives as long as the cluster.
    async fn cluster_id(&self) -> Result<Option<String>, Failure> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        Ok(namespaces.get_metadata("kube-system").await?.metadata.uid)
    }

    fn service_api(&self, kind: Kind) -> Api<DynamicObject> {
        let resource = ApiResource {
            group: GROUP.to_owned(),
            version: "v1".to_owned(),
            api_version: format!("{GROUP}/v1"),
            kind: kind.name().to_owned(),
            plural: format!("{}s", kind.object()),
        };
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }
}

/// What the standings of its services come to for the cloud.
fn judge(cloud: &OpenStack, standings: &Standings) -> Outcome {
    let wanted = Kind::ALL.into_iter().filter(|kind| enabled(*kind, cloud));
    let mut missing = wanted.filter_map(|kind| match standings.get(&kind) {
        Some(standing) if standing.ready => None,
        other => Some((kind, other)),
    });
    match missing.next() {
        None => Outcome::ready(format!("release {} runs and answers", cloud.spec.release)),
        Some((kind, Some(Standing { stalled: true, message, .. }))) => {
            Outcome::blocked("ServiceStalled", format!("{}: {message}", kind.name()))
        }
        Some((kind, standing)) => {
            let why = standing.map_or("being created", |s| &s.message);
            Outcome::waiting("ServicesNotReady", format!("{}: {why}", kind.name()))
                .within(std::time::Duration::from_mins(5))
        }
    }
}

fn summary(kind: Kind, cloud: &OpenStack, standings: &Standings) -> Option<ServiceSummary> {
    let summary = ServiceSummary { kind: kind.name().to_owned(), ..ServiceSummary::default() };
    Some(match standings.get(&kind) {
        Some(s) => ServiceSummary {
            ready: s.ready,
            available: s.available,
            reason: s.reason.clone(),
            message: s.message.clone(),
            public_endpoints: s.public_endpoints.clone(),
            ..summary
        },
        // a service that nobody asked for is no news
        None if !enabled(kind, cloud) && services::of(kind).by_default() => ServiceSummary {
            reason: "Disabled".to_owned(),
            message: format!("spec.services.{}.enabled is false", kind.object()),
            ..summary
        },
        None => return None,
    })
}

/// Why the operator can't work where the cloud is to be.
pub(crate) fn out_of_reach(cloud: &OpenStack, namespace: &str) -> Option<String> {
    let wanted = &cloud.spec.namespace;
    (wanted != namespace).then(|| {
        format!(
            "spec.namespace: this operator may only work in namespace {namespace}; use that, or install the operator with \
             cloud.namespace={wanted}"
        )
    })
}

/// What the cloud's spec sets of a service's spec.
pub(crate) fn declared(kind: Kind, cloud: &OpenStack) -> Value {
    let spec = &cloud.spec;
    let mut common = json!({"release": spec.release, "region": spec.region});
    if let Some(images) = &spec.images {
        common["imageRegistry"] = json!(images.registry);
    }
    if services::of(kind).format() == Format::Oslo {
        if !spec.common.conf.is_empty() {
            common["commonConf"] = json!(spec.common.conf);
        }
        if !spec.common.conf_from.is_empty() {
            common["commonConfFrom"] = json!(spec.common.conf_from);
        }
    }
    if spec.deletion_policy != DeletionPolicy::default() {
        common["deletionPolicy"] = json!(spec.deletion_policy);
    }
    if spec.adopt {
        common["adopt"] = json!(true);
    }
    if let (Some(expose), false) = (&spec.networking.expose, services::of(kind).doors().is_empty()) {
        common["expose"] = json!(expose);
    }
    if !spec.tolerations.is_empty() {
        common["tolerations"] = json!(spec.tolerations);
    }
    let mut own = services::of(kind).declared_by(spec);
    if let Some(own) = own.as_object_mut() {
        own.remove(ENABLED);
        if services::of(kind).is_on_compute_nodes() {
            // one label in place of another, not both
            if !spec.compute_nodes.is_empty() {
                own.entry("computeNodes").or_insert_with(|| json!(spec.compute_nodes));
            }
            if !spec.compute_tolerations.is_empty() {
                own.entry("computeTolerations").or_insert_with(|| json!(spec.compute_tolerations));
            }
        }
    }
    if let (Some(storage), true) = (&spec.storage, services::of(kind).has_volume()) {
        // the storage's fields are those of a volume that are not its size
        own = merge::layers([json!({"volume": storage}), own]);
    }
    merge::layers([common, own])
}

/// Field of a service in the cloud's spec that says whether there is to be an object of it at all.
const ENABLED: &str = "enabled";

/// Whether the cloud is to have the service.
pub(crate) fn enabled(kind: Kind, cloud: &OpenStack) -> bool {
    let service = services::of(kind);
    service.declared_by(&cloud.spec)[ENABLED].as_bool().unwrap_or(service.by_default())
}

/// Whether the cloud made the service's object.
fn is_ours(service: &DynamicObject, cloud: &OpenStack) -> bool {
    service.owner_references().iter().any(|o| Some(&o.uid) == cloud.meta().uid.as_ref())
}

/// Whether everything in `wanted` is so in `actual`.
fn contains(actual: &Value, wanted: &Value) -> bool {
    match (actual, wanted) {
        (Value::Object(actual), Value::Object(wanted)) => {
            wanted.iter().all(|(key, value)| actual.get(key).is_some_and(|a| contains(a, value)))
        }
        (actual, wanted) => actual == wanted,
    }
}

#[cfg(test)]
mod tests;
