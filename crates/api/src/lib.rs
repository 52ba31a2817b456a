//! The custom resource types of KupenStack, and nothing else.
//!
//! Two API groups: [`cluster`] (`cluster.kupenstack.io`) declares OpenStack itself, [`resources`]
//! (`kupenstack.io`) what users want from it. One file per kind. This crate must not know tokio, a
//! Kubernetes client or OpenStack; it holds no logic but defaults and schema rules, so that other
//! programs can depend on the types alone.

pub mod cluster;
mod common;
pub mod crds;
pub mod resources;

pub use common::{Conditions, HasConditions};

/// Field manager and `app.kubernetes.io/managed-by` value of everything the operator writes.
pub const MANAGER: &str = "kupenstack";
/// Finalizer on every object whose counterpart outside Kubernetes we have to remove first.
pub const FINALIZER: &str = "kupenstack.io/finalizer";
