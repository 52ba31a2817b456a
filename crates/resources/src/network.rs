//! `Network`: a network in Neutron.

mod wanted;

use futures::FutureExt;
use kupenstack_api::resources::{Adoption, Network, NetworkStatus};
use kupenstack_core::Outcome;
use kupenstack_openstack::{self as openstack, Client, NetworkAttributes, network::Collection};

use self::wanted::Wanted;
use crate::{
    actuator::{Step, Target},
    neutron::{NeutronKind, listed_in_neutron},
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

    fn changes(target: &Target<Self>, network: &openstack::Network) -> NetworkAttributes {
        Wanted::of(target).changes(network)
    }

    /// What Neutron takes and forgets can't be set.
    fn further_updates<'a>(target: &'a Target<Self>, network: &'a openstack::Network) -> Vec<Step<'a, ()>> {
        if !Wanted::of(target).has_lost_domain(network) {
            return Vec::new();
        }
        let message = "Neutron keeps no DNS names: remove dnsDomain, or have an administrator add an extension driver \
                       such as dns_domain_ports";
        vec![async move { Err(Outcome::blocked("DnsNotKept", message).into()) }.boxed()]
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

listed_in_neutron!(openstack::Network, "Neutron network", networks);
