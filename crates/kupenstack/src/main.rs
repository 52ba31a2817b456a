//! The operator's program: it parses flags, wires the controllers and runs them.
//!
//! Everything the operator knows lives in the library crates. This one knows only which controllers there are,
//! which rights each needs ([`rbac`]), and how to write the files that are generated from the types.

mod api_docs;
mod cli;
mod controller;
mod crds;
mod output;
mod rbac;

use clap::Parser;

use crate::cli::{Cli, Command};

fn main() -> anyhow::Result<()> {
    // before anything opens a TLS connection: reqwest and kube are built without a provider of their own
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| anyhow::anyhow!("another TLS provider was installed first"))?;
    match Cli::parse().command {
        Command::Controller(args) => controller::main(&args),
        Command::Crds { dir } => output::write(crds::files()?, dir.as_deref()),
        Command::Rbac { dir } => output::write(rbac::files(), dir.as_deref()),
        Command::ApiDocs => output::print(&api_docs::markdown()?),
    }
}
