//! Changes of an image by JSON patch.

use serde_json::Value;

use super::{
    Glance,
    image::{Image, check_settable},
};
use crate::sim::{
    http::{Answer, Outcome, Refusal},
    service::{Call, Caller},
};

/// Attributes that an image always has.
const BASE: [&str; 10] = [
    "name",
    "disk_format",
    "container_format",
    "visibility",
    "owner",
    "min_disk",
    "min_ram",
    "protected",
    "os_hidden",
    "tags",
];

/// One operation.
enum Change {
    Add(Value),
    Replace(Value),
    Remove,
}

impl Glance {
    pub(super) fn patch(&mut self, call: &mut Call<'_>) -> Outcome {
        let media_type = call.request.header("content-type").unwrap_or_default();
        if !media_type.starts_with("application/openstack-images-v2.1-json-patch") {
            let words = format!("The request media type {media_type} is not supported by this server.\n");
            return Err(Refusal::new(http::StatusCode::UNSUPPORTED_MEDIA_TYPE, words).with_detail(
                "Image PATCH expects Content-Type one of: application/openstack-images-v2.0-json-patch, \
                 application/openstack-images-v2.1-json-patch",
            ));
        }
        let Value::Array(operations) = call.request.json() else {
            return Err(Refusal::bad_request("Request body must be a JSON array of operation objects."));
        };
        let operations: Vec<(String, Change)> = operations.into_iter().map(read).collect::<Result<_, _>>()?;
        let mut image = self.own(call, "modify_image")?.clone();
        for (name, change) in operations {
            apply(&mut image, &name, change, &call.caller)?;
        }
        image.updated_at = call.now;
        let body = image.shown();
        self.put(call.now, image);
        Ok(Answer::ok(&body))
    }
}

fn read(mut operation: Value) -> Result<(String, Change), Refusal> {
    let path = operation["path"].as_str().unwrap_or_default();
    let Some(name) = path.strip_prefix('/').filter(|name| !name.is_empty()) else {
        return Err(Refusal::bad_request(format!("Pointer `{path}` does not start with \"/\".")));
    };
    if name.contains('/') {
        return Err(Refusal::bad_request(format!("Invalid JSON pointer for this resource: '{path}'")));
    }
    let name = name.replace("~1", "/").replace("~0", "~");
    check_settable(&name)?;
    let known = "It must be one of the following: add, remove, replace.";
    let op = operation["op"].as_str().unwrap_or_default().to_owned();
    let value = operation.get_mut("value").map(Value::take);
    let change = match (op.as_str(), value) {
        ("remove", _) => Change::Remove,
        ("add", Some(value)) => Change::Add(value),
        ("replace", Some(value)) => Change::Replace(value),
        ("add" | "replace", None) => {
            return Err(Refusal::bad_request(format!("Operation \"{op}\" requires a member named \"value\".")));
        }
        ("", _) => return Err(Refusal::bad_request(format!("Unable to find `op` in JSON Schema change. {known}"))),
        _ => return Err(Refusal::bad_request(format!("Invalid operation: `{op}`. {known}"))),
    };
    Ok((name, change))
}

fn apply(image: &mut Image, name: &str, change: Change, caller: &Caller) -> Result<(), Refusal> {
    let is_base = BASE.contains(&name);
    match change {
        Change::Remove if is_base => return Err(denied(format!("Property {name} may not be removed."))),
        Change::Remove if image.properties.remove(name).is_some() => return Ok(()),
        Change::Remove => return Err(conflicting(format!("Property {name} does not exist."))),
        Change::Replace(_) if !is_base && !image.properties.contains_key(name) => {
            return Err(conflicting(format!("Property {name} does not exist.")));
        }
        Change::Replace(_) if name == "owner" && !caller.is_admin() => {
            return Err(denied("Owner can't be updated by non admin.".to_owned()));
        }
        Change::Add(value) | Change::Replace(value) => {
            let public = value == "public" && image.visibility != "public";
            if name == "visibility" && public && !caller.is_admin() {
                return Err(Refusal::forbidden("You are not authorized to complete publicize_image action."));
            }
            if matches!(name, "disk_format" | "container_format") && image.status != "queued" {
                let words = "can be only replaced for a queued image.";
                return Err(Refusal::forbidden(format!("Attribute {name} {words}")));
            }
            image.set(name, value)?;
        }
    }
    Ok(())
}

fn denied(detail: String) -> Refusal {
    Refusal::forbidden("Access was denied to this resource.").with_detail(detail)
}

fn conflicting(detail: String) -> Refusal {
    Refusal::conflict("There was a conflict when trying to complete your request.").with_detail(detail)
}
