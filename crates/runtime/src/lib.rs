//! The only crate that touches kube-runtime: watches and pruned stores, the controller wrapper with its pace,
//! server-side apply and finalizers, events, metrics, the HTTP server for probes and metrics, the leader's lease.
//!
//! It must not know any kind of ours, OpenStack or Helm. There is no way around it: every watch is pruned and
//! survives objects that can't be decoded, every controller has a concurrency limit, every requeue has jitter.

pub mod apply;
mod controller;
mod events;
mod failure;
mod health;
pub mod lease;
pub mod metrics;
mod news;
mod own_writes;
mod pace;
pub mod server;
mod watch;

pub use controller::{Context, Controller, Objects, Reconcile, Told};
pub use events::Events;
pub use failure::Failure;
pub use health::Health;
pub use pace::{growing, jittered};
pub use watch::{Shared, changes_of};

pub use kube::runtime::reflector::ObjectRef;
