//! Nova: its own services, and whether there are servers.

use http::Method;
use serde::Deserialize;
use serde_json::Value;

use crate::{Client, Error, service::ServiceClient};

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
        Self { service: ServiceClient::new(client, "compute", "v2.1") }
    }

    /// The processes that Nova consists of, in all cells; for an administrator.
    pub async fn services(&self) -> Result<Vec<ComputeService>, Error> {
        let call = self.service.call(Method::GET, &["os-services"]).await?;
        self.service.send(&call).await?.member("services")
    }

    /// Whether there is any server, of whatever project; for an administrator. Deleted ones don't count.
    pub async fn any_server(&self) -> Result<bool, Error> {
        let mut call = self.service.call(Method::GET, &["servers"]).await?;
        call.url.query_pairs_mut().extend_pairs([("all_tenants", "1"), ("limit", "1")]);
        let servers: Vec<Value> = self.service.send(&call).await?.member("servers")?;
        Ok(!servers.is_empty())
    }
}
