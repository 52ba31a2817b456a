//! What all resource kinds share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Conditions, HasConditions};

/// What becomes of the OpenStack resource when its object is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// It is deleted too.
    #[default]
    Delete,
    /// It is left as it is.
    Retain,
}

/// What the generic flow needs of a resource kind.
pub trait ResourceKind: HasConditions {
    /// Status of the kind.
    type Status: Clone + Default + PartialEq + Serialize + for<'de> Deserialize<'de> + Send + Sync;

    /// The status last written.
    fn status(&self) -> Option<&Self::Status>;
    /// What becomes of the resource when the object is deleted.
    fn deletion_policy(&self) -> DeletionPolicy;
    /// The identifier recorded in a status.
    fn id(status: &Self::Status) -> Option<&str>;
    /// Sets what every status has.
    fn set_common(status: &mut Self::Status, id: Option<String>, conditions: Conditions, generation: Option<i64>);
}
