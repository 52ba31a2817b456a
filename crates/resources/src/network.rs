//! `Network`: a network in Neutron.

mod wanted;

use futures::{FutureExt, StreamExt, stream::BoxStream};
use kupenstack_api::resources::{Network, NetworkStatus};
use kupenstack_core::{Outcome, ownership::mark_in};
use kupenstack_openstack::{self as openstack, Client, Error};

use self::wanted::Wanted;
use crate::{
    actuator::{Actuator, Progress, Step, Target},
    neutron,
    observe::Listed,
};

/// Keeps networks in Neutron.
pub(crate) struct NetworkActuator;

impl Actuator for NetworkActuator {
    type Kind = Network;
    type Resource = openstack::Network;

    const NAME: &'static str = "network";
    const CONCURRENCY: u16 = 16;

    fn observe<'a>(&'a self, target: &'a Target<Network>) -> Step<'a, Option<openstack::Network>> {
        async move {
            let networks = target.client.network().networks();
            neutron::find(target, &networks, target.object.spec.adopt.as_ref()).await
        }
        .boxed()
    }

    /// Neutron makes it at once or not at all.
    fn is_whole(&self, _: &openstack::Network) -> bool {
        true
    }

    fn create<'a>(&'a self, target: &'a Target<Network>, progress: &'a dyn Progress) -> Step<'a, openstack::Network> {
        async move {
            let (networks, adoption) = (target.client.network().networks(), target.object.spec.adopt.as_ref());
            let attributes = Wanted::of(target).attributes();
            neutron::make(target, &networks, adoption, &attributes, progress).await
        }
        .boxed()
    }

    fn updates<'a>(&'a self, target: &'a Target<Network>, network: &'a openstack::Network) -> Vec<Step<'a, ()>> {
        let changes = Wanted::of(target).changes(network);
        if changes.is_empty() {
            return Vec::new();
        }
        let step = async move { Ok(target.client.network().networks().update(network, &changes).await.map(drop)?) };
        vec![step.boxed()]
    }

    fn delete<'a>(&'a self, target: &'a Target<Network>, network: &'a openstack::Network) -> Step<'a, ()> {
        async move { Ok(target.client.network().networks().delete(&network.id).await.map(drop)?) }.boxed()
    }

    fn report(&self, _: &Target<Network>, network: &openstack::Network, status: &mut NetworkStatus) -> Outcome {
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
