//! `Flavor`: how much of a host a VM gets.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Adoption, DeletionPolicy, shared::resource_kind};
use crate::Conditions;

/// How much of a host a VM gets: processors, memory, disks, and what else it asks of a host. It becomes a flavor of this
/// object's name in Nova, unless one that is there is adopted. Nova can change the description and the extra specs of a
/// flavor, and nothing else.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kupenstack.io",
    version = "v1",
    kind = "Flavor",
    plural = "flavors",
    category = "kupenstack",
    status = "FlavorStatus",
    derive = "PartialEq",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].reason"}"#,
    printcolumn = r#"{"name":"VCPUs","type":"integer","jsonPath":".spec.vcpus"}"#,
    printcolumn = r#"{"name":"RAM","type":"string","jsonPath":".spec.ram"}"#,
    printcolumn = r#"{"name":"Disk","type":"string","jsonPath":".spec.disk"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Ephemeral","type":"string","jsonPath":".spec.ephemeral","priority":1}"#,
    printcolumn = r#"{"name":"Swap","type":"string","jsonPath":".spec.swap","priority":1}"#,
    printcolumn = r#"{"name":"ID","type":"string","jsonPath":".status.id","priority":1}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].message","priority":1}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "has(self.disk) == has(oldSelf.disk)", "fieldPath": ".disk", "message": "disk can't be changed, create another Flavor instead"},
    {"rule": "has(self.ephemeral) == has(oldSelf.ephemeral)", "fieldPath": ".ephemeral", "message": "ephemeral can't be changed, create another Flavor instead"},
    {"rule": "has(self.swap) == has(oldSelf.swap)", "fieldPath": ".swap", "message": "swap can't be changed, create another Flavor instead"},
    {"rule": "has(self.adopt) == has(oldSelf.adopt)", "fieldPath": ".adopt", "message": "an adopted flavor can't become a made one, or the other way round: create another Flavor instead"},
    {"rule": "self.?public.orValue(true) == oldSelf.?public.orValue(true)", "fieldPath": ".public", "message": "public can't be changed, create another Flavor instead"},
]))]
pub struct FlavorSpec {
    /// Number of virtual processors (Nova's `vcpus`).
    #[schemars(
        range(min = 1, max = 65_536),
        extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "vcpus can't be changed, create another Flavor instead"}])
    )]
    pub vcpus: i64,

    /// Memory as a Kubernetes quantity of whole mebibytes, such as `512Mi` or `2Gi` (Nova's `ram`).
    #[schemars(
        length(max = 12),
        regex(pattern = r"^([1-9][0-9]{0,8}Mi|[1-9][0-9]{0,5}Gi|[1-9][0-9]{0,2}Ti)$"),
        extend("x-kubernetes-validations" = [{"rule": "quantity(self).compareTo(quantity(oldSelf)) == 0", "message": "ram can't be changed, create another Flavor instead"}])
    )]
    pub ram: String,

    /// Root disk as a Kubernetes quantity of whole gibibytes, such as `20Gi` (Nova's `disk`). When absent, it is as large as
    /// the VM's image says; a VM that boots from a volume needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 12),
        regex(pattern = r"^([1-9][0-9]{0,8}Gi|[1-9][0-9]{0,5}Ti)$"),
        extend("x-kubernetes-validations" = [{"rule": "quantity(self).compareTo(quantity(oldSelf)) == 0", "message": "disk can't be changed, create another Flavor instead"}])
    )]
    pub disk: Option<String>,

    /// A second disk that is empty at first and goes with the VM, as a Kubernetes quantity of whole gibibytes, such as `10Gi`
    /// (Nova's `OS-FLV-EXT-DATA:ephemeral`). None when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 12),
        regex(pattern = r"^([1-9][0-9]{0,8}Gi|[1-9][0-9]{0,5}Ti)$"),
        extend("x-kubernetes-validations" = [{"rule": "quantity(self).compareTo(quantity(oldSelf)) == 0", "message": "ephemeral can't be changed, create another Flavor instead"}])
    )]
    pub ephemeral: Option<String>,

    /// Swap disk as a Kubernetes quantity of whole mebibytes, such as `512Mi` (Nova's `swap`). None when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 12),
        regex(pattern = r"^([1-9][0-9]{0,8}Mi|[1-9][0-9]{0,5}Gi|[1-9][0-9]{0,2}Ti)$"),
        extend("x-kubernetes-validations" = [{"rule": "quantity(self).compareTo(quantity(oldSelf)) == 0", "message": "swap can't be changed, create another Flavor instead"}])
    )]
    pub swap: Option<String>,

    /// Whether every project may use it (Nova's `os-flavor-access:is_public`); true when absent. Of one that is not public,
    /// an administrator says in Nova which projects may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public: Option<bool>,

    /// One line for people (Nova's `description`, where the operator's mark comes after it, unless the flavor is adopted).
    /// When absent, an adopted flavor keeps its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024), regex(pattern = r"^[^\x00-\x1f\x7f]*$"))]
    pub description: Option<String>,

    /// What else is asked of a host (Nova's extra specs), such as `{"hw:cpu_policy": dedicated}`. The flavor has these and no
    /// others. They count for VMs that are made or resized afterwards.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend(
        "maxProperties" = 64,
        "additionalProperties" = {"type": "string", "maxLength": 255},
        "x-kubernetes-validations" = [{
            "rule": "self.all(name, name.size() <= 255 && name.matches('^[A-Za-z0-9_.: -]+$'))",
            "message": "the name of an extra spec has at most 255 letters, digits, spaces and _ - . :"
        }]
    ))]
    pub extra_specs: BTreeMap<String, String>,

    /// A flavor that is in Nova already, to be taken over instead of making one. It has to have all that this object says
    /// of sizes and of `public`, and no extra spec that this object does not declare; until then it is left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adopt: Option<Adoption>,

    /// What becomes of the flavor in Nova when this object is deleted: `Delete` when absent, `Retain` for an adopted one. VMs
    /// that were made with it keep what they have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
}

/// What the operator observed of a flavor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FlavorStatus {
    /// `Ready`; `Reconciling` or `Stalled` while true.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Conditions,
    /// Generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Identifier in Nova.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Name in Nova, of an adopted flavor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

resource_kind!(Flavor, FlavorStatus {
    fn deletion_policy(&self) -> DeletionPolicy {
        DeletionPolicy::effective(self.spec.deletion_policy, self.adopts())
    }
    fn adopts(&self) -> bool {
        self.spec.adopt.is_some()
    }
});
