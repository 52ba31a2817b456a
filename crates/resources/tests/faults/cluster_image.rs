//! The life of a `ClusterImage`.

use kube::Api;
use kupenstack_api::resources::ClusterImage;
use kupenstack_testkit::sim::Cloud;
use serde_json::Value;

use crate::{image, object::ObjectKind, point::Phase, stage::Stage};

impl ObjectKind for ClusterImage {
    const COUNTED: &'static str = "images";
    const CONTROLLERS: &'static [&'static str] = &["projects", "clusterimage"];

    /// Where its file is.
    type Given = String;

    fn api(stage: &Stage) -> Api<Self> {
        Api::all(stage.client.clone())
    }

    fn name(stage: &Stage) -> &str {
        &stage.name
    }

    async fn prepare(_: &Stage) {}

    fn spec(src: &String, _: &Stage) -> Value {
        image::spec(src)
    }

    fn edit() -> Value {
        image::edit()
    }

    fn check(cloud: &Cloud, id: &str, phase: Phase) -> Result<(), String> {
        image::check(cloud, id, phase)
    }
}
