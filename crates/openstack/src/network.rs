//! Neutron: its agents.

use http::Method;
use serde::Deserialize;

use crate::{Client, Error, service::ServiceClient};

/// Something that makes networks on a node.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct NetworkAgent {
    /// The program: `ovn-controller`, `neutron-ovn-metadata-agent`.
    pub binary: String,
    /// The node that it runs on.
    pub host: String,
    /// Whether its heartbeats come.
    pub alive: bool,
}

/// Neutron as one user sees it.
#[derive(Debug, Clone)]
pub struct Network {
    service: ServiceClient,
}

impl Network {
    pub(crate) fn new(client: Client) -> Self {
        Self { service: ServiceClient::new(client, "network", "v2.0") }
    }

    /// The agents of all nodes; for an administrator.
    pub async fn agents(&self) -> Result<Vec<NetworkAgent>, Error> {
        let call = self.service.call(Method::GET, &["agents"]).await?;
        self.service.send(&call).await?.member("agents")
    }
}
