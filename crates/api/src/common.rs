//! What every kind's status shares.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// Conditions in the standard Kubernetes shape: `Ready` always; `Reconciling` and `Stalled` only while true.
pub type Conditions = Vec<Condition>;

/// A kind whose status carries conditions.
pub trait HasConditions {
    /// The conditions last written, empty when there is no status yet.
    fn conditions(&self) -> &[Condition];
}

/// For `skip_serializing_if`: a field that is as it would be without being written. It also keeps the default out of
/// the schema, so that the API server does not write it into what the user applied.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
