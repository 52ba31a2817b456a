//! What makes networks on the nodes.

use http::Method;
use serde::Deserialize;

use super::NetworkService;
use crate::Error;

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

impl NetworkService {
    /// The agents of all nodes; for an administrator.
    pub async fn agents(&self) -> Result<Vec<NetworkAgent>, Error> {
        let call = self.service.call(Method::GET, &["agents"]).await?;
        self.service.send(&call).await?.member("agents")
    }
}
