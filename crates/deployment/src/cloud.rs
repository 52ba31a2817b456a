//! `OpenStack`: creates the service objects and sums them up.

use std::sync::Arc;

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
    board::{Board, Standing},
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
            let outcome = if cloud.meta().deletion_timestamp.is_some() {
                self.remove(&api, &cloud).await?
            } else {
                self.converge(&cloud).await?
            };
            self.report(&api, &cloud, &outcome).await?;
            Ok(outcome)
        }
        .boxed()
    }
}

impl Cloud {
    async fn converge(&self, cloud: &OpenStack) -> Result<Outcome, Failure> {
        if let Some(message) = out_of_reach(cloud, &self.namespace) {
            return Ok(Outcome::blocked(reason::INVALID_SPEC, message));
        }
        if let Err(message) = crate::catalogue::Release::find(&cloud.spec.release) {
            return Ok(Outcome::blocked("UnknownRelease", message));
        }
        let mut changed = Vec::new();
        for kind in Kind::ALL {
            if !enabled(kind, cloud) {
                self.switch_off(kind, cloud).await?;
            } else if self.apply_service(kind, cloud).await? {
                changed.push(kind);
            }
        }
        let wanted = Kind::ALL.into_iter().filter(|kind| enabled(*kind, cloud));
        let mut missing = wanted.filter_map(|kind| match self.board.standing(kind) {
            // how it stood before it was changed says nothing
            _ if changed.contains(&kind) => Some((kind, None)),
            Some(standing) if standing.ready => None,
            other => Some((kind, other)),
        });
        Ok(match missing.next() {
            None => Outcome::ready(format!("release {} runs and answers", cloud.spec.release)),
            Some((kind, Some(Standing { stalled: true, message, .. }))) => {
                Outcome::blocked("ServiceStalled", format!("{}: {message}", kind.name()))
            }
            Some((kind, standing)) => {
                let why = standing.map_or("its object was written just now".to_owned(), |s| s.message);
                Outcome::waiting("ServicesNotReady", format!("{}: {why}", kind.name()))
                    .within(std::time::Duration::from_mins(5))
            }
        })
    }

    /// Applies the fields of a service's object that the cloud's spec sets, unless they are so already. Whether the object's
    /// spec is another one now.
    async fn apply_service(&self, kind: Kind, cloud: &OpenStack) -> Result<bool, Failure> {
        let api = self.service_api(kind);
        let existing = api.get_opt(kind.object()).await?;
        let paused = existing.as_ref().is_some_and(|e| e.data["spec"]["paused"] == true);
        if paused || existing.as_ref().is_some_and(|e| e.meta().deletion_timestamp.is_some()) {
            return Ok(false);
        }
        self.write_service(kind, cloud, existing.as_ref()).await
    }

    async fn write_service(
        &self,
        kind: Kind,
        cloud: &OpenStack,
        existing: Option<&DynamicObject>,
    ) -> Result<bool, Failure> {
        let spec = declared(kind, cloud);
        let digest = hash::of(&spec);
        // that all is so does not say that nothing more is: a field that was taken back is seen by the digest
        let applied = existing.is_some_and(|e| e.annotations().get(DECLARED) == Some(&digest));
        if applied && existing.is_some_and(|e| contains(&e.data["spec"], &spec)) {
            return Ok(false);
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
        Ok(existing.is_none_or(|e| e.meta().generation != written.meta().generation))
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

    async fn report(&self, api: &Api<OpenStack>, cloud: &OpenStack, outcome: &Outcome) -> Result<(), Failure> {
        if cloud.meta().deletion_timestamp.is_some() && outcome.is_done() {
            return Ok(());
        }
        let old = cloud.status.clone().unwrap_or_default();
        let cluster_id = match &old.cluster_id {
            Some(id) => Some(id.clone()),
            None => self.cluster_id().await?,
        };
        let services: Vec<_> = Kind::ALL.into_iter().filter_map(|kind| self.summary(kind, cloud)).collect();
        let wanted: Vec<_> = Kind::ALL.into_iter().filter(|kind| enabled(*kind, cloud)).collect();
        let ready = wanted.iter().filter(|kind| self.board.standing(**kind).is_some_and(|s| s.ready)).count();
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

    fn summary(&self, kind: Kind, cloud: &OpenStack) -> Option<ServiceSummary> {
        let standing = match self.board.standing(kind) {
            // a service that nobody asked for is no news
            None if !enabled(kind, cloud) && services::of(kind).by_default() => Standing {
                ready: false,
                available: false,
                stalled: false,
                reason: "Disabled".to_owned(),
                message: format!("spec.services.{}.enabled is false", kind.object()),
            },
            standing => standing?,
        };
        Some(ServiceSummary {
            kind: kind.name().to_owned(),
            ready: standing.ready,
            available: standing.available,
            reason: standing.reason,
            message: standing.message,
        })
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
    let mut own = services::of(kind).declared_by(spec);
    if let Some(own) = own.as_object_mut() {
        own.remove(ENABLED);
    }
    if !spec.compute_nodes.is_empty() && services::of(kind).is_on_compute_nodes() {
        // one label in place of another, not both
        if let Some(own) = own.as_object_mut() {
            own.entry("computeNodes").or_insert_with(|| json!(spec.compute_nodes));
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
mod tests {
    use super::*;

    fn cloud(spec: Value) -> OpenStack {
        let whole = merge::layers([json!({"release": "2026.2"}), spec]);
        OpenStack::new("default", serde_json::from_value(whole).unwrap())
    }

    #[test]
    fn options_for_all_services_reach_those_that_oslo_config_reads() {
        let conf = json!({"DEFAULT": {"debug": true}});
        let from = json!([{"configMapRef": {"name": "all"}}]);
        let cloud = cloud(json!({"common": {"conf": conf, "confFrom": from}}));
        for kind in [Kind::Keystone, Kind::Glance, Kind::Placement, Kind::Neutron, Kind::Nova] {
            let spec = declared(kind, &cloud);
            assert_eq!((&spec["commonConf"], &spec["commonConfFrom"]), (&conf, &from));
        }
        for kind in [Kind::MariaDB, Kind::Memcached, Kind::RabbitMQ, Kind::Ovn, Kind::Libvirt] {
            assert_eq!(declared(kind, &cloud), json!({"release": "2026.2", "region": "default"}));
        }
    }

    #[test]
    fn snap_openstack_2159042_what_one_service_sets_changes_no_other() {
        let common = json!({"common": {"conf": {"DEFAULT": {"debug": true}}}});
        let before = cloud(common.clone());
        let glance = json!({"services": {"glance": {"conf": {"DEFAULT": {"debug": false}}, "replicas": {"api": 0}}}});
        let after = cloud(merge::layers([common, glance]));
        for kind in Kind::ALL {
            let same = declared(kind, &before) == declared(kind, &after);
            assert_eq!(same, kind != Kind::Glance, "{}", kind.name());
        }
    }

    #[test]
    fn vms_are_not_part_of_a_cloud_unless_asked_for() {
        let wanted = |cloud: &OpenStack| {
            Kind::ALL.map(|k| enabled(k, cloud).then(|| k.object())).into_iter().flatten().collect::<Vec<_>>()
        };
        assert_eq!(wanted(&cloud(json!({}))), ["mariadb", "memcached", "keystone", "glance"]);
        let asked = cloud(json!({"services": {"rabbitmq": {"enabled": true}, "glance": {"enabled": false}}}));
        assert_eq!(wanted(&asked), ["mariadb", "memcached", "keystone", "rabbitmq"]);
    }

    /// The admission rules are text in the API's types, the dependencies are data here.
    #[test]
    fn admission_refuses_to_switch_off_exactly_what_others_need() {
        let crds = json!(kupenstack_api::crds::all());
        let crd = crds.as_array().unwrap().iter().find(|c| c["spec"]["names"]["kind"] == "OpenStack").unwrap();
        let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let rules = spec["properties"]["services"]["x-kubernetes-validations"].as_array().unwrap();
        let mut expected = Vec::new();
        for (needed, dependent) in Kind::ALL.iter().flat_map(|k| Kind::ALL.map(|d| (*k, d))) {
            if services::depends_on(dependent, needed) {
                let field = |kind: Kind| {
                    format!("self.?{}.?enabled.orValue({})", kind.object(), services::of(kind).by_default())
                };
                expected.push(format!("{} || !{}", field(needed), field(dependent)));
            }
        }
        let mut found: Vec<_> = rules.iter().map(|r| r["rule"].as_str().unwrap().to_owned()).collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
    }
}
