//! What an image is.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::owns;
use crate::sim::{http::Refusal, service::Caller, table::Row};

/// An image.
#[derive(Debug, Clone)]
pub struct Image {
    /// Its id.
    pub id: String,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// How far it is: `queued`, `saving`, `active`, `deactivated`.
    pub status: &'static str,
    /// Who may see it: `public`, `private`, `shared`, `community`.
    pub visibility: String,
    /// The project it belongs to.
    pub owner: String,
    /// Such as `qcow2`.
    pub disk_format: Option<String>,
    /// Mostly `bare`.
    pub container_format: Option<String>,
    /// GiB.
    pub min_disk: u64,
    /// MiB.
    pub min_ram: u64,
    /// Whether it refuses to be deleted.
    pub protected: bool,
    /// Whether lists leave it out.
    pub os_hidden: bool,
    /// Its tags.
    pub tags: BTreeSet<String>,
    /// Its properties.
    pub properties: BTreeMap<String, String>,
    /// Bytes of data.
    pub size: Option<u64>,
    /// MD5 of the data.
    pub checksum: Option<String>,
    /// SHA-512 of the data.
    pub sha512: Option<String>,
    /// The data, as far as it is kept.
    pub data: Option<Bytes>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// The projects it is shared with.
    pub members: BTreeMap<String, Member>,
}

/// A project that an image is shared with.
#[derive(Debug, Clone)]
pub struct Member {
    /// `pending`, `accepted`, `rejected`.
    pub status: String,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// Attributes that nobody sets.
const READ_ONLY: [&str; 12] = [
    "created_at",
    "updated_at",
    "status",
    "checksum",
    "size",
    "virtual_size",
    "direct_url",
    "self",
    "file",
    "schema",
    "os_hash_algo",
    "os_hash_value",
];
const RESERVED: [&str; 3] = ["location", "deleted", "deleted_at"];
const DISK_FORMATS: [&str; 12] =
    ["ami", "ari", "aki", "vhd", "vhdx", "vmdk", "raw", "qcow2", "vdi", "iso", "ploop", "gpt"];
const CONTAINER_FORMATS: [&str; 7] = ["ami", "ari", "aki", "bare", "ovf", "ova", "docker"];
const VISIBILITIES: [&str; 4] = ["community", "public", "private", "shared"];

impl Image {
    /// An image without data.
    pub fn new(id: String, owner: &str, now: Timestamp) -> Self {
        Self {
            id,
            name: None,
            status: "queued",
            visibility: "shared".to_owned(),
            owner: owner.to_owned(),
            disk_format: None,
            container_format: None,
            min_disk: 0,
            min_ram: 0,
            protected: false,
            os_hidden: false,
            tags: BTreeSet::new(),
            properties: BTreeMap::new(),
            size: None,
            checksum: None,
            sha512: None,
            data: None,
            created_at: now,
            updated_at: now,
            members: BTreeMap::new(),
        }
    }

    pub(in crate::sim) fn is_visible_to(&self, caller: &Caller) -> bool {
        let everyone = matches!(self.visibility.as_str(), "public" | "community");
        let shared = self.visibility == "shared" && self.members.contains_key(caller.project());
        everyone || shared || owns(caller, &self.owner)
    }

    pub(super) fn is_changeable_by(&self, caller: &Caller) -> bool {
        owns(caller, &self.owner)
    }

    /// Sets an attribute of an image that is being made.
    pub(super) fn set_initial(&mut self, name: &str, value: Value) -> Result<(), Refusal> {
        if name != "id" {
            return self.set(name, value);
        }
        let text = value.as_str().unwrap_or_default();
        match text.parse::<uuid::Uuid>() {
            // no other way to write it is accepted
            Ok(id) if text.len() == 36 => self.id = id.to_string(),
            _ => return Err(mismatch(&format!("{value} does not match a UUID"))),
        }
        Ok(())
    }

    /// Sets an attribute or a property.
    pub(super) fn set(&mut self, name: &str, value: Value) -> Result<(), Refusal> {
        check_settable(name)?;
        match name {
            "name" => self.name = text_or_null(name, value, None)?,
            "disk_format" => self.disk_format = text_or_null(name, value, Some(&DISK_FORMATS))?,
            "container_format" => self.container_format = text_or_null(name, value, Some(&CONTAINER_FORMATS))?,
            "visibility" => match text_or_null(name, value, Some(&VISIBILITIES))? {
                Some(visibility) => self.visibility = visibility,
                None => return Err(mismatch("None is not of type 'string'")),
            },
            "owner" => self.owner = text_or_null(name, value, None)?.unwrap_or_default(),
            "min_disk" => self.min_disk = number(&value)?,
            "min_ram" => self.min_ram = number(&value)?,
            "protected" => self.protected = flag(&value)?,
            "os_hidden" => self.os_hidden = flag(&value)?,
            "tags" => {
                match value.as_array().map(|tags| tags.iter().map(|tag| tag.as_str().map(str::to_owned)).collect()) {
                    Some(Some(tags)) => self.tags = tags,
                    _ => return Err(mismatch(&format!("{value} is not of type 'array' of strings"))),
                }
            }
            _ => match value {
                Value::String(text) => drop(self.properties.insert(name.to_owned(), text)),
                other => return Err(mismatch(&format!("{other} is not of type 'string'"))),
            },
        }
        Ok(())
    }

    /// The image as Glance shows it.
    pub(super) fn shown(&self) -> Value {
        let mut shown: Map<String, Value> =
            self.properties.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        let path = format!("/v2/images/{}", self.id);
        let algorithm = self.sha512.as_ref().map(|_| "sha512");
        let base = json!({
            "id": self.id, "name": self.name, "status": self.status, "visibility": self.visibility,
            "owner": self.owner, "disk_format": self.disk_format, "container_format": self.container_format,
            "min_disk": self.min_disk, "min_ram": self.min_ram, "protected": self.protected,
            "os_hidden": self.os_hidden, "tags": self.tags, "size": self.size, "virtual_size": self.virtual_size(),
            "checksum": self.checksum, "os_hash_algo": algorithm, "os_hash_value": self.sha512,
            "created_at": stamp(self.created_at), "updated_at": stamp(self.updated_at),
            "self": path, "file": format!("{path}/file"), "schema": "/v2/schemas/image",
        });
        if let Value::Object(base) = base {
            shown.extend(base);
        }
        if self.size.is_some() && self.status != "saving" {
            shown.insert("stores".to_owned(), json!("file"));
        }
        Value::Object(shown)
    }

    /// Glance looks into the data of formats it knows. Of those, a raw disk is the one that needs no looking.
    fn virtual_size(&self) -> Option<u64> {
        self.size.filter(|_| self.disk_format.as_deref() == Some("raw"))
    }
}

impl Row for Image {
    fn id(&self) -> &str {
        &self.id
    }

    fn keys(&self) -> Vec<(&'static str, String)> {
        let mut keys = vec![("owner", self.owner.clone()), ("visibility", self.visibility.clone())];
        keys.extend(self.name.clone().map(|name| ("name", name)));
        keys.extend(self.members.keys().map(|project| ("member", project.clone())));
        keys
    }
}

/// Refuses what only Glance itself sets.
pub(super) fn check_settable(name: &str) -> Result<(), Refusal> {
    if name == "id" || READ_ONLY.contains(&name) {
        return Err(Refusal::forbidden(format!("Attribute '{name}' is read-only.")));
    }
    if RESERVED.contains(&name) || name.starts_with("os_glance") {
        return Err(Refusal::forbidden(format!("Attribute '{name}' is reserved.")));
    }
    Ok(())
}

pub(super) fn stamp(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn mismatch(problem: &str) -> Refusal {
    Refusal::bad_request(format!("Provided object does not match schema 'image': {problem}"))
}

fn text_or_null(name: &str, value: Value, known: Option<&[&str]>) -> Result<Option<String>, Refusal> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) if known.is_some_and(|known| !known.contains(&text.as_str())) => {
            Err(mismatch(&format!("'{text}' is not one of {known:?}: {name}")))
        }
        Value::String(text) if text.chars().count() > 255 => Err(mismatch(&format!("'{text}' is too long"))),
        Value::String(text) => Ok(Some(text)),
        other => Err(mismatch(&format!("{other} is not of type 'null', 'string'"))),
    }
}

fn number(value: &Value) -> Result<u64, Refusal> {
    // MariaDB's INT
    value
        .as_u64()
        .filter(|number| *number <= 2_147_483_647)
        .ok_or_else(|| mismatch(&format!("{value} is not of type 'integer'")))
}

fn flag(value: &Value) -> Result<bool, Refusal> {
    value.as_bool().ok_or_else(|| mismatch(&format!("{value} is not of type 'boolean'")))
}
