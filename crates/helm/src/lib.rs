//! The Helm command line behind an object-safe trait: render, upgrade, look, roll back, uninstall.
//!
//! This crate knows how to call Helm (4.1 and later, 3.20 too) and how to read its answers. It must not know what is
//! being deployed, when, or in which order, and it never talks to Kubernetes itself: cutting a stuck record out of a
//! release's history, for example, is done by whoever holds a Kubernetes client (see [`ReleaseRef::record_name`]).
//!
//! Rules that hold for every call:
//! * hooks are never run by Helm and Helm never waits for workloads; both are the caller's business;
//! * values reach Helm through its standard input, so they are neither in the process list nor on a disk;
//! * a call that is dropped takes its Helm process (and everything that one started) with it;
//! * at most a few Helm processes run at once, and never two that change the same release.

mod arguments;
mod cli;
mod error;
mod fake;
mod locks;
mod manifest;
mod release;

use std::future::Future;
use std::pin::Pin;

pub use arguments::description;
pub use cli::{Cli, Settings, Version};
pub use error::Error;
pub use fake::{Call, Fake, Operation};
pub use manifest::{ManifestError, parse_manifests};
pub use release::{
    Capabilities, ChartRef, ContentHash, HASH_LABEL, InvalidContentHash, ReleaseRef, ReleaseState, Rendered, Revision,
    Status, UpgradeOptions, Values,
};

/// The answer of a Helm call, still to be awaited.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// What the operator asks of Helm.
pub trait Helm: Send + Sync {
    /// Renders the chart without touching a cluster: every object it would install, hooks included, CRDs left out.
    fn template<'a>(
        &'a self,
        release: &'a ReleaseRef,
        chart: &'a ChartRef,
        values: &'a Values,
        capabilities: &'a Capabilities,
    ) -> Answer<'a, Rendered>;

    /// Installs the release, or upgrades it when it exists. Runs no hook and waits for no workload.
    ///
    /// A failure may leave the release half applied in state [`ReleaseState::Failed`]: Helm does not undo by itself.
    fn upgrade_install<'a>(
        &'a self,
        release: &'a ReleaseRef,
        chart: &'a ChartRef,
        values: &'a Values,
        options: &'a UpgradeOptions,
    ) -> Answer<'a, Status>;

    /// The recorded revisions, oldest first; empty when there is no such release.
    fn history<'a>(&'a self, release: &'a ReleaseRef) -> Answer<'a, Vec<Revision>>;

    /// The newest revision with the content hash it was made from; [`Error::ReleaseNotFound`] when there is none.
    fn status<'a>(&'a self, release: &'a ReleaseRef) -> Answer<'a, Status>;

    /// The values the newest revision was made from, without the chart's defaults.
    fn get_values<'a>(&'a self, release: &'a ReleaseRef) -> Answer<'a, Values>;

    /// Makes a new revision with the content of `revision`. Runs no hook and waits for no workload.
    fn rollback<'a>(&'a self, release: &'a ReleaseRef, revision: u32) -> Answer<'a, ()>;

    /// Removes the release's objects and its history. Runs no hook; a release that is not there is a success.
    fn uninstall<'a>(&'a self, release: &'a ReleaseRef) -> Answer<'a, ()>;
}
