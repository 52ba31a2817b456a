//! `Network`: a network in Neutron.

mod wanted;

use futures::{FutureExt, StreamExt, stream::BoxStream};
use kupenstack_api::resources::{Adoption, Network, NetworkStatus};
use kupenstack_core::{Outcome, ownership::mark_in};
use kupenstack_openstack::{self as openstack, Client, Error, NetworkAttributes, network::Collection};

use self::wanted::Wanted;
use crate::{
    actuator::{Step, Target},
    neutron::NeutronKind,
    observe::Listed,
};

impl NeutronKind for Network {
    type Resource = openstack::Network;

    const NAME: &'static str = "network";

    fn all(client: &Client) -> Collection<openstack::Network> {
        client.network().networks()
    }

    fn adopted(&self) -> Option<&Adoption> {
        self.spec.adopt.as_ref()
    }

    fn attributes(target: &Target<Self>) -> NetworkAttributes {
        Wanted::of(target).attributes()
    }

    fn updates<'a>(target: &'a Target<Self>, network: &'a openstack::Network) -> Vec<Step<'a, ()>> {
        let wanted = Wanted::of(target);
        let (is_domain_lost, changes) = (wanted.has_lost_domain(network), wanted.changes(network));
        let mut steps: Vec<Step<'a, ()>> = Vec::new();
        if !changes.is_empty() {
            steps.push(async move { Ok(Self::all(&target.client).update(network, &changes).await.map(drop)?) }.boxed());
        }
        if is_domain_lost {
            let message = "Neutron keeps no DNS names: remove dnsDomain, or have an administrator add an extension driver \
                           such as dns_domain_ports";
            steps.push(async move { Err(Outcome::blocked("DnsNotKept", message).into()) }.boxed());
        }
        steps
    }

    fn report(network: &openstack::Network, status: &mut NetworkStatus) -> Outcome {
        status.mtu = network.mtu.map(i64::from);
        match network.status.as_str() {
            "ACTIVE" => Outcome::ready("active in Neutron"),
            // as it was declared, and as it stays
            "DOWN" if !network.admin_state_up => Outcome::ready("down in Neutron, as declared"),
            other => Outcome::waiting("NotActive", format!("Neutron shows status {other}")),
        }
    }
}

impl Listed for openstack::Network {
    const NOUN: &'static str = "Neutron network";
    const SERVICES: &'static [&'static str] = &["Keystone", "Neutron"];

    fn list(admin: &Client) -> BoxStream<'static, Result<Self, Error>> {
        admin.network().networks().survey().boxed()
    }

    fn id(&self) -> &str {
        &self.id
    }

    fn mark(&self) -> Option<&str> {
        mark_in(self.description.as_deref()?)
    }

    fn is_in(&self, project: &str) -> bool {
        self.project_id == project
    }
}
