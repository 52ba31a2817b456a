//! `ExternalNetwork`: an external network in Neutron, and its subnets.

mod subnets;
mod wanted;

use kupenstack_api::resources::{ExternalNetwork, ExternalNetworkStatus};
use kupenstack_core::Outcome;
use kupenstack_openstack::{self as openstack, Client, NetworkAttributes, NetworkFilter, network::Collection};

use self::wanted::Wanted;
use crate::{
    actuator::{Step, Target},
    network::WholeNetwork,
    neutron::{NeutronKind, Sought},
    observe::Listed,
};

impl NeutronKind for ExternalNetwork {
    type Resource = WholeNetwork;

    const NAME: &'static str = "externalnetwork";
    const ADOPTS_FROM: &'static str = "cloud's external";

    fn all(client: &Client) -> Collection<openstack::Network> {
        client.network().networks()
    }

    fn adopted(&self) -> Option<Sought> {
        self.spec.adopt.as_ref().map(Sought::from)
    }

    fn adoptable(_: &str) -> NetworkFilter {
        NetworkFilter { external: Some(true), ..NetworkFilter::default() }
    }

    /// One that is external is the whole cloud's, whichever project it was made in.
    fn can_be_of(project: &str, network: &WholeNetwork) -> bool {
        network.network.external || network.is_in(project)
    }

    fn attributes(target: &Target<Self>) -> NetworkAttributes {
        Wanted::of(target).attributes()
    }

    fn changes(target: &Target<Self>, network: &WholeNetwork) -> NetworkAttributes {
        Wanted::of(target).changes(&network.network)
    }

    fn further_updates<'a>(target: &'a Target<Self>, network: &'a WholeNetwork) -> Vec<Step<'a, ()>> {
        subnets::steps(target, network)
    }

    fn report(network: &WholeNetwork, status: &mut ExternalNetworkStatus) -> Outcome {
        status.mtu = network.network.mtu.map(i64::from);
        status.physical_network.clone_from(&network.network.physical_network);
        status.segmentation_id = network.network.segmentation_id.map(i64::from);
        status.subnets = network.subnets.iter().map(|subnet| subnet.cidr.clone()).collect();
        status.subnets.sort_unstable();
        network.outcome()
    }
}
