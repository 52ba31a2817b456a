//! What every kind's status shares.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// Conditions in the standard Kubernetes shape: `Ready` always; `Reconciling` and `Stalled` only while true.
pub type Conditions = Vec<Condition>;

/// A kind whose status carries conditions.
pub trait HasConditions {
    /// The conditions last written, empty when there is no status yet.
    fn conditions(&self) -> &[Condition];
}
