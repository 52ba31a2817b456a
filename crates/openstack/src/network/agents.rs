//! What makes networks on the nodes.

use http::Method;
use serde::Deserialize;

use super::NetworkService;
use crate::Error;

/// Something that makes networks on a node.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct NetworkAgent {
    /// Neutron's identifier, of a form of its own for each type.
    pub id: String,
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

    /// The agents of one node; for an administrator.
    pub async fn agents_on(&self, host: &str) -> Result<Vec<NetworkAgent>, Error> {
        let call = self.service.call(Method::GET, &["agents"]).await?.query(&[("host", host)]);
        self.service.send(&call).await?.member("agents")
    }

    /// Has Neutron forget an agent, and routers that went out there go out elsewhere; for an administrator. False if there is
    /// no such agent. One that is alive comes back.
    pub async fn delete_agent(&self, id: &str) -> Result<bool, Error> {
        self.service.delete(&["agents", id]).await
    }
}
