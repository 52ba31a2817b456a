//! The end of a service's object: the service is removed, or given back to those who run it by hand.

use std::time::Duration;

use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{PersistentVolumeClaim, Pod, Secret},
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions},
    core::NamespaceResourceScope,
};
use kupenstack_api::cluster::DeletionPolicy;
use kupenstack_core::{Outcome, reason};
use kupenstack_helm::{HASH_LABEL, ReleaseRef};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{
    Error, cleaning,
    collector::{self, CONFIG},
    credentials,
    engine::Engine,
    inventory::{Inventory, RELEASE_NAME},
    jobs::{self, SERVICE},
    probe::NotProven,
    record::{History, Revision},
    service::{Kind, Request, Scene, Service},
    services,
};

/// Label of the charts on everything of one release, pods and claims included.
const RELEASE: &str = "release_group";
/// Annotation of what outlives its release: data does, and configuration, which goes by its own label.
const POLICY: &str = "helm.sh/resource-policy";
/// How soon pods are looked at again that nothing which is watched tells of.
const SOON: Duration = Duration::from_secs(3);

impl Engine {
    /// Ends the service as its policies say. Not done until its pods are gone.
    pub(crate) async fn remove(&self, service: &dyn Service, request: &Request) -> Result<Outcome, Error> {
        self.board.ready().await?;
        let kind = service.kind();
        let release = ReleaseRef::new(&request.namespace, kind.object());
        let site = Site { client: &self.client, namespace: &request.namespace, kind };
        let history = History::read(&self.client, &release).await?;
        // never taken over, so not ours to end
        let by_hand = history.newest().is_some_and(Revision::is_by_hand);
        if by_hand || request.common.deletion_policy == DeletionPolicy::Retain {
            if !by_hand {
                // an interrupted run would stand in the way of whoever runs Helm next
                self.recover(&release, &history, "").await?;
            }
            site.give_back(&release, &request.owner.uid).await?;
            return Ok(Outcome::ready("its release runs on, to be used by hand"));
        }
        if let Some(dependents) = self.dependents(kind) {
            return Ok(Outcome::waiting(reason::DELETING, format!("is removed after {dependents}")));
        }
        if history.newest().is_some()
            && let Some(outcome) = self.in_use(service, request, &history).await?
        {
            return Ok(outcome);
        }
        if history.newest().is_some()
            && let Some(dirty) = cleaning::advance(&self.client, service, request).await?
        {
            let message = format!("waits until its nodes are clean: {dirty}");
            return Ok(Outcome::waiting(reason::DELETING, message).within(SOON));
        }
        site.remove_jobs().await?;
        if history.newest().is_some() {
            self.helm.uninstall(&release).await?;
        }
        cleaning::end(&self.client, service, &request.namespace).await?;
        site.remove_configuration().await?;
        site.remove_leftovers(&self.inventory).await?;
        if let Some(pods) = site.pods().await? {
            let message = format!("waits until its pods are gone: {pods}");
            // the workloads are gone already, so nothing that is watched tells of the last pod's end
            return Ok(Outcome::waiting(reason::DELETING, message).within(SOON));
        }
        let volume = request.volume.as_ref().and_then(|v| v.deletion_policy).unwrap_or(DeletionPolicy::Retain);
        if service.has_volume() && volume == DeletionPolicy::Delete {
            site.remove_claims().await?;
        }
        for kind in opens_nothing(service, volume) {
            credentials::remove(&self.client, &request.namespace, services::of(kind)).await?;
        }
        Ok(Outcome::ready("removed"))
    }

    /// Why the service can't go yet: users have something there, or nobody can tell whether they have.
    async fn in_use(
        &self,
        service: &dyn Service,
        request: &Request,
        history: &History,
    ) -> Result<Option<Outcome>, Error> {
        let secrets = credentials::of_dependencies(&self.client, &request.namespace, service).await?;
        let scene = Scene { request, secrets: &secrets, nodes: 0 };
        let proof = self.prober.prove(service.kind().object(), service.prove_unused(scene)).await;
        Ok(match proof {
            Ok(()) => None,
            Err(why @ NotProven::InUse(_)) => Some(Outcome::blocked("InUse", secrets.mask(&why.to_string()))),
            // what was never there holds nothing; a status could be lost
            Err(_) if !history.was_ever_deployed() => None,
            Err(why) => {
                let message = format!("can't tell whether it is in use: {why}");
                Some(Outcome::waiting(reason::DELETING, secrets.mask(&message)))
            }
        })
    }

    /// Names of the services that still need this one.
    fn dependents(&self, kind: Kind) -> Option<String> {
        let names: Vec<_> = Kind::ALL
            .into_iter()
            .filter(|k| self.board.standing(*k).is_some() && services::depends_on(*k, kind))
            .map(Kind::name)
            .collect();
        (!names.is_empty()).then(|| names.join(", "))
    }
}

/// The services whose credentials open nothing any more when this one is removed and its volume ends as `volume` says:
/// its own, and those of services that keep all they have in its volume. None as long as data is left.
fn opens_nothing(service: &dyn Service, volume: DeletionPolicy) -> Vec<Kind> {
    let kind = service.kind();
    let keeps_nothing = !service.has_volume() && service.dependencies().is_empty();
    if service.has_volume() && volume == DeletionPolicy::Delete {
        let guests = |k: &Kind| services::of(*k).data_is_in() == Some(kind);
        return std::iter::once(kind).chain(Kind::ALL.into_iter().filter(guests)).collect();
    }
    if keeps_nothing { vec![kind] } else { Vec::new() }
}

/// Where a service's objects are.
struct Site<'a> {
    client: &'a Client,
    namespace: &'a str,
    kind: Kind,
}

impl Site<'_> {
    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), self.namespace)
    }

    /// Selects what carries the service's name in a label.
    fn labelled(&self, label: &str) -> ListParams {
        ListParams::default().labels(&format!("{label}={}", self.kind.object()))
    }

    /// Leaves everything as it is but for what ties it to the object, or tells Helm's next user that it is ours.
    async fn give_back(&self, release: &ReleaseRef, owner: &str) -> Result<(), Error> {
        let jobs = self.api::<Job>();
        // pods wait for finished jobs by name: they may not be collected with their owner
        for job in jobs.list_metadata(&self.labelled(SERVICE)).await? {
            let others: Vec<_> = job.owner_references().iter().filter(|o| o.uid != owner).collect();
            if others.len() < job.owner_references().len() {
                let patch = json!({"metadata": {"resourceVersion": job.resource_version(), "ownerReferences": others}});
                patch_or_gone(&jobs, &job.name_any(), &patch).await?;
            }
        }
        jobs::remove_copies(self.client, self.namespace, self.kind).await?;
        // Helm copies labels from a revision to the next: one that is made by hand would pass for ours
        let secrets = self.api::<Secret>();
        let records = ListParams::default().labels(&format!("owner=helm,name={},{HASH_LABEL}", release.name));
        for record in secrets.list_metadata(&records).await? {
            let patch = json!({"metadata": {"labels": {HASH_LABEL: Value::Null}}});
            patch_or_gone(&secrets, &record.name_any(), &patch).await?;
        }
        Ok(())
    }

    /// Jobs are hooks to Helm, which it leaves behind; those of a release made by hand carry only the chart's label.
    async fn remove_jobs(&self) -> Result<(), Error> {
        let jobs = self.api::<Job>();
        for label in [SERVICE, RELEASE] {
            for job in jobs.list_metadata(&self.labelled(label)).await? {
                delete(&jobs, &job.name_any()).await?;
            }
        }
        Ok(())
    }

    /// The jobs' private copies, and what Helm keeps for pods of earlier revisions.
    async fn remove_configuration(&self) -> Result<(), Error> {
        jobs::remove_copies(self.client, self.namespace, self.kind).await?;
        let kept = format!("{CONFIG}={}", self.kind.object());
        collector::remove_labelled(self.client, self.namespace, &kept).await
    }

    /// What an interrupted first install made and no record of Helm's names.
    async fn remove_leftovers(&self, inventory: &Inventory) -> Result<(), Error> {
        for api in inventory.apis() {
            for object in api.list_metadata(&self.labelled(RELEASE)).await? {
                let of_release = object.annotations().get(RELEASE_NAME).map(String::as_str) == Some(self.kind.object());
                if of_release && !object.annotations().contains_key(POLICY) {
                    delete(&api, &object.name_any()).await?;
                }
            }
        }
        Ok(())
    }

    /// Names of the pods that are left.
    async fn pods(&self) -> Result<Option<String>, Error> {
        let pods = self.api::<Pod>().list_metadata(&self.labelled(RELEASE)).await?;
        let names: Vec<_> = pods.iter().map(ResourceExt::name_any).collect();
        Ok((!names.is_empty()).then(|| names.join(", ")))
    }

    async fn remove_claims(&self) -> Result<(), Error> {
        let claims = self.api::<PersistentVolumeClaim>();
        for claim in claims.list_metadata(&self.labelled(RELEASE)).await? {
            delete(&claims, &claim.name_any()).await?;
        }
        Ok(())
    }
}

/// Deletes this very object; one that is gone, or was made anew by somebody meanwhile, is fine.
pub(crate) async fn delete_this<K: Clone + DeserializeOwned + std::fmt::Debug>(
    api: &Api<K>,
    name: &str,
    uid: Option<String>,
) -> Result<(), Error> {
    let this_one = Preconditions { uid, ..Preconditions::default() };
    let params = DeleteParams { preconditions: Some(this_one), ..DeleteParams::default() };
    match api.delete(name, &params).await {
        Err(kube::Error::Api(e)) if e.code == 404 || e.code == 409 => Ok(()),
        result => Ok(result.map(drop)?),
    }
}

/// Deletes an object, and in the background what it owns; one that is gone already is fine.
pub(crate) async fn delete<K: Clone + DeserializeOwned + std::fmt::Debug>(
    api: &Api<K>,
    name: &str,
) -> Result<(), Error> {
    match api.delete(name, &DeleteParams::background()).await {
        Err(kube::Error::Api(e)) if e.is_not_found() => Ok(()),
        result => Ok(result.map(drop)?),
    }
}

async fn patch_or_gone<K>(api: &Api<K>, name: &str, patch: &Value) -> Result<(), Error>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    match api.patch_metadata(name, &PatchParams::default(), &Patch::Merge(patch)).await {
        Err(kube::Error::Api(e)) if e.is_not_found() => Ok(()),
        result => Ok(result.map(drop)?),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::the_database_with_its_guests(Kind::MariaDB, DeletionPolicy::Delete,
        &[Kind::MariaDB, Kind::Keystone, Kind::Placement, Kind::Neutron, Kind::Nova])]
    #[case::a_broker_has_no_guests(Kind::RabbitMQ, DeletionPolicy::Delete, &[Kind::RabbitMQ])]
    #[case::virtual_networks_hold_nothing_of_neutrons(Kind::Ovn, DeletionPolicy::Delete, &[Kind::Ovn])]
    #[case::the_database_that_stays(Kind::MariaDB, DeletionPolicy::Retain, &[])]
    #[case::images(Kind::Glance, DeletionPolicy::Delete, &[Kind::Glance])]
    #[case::a_guest_of_the_database(Kind::Keystone, DeletionPolicy::Retain, &[])]
    #[case::a_cache_keeps_nothing(Kind::Memcached, DeletionPolicy::Retain, &[Kind::Memcached])]
    fn credentials_stay_as_long_as_they_open_something(
        #[case] kind: Kind,
        #[case] volume: DeletionPolicy,
        #[case] expected: &[Kind],
    ) {
        assert_eq!(opens_nothing(services::of(kind), volume), expected);
    }
}
