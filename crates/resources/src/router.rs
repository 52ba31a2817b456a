//! `Router`: a router in Neutron, with its interfaces on the subnets of other objects.

mod interfaces;
mod wanted;
mod whole;

use std::net::IpAddr;

use kupenstack_api::resources::{
    ConnectedSubnet, ExternalNetwork, FloatingIP, ResourceKind, Router, RouterStatus, Subnet,
};
use kupenstack_core::Outcome;
use kupenstack_openstack::{self as openstack, Client, RouterAttributes, network::Collection};

use self::{wanted::Wanted, whole::WholeRouter};
use crate::{
    actuator::{Step, Target},
    needs::{Need, When::FromTheStart},
    neutron::{NeutronKind, Sought},
};

impl NeutronKind for Router {
    type Resource = WholeRouter;

    const NAME: &'static str = "router";
    const NEEDS: &'static [&'static str] = &[ExternalNetwork::KIND, Subnet::KIND];
    /// It leaves no network whose ports floating IPs stand for.
    const GOES_AFTER: &'static [&'static str] = &[FloatingIP::KIND];

    fn needs(&self) -> Vec<Need> {
        let outside = self.spec.external_network.iter();
        let outside = outside.map(|name| Need::of::<ExternalNetwork>(self, name, FromTheStart));
        let subnets = self.spec.interfaces.iter().flatten();
        outside.chain(subnets.map(|one| Need::of::<Subnet>(self, &one.subnet, FromTheStart))).collect()
    }

    fn all(client: &Client) -> Collection<openstack::Router> {
        client.network().routers()
    }

    fn adopted(&self) -> Option<Sought> {
        self.spec.adopt.as_ref().map(Sought::from)
    }

    fn attributes(target: &Target<Self>) -> RouterAttributes {
        Wanted::of(target).attributes()
    }

    fn changes(target: &Target<Self>, router: &WholeRouter) -> RouterAttributes {
        Wanted::of(target).changes(&router.router)
    }

    fn further_updates<'a>(target: &'a Target<Self>, router: &'a WholeRouter) -> Vec<Step<'a, ()>> {
        interfaces::steps(&target.client, router, Wanted::of(target))
    }

    /// Neutron deletes no router that is connected.
    fn before_deletion<'a>(target: &'a Target<Self>, router: &'a WholeRouter) -> Vec<Step<'a, ()>> {
        interfaces::steps(&target.client, router, Wanted::nothing())
    }

    fn report(router: &WholeRouter, status: &mut RouterStatus) -> Outcome {
        let gateway = router.router.external_gateway_info.iter();
        status.external_addresses =
            gateway.flat_map(|gateway| &gateway.external_fixed_ips).map(|ip| ip.ip_address.clone()).collect();
        status.external_addresses.sort_by_key(|text| (text.contains(':'), text.parse::<IpAddr>().ok()));
        status.interfaces = router
            .addresses()
            .map(|ip| ConnectedSubnet { subnet_id: ip.subnet_id.clone(), ip: ip.ip_address.clone() })
            .collect();
        status.interfaces.sort_unstable();
        status.state = Some(router.router.status.clone());
        match router.router.status.as_str() {
            "ACTIVE" => Outcome::ready("active in Neutron"),
            other => Outcome::waiting("NotActive", format!("Neutron shows status {other}")),
        }
    }
}
