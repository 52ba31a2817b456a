//! `kupenstack.io/v1`: what users want from their OpenStack, as Kubernetes objects.

mod cluster_image;
mod image;
mod shared;

pub use cluster_image::{ClusterImage, ClusterImageSpec};
pub use image::{Image, ImageFormat, ImageSpec, ImageStatus};
pub use shared::{DeletionPolicy, ResourceKind};

/// API group of the kinds in this module.
pub const GROUP: &str = "kupenstack.io";

/// Annotation on a Namespace: id of its project.
pub const PROJECT_ID: &str = "kupenstack.io/project-id";
/// Annotation on a Namespace: name of its project.
pub const PROJECT_NAME: &str = "kupenstack.io/project-name";
/// Annotation on a Namespace: `ignore` leaves it without a project.
pub const PROJECT: &str = "kupenstack.io/project";
