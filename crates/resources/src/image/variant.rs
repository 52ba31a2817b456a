//! What the two kinds of images differ in.

use kupenstack_api::resources::{ClusterImage, Image, ImageSpec, ImageStatus, ResourceKind};
use kupenstack_openstack::Visibility;

use crate::actuator::Kind;

/// A kind of images.
pub(crate) trait Variant: Kind + ResourceKind<Status = ImageStatus> {
    /// Name of the controller.
    const NAME: &'static str;
    /// Who sees a new image.
    const VISIBILITY: Visibility;
    /// Whether the kind promises that, so that it is set right when somebody changes it.
    const KEEPS_VISIBILITY: bool;

    /// The image as declared.
    fn image(&self) -> &ImageSpec;
}

impl Variant for Image {
    const NAME: &'static str = "image";
    const VISIBILITY: Visibility = Visibility::Private;
    /// The project may share what is its own.
    const KEEPS_VISIBILITY: bool = false;

    fn image(&self) -> &ImageSpec {
        &self.spec
    }
}

impl Variant for ClusterImage {
    const NAME: &'static str = "clusterimage";
    const VISIBILITY: Visibility = Visibility::Public;
    const KEEPS_VISIBILITY: bool = true;

    fn image(&self) -> &ImageSpec {
        &self.spec.image
    }
}
