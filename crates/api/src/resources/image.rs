//! `Image`: a disk image that VMs boot from.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DeletionPolicy, shared::resource_kind};
use crate::Conditions;

/// A disk image in the namespace's project, made from a file on a web server. It becomes an image in Glance.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kupenstack.io",
    version = "v1",
    kind = "Image",
    plural = "images",
    namespaced,
    category = "kupenstack",
    status = "ImageStatus",
    derive = "PartialEq",
    validation = Rule::new("size(self.metadata.name) <= 253").message("the name must have at most 253 characters"),
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].reason"}"#,
    printcolumn = r#"{"name":"Format","type":"string","jsonPath":".spec.format"}"#,
    printcolumn = r#"{"name":"Size","type":"integer","format":"int64","jsonPath":".status.size"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"ID","type":"string","jsonPath":".status.id","priority":1}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].message","priority":1}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "has(self.src) != has(self.adopt)", "fieldPath": ".src", "message": "exactly one of src and adopt has to be given"},
    {"rule": "has(self.src) == has(self.format)", "fieldPath": ".format", "message": "format has to be given with src, and only with it"},
    {"rule": "has(self.src) || !has(self.checksum)", "fieldPath": ".checksum", "message": "checksum can be given only with src"},
    {"rule": "has(self.src) == has(oldSelf.src)", "fieldPath": ".src", "message": "an adopted image can't become a made one, or the other way round: create another Image instead"},
]))]
pub struct ImageSpec {
    /// URL of the file, http or https. Glance can't replace an image's data, so it can't be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 2048),
        regex(pattern = r"^https?://[^\s/]+(/\S*)?$"),
        extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "src can't be changed, create another Image instead"}])
    )]
    pub src: Option<String>,

    /// An image that is in Glance already, to be taken over instead of making one. It is changed only where this object
    /// says something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopt: Option<ImageAdoption>,

    /// Format that the hypervisor gets (Glance's `disk_format`), with `src`. A source in another format is converted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "format can't be changed, create another Image instead"}]))]
    pub format: Option<ImageFormat>,

    /// Digest of the file at `src`: `sha256:` or `sha512:` and the digest in hexadecimal. Other content is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 135),
        regex(pattern = r"^(sha256:[0-9a-fA-F]{64}|sha512:[0-9a-fA-F]{128})$"),
        extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "checksum can't be changed, create another Image instead"}])
    )]
    pub checksum: Option<String>,

    /// Smallest disk that a VM with this image may have, in GiB (Glance's `min_disk`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub min_disk: Option<i64>,

    /// Least memory that a VM with this image may have, in MiB (Glance's `min_ram`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100_000_000))]
    pub min_ram: Option<i64>,

    /// Further properties of the Glance image, such as `{hw_disk_bus: virtio}`. Not its attributes, such as `visibility`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend(
        "maxProperties" = 64,
        "additionalProperties" = {"type": "string", "maxLength": 1024},
        "x-kubernetes-validations" = [
            {
                "rule": "self.all(name, name.size() <= 255 && name.matches('^[A-Za-z0-9_.:-]+$'))",
                "message": "the name of a property has at most 255 letters, digits and _ - . :"
            },
            {
                "rule": "self.all(name, !(name in ['checksum', 'container_format', 'created_at', 'direct_url', 'disk_format', 'file', 'id', 'locations', 'min_disk', 'min_ram', 'name', 'os_hash_algo', 'os_hash_value', 'os_hidden', 'owner', 'protected', 'schema', 'self', 'size', 'status', 'tags', 'updated_at', 'virtual_size', 'visibility'] || name.startsWith('stores') || name.startsWith('os_glance_') || name.startsWith('kupenstack_')))",
                "message": "an attribute of the image, or a name that Glance or the operator keeps for itself, can't be set as a property"
            },
        ]
    ))]
    pub properties: BTreeMap<String, String>,

    /// What becomes of the Glance image when this object is deleted. When absent, `Delete` if it was made and `Retain` if
    /// it was adopted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
}

impl ImageSpec {
    /// What becomes of the Glance image when the object is deleted.
    pub fn effective_deletion_policy(&self) -> DeletionPolicy {
        DeletionPolicy::effective(self.deletion_policy, self.adopt.is_some())
    }
}

/// Which image in Glance is meant. Exactly one must fit; while none or several do, the object waits and says so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "[has(self.id), has(self.name), has(self.filter)].filter(given, given).size() == 1", "message": "exactly one of id, name and filter has to be given"},
    {"rule": "self == oldSelf", "message": "adopt can't be changed, create another Image instead"},
]))]
pub struct ImageAdoption {
    /// Its identifier in Glance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub id: Option<String>,
    /// Its name in Glance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub name: Option<String>,
    /// What it has; all of it has to fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<ImageFilter>,
}

/// What an image in Glance has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "(has(self.tags) && size(self.tags) > 0) || (has(self.properties) && size(self.properties) > 0)", "message": "a filter has to ask for something"},
]))]
pub struct ImageFilter {
    /// Tags, all of which it has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 16, "items" = {"type": "string", "minLength": 1, "maxLength": 255}))]
    pub tags: Vec<String>,
    /// Properties with their values, such as `{os_distro: debian}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16, "additionalProperties" = {"type": "string", "maxLength": 1024}))]
    pub properties: BTreeMap<String, String>,
}

/// Disk image formats that Glance and the hypervisor know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ImageFormat {
    /// Plain bytes of the disk.
    #[default]
    Raw,
    /// QEMU's format: small files, snapshots.
    Qcow2,
    /// Disks of `VMware`.
    Vmdk,
    /// Disks of `VirtualBox`.
    Vdi,
    /// Virtual PC and older Hyper-V.
    Vhd,
    /// Hyper-V.
    Vhdx,
    /// An optical disc.
    Iso,
}

/// What the operator observed of an image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageStatus {
    /// `Ready`; `Reconciling` or `Stalled` while true.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Conditions,
    /// Generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Identifier in Glance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Bytes stored in Glance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
    /// Size of the disk that a VM sees, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_size: Option<i64>,
    /// Digest of the data stored in Glance, such as `sha512:…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Format that the source turned out to have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_format: Option<String>,
}

resource_kind!(Image, ImageStatus {
    fn deletion_policy(&self) -> DeletionPolicy {
        self.spec.effective_deletion_policy()
    }
    fn adopts(&self) -> bool {
        self.spec.adopt.is_some()
    }
});
