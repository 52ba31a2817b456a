//! The limits of one project in Keystone.

use std::sync::Arc;

use futures::TryStreamExt;
use k8s_openapi::api::core::v1::ResourceQuota;
use kupenstack_core::reason;
use kupenstack_openstack::{Identity, Limit, NewLimit, RegisteredLimit, Service};

use super::{
    keys::Key,
    wanted::{Declared, Fault},
};
use crate::stop::Stop;

/// What tells which limit a key becomes.
pub(super) struct Catalogue {
    services: Vec<Service>,
    /// The region that is used.
    region: Option<String>,
}

impl Catalogue {
    pub(super) async fn look(identity: &Identity, region: Option<String>) -> Result<Self, Stop> {
        Ok(Self { services: identity.list_services().await?, region })
    }

    /// Whether a resource's limit is the key's: that of its service, in the region that is used. A service asks for the
    /// limits of its own region only; where no region is configured, the first is as good as another.
    pub(super) fn fits(&self, key: &Key, resource: &str, service: &str, region: Option<&str>) -> bool {
        let is_of_type = |known: &Service| known.id == service && known.service_type == key.service;
        let used = self.region.as_deref();
        resource == key.resource && self.services.iter().any(is_of_type) && (used.is_none() || region == used)
    }

    /// Whether a limit is what the key becomes.
    pub(super) fn has(&self, key: &Key, limit: &Limit) -> bool {
        self.fits(key, &limit.resource_name, &limit.service_id, limit.region_id.as_deref())
    }
}

/// What there is now, looked at for the purpose.
pub(super) struct Limits<'a> {
    identity: &'a Identity,
    project: &'a str,
    mark: &'a str,
    catalogue: Catalogue,
    registered: Vec<RegisteredLimit>,
    present: Vec<Limit>,
}

/// What became of what is declared.
#[derive(Debug)]
pub(super) enum Settled {
    /// Nothing had to be done.
    Kept,
    /// The limit was made or changed, for this quota.
    Set(u32, Arc<ResourceQuota>),
    /// There is no limit any more.
    Lifted,
    /// Somebody else has to act first.
    Refused(Fault),
}

impl<'a> Limits<'a> {
    /// Looks at a project's limits. Those with the mark are ours.
    pub(super) async fn look(
        identity: &'a Identity,
        region: Option<String>,
        project: &'a str,
        mark: &'a str,
    ) -> Result<Self, Stop> {
        let catalogue = Catalogue::look(identity, region).await?;
        let registered = identity.list_registered_limits().try_collect().await?;
        let present = identity.list_limits(Some(project)).try_collect().await?;
        Ok(Self { identity, project, mark, catalogue, registered, present })
    }

    /// Makes true what is declared of a key. What can be done once only is refused by Keystone the second time: a limit
    /// is unique per project and resource.
    pub(super) async fn settle(&self, key: &Key, declared: Option<&Declared>) -> Result<Settled, Stop> {
        let present = self.present.iter().find(|limit| self.catalogue.has(key, limit));
        let is_ours = |limit: &Limit| limit.description.as_deref() == Some(self.mark);
        match (declared, present) {
            (Some(Declared::Limit(wanted, quota)), None) => {
                let Some(registered) = self.registered(key) else {
                    return Ok(Settled::Refused(unsupported(key, self.catalogue.region.as_deref(), quota)));
                };
                self.create(registered, i64::from(*wanted)).await?;
                Ok(Settled::Set(*wanted, Arc::clone(quota)))
            }
            (Some(Declared::Limit(wanted, _)), Some(limit)) if limit.resource_limit == i64::from(*wanted) => {
                Ok(Settled::Kept)
            }
            (Some(Declared::Limit(wanted, quota)), Some(limit)) if is_ours(limit) => {
                self.change(limit, i64::from(*wanted)).await?;
                Ok(Settled::Set(*wanted, Arc::clone(quota)))
            }
            (Some(Declared::Limit(_, quota)), Some(limit)) => Ok(Settled::Refused(taken(key, limit, quota))),
            (None, Some(limit)) if is_ours(limit) => {
                self.identity.delete_limit(&limit.id).await?;
                Ok(Settled::Lifted)
            }
            (None | Some(Declared::Unclear), _) => Ok(Settled::Kept),
        }
    }

    async fn create(&self, registered: &RegisteredLimit, limit: i64) -> Result<Limit, Stop> {
        let new = NewLimit {
            project_id: self.project.to_owned(),
            service_id: registered.service_id.clone(),
            region_id: registered.region_id.clone(),
            resource_name: registered.resource_name.clone(),
            resource_limit: limit,
            description: self.mark.to_owned(),
        };
        // a conflict is an earlier request of ours, whose answer was lost: the next pass finds its limit
        Ok(self.identity.create_limit(&new).await?)
    }

    async fn change(&self, present: &Limit, limit: i64) -> Result<(), Stop> {
        if self.identity.set_limit(&present.id, limit).await?.resource_limit == limit {
            return Ok(());
        }
        // Keystone does not change a limit to 0, but takes a new one of 0
        self.identity.delete_limit(&present.id).await?;
        let of_present = |registered: &&RegisteredLimit| {
            (&registered.service_id, &registered.region_id, &registered.resource_name)
                == (&present.service_id, &present.region_id, &present.resource_name)
        };
        match self.registered.iter().find(of_present) {
            Some(registered) => self.create(registered, limit).await.map(drop),
            // taken away in the meantime, with the service perhaps: the next pass says so
            None => Ok(()),
        }
    }

    fn registered(&self, key: &Key) -> Option<&RegisteredLimit> {
        self.registered.iter().find(|registered| {
            let region = registered.region_id.as_deref();
            self.catalogue.fits(key, &registered.resource_name, &registered.service_id, region)
        })
    }
}

fn unsupported(key: &Key, region: Option<&str>, quota: &Arc<ResourceQuota>) -> Fault {
    let region = region.map(|region| format!(" in region {region}")).unwrap_or_default();
    let note = format!(
        "spec.hard[{key}] limits nothing yet: Keystone has no registered limit {resource} of the {service} service{region}. \
         The cloud's administrator registers it (openstack registered limit create --service {service} --default-limit -1 \
         {resource}) and has the service use Keystone's limits (Glance: use_keystone_limits)",
        resource = key.resource,
        service = key.service,
    );
    Fault { quota: Arc::clone(quota), reason: "QuotaUnsupported", note }
}

fn taken(key: &Key, limit: &Limit, quota: &Arc<ResourceQuota>) -> Fault {
    let note = format!(
        "spec.hard[{key}] is not applied: the project's limit {} is {} and not ours (id {}); delete it, and this one takes its \
         place",
        key.resource, limit.resource_limit, limit.id
    );
    Fault { quota: Arc::clone(quota), reason: reason::NAME_CLASH, note }
}
