//! `ClusterImage`: a disk image for the VMs of every namespace.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DeletionPolicy, ImageSpec, ImageStatus, shared::resource_kind};

/// A disk image that every project sees, made from a file on a web server. It becomes a public image in Glance, in
/// the project of the cloud's administrator.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kupenstack.io",
    version = "v1",
    kind = "ClusterImage",
    plural = "clusterimages",
    category = "kupenstack",
    status = "ImageStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].reason"}"#,
    printcolumn = r#"{"name":"Format","type":"string","jsonPath":".spec.format"}"#,
    printcolumn = r#"{"name":"Size","type":"integer","format":"int64","jsonPath":".status.size"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"ID","type":"string","jsonPath":".status.id","priority":1}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].message","priority":1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterImageSpec {
    /// What an `Image` has.
    #[serde(flatten)]
    pub image: ImageSpec,
}

resource_kind!(ClusterImage, ImageStatus {
    fn deletion_policy(&self) -> DeletionPolicy {
        self.spec.image.effective_deletion_policy()
    }
    fn adopts(&self) -> bool {
        self.spec.image.adopt.is_some()
    }
});
