//! The life of a `Flavor`.

use kube::Api;
use kupenstack_api::resources::Flavor;
use kupenstack_testkit::sim::Cloud;
use serde_json::{Value, json};

use crate::{object::ObjectKind, point::Phase, stage::Stage};

impl ObjectKind for Flavor {
    const COUNTED: &'static str = "flavors";
    const CONTROLLERS: &'static [&'static str] = &["projects", "flavor"];

    type Given = ();

    fn api(stage: &Stage) -> Api<Self> {
        Api::all(stage.client.clone())
    }

    fn name(stage: &Stage) -> &str {
        &stage.name
    }

    async fn prepare(_: &Stage) {}

    fn spec((): &(), _: &Stage) -> Value {
        json!({"vcpus": 2, "ram": "2Gi", "disk": "20Gi", "description": "first", "extraSpecs": {"a": "1", "b": "2"}})
    }

    fn edit() -> Value {
        json!({"description": "second", "extraSpecs": {"a": "9", "b": null}})
    }

    fn check(cloud: &Cloud, id: &str, phase: Phase) -> Result<(), String> {
        let flavor = cloud.nova.flavor(id).ok_or_else(|| format!("the status tells of flavor {id}"))?;
        let spec = |name: &str| flavor.extra_specs.get(name).map(String::as_str);
        let text = flavor.description.as_deref().unwrap_or_default().split(' ').next();
        let found = (flavor.vcpus, flavor.ram, flavor.disk, text, spec("a"), spec("b"));
        let (text, a, b) =
            if phase == Phase::Create { ("first", Some("1"), Some("2")) } else { ("second", Some("9"), None) };
        let wanted = (2, 2048, 20, Some(text), a, b);
        if found == wanted { Ok(()) } else { Err(format!("{found:?} instead of {wanted:?}")) }
    }
}
