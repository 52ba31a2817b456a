//! Users' own Secrets, which the operator reads and makes only where it is let.

use kupenstack_core::Outcome;

use crate::stop::Stop;

/// What it means that a Secret can't be read or made. That the operator may not is for the user or an administrator to change,
/// and is tried again.
pub(crate) fn refused(error: kube::Error, name: &str) -> Stop {
    match error {
        kube::Error::Api(status) if status.is_forbidden() => {
            let message = format!(
                "the operator has no right to Secret {name}: bind a Role in this namespace to it that lets it get and create \
                 secrets, or have the operator installed with userSecrets.enabled ({})",
                status.message
            );
            Outcome::blocked("Forbidden", message).into()
        }
        other => other.into(),
    }
}
