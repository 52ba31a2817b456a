//! Nova: servers, server groups, flavors and key pairs, and its own services.

mod flavor;
mod key_pair;
mod server;
mod server_action;
mod server_group;

use http::Method;
use serde::Deserialize;
use serde_json::Value;

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

    /// Whether there is any server, of whatever project; for an administrator. Deleted ones don't count.
    pub async fn any_server(&self) -> Result<bool, Error> {
        let call = self.service.call(Method::GET, &["servers"]).await?.query(&[("all_tenants", "1"), ("limit", "1")]);
        let servers: Vec<Value> = self.service.send(&call).await?.member("servers")?;
        Ok(!servers.is_empty())
    }
}
