//! What an image is.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};
use strum::{Display, EnumString};

use crate::service::{Query, given};

/// An image. It is written as Glance writes it, without what Glance would write as null.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct Image {
    /// The image's id.
    pub id: String,
    /// Its name, not unique.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How far it is.
    pub status: ImageStatus,
    /// Bytes of data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Bytes of the disk that the data describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_size: Option<u64>,
    /// MD5 of the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// The algorithm of the other hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os_hash_algo: Option<String>,
    /// The other hash of the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os_hash_value: Option<String>,
    /// Such as `qcow2` or `raw`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_format: Option<String>,
    /// Such as `bare`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_format: Option<String>,
    /// Who may see it.
    pub visibility: Visibility,
    /// The project it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The smallest disk that holds it, in GiB.
    #[serde(default)]
    pub min_disk: u32,
    /// The memory that it needs, in MiB.
    #[serde(default)]
    pub min_ram: u32,
    /// Whether it refuses to be deleted.
    #[serde(default)]
    pub protected: bool,
    /// Its tags.
    #[serde(default)]
    pub tags: Vec<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// Every other attribute: in this API they are neighbours of the ones above.
    #[serde(flatten, deserialize_with = "properties")]
    pub properties: BTreeMap<String, String>,
}

/// Base attributes without a field of their own; they are no properties.
const NOT_PROPERTIES: [&str; 7] = ["direct_url", "file", "locations", "os_hidden", "schema", "self", "stores"];

fn properties<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    let rest = Map::<String, Value>::deserialize(deserializer)?;
    let property = |(key, value)| match value {
        Value::String(text) if !NOT_PROPERTIES.contains(&String::as_str(&key)) => Some((key, text)),
        _ => None,
    };
    Ok(rest.into_iter().filter_map(property).collect())
}

/// How far an image is.
#[derive(Debug, Clone, PartialEq, Eq, Display, EnumString, Deserialize, Serialize)]
#[serde(from = "String", into = "String")]
#[strum(serialize_all = "snake_case")]
pub enum ImageStatus {
    /// It has no data yet.
    Queued,
    /// Data is being uploaded.
    Saving,
    /// Data is being staged for an import.
    Uploading,
    /// An import is under way.
    Importing,
    /// Ready for use.
    Active,
    /// An upload failed half-way; its data can't be used.
    Killed,
    /// An administrator forbids downloads.
    Deactivated,
    /// Gone.
    Deleted,
    /// Gone, its data soon.
    PendingDelete,
    /// A status of a newer Glance.
    #[strum(default)]
    Unknown(String),
}

impl From<String> for ImageStatus {
    fn from(text: String) -> Self {
        text.parse().unwrap_or(Self::Unknown(text))
    }
}

impl From<ImageStatus> for String {
    fn from(status: ImageStatus) -> Self {
        status.to_string()
    }
}

/// Who may see an image.
#[derive(Debug, Clone, Default, PartialEq, Eq, Display, EnumString, Deserialize, Serialize)]
#[serde(from = "String", into = "String")]
#[strum(serialize_all = "snake_case")]
pub enum Visibility {
    /// Everyone, in everyone's lists.
    Public,
    /// Its own project.
    Private,
    /// Its own project, and projects that it is shared with.
    #[default]
    Shared,
    /// Everyone, but in nobody's list.
    Community,
    /// A visibility of a newer Glance.
    #[strum(default)]
    Unknown(String),
}

impl From<String> for Visibility {
    fn from(text: String) -> Self {
        text.parse().unwrap_or(Self::Unknown(text))
    }
}

impl From<Visibility> for String {
    fn from(visibility: Visibility) -> Self {
        visibility.to_string()
    }
}

/// An image to be made.
#[derive(Debug, Clone)]
pub struct NewImage {
    /// A UUID of our choice: it makes a second create of the same image impossible.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Such as `qcow2` or `raw`.
    pub disk_format: String,
    /// Mostly `bare`.
    pub container_format: String,
    /// Who may see it.
    pub visibility: Visibility,
    /// The smallest disk that holds it, in GiB.
    pub min_disk: u32,
    /// The memory that it needs, in MiB.
    pub min_ram: u32,
    /// Its tags.
    pub tags: Vec<String>,
    /// Properties such as `hw_disk_bus`; the names of attributes can't be used.
    pub properties: BTreeMap<String, String>,
}

impl NewImage {
    pub(super) fn body(&self) -> Value {
        let mut body = json!(self.properties);
        body["id"] = json!(self.id);
        body["name"] = json!(self.name);
        body["disk_format"] = json!(self.disk_format);
        body["container_format"] = json!(self.container_format);
        body["visibility"] = json!(self.visibility.to_string());
        body["min_disk"] = json!(self.min_disk);
        body["min_ram"] = json!(self.min_ram);
        body["tags"] = json!(self.tags);
        body
    }
}

/// One change of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageChange {
    name: String,
    value: Option<Value>,
}

impl ImageChange {
    /// Sets an attribute or a property, be it there already or not.
    pub fn set(name: impl Into<String>, value: impl Into<Value>) -> Self {
        Self { name: name.into(), value: Some(value.into()) }
    }

    /// Removes a property; one that is not there is a conflict.
    pub fn remove(name: impl Into<String>) -> Self {
        Self { name: name.into(), value: None }
    }

    pub(super) fn operation(&self) -> Value {
        let path = format!("/{}", self.name.replace('~', "~0").replace('/', "~1"));
        match &self.value {
            // JSON patch's add replaces what is there.
            Some(value) => json!({"op": "add", "path": path, "value": value}),
            None => json!({"op": "remove", "path": path}),
        }
    }
}

/// Which images to list; all of what is set has to fit.
#[derive(Debug, Clone, Default)]
pub struct ImageFilter {
    /// The name.
    pub name: Option<String>,
    /// The project it belongs to.
    pub owner: Option<String>,
    /// Who may see it. Without it, Glance leaves out community images of others.
    pub visibility: Option<Visibility>,
}

/// Glance's own page size is 25; this saves round trips and stays below its limit of 1000.
const PAGE_SIZE: u32 = 200;

/// Glance's own limit, unless it is configured to a smaller one: it then gives fewer, and a link to the next page.
const LARGEST_PAGE: u32 = 1000;

/// Asks for all images but those that are hidden, or only for those.
pub(super) fn everything(hidden: bool) -> Query {
    vec![
        ("limit", LARGEST_PAGE.to_string()),
        ("visibility", "all".to_owned()),
        ("os_hidden", hidden.to_string()),
        ("sort", "created_at:asc,id:asc".to_owned()),
    ]
}

impl ImageFilter {
    pub(super) fn query(&self) -> Query {
        given([
            ("limit", Some(PAGE_SIZE.to_string())),
            ("name", self.name.clone()),
            ("owner", self.owner.clone()),
            ("visibility", self.visibility.as_ref().map(ToString::to_string)),
        ])
    }
}

#[cfg(test)]
mod tests;
