//! What Glance says about itself. Clients ask for it to know which attributes are not properties.

use serde_json::{Map, Value, json};

/// The schema of an image, as far as names and types go.
pub(super) fn image() -> Value {
    let text = |names: &'static [&'static str]| names.iter().map(|name| (*name, json!({"type": ["null", "string"]})));
    let number = |names: &'static [&'static str]| names.iter().map(|name| (*name, json!({"type": "integer"})));
    let flags = ["protected", "os_hidden"].map(|name| (name, json!({"type": "boolean"})));
    let list = ["tags", "locations"].map(|name| (name, json!({"type": "array"})));
    let properties: Map<String, Value> = text(&[
        "id",
        "name",
        "status",
        "visibility",
        "checksum",
        "os_hash_algo",
        "os_hash_value",
        "owner",
        "container_format",
        "disk_format",
        "created_at",
        "updated_at",
        "direct_url",
        "self",
        "file",
        "schema",
        "stores",
    ])
    .chain(number(&["size", "virtual_size", "min_ram", "min_disk"]))
    .chain(flags)
    .chain(list)
    .map(|(name, schema)| (name.to_owned(), schema))
    .collect();
    json!({"name": "image", "properties": properties, "additionalProperties": {"type": "string"}, "links": []})
}

/// The ways of an import. None is simulated, and clients fall back to an upload.
pub(super) fn import_info() -> Value {
    json!({"import-methods": {"description": "Import methods available.", "type": "array", "value": []}})
}
