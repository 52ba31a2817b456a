//! What all service kinds share: one spec part, one status, one trait that the rollout engine drives them by.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::configuration::{ConfSource, EffectiveOption, Files};
use super::exposure::Expose;
use super::{
    keystone::Fernet,
    neutron::NeutronNetworks,
    nodes::{NodeSelector, Nodes, Toleration, node_selector_schema},
    nova::NovaHypervisors,
    ovn::OVNNetworking,
};
use crate::{Conditions, HasConditions, common::is_default};

/// oslo.config sections: section name → option → value.
pub type Conf = BTreeMap<String, BTreeMap<String, Value>>;

/// Settings of one service that make sense both on the service's own object and in `OpenStack`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// Options of the service's configuration file, by section: `{DEFAULT: {debug: true}}`. They win over the
    /// defaults. A list becomes a comma-separated value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "conf_schema")]
    pub conf: Conf,

    /// Secrets and ConfigMaps in the service's namespace with more options, as text in the syntax of the configuration
    /// file; they win over `conf`, the last one over all. What they hold is followed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub conf_from: Vec<ConfSource>,

    /// Whole files, in place of those that the service brings.
    #[serde(default, skip_serializing_if = "is_default")]
    pub files: Files,

    /// Raw values for the service's Helm chart; they have the last word over everything the operator computes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "free_map_schema")]
    pub values: Option<BTreeMap<String, Value>>,

    /// Container images by task (the chart's `images.tags`), such as `{keystone_api: registry.example/keystone:1}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend(
        "maxProperties" = 64,
        "additionalProperties" = {"type": "string", "maxLength": 512},
        "x-kubernetes-validations" = [{"rule": "self.all(task, task.size() <= 128)", "message": "the name of a task has at most 128 characters"}]
    ))]
    pub images: BTreeMap<String, String>,

    /// One label that a node must have to run this service's pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "node_selector_schema")]
    pub node_selector: NodeSelector,

    /// Taints that the same pods bear with, in place of the cloud's `tolerations`. Nodes with other taints get none of
    /// them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub tolerations: Vec<Toleration>,
}

/// What every service object has in its spec.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommonSpec {
    /// OpenStack release to run, such as `2026.2`. Decides the container images.
    #[schemars(length(max = 6), regex(pattern = r"^[0-9]{4}\.[1-9]$"))]
    pub release: String,

    /// Region of the cloud; part of the endpoints in the catalogue.
    #[serde(default = "default_region")]
    #[schemars(length(min = 1, max = 255))]
    pub region: String,

    /// Registry and path in front of the operator's own image names, such as `registry.example/kupenstack`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub image_registry: Option<String>,

    /// While true the operator changes nothing of this service.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,

    /// Options that the cloud sets for all its services (`OpenStack.spec.common`); `conf` wins over them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "conf_schema")]
    pub common_conf: Conf,

    /// Secrets and ConfigMaps with options that the cloud sets for all its services; `conf` wins over them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub common_conf_from: Vec<ConfSource>,

    /// How users reach the service from outside of the cluster (`OpenStack.spec.networking.expose`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expose: Option<Expose>,

    /// What happens to the service when its object is deleted; its data has a policy of its own (`volume.deletionPolicy`).
    #[serde(default, skip_serializing_if = "is_default")]
    pub deletion_policy: DeletionPolicy,

    /// Consent to take over a Helm release of the service's name that was made by hand. What was set by hand and is not
    /// set here is lost then; the condition lists it before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopt: bool,

    /// Configuration, images, placement.
    #[serde(flatten)]
    pub settings: Settings,
}

/// The region's name when none is given: one cluster is one region, named as the paper does.
pub(super) fn default_region() -> String {
    "default".to_owned()
}

/// A volume to be claimed from the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeClaim {
    /// Size as a Kubernetes quantity, such as `10Gi`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 12), regex(pattern = r"^[1-9][0-9]*(Mi|Gi|Ti)$"))]
    pub size: Option<String>,
    /// Its `StorageClass`; the cluster's default class when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub class_name: Option<String>,
    /// Whether the volume, and the generated credentials that only open what is on it, go when the service is deleted:
    /// `Retain` (when absent) or `Delete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
}

/// What happens to something when the object that stands for it is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// It goes too.
    #[default]
    Delete,
    /// It stays as it is, for use by hand.
    Retain,
}

/// Where a step of a rollout stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StepState {
    /// Not started.
    Pending,
    /// Under way.
    Running,
    /// Finished.
    Done,
    /// Failed; tried again at a growing pace.
    Failed,
}

/// One line of the checklist that a rollout is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// What is done, such as `Job keystone-db-sync`.
    pub name: String,
    /// Where it stands.
    pub state: StepState,
    /// Since when it is in this state (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// What it waits for or why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A change that failed and was taken back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailedChange {
    /// Hash of what failed; another spec has another hash.
    pub hash: String,
    /// What went wrong.
    pub message: String,
    /// When it was given up (RFC 3339).
    pub since: String,
    /// Value of the annotation `kupenstack.io/retry` at that time; another value tries the change again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<String>,
}

/// What the operator observed of a service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceStatus {
    /// `Ready`: as declared. `Available`: requests are answered, perhaps by what ran before a change. `Reconciling`,
    /// `Stalled` or `UnknownOptions` while true.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Conditions,
    /// Generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// OpenStack release that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// Chart that is installed, name and version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chart: Option<String>,
    /// Helm revision that is installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// Hash over everything that was rolled out and proven; unchanged means nothing to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// The last change, if it failed and was taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_change: Option<FailedChange>,
    /// URL of the service inside the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// URLs of the service for users, by name: its own, and for Nova `console`. Empty unless it is exposed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub public_endpoints: BTreeMap<String, String>,
    /// Options that are not the service's defaults, by name, each with what set it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub configuration: Vec<EffectiveOption>,
    /// The rollout as a checklist, in order.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub steps: Vec<Step>,
}

/// What only one kind of service has in its spec.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Own {
    /// Nothing.
    #[default]
    None,
    /// How token keys are replaced.
    Keystone(Option<Fernet>),
    /// Virtual networks and where they meet others.
    Ovn(OVNNetworking),
    /// Networks that users see.
    Neutron(NeutronNetworks),
    /// How VMs are run.
    Nova(NovaHypervisors),
}

/// What the rollout engine needs of a service kind.
pub trait ServiceResource: HasConditions {
    /// The part of the spec that all services share.
    fn common(&self) -> &CommonSpec;
    /// The status last written.
    fn status(&self) -> Option<&ServiceStatus>;
    /// Replicas by component, as the chart's `pod.replicas` names them; only those that the spec sets.
    fn replicas(&self) -> BTreeMap<&'static str, i32> {
        BTreeMap::new()
    }
    /// The data volume, for kinds that have one.
    fn volume(&self) -> Option<&VolumeClaim> {
        None
    }
    /// Nodes of pods that run on certain ones only, by the chart's name in `labels`; only what the spec sets.
    fn nodes(&self) -> BTreeMap<&'static str, Nodes> {
        BTreeMap::new()
    }
    /// What no other kind has.
    fn own(&self) -> Own {
        Own::None
    }
}

/// Implements [`ServiceResource`] for a kind whose `spec` flattens a [`CommonSpec`] as `common`.
macro_rules! service_kind {
    ($kind:ident { $($override:tt)* }) => {
        impl $crate::HasConditions for $kind {
            fn conditions(&self) -> &[k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition] {
                self.status.as_ref().map_or(&[], |s| &s.conditions)
            }
        }

        impl $crate::cluster::ServiceResource for $kind {
            fn common(&self) -> &$crate::cluster::CommonSpec {
                &self.spec.common
            }
            fn status(&self) -> Option<&$crate::cluster::ServiceStatus> {
                self.status.as_ref()
            }
            $($override)*
        }
    };
}
pub(super) use service_kind;

impl HasConditions for ServiceStatus {
    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }
}

/// The rules of a service, as its name is told, for the files of [`Files`] that it does not have.
pub(super) fn file_rules(service: &str, has: &[&str]) -> Vec<Value> {
    let others = match has {
        [] => ", nor any other that can be given".to_owned(),
        _ => format!("; those it has are {}", has.join(" and ")),
    };
    ["policy", "paste", "logging"]
        .into_iter()
        .filter(|file| !has.contains(file))
        .map(|file| {
            json!({
                "rule": format!("!has(self.files) || !has(self.files.{file})"),
                "message": format!("files.{file}: {service} has no such file{others}"),
            })
        })
        .collect()
}

/// The rules of a service whose options have no sections of their own: no file of [`Files`], and in `conf` these sections,
/// each of which stands for all options of one kind.
pub(super) fn flat_rules(service: &str, sections: &[&str]) -> Vec<Value> {
    let mut rules = file_rules(service, &[]);
    let names = sections.iter().map(|s| format!("'{s}'")).collect::<Vec<_>>().join(", ");
    rules.push(json!({
        "rule": format!("!has(self.conf) || self.conf.all(section, section in [{names}])"),
        "message": format!("conf: {}", no_section(service, sections)),
    }));
    rules
}

/// Why a service, as its name is told, has no other section in `conf` than these.
pub fn no_section(service: &str, sections: &[&str]) -> String {
    match sections {
        [] => format!("{service} takes no options"),
        [one] => format!("{service} takes no other options than those of the section {one}"),
        several => format!("{service} takes no other options than those of the sections {}", several.join(" and ")),
    }
}

pub(super) fn conf_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "maxProperties": 256,
        "additionalProperties": {"type": "object", "maxProperties": 1024, "x-kubernetes-preserve-unknown-fields": true},
        "x-kubernetes-validations": [{"rule": "self.all(section, section.size() <= 255)", "message": "the name of a section has at most 255 characters"}]
    })
}

fn free_map_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "nullable": true,
        "maxProperties": 256,
        "x-kubernetes-preserve-unknown-fields": true
    })
}
