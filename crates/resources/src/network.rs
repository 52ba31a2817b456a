//! `Network`: a network in Neutron.

mod wanted;
mod whole;

use futures::FutureExt;
use kupenstack_api::resources::{Network, NetworkStatus};
use kupenstack_core::Outcome;
use kupenstack_openstack::{self as openstack, Client, NetworkAttributes, network::Collection};

use self::wanted::Wanted;
pub(crate) use self::whole::WholeNetwork;
use crate::{
    actuator::{Step, Target},
    neutron::{NeutronKind, Sought},
};

impl NeutronKind for Network {
    type Resource = WholeNetwork;

    const NAME: &'static str = "network";

    fn all(client: &Client) -> Collection<openstack::Network> {
        client.network().networks()
    }

    fn adopted(&self) -> Option<Sought> {
        self.spec.adopt.as_ref().map(Sought::from)
    }

    fn attributes(target: &Target<Self>) -> NetworkAttributes {
        Wanted::of(target).attributes()
    }

    fn changes(target: &Target<Self>, network: &WholeNetwork) -> NetworkAttributes {
        Wanted::of(target).changes(&network.network)
    }

    /// What Neutron takes and forgets can't be set.
    fn further_updates<'a>(target: &'a Target<Self>, network: &'a WholeNetwork) -> Vec<Step<'a, ()>> {
        if !Wanted::of(target).has_lost_domain(&network.network) {
            return Vec::new();
        }
        let message = "Neutron keeps no DNS names: remove dnsDomain, or have an administrator add an extension driver \
                       such as dns_domain_ports";
        vec![async move { Err(Outcome::blocked("DnsNotKept", message).into()) }.boxed()]
    }

    fn report(network: &WholeNetwork, status: &mut NetworkStatus) -> Outcome {
        status.mtu = network.network.mtu.map(i64::from);
        network.outcome()
    }
}
