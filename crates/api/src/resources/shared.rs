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

/// Implements [`ResourceKind`] for a kind whose status has the fields `id`, `conditions` and `observed_generation`.
macro_rules! resource_kind {
    ($kind:ident, $status:ident { $($own:tt)* }) => {
        impl $crate::HasConditions for $kind {
            fn conditions(&self) -> &[k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition] {
                self.status.as_ref().map_or(&[], |s| &s.conditions)
            }
        }

        impl $crate::resources::ResourceKind for $kind {
            type Status = $status;

            fn status(&self) -> Option<&$status> {
                self.status.as_ref()
            }
            fn id(status: &$status) -> Option<&str> {
                status.id.as_deref()
            }
            fn set_common(
                status: &mut $status,
                id: Option<String>,
                conditions: $crate::Conditions,
                generation: Option<i64>,
            ) {
                status.id = id;
                status.conditions = conditions;
                status.observed_generation = generation;
            }
            $($own)*
        }
    };
}
pub(super) use resource_kind;
