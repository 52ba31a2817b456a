//! `FloatingIP`: a floating IP in Neutron, which stands for the port of another object.

mod wanted;

use futures::FutureExt;
use kupenstack_api::resources::{ExternalNetwork, FloatingIP, FloatingIPStatus, Port, ResourceKind};
use kupenstack_core::Outcome;
use kupenstack_openstack::{
    self as openstack, Client, ErrorKind, FloatingIp, FloatingIpAttributes, NetworkFilter, network::Collection,
};

use self::wanted::Wanted;
use crate::{
    actuator::{Step, Target},
    needs::{Need, When},
    neutron::{NeutronKind, Sought, listed_in_neutron},
    stop::Stop,
};

impl NeutronKind for FloatingIP {
    type Resource = FloatingIp;

    const NAME: &'static str = "floatingip";
    const NEEDS: &'static [&'static str] = &[ExternalNetwork::KIND, Port::KIND];

    fn needs(&self) -> Vec<Need> {
        let network = self.spec.external_network.as_deref();
        let network = network.map(|name| Need::of::<ExternalNetwork>(self, name, When::FromTheStart));
        // people tell others of an address, and have it before what is to be reached by it
        let port = self.spec.port.as_deref().map(|name| Need::of::<Port>(self, name, When::InTheEnd));
        network.into_iter().chain(port).collect()
    }

    fn all(client: &Client) -> Collection<FloatingIp> {
        client.network().floating_ips()
    }

    /// It has no name, and its text may be another by now than that with which it was made. A project has few of them.
    fn own(&self) -> NetworkFilter {
        NetworkFilter::default()
    }

    fn adopted(&self) -> Option<Sought> {
        let adoption = self.spec.adopt.as_ref()?;
        let by_address = || NetworkFilter { address: adoption.address.clone(), ..NetworkFilter::default() };
        Some(adoption.id.clone().map_or_else(|| Sought::Fitting(by_address()), Sought::Id))
    }

    fn attributes(target: &Target<Self>) -> FloatingIpAttributes {
        Wanted::of(target).attributes()
    }

    fn refusal(target: &Target<Self>, error: openstack::Error) -> Stop {
        match &target.object.spec.address {
            Some(address) if error.kind() == ErrorKind::Forbidden => Outcome::blocked(
                "Forbidden",
                format!(
                    "spec.address: Neutron's policy does not let a project choose {address}: leave the field out, or have an \
                     administrator make a floating IP of that address in the project and adopt it ({error})"
                ),
            )
            .into(),
            _ => error.into(),
        }
    }

    fn changes(target: &Target<Self>, floating: &FloatingIp) -> FloatingIpAttributes {
        Wanted::of(target).changes(floating)
    }

    /// Which port it stands for is a change of its own, so that one that can't be made yet holds up no other.
    fn further_updates<'a>(target: &'a Target<Self>, floating: &'a FloatingIp) -> Vec<Step<'a, ()>> {
        let association = Wanted::of(target).association(floating);
        association.map(|changes| associate(target, floating, changes).boxed()).into_iter().collect()
    }

    fn report(floating: &FloatingIp, status: &mut FloatingIPStatus) -> Outcome {
        status.address = Some(floating.floating_ip_address.clone());
        status.port_address.clone_from(&floating.fixed_ip_address);
        status.state = Some(floating.status.clone());
        Outcome::ready("as declared in Neutron")
    }
}

async fn associate(
    target: &Target<FloatingIP>,
    floating: &FloatingIp,
    changes: FloatingIpAttributes,
) -> Result<(), Stop> {
    let result = FloatingIP::all(&target.client).update(floating, &changes).await;
    result
        .map(drop)
        .map_err(|error| if error.kind() == ErrorKind::NoRoute { no_route(target).into() } else { error.into() })
}

/// The way there may be made by anybody and at any time, and nobody tells of it.
fn no_route(target: &Target<FloatingIP>) -> Outcome {
    let spec = &target.object.spec;
    let from =
        spec.external_network.as_ref().map_or("its network".to_owned(), |name| format!("ExternalNetwork {name}"));
    let port = spec.port.as_deref().unwrap_or_default();
    let message = format!(
        "Port {port} can't be reached from {from}: there is no router with an interface on the port's subnet and a way out to \
         that network"
    );
    Outcome::waiting("NoRoute", message)
}

listed_in_neutron!(FloatingIp, "Neutron floating IP", floating_ips);
