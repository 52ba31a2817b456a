//! What is wrong with a source, said to the one who can put it right.

use kupenstack_core::Outcome;
use kupenstack_images::{Actor, Error};
use kupenstack_runtime::Failure;

use crate::stop::Stop;

/// A user's fault blocks, and names the field and the remedy; everything else is tried again at a growing pace.
pub(super) fn stop(error: Error) -> Stop {
    if matches!(error, Error::Crowded { .. }) {
        return Outcome::waiting(error.reason(), error.to_string()).into();
    }
    // to us an untrusted certificate and a dead server may look alike, but waiting cures only the latter
    if error.actor() == Actor::User || matches!(error, Error::Tls { .. }) {
        return outcome(&error).into();
    }
    Stop::Trouble(Failure::new(error.reason(), error))
}

/// The fault as a block.
pub(super) fn outcome(error: &Error) -> Outcome {
    let (field, remedy) = match error {
        Error::ChecksumMismatch { .. } => {
            ("spec.checksum", "put the declared file at spec.src, or create another Image with the right checksum")
        }
        Error::Tls { .. } => ("spec.src", "the server needs a certificate that the operator trusts"),
        Error::Forbidden { .. } => ("spec.src", "make the file readable without a login"),
        Error::NotFound { .. } | Error::Empty { .. } => {
            ("spec.src", "put the file there, or create another Image with the right address")
        }
        Error::ForbiddenAddress { .. } => (
            "spec.src",
            "create another Image with an address that you could fetch from yourself, or ask the people who run the \
             operator to allow this one (imageSources.allow of its chart)",
        ),
        Error::NoConversion { .. } => ("spec.format", "create another Image with another format"),
        Error::UnsupportedFormat { .. } | Error::UnsafeImage { .. } | Error::Damaged { .. } => {
            ("spec.src", "provide a complete disk image in one of the formats that spec.format knows")
        }
        Error::TooLarge { .. } => ("spec.src", "provide a smaller image"),
        _ => ("spec.src", "create another Image with an address that works"),
    };
    Outcome::blocked(error.reason(), format!("{field}: {error}; {remedy}"))
}
