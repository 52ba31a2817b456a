//! The life of a `ClusterImage`.

use kube::Api;
use kupenstack_api::resources::{ClusterImage, ImageStatus};

use crate::{image::ImageKind, stage::Stage};

impl ImageKind for ClusterImage {
    const KIND: &'static str = "clusterimage";

    fn api(stage: &Stage) -> Api<Self> {
        Api::all(stage.client.clone())
    }

    fn name(stage: &Stage) -> &str {
        &stage.name
    }

    fn status(&self) -> Option<&ImageStatus> {
        self.status.as_ref()
    }

    async fn prepare(_: &Stage) {}
}
