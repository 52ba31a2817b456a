use std::io;
use std::time::Duration;

/// Why a Helm call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The Helm program could not be started, or its pipes broke.
    #[error("cannot run {program}")]
    Spawn {
        /// The program as configured.
        program: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Helm did not end in time and was stopped. A change it was making may be half done.
    #[error("helm {command} did not end within {limit:?}")]
    Timeout {
        /// The Helm command, such as `upgrade`.
        command: &'static str,
        /// The time it was given.
        limit: Duration,
    },
    /// Helm refused or failed.
    #[error("helm {command} failed: {message}")]
    Failed {
        /// The Helm command, such as `upgrade`.
        command: &'static str,
        /// The exit code; none when a signal ended it.
        exit: Option<i32>,
        /// The last lines of what Helm said, bounded.
        message: String,
    },
    /// The newest revision is in a `pending-*` state: another Helm is at work, or was killed at work.
    #[error("another operation on release {release} is in progress or was interrupted")]
    PendingOperation {
        /// The release as `namespace/name`.
        release: String,
    },
    /// There is no such release.
    #[error("release {release} does not exist")]
    ReleaseNotFound {
        /// The release as `namespace/name`.
        release: String,
    },
    /// Helm succeeded but its answer cannot be used: too large, or not of the expected form.
    #[error("unusable answer of helm {command}: {message}")]
    Output {
        /// The Helm command, such as `history`.
        command: &'static str,
        /// What is wrong with the answer.
        message: String,
    },
}

impl Error {
    /// A stable word for conditions, events and metric labels.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Spawn { .. } => "HelmNotRunnable",
            Self::Timeout { .. } => "HelmTimeout",
            Self::Failed { .. } => "HelmFailed",
            Self::PendingOperation { .. } => "ReleasePending",
            Self::ReleaseNotFound { .. } => "ReleaseNotFound",
            Self::Output { .. } => "HelmOutputInvalid",
        }
    }
}
