//! The dark arrow: OpenStack itself as Kubernetes objects.
//!
//! One rollout [`engine`] drives every service; a service is one module in [`services`] that says what its chart
//! needs. The top-level controller of `OpenStack` creates the service objects and sums them up. This crate must not
//! know the resources that users create in OpenStack, nor how Helm is called.

mod admission;
mod adopt;
mod applied;
mod board;
mod build;
mod catalogue;
mod checklist;
mod cleaning;
mod cloud;
mod collector;
mod config;
mod controller;
mod credentials;
mod drift;
mod engine;
mod error;
mod exposure;
mod fernet;
mod inventory;
mod jobs;
mod pass;
mod probe;
mod record;
mod references;
mod removal;
mod replacement;
mod rollout;
mod service;
mod services;
mod target;
mod values;
mod workloads;

use std::{path::PathBuf, sync::Arc};

use futures::future::BoxFuture;
use kupenstack_helm::Helm;
use kupenstack_runtime::Context;

pub use admission::rules;
pub use error::Error;
pub use probe::{NotProven, Prober, Requests};
pub use target::Patience;

/// Annotation on a service's object: another value tries a change again that was taken back.
const RETRY: &str = "kupenstack.io/retry";

/// Annotation on a service's object: the revision that pods on nodes with VMs are brought to, one after the other.
const REPLACE: &str = "kupenstack.io/replace-pods";

/// What the controllers of this crate need to know of their surroundings.
#[derive(Clone)]
pub struct Settings {
    /// Helm.
    pub helm: Arc<dyn Helm>,
    /// Folder with one chart per service.
    pub charts: PathBuf,
    /// Namespace that the cloud runs in; the operator's rights end there.
    pub cloud_namespace: String,
    /// How services are proven to work.
    pub prober: Arc<dyn Prober>,
    /// How long trouble with a change is borne with.
    pub patience: Patience,
}

/// The controllers by name, ready to be run.
pub fn controllers(context: &Context, settings: &Settings) -> Vec<(&'static str, BoxFuture<'static, ()>)> {
    let board = board::Board::start(context, &settings.cloud_namespace);
    let references = references::References::start(context, &settings.cloud_namespace);
    let engine = Arc::new(engine::Engine::new(context, settings, Arc::clone(&board)));
    let mut all = vec![cloud::controller(context, settings, Arc::clone(&board))];
    all.extend(services::controllers(context, &engine, &board, &references, &settings.cloud_namespace));
    all
}
