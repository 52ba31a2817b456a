//! `Port`: a port in Neutron, on the network of another object.

mod addresses;
mod wanted;

use futures::FutureExt;
use kupenstack_api::resources::{Network, Port, PortStatus, ResourceKind, SecurityGroup, Subnet};
use kupenstack_core::Outcome;
use kupenstack_openstack::{self as openstack, Client, PortAttributes, network::Collection};

use self::wanted::Wanted;
use crate::{
    actuator::{Step, Target},
    needs::{Need, When::FromTheStart},
    neutron::{NeutronKind, Sought, listed_in_neutron},
};

impl NeutronKind for Port {
    type Resource = openstack::Port;

    const NAME: &'static str = "port";
    const NEEDS: &'static [&'static str] = &[Network::KIND, Subnet::KIND, SecurityGroup::KIND];
    /// Its MAC follows from the object, and no network has one twice.
    const IS_UNIQUE: bool = true;
    /// Who has come to use it since the last list would lose it.
    const DELETES_AS_LISTED: bool = false;

    fn needs(&self) -> Vec<Need> {
        let addresses = self.spec.addresses.iter().flatten();
        let networks = self.spec.network.iter().map(|name| Need::of::<Network>(self, name, FromTheStart));
        let subnets = addresses.filter_map(|address| address.subnet.as_deref());
        let subnets = subnets.map(|name| Need::of::<Subnet>(self, name, FromTheStart));
        let groups = self.spec.security_groups.iter().flatten();
        let groups = groups.map(|name| Need::of::<SecurityGroup>(self, name, FromTheStart));
        networks.chain(subnets).chain(groups).collect()
    }

    /// By its MAC Nova tells which port an address is of. Without an address there is nothing to tell.
    fn tells(&self) -> Option<&str> {
        let status = self.status.as_ref().filter(|status| !status.addresses.is_empty())?;
        status.mac_address.as_deref()
    }

    fn all(client: &Client) -> Collection<openstack::Port> {
        client.network().ports()
    }

    fn adopted(&self) -> Option<Sought> {
        self.spec.adopt.as_ref().map(Sought::from)
    }

    fn attributes(target: &Target<Self>) -> PortAttributes {
        Wanted::of(target).attributes()
    }

    fn changes(target: &Target<Self>, port: &openstack::Port) -> PortAttributes {
        Wanted::of(target).changes(port)
    }

    /// One that was made before its network had a subnet gets its address when there is one.
    fn further_updates<'a>(target: &'a Target<Self>, port: &'a openstack::Port) -> Vec<Step<'a, ()>> {
        let spec = &target.object.spec;
        let waits = spec.adopt.is_none() && spec.addresses.is_none() && port.fixed_ips.is_empty();
        waits.then(|| addresses::first(&target.client, port).boxed()).into_iter().collect()
    }

    /// Neutron would take it away from a running VM.
    fn user(port: &openstack::Port) -> Option<String> {
        (!port.device_id.is_empty()).then(|| format!("{} {}", port.device_owner, port.device_id))
    }

    fn report(port: &openstack::Port, status: &mut PortStatus) -> Outcome {
        status.mac_address = Some(port.mac_address.clone());
        status.addresses = addresses::shown(port);
        status.state = Some(port.status.clone());
        Outcome::ready("as declared in Neutron")
    }
}

listed_in_neutron!(openstack::Port, "Neutron port", ports);
