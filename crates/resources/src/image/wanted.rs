//! What the Glance image of an object has to be, as a pure function of the object.

use std::collections::BTreeMap;

use kupenstack_api::resources::{ImageFormat, ImageSpec};
use kupenstack_core::{Outcome, reason};
use kupenstack_images::{Checksum, Format, Source};
use kupenstack_openstack::{self as openstack, ImageChange, NewImage, Visibility};

use super::{fault, variant::Variant};

/// Property with our ownership mark.
pub(super) const MARK: &str = "kupenstack_mark";
/// Property with the number of bytes that are to be uploaded.
pub(super) const SIZE: &str = "kupenstack_size";
/// Property with the format that the source had.
pub(super) const SOURCE_FORMAT: &str = "kupenstack_source_format";
/// Property with the names of the properties that were declared, so that one that is declared no more is removed
/// while those that Glance or others put there stay.
const DECLARED: &str = "kupenstack_properties";

/// Attributes of an image, which share their namespace with its properties.
const ATTRIBUTES: [&str; 24] = [
    "checksum",
    "container_format",
    "created_at",
    "direct_url",
    "disk_format",
    "file",
    "id",
    "locations",
    "min_disk",
    "min_ram",
    "name",
    "os_hash_algo",
    "os_hash_value",
    "os_hidden",
    "owner",
    "protected",
    "schema",
    "self",
    "size",
    "status",
    "tags",
    "updated_at",
    "virtual_size",
    "visibility",
];
/// Beginnings of names that Glance and we keep for ourselves.
const RESERVED: [&str; 3] = ["kupenstack_", "os_glance_", "stores"];

/// The image that an object declares. Of an adopted one, what is not declared is left as it is.
#[derive(Debug)]
pub(super) struct Wanted {
    /// Where its data comes from; an adopted one has it.
    pub(super) origin: Option<Origin>,
    name: Option<String>,
    min_disk: Option<u32>,
    min_ram: Option<u32>,
    visibility: Visibility,
    keeps_visibility: bool,
    declared: BTreeMap<String, String>,
    mark: String,
}

/// Where an image's data comes from, and what it becomes.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) source: Source,
    pub(super) format: Format,
}

impl Wanted {
    /// Reads the object. What can't be is told by field and remedy.
    pub(super) fn of<K: Variant>(object: &K, mark: &str) -> Result<Self, Outcome> {
        let spec = object.image();
        let size = |field: &str, value: Option<i64>| {
            value
                .map(|value| u32::try_from(value).map_err(|_| invalid(format!("spec.{field}: out of range"))))
                .transpose()
        };
        if let Some(name) = spec.properties.keys().find(|name| !is_property(name)) {
            let message = format!("spec.properties: `{name}` can't be set as a property, remove it from there");
            return Err(invalid(message));
        }
        let origin = origin(spec)?;
        let is_made = origin.is_some();
        Ok(Self {
            origin,
            name: object.meta().name.clone().filter(|_| is_made),
            min_disk: size("minDisk", spec.min_disk)?.or(is_made.then_some(0)),
            min_ram: size("minRam", spec.min_ram)?.or(is_made.then_some(0)),
            visibility: K::VISIBILITY,
            keeps_visibility: K::KEEPS_VISIBILITY,
            declared: spec.properties.clone(),
            mark: mark.to_owned(),
        })
    }

    /// The record to be made for data of this length.
    pub(super) fn new_image(&self, id: &str, length: u64, source: Format, format: Format) -> NewImage {
        let mut properties = self.properties();
        properties.insert(SIZE.to_owned(), length.to_string());
        properties.insert(SOURCE_FORMAT.to_owned(), source.to_string());
        NewImage {
            id: id.to_owned(),
            name: self.name.clone().unwrap_or_default(),
            disk_format: format.glance_name().to_owned(),
            container_format: "bare".to_owned(),
            visibility: self.visibility.clone(),
            min_disk: self.min_disk.unwrap_or_default(),
            min_ram: self.min_ram.unwrap_or_default(),
            tags: Vec::new(),
            properties,
        }
    }

    /// What has to be set of the image's attributes.
    pub(super) fn attributes_to_set(&self, image: &openstack::Image) -> Vec<ImageChange> {
        let name = self.name.as_ref().filter(|name| image.name.as_ref() != Some(name));
        let min_disk = self.min_disk.filter(|size| image.min_disk != *size);
        let min_ram = self.min_ram.filter(|size| image.min_ram != *size);
        let strays = self.keeps_visibility && image.visibility != self.visibility;
        [
            name.map(|name| ImageChange::set("name", name.clone())),
            min_disk.map(|size| ImageChange::set("min_disk", size)),
            min_ram.map(|size| ImageChange::set("min_ram", size)),
            strays.then(|| ImageChange::set("visibility", self.visibility.to_string())),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// What has to be set or removed of the image's properties.
    pub(super) fn properties_to_set(&self, image: &openstack::Image) -> Vec<ImageChange> {
        let wanted = self.properties();
        let set = wanted
            .iter()
            .filter(|(name, value)| image.properties.get(*name) != Some(value))
            .map(|(name, value)| ImageChange::set(name.clone(), value.clone()));
        let once_declared = image.properties.get(DECLARED).map_or("", String::as_str).split(',');
        let remove = once_declared
            .chain([DECLARED])
            // what an adopted image had before is not known
            .filter(|_| self.origin.is_some())
            .filter(|name| !wanted.contains_key(*name) && image.properties.contains_key(*name))
            // another's hand may have written the list
            .filter(|name| *name == DECLARED || is_property(name))
            .map(ImageChange::remove);
        set.chain(remove).collect()
    }

    /// The properties that follow from the object alone. An adopted image gets none that was not declared.
    fn properties(&self) -> BTreeMap<String, String> {
        let mut properties = self.declared.clone();
        if self.origin.is_none() {
            return properties;
        }
        properties.insert(MARK.to_owned(), self.mark.clone());
        if !self.declared.is_empty() {
            let names: Vec<_> = self.declared.keys().map(String::as_str).collect();
            properties.insert(DECLARED.to_owned(), names.join(","));
        }
        properties
    }
}

fn invalid(message: String) -> Outcome {
    Outcome::blocked(reason::INVALID_SPEC, message)
}

fn origin(spec: &ImageSpec) -> Result<Option<Origin>, Outcome> {
    let Some(src) = &spec.src else { return Ok(None) };
    let checksum: Option<Checksum> = spec
        .checksum
        .as_ref()
        .map(|text| text.parse().map_err(|error| invalid(format!("spec.checksum: {error}"))))
        .transpose()?;
    let Some(declared) = spec.format else {
        return Err(invalid("spec.format: has to be given with src".to_owned()));
    };
    let format = format(declared);
    let source = Source::http(src, checksum).map_err(|error| fault::outcome(&error))?.wanted_as(format);
    Ok(Some(Origin { source, format }))
}

/// Whether users may set a property of this name.
fn is_property(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-.:".contains(c);
    (1..=255).contains(&name.len())
        && name.chars().all(allowed)
        && !ATTRIBUTES.contains(&name)
        && !RESERVED.iter().any(|beginning| name.starts_with(beginning))
}

fn format(format: ImageFormat) -> Format {
    match format {
        ImageFormat::Raw => Format::Raw,
        ImageFormat::Qcow2 => Format::Qcow2,
        ImageFormat::Vmdk => Format::Vmdk,
        ImageFormat::Vdi => Format::Vdi,
        ImageFormat::Vhd => Format::Vhd,
        ImageFormat::Vhdx => Format::Vhdx,
        ImageFormat::Iso => Format::Iso,
    }
}
