//! What is the same for all that was in OpenStack before its object: exactly one has to fit, and nobody takes over what
//! is not to be his.

use kupenstack_core::Outcome;

use crate::{
    actuator::{Kind, Target},
    observe::Listed,
    stop::Stop,
};

/// The only one that fits. Several that fit are none.
///
/// The heir of a project's user adopts nothing, and an object that is being deleted nothing new: what was never taken
/// over is not to be deleted.
pub(crate) async fn only<K: Kind, R>(
    target: &Target<K>,
    candidates: impl Future<Output = Result<Vec<R>, Stop>>,
) -> Result<Option<R>, Stop> {
    if target.owner.is_none() || target.object.meta().deletion_timestamp.is_some() {
        return Ok(None);
    }
    let mut fitting = candidates.await?;
    Ok(if fitting.len() == 1 { fitting.pop() } else { None })
}

/// Why there is nothing to adopt of `those`, as people call what is looked among.
pub(crate) fn missing<R: Listed>(fitting: &[R], those: &str) -> Outcome {
    match fitting {
        [first, second, ..] => {
            let message = format!(
                "spec.adopt: {} of the {those} fit, {} and {} among them; name one of them by its id",
                fitting.len(),
                first.id(),
                second.id()
            );
            Outcome::waiting("AmbiguousAdoption", message)
        }
        _ => Outcome::waiting("NothingToAdopt", format!("spec.adopt: none of the {those} fits")),
    }
}
