//! Commands and flags.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};

use self::sources::SourceArgs;

pub(crate) mod sources;

/// OpenStack as Kubernetes objects.
#[derive(Debug, Parser)]
#[command(version, about)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run controllers until SIGTERM
    Controller(Box<ControllerArgs>),
    /// Write the custom resource definitions
    Crds {
        /// Folder for one file per kind; standard output when absent
        #[arg(long)]
        dir: Option<PathBuf>,
    },
    /// Write the roles of the operator's accounts as templates of its Helm chart
    Rbac {
        /// Folder for the templates; standard output when absent
        #[arg(long)]
        dir: Option<PathBuf>,
    },
    /// Write the API reference as Markdown
    ApiDocs,
}

#[derive(Debug, Args)]
pub(crate) struct ControllerArgs {
    /// Controllers to run, separated by commas; all when absent
    #[arg(long, value_delimiter = ',')]
    pub(crate) controllers: Vec<String>,
    /// Address for /livez, /readyz and /metrics
    #[arg(long, default_value = "0.0.0.0:8080")]
    pub(crate) listen: SocketAddr,
    /// Folder of the built-in charts
    #[arg(long, default_value = "/usr/share/kupenstack/charts")]
    pub(crate) charts: PathBuf,
    /// Folder for disk images under conversion and other large temporary files
    #[arg(long, default_value = "/var/lib/kupenstack")]
    pub(crate) work_dir: PathBuf,
    /// Room for disk images in that folder, in bytes or as in `20Gi`; as much as the disk has when absent
    #[arg(long, value_parser = sources::bytes)]
    pub(crate) work_dir_size: Option<u64>,
    #[command(flatten)]
    pub(crate) sources: SourceArgs,
    /// Namespace of the cloud; the operator's rights on workloads end there
    #[arg(long, env = "CLOUD_NAMESPACE", default_value = "openstack")]
    pub(crate) cloud_namespace: String,
    /// Namespace of the operator itself; it never becomes a project
    #[arg(long, env = "POD_NAMESPACE", default_value = "kupenstack-system")]
    pub(crate) operator_namespace: String,
    /// Seconds within which a change in OpenStack that others made is seen
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(crate) observe_seconds: u64,
    /// Namespace of the leases `kupenstack-cloud` and `kupenstack-resources`, which one of several replicas holds while it
    /// works; the operator's when absent
    #[arg(long)]
    lease_namespace: Option<String>,
    /// Work without a lease: for development, where no other operator runs
    #[arg(long)]
    pub(crate) without_lease: bool,
    /// Address for requests of API servers: the validating webhook, console logs; nothing is served to them when absent
    #[arg(long, requires = "webhook_names")]
    pub(crate) webhook_listen: Option<SocketAddr>,
    /// Names or addresses under which API servers reach that address, separated by commas
    #[arg(long = "webhook-name", value_delimiter = ',')]
    pub(crate) webhook_names: Vec<String>,
    /// Who cares for the webhook's certificate in the Secret `kupenstack-webhook`
    #[arg(long, value_enum, default_value_t = Certificate::Read)]
    pub(crate) webhook_certificate: Certificate,
    /// Serve the console logs of VMs there, if the controllers of resources are selected, and have the certificate's keeper
    /// see to it that API servers trust it for them too
    #[arg(long, requires = "webhook_listen")]
    pub(crate) console_log: bool,
}

impl ControllerArgs {
    /// Namespace of the leases.
    pub(crate) fn lease_namespace(&self) -> &str {
        self.lease_namespace.as_deref().unwrap_or(&self.operator_namespace)
    }
}

/// Who cares for the webhook's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Certificate {
    /// This process makes it, renews it and has API servers trust it
    Keep,
    /// Somebody else does: another process of the operator, or cert-manager
    Read,
}
