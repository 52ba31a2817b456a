//! A network in Neutron, with the subnets of one that is external: those are declared in one object.

use std::collections::HashMap;

use futures::{
    FutureExt, StreamExt, TryStreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use kupenstack_core::Outcome;
use kupenstack_openstack::{Client, Error, Network, Subnet};
use serde::{Deserialize, Serialize};

use crate::neutron::{Whole, listed_in_neutron};

/// How many networks of a list are looked at together.
const AT_ONCE: usize = 1000;

/// A network, and its subnets if it is external.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WholeNetwork {
    pub(crate) network: Network,
    /// In the order of their identifiers.
    pub(crate) subnets: Vec<Subnet>,
}

impl WholeNetwork {
    fn bare(network: Network) -> Self {
        Self { network, subnets: Vec::new() }
    }

    /// What is to be said of it, once it is as declared.
    pub(crate) fn outcome(&self) -> Outcome {
        match self.network.status.as_str() {
            "ACTIVE" => Outcome::ready("active in Neutron"),
            // as it was declared, and as it stays
            "DOWN" if !self.network.admin_state_up => Outcome::ready("down in Neutron, as declared"),
            other => Outcome::waiting("NotActive", format!("Neutron shows status {other}")),
        }
    }
}

impl Whole for WholeNetwork {
    type Main = Network;

    fn main(&self) -> &Network {
        &self.network
    }

    fn of(client: &Client, network: Network) -> BoxFuture<'static, Result<Self, Error>> {
        let all = client.network().subnets();
        async move {
            if !network.external {
                return Ok(Self::bare(network));
            }
            let subnets = all.of_networks(&[&network.id]).try_collect().await?;
            Ok(Self { network, subnets })
        }
        .boxed()
    }

    fn survey(admin: &Client) -> BoxStream<'static, Result<Self, Error>> {
        let (networks, admin) = (admin.network().networks().survey(), admin.clone());
        networks
            .map_ok(Self::bare)
            .try_chunks(AT_ONCE)
            .map_err(|broken_off| broken_off.1)
            .and_then(move |networks| with_subnets(admin.clone(), networks))
            .map_ok(|networks| stream::iter(networks.into_iter().map(Ok)))
            .try_flatten()
            .boxed()
    }
}

/// Looks at the subnets of the external networks, which are few, all together.
async fn with_subnets(admin: Client, mut networks: Vec<WholeNetwork>) -> Result<Vec<WholeNetwork>, Error> {
    let external = networks.iter().filter(|one| one.network.external);
    let external: Vec<&str> = external.map(|one| one.network.id.as_str()).collect();
    let mut subnets: HashMap<String, Vec<Subnet>> = HashMap::new();
    let mut all = admin.network().subnets().of_networks(&external).boxed();
    while let Some(subnet) = all.try_next().await? {
        subnets.entry(subnet.network_id.clone()).or_default().push(subnet);
    }
    for one in &mut networks {
        one.subnets = subnets.remove(&one.network.id).unwrap_or_default();
    }
    Ok(networks)
}

listed_in_neutron!(WholeNetwork, "Neutron network");
