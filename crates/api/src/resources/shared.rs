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

impl DeletionPolicy {
    /// The policy that counts: what an object says, else what is usual for what was made or adopted.
    pub fn effective(declared: Option<Self>, is_adopted: bool) -> Self {
        declared.unwrap_or(if is_adopted { Self::Retain } else { Self::Delete })
    }
}

/// Which resource in OpenStack is meant. Exactly one of the project must fit; while none or several do, the object waits
/// and says so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "has(self.id) != has(self.name)", "message": "exactly one of id and name has to be given"},
    {"rule": "self == oldSelf", "message": "adopt can't be changed, create another object instead"},
]))]
pub struct Adoption {
    /// Its identifier in OpenStack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub id: Option<String>,
    /// Its name in OpenStack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub name: Option<String>,
}

/// What the generic flow needs of a resource kind.
pub trait ResourceKind: HasConditions {
    /// Status of the kind.
    type Status: Clone + Default + PartialEq + Serialize + for<'de> Deserialize<'de> + Send + Sync;

    /// The kind's name, as in a manifest.
    const KIND: &'static str;

    /// The status last written.
    fn status(&self) -> Option<&Self::Status>;
    /// What becomes of the resource when the object is deleted.
    fn deletion_policy(&self) -> DeletionPolicy;
    /// Whether the object takes over what was in OpenStack before.
    fn adopts(&self) -> bool {
        false
    }
    /// The identifier recorded in a status.
    fn id(status: &Self::Status) -> Option<&str>;
    /// The identifier recorded in the status last written.
    fn recorded(&self) -> Option<&str> {
        self.status().and_then(Self::id)
    }
    /// The identifier recorded of what the object has taken over.
    fn taken_over(&self) -> Option<&str> {
        self.recorded().filter(|_| self.adopts())
    }
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

            const KIND: &'static str = stringify!($kind);

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
