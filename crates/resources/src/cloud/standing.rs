//! How the cloud stands, read off its object.

use std::time::Duration;

use kupenstack_api::cluster::OpenStack;
use kupenstack_core::{
    Outcome,
    conditions::{self, READY},
    ownership::ClusterId,
    reason,
};

/// Where the cloud is, and which cluster's it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    /// Namespace that the cloud runs in.
    pub(crate) namespace: String,
    /// Identifier in the ownership marks.
    pub(crate) cluster: ClusterId,
    /// UID of the cloud's object. A cloud that is declared anew may have other data: tokens of the one before name
    /// users and projects that are not there.
    pub(crate) life: String,
}

/// How the cloud stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nobody declared one.
    Absent,
    /// It is being deleted, with all that is in it.
    Leaving,
    /// It is there, but not (yet) to be asked. Says what is missing.
    Unready(String),
    /// It is up.
    Ready(Site),
}

impl Standing {
    /// How the cloud stands for what needs these services. A cloud that lists no services is asked when it is ready as a
    /// whole; a service that nobody needs here does not matter.
    pub(crate) fn of(openstack: Option<&OpenStack>, services: &[&str]) -> Self {
        let Some(openstack) = openstack else { return Self::Absent };
        if openstack.metadata.deletion_timestamp.is_some() {
            return Self::Leaving;
        }
        let Some(site) = site(openstack) else {
            return Self::Unready("OpenStack is being set up".to_owned());
        };
        let listed = openstack.status.iter().flat_map(|status| &status.services);
        let needed: Vec<_> = listed.filter(|service| services.contains(&service.kind.as_str())).collect();
        // one that rolls out a change, or takes one back, is asked all the while
        if let Some(service) = needed.iter().find(|service| !service.ready && !service.available) {
            return Self::Unready(said(&service.kind, &service.reason, &service.message));
        }
        if needed.len() == services.len() {
            return Self::Ready(site);
        }
        match (as_a_whole(openstack, site), missing(openstack, services)) {
            (Self::Ready(_), Some(service)) => Self::Unready(format!(
                "{service} is not part of the cloud: spec.services of OpenStack does not enable it"
            )),
            (standing, _) => standing,
        }
    }

    /// The standing, if those who wait should know of it: not while the cloud struggles.
    pub(crate) fn settled(self) -> Option<Self> {
        (!matches!(self, Self::Unready(_))).then_some(self)
    }

    /// Where to go, or the wait until there is a cloud that can be asked. The wait ends early when the cloud's standing
    /// changes, and is looked at now and then because the words may.
    pub(crate) fn ready(&self) -> Result<&Site, Outcome> {
        let message = match self {
            Self::Absent => "there is no OpenStack in this cluster: no object OpenStack named default".to_owned(),
            Self::Leaving => "OpenStack is being deleted".to_owned(),
            Self::Unready(message) => message.clone(),
            Self::Ready(site) => return Ok(site),
        };
        Err(Outcome::waiting(reason::CLOUD_UNAVAILABLE, message).within(Duration::from_mins(1)))
    }
}

/// Where the cloud is, once it has its identity.
pub(crate) fn site(openstack: &OpenStack) -> Option<Site> {
    let cluster = openstack.status.as_ref()?.cluster_id.as_ref()?.parse().ok()?;
    let life = openstack.metadata.uid.clone().unwrap_or_default();
    Some(Site { namespace: openstack.spec.namespace.clone(), cluster, life })
}

/// A service that the cloud does not have. One that lists none has not told yet, or does not know.
fn missing<'a>(openstack: &OpenStack, services: &[&'a str]) -> Option<&'a str> {
    let listed = &openstack.status.as_ref()?.services;
    services.iter().copied().find(|service| !listed.is_empty() && !has(openstack, service))
}

/// Whether the cloud lists a service, be it ready or not.
pub(crate) fn has(openstack: &OpenStack, service: &str) -> bool {
    openstack.status.iter().flat_map(|status| &status.services).any(|listed| listed.kind == service)
}

fn as_a_whole(openstack: &OpenStack, site: Site) -> Standing {
    let conditions = openstack.status.as_ref().map_or(&[][..], |status| &status.conditions);
    match conditions::find(conditions, READY) {
        Some(ready) if ready.status == "True" => Standing::Ready(site),
        Some(ready) => Standing::Unready(said("OpenStack", &ready.reason, &ready.message)),
        None => Standing::Unready("OpenStack is being set up".to_owned()),
    }
}

fn said(who: &str, reason: &str, message: &str) -> String {
    let words = if message.is_empty() { reason } else { message };
    format!("{who} is not ready: {words}")
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use kupenstack_api::cluster::{OpenStackSpec, OpenStackStatus, ServiceSummary};

    use super::*;

    const CLUSTER: &str = "6f2b6a2e-1f0a-4a55-9c58-0d4f3ad0f7a1";

    fn cloud(outcome: &Outcome, services: &[(&str, bool)]) -> OpenStack {
        let services = services
            .iter()
            .map(|&(kind, ready)| ServiceSummary {
                kind: kind.to_owned(),
                ready,
                available: ready,
                reason: "RollingOut".to_owned(),
                message: format!("{kind} 1/2"),
                ..ServiceSummary::default()
            })
            .collect();
        let mut openstack =
            OpenStack::new("default", OpenStackSpec { namespace: "cloud".into(), ..Default::default() });
        openstack.status = Some(OpenStackStatus {
            conditions: conditions::render(outcome, Some(1), &[], Timestamp::UNIX_EPOCH),
            cluster_id: Some(CLUSTER.to_owned()),
            services,
            ..OpenStackStatus::default()
        });
        openstack
    }

    #[test]
    fn without_an_object_there_is_no_cloud() {
        assert_eq!(Standing::of(None, &["Keystone"]), Standing::Absent);
    }

    #[test]
    fn a_cloud_being_deleted_is_leaving_however_ready_it_is() {
        let mut openstack = cloud(&Outcome::ready(""), &[("Keystone", true)]);
        openstack.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        assert_eq!(Standing::of(Some(&openstack), &["Keystone"]), Standing::Leaving);
    }

    #[test]
    fn only_the_needed_services_matter() {
        let openstack = cloud(&Outcome::waiting("X", "nova"), &[("Keystone", true), ("Glance", true), ("Nova", false)]);
        assert!(matches!(Standing::of(Some(&openstack), &["Keystone", "Glance"]), Standing::Ready(_)));
        let nova = Standing::of(Some(&openstack), &["Keystone", "Nova"]);
        assert_eq!(nova, Standing::Unready("Nova is not ready: Nova 1/2".to_owned()));
    }

    #[test]
    fn a_service_in_the_middle_of_a_change_is_asked_as_long_as_it_serves() {
        let mut openstack = cloud(&Outcome::waiting("X", "glance"), &[("Keystone", true), ("Glance", false)]);
        openstack.status.as_mut().unwrap().services[1].available = true;
        assert!(matches!(Standing::of(Some(&openstack), &["Keystone", "Glance"]), Standing::Ready(_)));
    }

    #[test]
    fn a_service_that_the_cloud_does_not_have_is_not_asked() {
        let openstack = cloud(&Outcome::ready(""), &[("Keystone", true), ("Glance", true)]);
        let Standing::Unready(message) = Standing::of(Some(&openstack), &["Keystone", "Neutron"]) else { panic!() };
        assert!(message.starts_with("Neutron is not part of the cloud"), "{message}");
    }

    #[test]
    fn the_services_of_a_cloud_that_lists_none_are_as_ready_as_the_cloud() {
        let up = cloud(&Outcome::ready(""), &[]);
        assert!(matches!(Standing::of(Some(&up), &["Keystone"]), Standing::Ready(site) if site.namespace == "cloud"));
        let down = cloud(&Outcome::waiting("ServicesNotReady", "waiting for MariaDB"), &[]);
        let standing = Standing::of(Some(&down), &["Keystone"]);
        assert_eq!(standing, Standing::Unready("OpenStack is not ready: waiting for MariaDB".to_owned()));
        assert_eq!(standing.ready().unwrap_err().message(), "OpenStack is not ready: waiting for MariaDB");
    }

    #[test]
    fn without_an_identity_nothing_can_be_marked_and_so_nothing_be_made() {
        let mut openstack = cloud(&Outcome::ready(""), &[("Keystone", true)]);
        openstack.status.as_mut().unwrap().cluster_id = None;
        assert!(matches!(Standing::of(Some(&openstack), &["Keystone"]), Standing::Unready(_)));
    }
}
