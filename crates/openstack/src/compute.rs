//! Nova: servers, server groups, flavors, key pairs and host aggregates, and its own services.

mod aggregate;
mod flavor;
mod flavor_access;
mod key_pair;
mod server;
mod server_action;
mod server_group;

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

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
    /// Its id.
    pub id: String,
    /// The program: `nova-compute`, `nova-conductor`, `nova-scheduler`.
    pub binary: String,
    /// Where it runs: for `nova-compute` the name of the node.
    pub host: String,
    /// `up` as long as its heartbeats come, else `down`.
    pub state: String,
    /// `enabled`, or `disabled` by an administrator.
    pub status: String,
    /// Why it is disabled, if that was said.
    #[serde(default)]
    pub disabled_reason: Option<String>,
    /// Whether Nova was told that it is down, which then counts for more than heartbeats.
    #[serde(default)]
    pub forced_down: bool,
}

/// What Nova is told of one of its `nova-compute`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServiceChanges {
    /// `enabled`, or `disabled`: it gets no more servers.
    pub status: &'static str,
    /// Why it is disabled, at most 255 characters. Nova refuses one for what is enabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled_reason: Option<String>,
    /// Whether it is down, whatever heartbeats say: its servers can then be deleted without it.
    pub forced_down: bool,
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

    /// Those that run servers: one for each host; for an administrator.
    pub async fn compute_services(&self) -> Result<Vec<ComputeService>, Error> {
        let call = self.service.call(Method::GET, &["os-services"]).await?.query(&[("binary", "nova-compute")]);
        self.service.send(&call).await?.member("services")
    }

    /// Tells Nova of a `nova-compute` that has this id; for an administrator.
    pub async fn update_service(&self, id: &str, changes: &ServiceChanges) -> Result<(), Error> {
        self.service.put(&["os-services", id], &json!(changes)).await.map(drop)
    }

    /// Has Nova forget a host, by the id of its `nova-compute`: what it had to offer, its place in a cell and in aggregates; for an
    /// administrator. False if there is no such service. One with servers, or with some on their way from or to it, is refused
    /// as a [`ErrorKind::Conflict`](crate::ErrorKind::Conflict). A `nova-compute` that starts there later is a new host.
    pub async fn delete_service(&self, id: &str) -> Result<bool, Error> {
        self.service.delete(&["os-services", id]).await
    }

    /// Whether there is any server, of whatever project; for an administrator. Deleted ones don't count.
    pub async fn any_server(&self) -> Result<bool, Error> {
        let call = self.service.call(Method::GET, &["servers"]).await?.query(&[("all_tenants", "1"), ("limit", "1")]);
        let servers: Vec<Value> = self.service.send(&call).await?.member("servers")?;
        Ok(!servers.is_empty())
    }
}
