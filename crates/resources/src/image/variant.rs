//! What the two kinds of images differ in.

use kupenstack_api::resources::{ClusterImage, Image, ImageSpec, ImageStatus, ResourceKind};
use kupenstack_openstack::{self as openstack, Visibility};

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

    /// Whether an image may be adopted by who works in this project.
    fn may_adopt(image: &openstack::Image, project: &str) -> bool;
}

impl Variant for Image {
    const NAME: &'static str = "image";
    const VISIBILITY: Visibility = Visibility::Private;
    /// The project may share what is its own.
    const KEEPS_VISIBILITY: bool = false;

    fn image(&self) -> &ImageSpec {
        &self.spec
    }

    /// What every project sees is not one project's to take over.
    fn may_adopt(image: &openstack::Image, project: &str) -> bool {
        image.owner.as_deref() == Some(project)
    }
}

impl Variant for ClusterImage {
    const NAME: &'static str = "clusterimage";
    const VISIBILITY: Visibility = Visibility::Public;
    const KEEPS_VISIBILITY: bool = true;

    fn image(&self) -> &ImageSpec {
        &self.spec.image
    }

    /// Of whichever project, but public already: nothing that a project keeps to itself is published by mistake.
    fn may_adopt(image: &openstack::Image, _: &str) -> bool {
        image.visibility == Visibility::Public
    }
}
