//! The life of an `Image`, and what that of a `ClusterImage` has in common with it.

use kube::Api;
use kupenstack_api::resources::Image;
use kupenstack_testkit::sim::Cloud;
use serde_json::{Value, json};

use crate::{common::look::disk, object::ObjectKind, point::Phase, stage::Stage};

/// How large their file is.
pub(crate) const SIZE: usize = 4096;

impl ObjectKind for Image {
    const COUNTED: &'static str = "images";
    const CONTROLLERS: &'static [&'static str] = &["projects", "image"];

    /// Where its file is.
    type Given = String;

    fn api(stage: &Stage) -> Api<Self> {
        Api::namespaced(stage.client.clone(), &stage.name)
    }

    fn name(_: &Stage) -> &'static str {
        "disk"
    }

    async fn prepare(stage: &Stage) {
        stage.has_a_project().await;
    }

    fn spec(src: &String, _: &Stage) -> Value {
        spec(src)
    }

    fn edit() -> Value {
        edit()
    }

    fn check(cloud: &Cloud, id: &str, phase: Phase) -> Result<(), String> {
        check(cloud, id, phase)
    }
}

pub(crate) fn spec(src: &str) -> Value {
    json!({"src": src, "format": "raw", "minDisk": 1, "properties": {"a": "1", "b": "2"}})
}

pub(crate) fn edit() -> Value {
    json!({"minDisk": 7, "properties": {"a": "9", "b": null}})
}

pub(crate) fn check(cloud: &Cloud, id: &str, phase: Phase) -> Result<(), String> {
    let image = cloud.glance.image(id).ok_or_else(|| format!("the status tells of image {id}"))?;
    if image.status != "active" || image.data.as_deref() != Some(disk(SIZE).as_slice()) {
        return Err(format!("not the file, and all of it: {image:?}"));
    }
    let property = |name: &str| image.properties.get(name).map(String::as_str);
    let found = (image.min_disk, property("a"), property("b"));
    let wanted = if phase == Phase::Create { (1, Some("1"), Some("2")) } else { (7, Some("9"), None) };
    if found == wanted { Ok(()) } else { Err(format!("{found:?} instead of {wanted:?}")) }
}
