//! The one error type that leaves a reconciler.

use std::{error::Error, fmt, sync::Arc};

/// Why a pass failed. `reason` is a CamelCase word used as condition reason, event reason and metric label; the
/// source tells the rest. A failure is tried again at a growing pace; waiting is not a failure.
#[derive(Debug)]
pub struct Failure {
    reason: &'static str,
    source: Box<dyn Error + Send + Sync>,
}

impl Failure {
    /// A failure with its reason word.
    pub fn new(reason: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { reason, source: source.into() }
    }

    /// The reason word.
    pub fn reason(&self) -> &'static str {
        self.reason
    }

    /// The message with all causes, for people.
    pub fn message(&self) -> String {
        let mut text = self.source.to_string();
        let mut cause = self.source.source();
        while let Some(c) = cause {
            let c_text = c.to_string();
            // many libraries repeat their cause in their own message
            if !text.contains(&c_text) {
                text.push_str(": ");
                text.push_str(&c_text);
            }
            cause = c.source();
        }
        text
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())
    }
}

impl Error for Failure {}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Self {
        Self::new(reason_of(&error), error)
    }
}

/// Of a request that several wait for.
impl From<Arc<kube::Error>> for Failure {
    fn from(error: Arc<kube::Error>) -> Self {
        Self::new(reason_of(&error), error)
    }
}

fn reason_of(error: &kube::Error) -> &'static str {
    match error {
        kube::Error::Api(status) => match status.code {
            403 => "KubernetesForbidden",
            409 => "KubernetesConflict",
            _ => "KubernetesRefused",
        },
        _ => "KubernetesUnavailable",
    }
}
