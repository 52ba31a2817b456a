//! `Subnet`: a subnet in Neutron, on the network of another object.

mod wanted;

use futures::{FutureExt, StreamExt, stream::BoxStream};
use kupenstack_api::resources::{Adoption, Network, ResourceKind, Subnet, SubnetStatus};
use kupenstack_core::{Outcome, ownership::mark_in};
use kupenstack_openstack::{self as openstack, Client, Error, SubnetAttributes, network::Collection};

use self::wanted::Wanted;
use crate::{
    actuator::{Step, Target},
    needs::{Need, When},
    neutron::NeutronKind,
    observe::Listed,
};

impl NeutronKind for Subnet {
    type Resource = openstack::Subnet;

    const NAME: &'static str = "subnet";
    const NEEDS: &'static [&'static str] = &[Network::KIND];

    fn needs(&self) -> Vec<Need> {
        let network = self.spec.network.as_deref();
        network.map(|name| Need::of::<Network>(self, name, When::FromTheStart)).into_iter().collect()
    }

    fn all(client: &Client) -> Collection<openstack::Subnet> {
        client.network().subnets()
    }

    fn adopted(&self) -> Option<&Adoption> {
        self.spec.adopt.as_ref()
    }

    fn attributes(target: &Target<Self>) -> SubnetAttributes {
        Wanted::of(target).attributes()
    }

    fn updates<'a>(target: &'a Target<Self>, subnet: &'a openstack::Subnet) -> Vec<Step<'a, ()>> {
        let changes = Wanted::of(target).changes(subnet);
        if changes.is_empty() {
            return Vec::new();
        }
        let step = async move { Ok(Self::all(&target.client).update(subnet, &changes).await.map(drop)?) };
        vec![step.boxed()]
    }

    fn report(subnet: &openstack::Subnet, status: &mut SubnetStatus) -> Outcome {
        status.cidr = Some(subnet.cidr.clone());
        status.gateway.clone_from(&subnet.gateway_ip);
        Outcome::ready("as declared in Neutron")
    }
}

impl Listed for openstack::Subnet {
    const NOUN: &'static str = "Neutron subnet";
    const SERVICES: &'static [&'static str] = &["Keystone", "Neutron"];

    fn list(admin: &Client) -> BoxStream<'static, Result<Self, Error>> {
        admin.network().subnets().survey().boxed()
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
