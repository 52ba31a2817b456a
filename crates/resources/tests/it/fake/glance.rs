//! Glance: images and their data.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use wiremock::{Request, ResponseTemplate};

use super::{body, keystone::Caller, ok, query, refusal};

/// An image, with all its attributes and properties as Glance shows them.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) owner: String,
    pub(crate) attributes: Map<String, Value>,
    pub(crate) data: Vec<u8>,
}

#[derive(Default)]
pub(crate) struct Glance {
    pub(crate) images: BTreeMap<String, Stored>,
    /// Identifiers of deleted images: they are never given again.
    burnt: BTreeSet<String>,
}

impl Stored {
    pub(crate) fn text(&self, attribute: &str) -> &str {
        self.attributes.get(attribute).and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn set(&mut self, attribute: &str, value: impl Into<Value>) {
        self.attributes.insert(attribute.to_owned(), value.into());
    }
}

impl Glance {
    /// The images of this name, of whoever.
    pub(crate) fn named(&self, name: &str) -> Vec<Stored> {
        self.images.values().filter(|image| image.text("name") == name).cloned().collect()
    }

    /// Puts an image there, as if somebody had made it.
    pub(crate) fn put(&mut self, owner: &str, attributes: Value, data: &[u8]) {
        let Value::Object(mut given) = attributes else { panic!("attributes are an object") };
        let id = given["id"].as_str().expect("an id").to_owned();
        for (key, value) in attributes_of_new() {
            given.entry(key).or_insert(value);
        }
        given.insert("owner".to_owned(), owner.into());
        if !data.is_empty() {
            given.insert("size".to_owned(), data.len().into());
        }
        self.images.insert(id, Stored { owner: owner.to_owned(), attributes: given, data: data.to_vec() });
    }

    /// Deletes an image, as if somebody had done so.
    pub(crate) fn delete(&mut self, id: &str) -> bool {
        let existed = self.images.remove(id).is_some();
        if existed {
            self.burnt.insert(id.to_owned());
        }
        existed
    }

    pub(super) fn answer(&mut self, caller: &Caller, request: &Request, path: &[&str]) -> ResponseTemplate {
        let sees =
            |image: &Stored| caller.is_admin || image.owner == caller.project || image.text("visibility") == "public";
        match (request.method.as_str(), path) {
            ("GET", []) => {
                let name = query(request, "name");
                let fits = |image: &&Stored| sees(image) && name.as_ref().is_none_or(|name| image.text("name") == name);
                ok(200, json!({"images": self.images.values().filter(fits).map(|i| &i.attributes).collect::<Vec<_>>()}))
            }
            ("POST", []) => self.create(caller, &body(request)),
            (method, [id, rest @ ..]) => match self.images.get_mut(*id) {
                Some(image) if sees(image) => match (method, rest) {
                    ("GET", []) => ok(200, Value::Object(image.attributes.clone())),
                    ("PATCH", []) => patch(image, &body(request)),
                    ("PUT", ["file"]) => upload(image, &request.body),
                    ("DELETE", []) => {
                        self.delete(id);
                        ResponseTemplate::new(204)
                    }
                    _ => refusal(405, "no such method"),
                },
                _ => refusal(404, "no image found"),
            },
            _ => refusal(405, "no such method"),
        }
    }

    fn create(&mut self, caller: &Caller, asked: &Value) -> ResponseTemplate {
        let id = asked["id"].as_str().unwrap_or_default().to_owned();
        if self.images.contains_key(&id) || self.burnt.contains(&id) {
            return refusal(409, &format!("Image ID {id} already exists!"));
        }
        self.put(&caller.project, asked.clone(), &[]);
        ok(201, Value::Object(self.images[&id].attributes.clone()))
    }
}

fn attributes_of_new() -> Map<String, Value> {
    let Value::Object(map) = json!({
        "status": "queued", "size": null, "virtual_size": null, "checksum": null, "os_hash_algo": null,
        "os_hash_value": null, "os_hidden": false, "protected": false, "tags": [], "min_disk": 0, "min_ram": 0,
        "visibility": "shared", "created_at": "2026-11-27T10:00:00Z", "updated_at": "2026-11-27T10:00:00Z",
        "schema": "/v2/schemas/image",
    }) else {
        unreachable!()
    };
    map
}

fn patch(image: &mut Stored, operations: &Value) -> ResponseTemplate {
    for operation in operations.as_array().into_iter().flatten() {
        let name = operation["path"].as_str().unwrap_or_default().trim_start_matches('/').to_owned();
        match operation["op"].as_str() {
            Some("remove") if !image.attributes.contains_key(&name) => return refusal(409, "no such property"),
            Some("remove") => drop(image.attributes.remove(&name)),
            _ => drop(image.attributes.insert(name, operation["value"].clone())),
        }
    }
    ok(200, Value::Object(image.attributes.clone()))
}

fn upload(image: &mut Stored, data: &[u8]) -> ResponseTemplate {
    if image.text("status") != "queued" {
        return refusal(409, "the image has data already");
    }
    image.data = data.to_vec();
    image.set("size", data.len());
    image.set("status", "active");
    image.set("os_hash_algo", "sha512");
    image.set("os_hash_value", "0123");
    ResponseTemplate::new(204)
}
