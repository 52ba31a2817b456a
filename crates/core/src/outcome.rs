//! What a pass over an object came to.

use std::time::Duration;

/// Result of a pass that did not fail. Waiting is not an error, and nothing is terminal: every state is looked
/// at again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As declared. `reason` says how (`Ready`, `Paused`, …).
    Done {
        /// One CamelCase word.
        reason: &'static str,
        /// A sentence for people.
        message: String,
    },
    /// Something that may come by itself is missing; look again after `after` unless an event comes first.
    Waiting {
        /// One CamelCase word that says who must act.
        reason: &'static str,
        /// What is waited for.
        message: String,
        /// Longest time until the next look.
        after: Duration,
    },
    /// Only a person can cure this. It is still looked at again, at a growing pace.
    Blocked {
        /// One CamelCase word that says who must act.
        reason: &'static str,
        /// What is wrong, where, and the remedy.
        message: String,
    },
}

/// Reasons that several kinds share.
pub mod reason {
    /// As declared.
    pub const READY: &str = "Ready";
    /// The object is paused by its spec.
    pub const PAUSED: &str = "Paused";
    /// Another object has to come first.
    pub const DEPENDENCY: &str = "DependencyNotReady";
    /// The cloud does not answer or is being set up.
    pub const CLOUD_UNAVAILABLE: &str = "CloudUnavailable";
    /// The namespace has no project yet.
    pub const PROJECT_NOT_READY: &str = "ProjectNotReady";
    /// The spec asks for something impossible.
    pub const INVALID_SPEC: &str = "InvalidSpec";
    /// What is there was not made by us and is left alone.
    pub const NAME_CLASH: &str = "NameClash";
    /// The object is being deleted.
    pub const DELETING: &str = "Deleting";
}

impl Outcome {
    /// As declared.
    pub fn ready(message: impl Into<String>) -> Self {
        Self::Done { reason: reason::READY, message: message.into() }
    }

    /// Waiting for something, with the default pace of 15 s.
    pub fn waiting(reason: &'static str, message: impl Into<String>) -> Self {
        Self::Waiting { reason, message: message.into(), after: Duration::from_secs(15) }
    }

    /// Waiting for a person.
    pub fn blocked(reason: &'static str, message: impl Into<String>) -> Self {
        Self::Blocked { reason, message: message.into() }
    }

    /// The same outcome, looked at again after `after` at the latest if it is a wait.
    #[must_use]
    pub fn within(self, after: Duration) -> Self {
        match self {
            Self::Waiting { reason, message, .. } => Self::Waiting { reason, message, after },
            other => other,
        }
    }

    /// The same outcome, looked at again no later than `after` if it is a wait.
    #[must_use]
    pub fn sooner(self, limit: Duration) -> Self {
        match self {
            Self::Waiting { reason, message, after } => Self::Waiting { reason, message, after: after.min(limit) },
            other => other,
        }
    }

    /// The reason word.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Done { reason, .. } | Self::Waiting { reason, .. } | Self::Blocked { reason, .. } => reason,
        }
    }

    /// The message for people.
    pub fn message(&self) -> &str {
        match self {
            Self::Done { message, .. } | Self::Waiting { message, .. } | Self::Blocked { message, .. } => message,
        }
    }

    /// Whether the object is as declared.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done { .. })
    }
}
