//! Why a pass of the rollout engine failed.

use kupenstack_runtime::Failure;

/// Why a pass of the rollout engine failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Helm failed.
    #[error("helm failed for the release")]
    Helm(#[from] kupenstack_helm::Error),
    /// The chart refuses the values: what the user wrote in `conf`, `values` or `images` does not fit.
    #[error("spec.conf and spec.values: the chart can't be rendered with them")]
    Values(#[source] kupenstack_helm::Error),
    /// Kubernetes refused a request or was not reachable.
    #[error("the Kubernetes API refused a request")]
    Kubernetes(#[source] Failure),
    /// The chart is not there or not readable.
    #[error("the chart in {path} can't be read")]
    Chart {
        /// Folder of the chart.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A rendered object is not what Kubernetes expects.
    #[error("the chart renders a {what} that can't be used")]
    Rendered {
        /// What it should be.
        what: &'static str,
        /// Why.
        source: serde_json::Error,
    },
    /// Helm's record of a revision can't be read.
    #[error("Helm's record {name} can't be read: {reason}")]
    Record {
        /// Name of the Secret.
        name: String,
        /// Why.
        reason: String,
    },
    /// A Secret of generated credentials lost a key. It is not generated anew: what runs still uses the old value.
    #[error("Secret {secret} has no usable key {key}; restore it from a backup")]
    Credential {
        /// Name of the Secret.
        secret: String,
        /// Name of the key.
        key: String,
    },
    /// A release made by hand does not say a password that it runs with.
    #[error(
        "release {release} was made by hand without the value {path}; set it there by helm upgrade --reuse-values, as it is in use"
    )]
    NoPassword {
        /// Name of the release.
        release: String,
        /// Path of the value.
        path: String,
    },
}

impl Error {
    /// Whether only a person can cure it; everything else may pass by itself.
    pub(crate) fn needs_a_person(&self) -> bool {
        match self {
            Self::Values(_)
            | Self::Chart { .. }
            | Self::Rendered { .. }
            | Self::Credential { .. }
            | Self::Record { .. }
            | Self::NoPassword { .. } => true,
            Self::Helm(_) | Self::Kubernetes(_) => false,
        }
    }

    /// Reason word for conditions, events and metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Helm(e) => e.reason(),
            Self::Values(_) => "ValuesRefused",
            Self::Kubernetes(e) => e.reason(),
            Self::Chart { .. } => "ChartUnreadable",
            Self::Rendered { .. } => "ChartUnusable",
            Self::Credential { .. } => "CredentialLost",
            Self::Record { .. } => "RecordUnreadable",
            Self::NoPassword { .. } => "PasswordUnknown",
        }
    }
}

impl From<kube::Error> for Error {
    fn from(e: kube::Error) -> Self {
        Self::Kubernetes(e.into())
    }
}

impl From<Failure> for Error {
    fn from(e: Failure) -> Self {
        Self::Kubernetes(e)
    }
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        Self::new(e.reason(), e)
    }
}
