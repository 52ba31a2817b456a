//! Nova: servers, server groups, flavors, key pairs and host aggregates, and its own services.

mod aggregate;
mod flavor;
mod flavor_access;
mod key_pair;
mod server;
mod server_action;
mod server_group;

use http::Method;
use serde::Deserialize;
use serde_json::Value;

pub use aggregate::Aggregate;
pub use flavor::{Flavor, NewFlavor};
pub use key_pair::KeyPair;
pub use server::{NewServer, Server, ServerAddress, ServerChanges, ServerFault, ServerFilter, ServerFlavor};
pub use server_action::ServerAction;
pub use server_group::ServerGroup;

use crate::{Client, Error, service::ServiceClient};

/// The lowest that has what is used here: a flavor's description from 2.55 on, its extra specs in lists from 2.61 on.
const MICROVERSION: &str = "2.61";

/// Nova's own limit, unless it is configured to a smaller one: it then gives fewer, and a link to the next page.
const LARGEST_PAGE: u32 = 1000;

/// One of the processes that Nova consists of, as its heartbeats tell.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ComputeService {
    /// The program: `nova-compute`, `nova-conductor`, `nova-scheduler`.
    pub binary: String,
    /// Where it runs: for `nova-compute` the name of the node.
    pub host: String,
    /// `up` as long as its heartbeats come, else `down`.
    pub state: String,
    /// `enabled`, or `disabled` by an administrator.
    pub status: String,
}

impl ComputeService {
    /// Whether its heartbeats come.
    pub fn is_up(&self) -> bool {
        self.state == "up"
    }
}

/// A host that Nova can put VMs on: its `nova-compute` has told what it has, and it belongs to a cell.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Hypervisor {
    /// What the driver calls the host: the name of the node, in our deployments.
    #[serde(rename = "hypervisor_hostname")]
    pub host: String,
    /// As [`ComputeService::state`] of its `nova-compute`.
    pub state: String,
}

impl Hypervisor {
    /// Whether the heartbeats of its `nova-compute` come.
    pub fn is_up(&self) -> bool {
        self.state == "up"
    }
}

/// Nova as one user sees it.
#[derive(Debug, Clone)]
pub struct Compute {
    service: ServiceClient,
}

impl Compute {
    pub(crate) fn new(client: Client) -> Self {
        Self { service: ServiceClient::new(client, "compute", "v2.1").at_microversion(MICROVERSION) }
    }

    /// The processes that Nova consists of, in all cells; for an administrator.
    pub async fn services(&self) -> Result<Vec<ComputeService>, Error> {
        let call = self.service.call(Method::GET, &["os-services"]).await?;
        self.service.send(&call).await?.member("services")
    }

    /// The hosts that have been mapped to a cell; for an administrator. One whose `nova-compute` is up can be missing here for as
    /// long as nobody has looked for new hosts, and gets no VM.
    pub async fn hypervisors(&self) -> Result<Vec<Hypervisor>, Error> {
        let call = self.service.call(Method::GET, &["os-hypervisors"]).await?;
        self.service.send(&call).await?.member("hypervisors")
    }

    /// The names of the hosts that run servers; for an administrator.
    pub async fn compute_hosts(&self) -> Result<Vec<String>, Error> {
        let call = self.service.call(Method::GET, &["os-services"]).await?.query(&[("binary", "nova-compute")]);
        let services: Vec<ComputeService> = self.service.send(&call).await?.member("services")?;
        Ok(services.into_iter().map(|service| service.host).collect())
    }

    /// Whether there is any server, of whatever project; for an administrator. Deleted ones don't count.
    pub async fn any_server(&self) -> Result<bool, Error> {
        let call = self.service.call(Method::GET, &["servers"]).await?.query(&[("all_tenants", "1"), ("limit", "1")]);
        let servers: Vec<Value> = self.service.send(&call).await?.member("servers")?;
        Ok(!servers.is_empty())
    }
}
