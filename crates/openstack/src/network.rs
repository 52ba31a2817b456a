//! Neutron: networks, subnets and ports, security groups and their rules, routers, floating IPs, agents.

mod agents;
mod floating_ips;
mod groups;
mod networks;
mod ports;
mod routers;
mod subnets;

use std::marker::PhantomData;

use futures::Stream;
use http::Method;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

pub use agents::NetworkAgent;
pub use floating_ips::{FloatingIp, FloatingIpAttributes};
pub use groups::{SecurityGroup, SecurityGroupAttributes, SecurityGroupRule, SecurityGroupRuleAttributes};
pub use networks::{Network, NetworkAttributes};
pub use ports::{AddressPair, FixedIp, Port, PortAttributes, WantedIp};
pub use routers::{Gateway, InterfaceBy, Router, RouterAttributes, RouterInterface, WantedGateway};
pub use subnets::{AllocationPool, Route, Subnet, SubnetAttributes};

use crate::{
    Client, Error,
    service::{self, Query, ServiceClient, given},
};

/// More than anybody has who looks for one of his own. Neutron gives as many as it is asked for, unless it is configured
/// to give fewer: then there is a link to the next page.
const PAGE_SIZE: u32 = 1000;

/// Neutron as one user sees it.
#[derive(Debug, Clone)]
pub struct NetworkService {
    service: ServiceClient,
}

impl NetworkService {
    pub(crate) fn new(client: Client) -> Self {
        Self { service: ServiceClient::new(client, "network", "v2.0") }
    }

    /// Networks.
    pub fn networks(&self) -> Collection<Network> {
        self.all()
    }

    /// Subnets.
    pub fn subnets(&self) -> Collection<Subnet> {
        self.all()
    }

    /// Ports.
    pub fn ports(&self) -> Collection<Port> {
        self.all()
    }

    /// Routers.
    pub fn routers(&self) -> Collection<Router> {
        self.all()
    }

    /// Floating IPs.
    pub fn floating_ips(&self) -> Collection<FloatingIp> {
        self.all()
    }

    /// Security groups.
    pub fn security_groups(&self) -> Collection<SecurityGroup> {
        self.all()
    }

    /// Rules of security groups.
    pub fn security_group_rules(&self) -> Collection<SecurityGroupRule> {
        self.all()
    }

    fn all<R>(&self) -> Collection<R> {
        Collection { service: self.service.clone(), of: PhantomData }
    }
}

/// An attribute that may also be set to nothing, which differs from leaving it as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Nullable<T>(pub Option<T>);

/// A type of object that Neutron keeps.
pub trait NetworkResource: DeserializeOwned + Send + 'static {
    /// What may be declared of it. What is not set is left to Neutron, or as it is.
    type Attributes: Serialize + Sync;

    /// The key that wraps one of them in a body.
    const NAME: &'static str;
    /// The path of all of them.
    const COLLECTION: &'static str;
    /// The key of a list of them.
    const KEY: &'static str = Self::COLLECTION;

    /// Its id.
    fn id(&self) -> &str;

    /// Grows with every change.
    fn revision(&self) -> u64;
}

/// The objects of one type.
#[derive(Debug, Clone)]
pub struct Collection<R> {
    service: ServiceClient,
    of: PhantomData<fn() -> R>,
}

impl<R: NetworkResource> Collection<R> {
    const LIST: service::Collection = service::Collection { path: R::COLLECTION, key: R::KEY };

    /// An object by its id.
    pub async fn get(&self, id: &str) -> Result<Option<R>, Error> {
        self.service.get_member(&[R::COLLECTION, id], R::NAME).await
    }

    /// The objects that fit, of those the user may see.
    pub fn list(&self, filter: &NetworkFilter) -> impl Stream<Item = Result<R, Error>> + Send + use<R> {
        self.service.clone().list(Self::LIST, filter.query())
    }

    /// Every object of every project; for an administrator, others get what they may see. It is read in the order of the
    /// ids, so that what comes and goes meanwhile shifts nothing: no object is missed or told twice. A marker that was
    /// deleted between two pages ends the list with [`ErrorKind::NotFound`](crate::ErrorKind::NotFound).
    ///
    /// An object that can't be read is left out, and told in the log.
    pub fn survey(&self) -> impl Stream<Item = Result<R, Error>> + Send + use<R> {
        self.service.clone().survey(Self::LIST, in_order())
    }

    /// Makes an object. Nothing keeps a repeated request from making another one.
    pub async fn create(&self, attributes: &R::Attributes) -> Result<R, Error> {
        self.service.post(&[R::COLLECTION], &json!({R::NAME: attributes})).await?.member(R::NAME)
    }

    /// Changes what is set, if the object is still as it was looked at; else
    /// [`ErrorKind::Outdated`](crate::ErrorKind::Outdated).
    pub async fn update(&self, seen: &R, changes: &R::Attributes) -> Result<R, Error> {
        let call = self.service.call(Method::PUT, &[R::COLLECTION, seen.id()]).await?;
        let call = call.json(&json!({R::NAME: changes})).if_revision(seen.revision());
        self.service.send(&call).await?.member(R::NAME)
    }

    /// Deletes an object; false if there is none of that id.
    pub async fn delete(&self, id: &str) -> Result<bool, Error> {
        self.service.delete(&[R::COLLECTION, id]).await
    }
}

/// Which objects to list; all of what is set has to fit.
#[derive(Debug, Clone, Default)]
pub struct NetworkFilter {
    /// The name.
    pub name: Option<String>,
    /// The project it belongs to.
    pub project_id: Option<String>,
    /// Whether it is a network outside of the cloud; for networks.
    pub external: Option<bool>,
    /// The address, of floating IPs.
    pub address: Option<String>,
}

impl NetworkFilter {
    fn query(&self) -> Query {
        let mut query = in_order();
        query.extend(given([
            ("name", self.name.clone()),
            ("project_id", self.project_id.clone()),
            ("router:external", self.external.map(|external| external.to_string())),
            ("floating_ip_address", self.address.clone()),
        ]));
        query
    }
}

fn in_order() -> Query {
    vec![("limit", PAGE_SIZE.to_string()), ("sort_key", "id".to_owned()), ("sort_dir", "asc".to_owned())]
}
