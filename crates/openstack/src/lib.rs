//! A thin `OpenStack` REST client: session, catalogue, paging, retries, and the typed calls that `KupenStack` needs.
//!
//! It knows nothing of Kubernetes, reads no files and no environment, and keeps no state but the token it holds.
//! Types carry only the fields that are used; what a service adds is ignored. Passwords and tokens are never part of
//! a `Debug`, a `Display`, an [`Error`] or a trace.
//!
//! The process chooses rustls' crypto provider: it must be installed before the first [`Client::new`].

mod budget;
mod cache;
mod call;
mod catalog;
mod client;
mod config;
mod error;
mod fault;
mod options;
mod service;
mod session;
mod transport;

pub mod compute;
pub mod identity;
pub mod image;
pub mod network;

pub use budget::Budget;
pub use cache::ClientCache;
pub use call::CallName;
pub use client::Client;
pub use compute::{
    Aggregate, Compute, ComputeService, Flavor, Hypervisor, KeyPair, NewFlavor, NewServer, Server, ServerAction,
    ServerAddress, ServerChanges, ServerFault, ServerFilter, ServerFlavor, ServerGroup, ServiceChanges,
};
pub use config::{CloudConfig, ConfigError, Credentials, DomainRef, Interface, ProjectScope, UnknownInterface};
pub use error::{Cause, Error, ErrorKind};
pub use identity::{
    ApplicationCredential, Domain, Endpoint, Identity, Limit, NewApplicationCredential, NewLimit, NewProject, NewUser,
    Project, ProjectFilter, RegisteredLimit, Role, RoleAssignment, Service, User,
};
pub use image::{Image, ImageChange, ImageFilter, ImageService, ImageStatus, NewImage, Visibility};
pub use network::{
    AddressPair, AllocationPool, FixedIp, FloatingIp, FloatingIpAttributes, Gateway, InterfaceBy, Network,
    NetworkAgent, NetworkAttributes, NetworkFilter, NetworkResource, NetworkService, Nullable, Port, PortAttributes,
    Route, Router, RouterAttributes, RouterInterface, SecurityGroup, SecurityGroupAttributes, SecurityGroupRule,
    SecurityGroupRuleAttributes, Subnet, SubnetAttributes, WantedGateway, WantedIp,
};
pub use options::{Observation, Observer, Options, RetryPolicy, StatusClass};
pub use session::TokenInfo;
