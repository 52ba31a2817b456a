//! What a router is, and its interfaces.

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Collection, FixedIp, NetworkResource, Nullable, Route, WantedIp};
use crate::Error;

/// A router: what connects subnets, and an external network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Router {
    /// The router's id.
    pub id: String,
    /// Its name, not unique.
    #[serde(default)]
    pub name: String,
    /// A text for people.
    #[serde(default)]
    pub description: Option<String>,
    /// The project it belongs to.
    pub project_id: String,
    /// How it is: `ACTIVE`, `ALLOCATING`, `ERROR`.
    pub status: String,
    /// Whether it forwards anything.
    pub admin_state_up: bool,
    /// The way out; none when absent.
    #[serde(default)]
    pub external_gateway_info: Option<Gateway>,
    /// Static routes, in no order.
    #[serde(default)]
    pub routes: Vec<Route>,
    /// Grows with every change, that of its interfaces among them.
    pub revision_number: u64,
}

/// A router's way out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gateway {
    /// The external network.
    pub network_id: String,
    /// Whether what goes out has the router's address.
    #[serde(default)]
    pub enable_snat: Option<bool>,
    /// The router's addresses there.
    #[serde(default)]
    pub external_fixed_ips: Vec<FixedIp>,
}

/// What a router's way out is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WantedGateway {
    /// The external network.
    pub network_id: String,
    /// Whether what goes out has the router's address, as it has when this is not set; for administrators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_snat: Option<bool>,
    /// The router's addresses there, any when not set; for administrators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_fixed_ips: Option<Vec<WantedIp>>,
}

/// What may be declared of a router.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RouterAttributes {
    /// Its name, at most 255 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A text for people, at most 255 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it forwards anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_state_up: Option<bool>,
    /// The way out. A floating IP that needs the one there is keeps it from being changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_gateway_info: Option<Nullable<WantedGateway>>,
    /// All static routes. Their next hops have to be on subnets that the router is connected to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routes: Option<Vec<Route>>,
}

/// What a router's interface is given or told by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterfaceBy<'a> {
    /// A subnet, whose gateway address the router gets on a port of its own.
    Subnet(&'a str),
    /// A port, whose addresses the router gets. It goes with the interface.
    Port(&'a str),
}

impl InterfaceBy<'_> {
    fn body(self) -> Value {
        match self {
            Self::Subnet(id) => json!({"subnet_id": id}),
            Self::Port(id) => json!({"port_id": id}),
        }
    }
}

/// A router's interface.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RouterInterface {
    /// The router's port.
    pub port_id: String,
    /// The subnets it is on.
    #[serde(default)]
    pub subnet_ids: Vec<String>,
}

impl Collection<Router> {
    /// Connects a router to a subnet. One that is connected is refused, as a bad request if it is told by its subnet and
    /// as a conflict if by its port.
    pub async fn add_interface(&self, router: &str, by: InterfaceBy<'_>) -> Result<RouterInterface, Error> {
        self.interface("add_router_interface", router, by).await
    }

    /// Takes an interface away; false if there is none. What a floating IP or a route needs is a conflict.
    pub async fn remove_interface(&self, router: &str, by: InterfaceBy<'_>) -> Result<bool, Error> {
        Ok(Error::absent_is_none(self.interface("remove_router_interface", router, by).await)?.is_some())
    }

    async fn interface(&self, action: &str, router: &str, by: InterfaceBy<'_>) -> Result<RouterInterface, Error> {
        let call = self.service.call(Method::PUT, &[Router::COLLECTION, router, action]).await?;
        self.service.send(&call.json(&by.body())).await?.json()
    }
}

impl NetworkResource for Router {
    type Attributes = RouterAttributes;

    const NAME: &'static str = "router";
    const COLLECTION: &'static str = "routers";

    fn id(&self) -> &str {
        &self.id
    }

    fn revision(&self) -> u64 {
        self.revision_number
    }
}
