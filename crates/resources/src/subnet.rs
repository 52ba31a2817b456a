//! `Subnet`: a subnet in Neutron, on the network of another object.

pub(crate) mod wanted;

use kupenstack_api::resources::{Network, Port, ResourceKind, Subnet, SubnetStatus};
use kupenstack_core::Outcome;
use kupenstack_openstack::{self as openstack, Client, SubnetAttributes, network::Collection};

use self::wanted::Wanted;
use crate::{
    actuator::Target,
    needs::{Need, When},
    neutron::{NeutronKind, Sought, listed_in_neutron},
};

impl NeutronKind for Subnet {
    type Resource = openstack::Subnet;

    const NAME: &'static str = "subnet";
    const NEEDS: &'static [&'static str] = &[Network::KIND];
    /// Ports that name only the network have addresses of it.
    const GOES_AFTER: &'static [&'static str] = &[Port::KIND];

    fn needs(&self) -> Vec<Need> {
        let network = self.spec.network.as_deref();
        network.map(|name| Need::of::<Network>(self, name, When::FromTheStart)).into_iter().collect()
    }

    fn all(client: &Client) -> Collection<openstack::Subnet> {
        client.network().subnets()
    }

    fn adopted(&self) -> Option<Sought> {
        self.spec.adopt.as_ref().map(Sought::from)
    }

    fn attributes(target: &Target<Self>) -> SubnetAttributes {
        Wanted::of(target).attributes()
    }

    fn changes(target: &Target<Self>, subnet: &openstack::Subnet) -> SubnetAttributes {
        Wanted::of(target).changes(subnet)
    }

    fn report(subnet: &openstack::Subnet, status: &mut SubnetStatus) -> Outcome {
        status.cidr = Some(subnet.cidr.clone());
        status.gateway.clone_from(&subnet.gateway_ip);
        Outcome::ready("as declared in Neutron")
    }
}

listed_in_neutron!(openstack::Subnet, "Neutron subnet", subnets);
