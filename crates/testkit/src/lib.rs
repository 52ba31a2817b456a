//! What tests share: a real Kubernetes control plane on this machine, in a few seconds and without root, a
//! [tap](tap) on what is asked of it, and a [simulated OpenStack](sim).
//!
//! A development dependency only. It must not know any of the crates it serves, and it fails by panicking: a test whose
//! surroundings do not work has no other way to go on.

#![allow(clippy::panic, reason = "a test helper fails the test")]

mod checkout;
mod control_plane;
mod helm;
mod manifests;
mod patience;
mod pki;
mod processes;
pub mod sim;
pub mod tap;

pub use checkout::{crate_folder, repository};
pub use control_plane::{ControlPlane, Options};
pub use helm::{helm_program, helm_programs};
pub use patience::{PATIENCE, eventually, within};

/// Installs the process-wide TLS provider, as every binary of ours does first of all. May be called repeatedly.
pub fn install_tls_provider() {
    // The only error is that one is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
