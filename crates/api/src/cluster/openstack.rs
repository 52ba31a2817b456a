//! `OpenStack`: the one cloud of this cluster.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    configuration::CommonConf,
    exposure::Networking,
    glance::GlanceTemplate,
    keystone::KeystoneTemplate,
    libvirt::LibvirtTemplate,
    mariadb::MariaDBTemplate,
    memcached::MemcachedTemplate,
    neutron::NeutronTemplate,
    nodes::{NodeSelector, Toleration, node_selector_schema},
    nova::NovaTemplate,
    ovn::OVNTemplate,
    placement::PlacementTemplate,
    rabbitmq::RabbitMQTemplate,
    service::{DeletionPolicy, default_region},
};
use crate::{Conditions, HasConditions, common::is_default};

/// The OpenStack that this cluster carries. There is one, named `default`; it creates an object per service in
/// `namespace` and keeps them as declared here. Fields of the service objects that are not set here belong to you.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.kupenstack.io",
    version = "v1",
    kind = "OpenStack",
    plural = "openstacks",
    category = "kupenstack",
    status = "OpenStackStatus",
    derive = "PartialEq",
    validation = Rule::new("self.metadata.name == 'default'").message("the name must be 'default': one cluster carries one OpenStack"),
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].reason"}"#,
    printcolumn = r#"{"name":"Release","type":"string","jsonPath":".spec.release"}"#,
    printcolumn = r#"{"name":"Services","type":"string","jsonPath":".status.ready"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Namespace","type":"string","jsonPath":".spec.namespace","priority":1}"#,
    printcolumn = r#"{"name":"Message","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].message","priority":1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct OpenStackSpec {
    /// Namespace that the cloud runs in. The operator has rights in one only: its chart's value `cloud.namespace`.
    #[serde(default = "default_namespace")]
    #[schemars(
        length(max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"),
        extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "the cloud can't move to another namespace"}])
    )]
    pub namespace: String,

    /// OpenStack release to run, such as `2026.2`.
    #[schemars(length(max = 6), regex(pattern = r"^[0-9]{4}\.[1-9]$"))]
    pub release: String,

    /// Region of the cloud. OpenStack can't rename a region, so it can't be changed.
    #[serde(default = "default_region")]
    #[schemars(
        length(min = 1, max = 255),
        regex(pattern = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"),
        extend("x-kubernetes-validations" = [{"rule": "self == oldSelf", "message": "the region can't be changed after the cloud was created"}])
    )]
    pub region: String,

    /// Where container images come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<ImageSource>,

    /// Where data is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,

    /// The networks that users come from.
    #[serde(default, skip_serializing_if = "is_default")]
    pub networking: Networking,

    /// The label of the nodes that carry VMs, for every service that runs there: `{openstack-compute-node: enabled}` when
    /// absent. A node that gets the label becomes one of them.
    #[serde(default, skip_serializing_if = "NodeSelector::is_empty")]
    #[schemars(schema_with = "node_selector_schema")]
    pub compute_nodes: NodeSelector,

    /// Taints that nodes with VMs may have, for every service that runs there and has no `computeTolerations` of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub compute_tolerations: Vec<Toleration>,

    /// Taints that all other pods bear with, for every service that has no `tolerations` of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub tolerations: Vec<Toleration>,

    /// Options for every service that has an oslo.config file: Keystone, Glance, Placement, Neutron, Nova.
    #[serde(default, skip_serializing_if = "is_default")]
    pub common: CommonConf,

    /// What happens to the services when this object is deleted: they go (`Delete`), or run on as Helm releases to be
    /// used by hand (`Retain`). Set on every service.
    #[serde(default, skip_serializing_if = "is_default")]
    pub deletion_policy: DeletionPolicy,

    /// Consent to take over Helm releases of the services' names that were made by hand. Set on every service.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopt: bool,

    /// Settings of the single services.
    #[serde(default, skip_serializing_if = "is_default")]
    pub services: Services,

    /// Which namespaces become projects of the cloud.
    #[serde(default, skip_serializing_if = "is_default")]
    pub projects: Projects,
}

fn default_namespace() -> String {
    "openstack".to_owned()
}

/// Where container images come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageSource {
    /// Registry and path in front of the image names of the release, such as `registry.example/kupenstack`.
    #[schemars(length(min = 1, max = 255))]
    pub registry: String,
}

/// Where data is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// The `StorageClass` of every volume that does not name its own; the cluster's default class when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub class_name: Option<String>,
    /// Whether data goes when the cloud or a service is deleted: `Retain` (when absent) or `Delete`. For every volume
    /// that has no policy of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,
}

/// Services that a cloud has unless its spec says otherwise.
const BY_DEFAULT: [&str; 4] = ["MariaDB", "Memcached", "Keystone", "Glance"];

/// Services, and those that they need.
const NEEDS: [(&str, &[&str]); 6] = [
    ("Keystone", &["MariaDB", "Memcached"]),
    ("Glance", &["MariaDB", "Memcached", "Keystone"]),
    ("Placement", &["MariaDB", "Memcached", "Keystone"]),
    ("Neutron", &["MariaDB", "Memcached", "Keystone", "RabbitMQ", "OVN"]),
    ("Libvirt", &["OVN"]),
    ("Nova", &["MariaDB", "Memcached", "Keystone", "Glance", "RabbitMQ", "Placement", "Neutron", "Libvirt"]),
];

/// The rules by which what an enabled service needs can't be disabled.
fn rules_of_needs() -> Vec<Value> {
    let enabled =
        |name: &str| format!("self.?{}.?enabled.orValue({})", name.to_lowercase(), BY_DEFAULT.contains(&name));
    let rule = |dependent: &str, needed: &str| {
        let (field, other) = (needed.to_lowercase(), dependent.to_lowercase());
        let remedy = if BY_DEFAULT.contains(&needed) {
            format!("keep it, or set {other}.enabled to false too")
        } else {
            format!("set it to true too, or set {other}.enabled to false")
        };
        json!({
            "rule": format!("{} || !{}", enabled(needed), enabled(dependent)),
            "message": format!("{field}.enabled: {dependent} needs {needed}; {remedy}"),
        })
    };
    NEEDS.iter().flat_map(|(dependent, needs)| needs.iter().map(move |needed| rule(dependent, needed))).collect()
}

/// Settings of the single services.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules_of_needs()))]
pub struct Services {
    /// The database.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mariadb: MariaDBTemplate,
    /// The cache.
    #[serde(default, skip_serializing_if = "is_default")]
    pub memcached: MemcachedTemplate,
    /// The identity service.
    #[serde(default, skip_serializing_if = "is_default")]
    pub keystone: KeystoneTemplate,
    /// The image service.
    #[serde(default, skip_serializing_if = "is_default")]
    pub glance: GlanceTemplate,
    /// The message broker. Not part of a cloud unless it is enabled here.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rabbitmq: RabbitMQTemplate,
    /// The placement service. Not part of a cloud unless it is enabled here.
    #[serde(default, skip_serializing_if = "is_default")]
    pub placement: PlacementTemplate,
    /// Virtual networks. Not part of a cloud unless they are enabled here.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ovn: OVNTemplate,
    /// The network service. Not part of a cloud unless it is enabled here.
    #[serde(default, skip_serializing_if = "is_default")]
    pub neutron: NeutronTemplate,
    /// What starts VMs on their nodes. Not part of a cloud unless it is enabled here.
    #[serde(default, skip_serializing_if = "is_default")]
    pub libvirt: LibvirtTemplate,
    /// The compute service. Not part of a cloud unless it is enabled here.
    #[serde(default, skip_serializing_if = "is_default")]
    pub nova: NovaTemplate,
}

/// Which namespaces become projects of the cloud.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Projects {
    /// Labels of the namespaces that get a project. All namespaces when absent, but for Kubernetes' own
    /// (`kube-*`), the cloud's and the operator's. The annotation `kupenstack.io/project: ignore` leaves one out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "selector_schema")]
    pub selector: Option<LabelSelector>,
}

/// Kubernetes' own type of a selector, which has neither bounds nor rules.
fn selector_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let value = serde_json::json!({"type": "string", "maxLength": 63});
    let requirement = serde_json::json!({
        "type": "object",
        "required": ["key", "operator"],
        "properties": {
            "key": {"type": "string", "minLength": 1, "maxLength": 317, "description": "Name of the label."},
            "operator": {"type": "string", "enum": ["In", "NotIn", "Exists", "DoesNotExist"], "description": "How it is compared."},
            "values": {"type": "array", "maxItems": 64, "items": value, "description": "With what it is compared."},
        },
        "x-kubernetes-validations": [{
            "rule": "(self.operator in ['In', 'NotIn']) == (self.?values.orValue([]).size() > 0)",
            "message": "values: operators In and NotIn need at least one, Exists and DoesNotExist take none",
        }],
    });
    schemars::json_schema!({
        "type": "object",
        "nullable": true,
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchLabels": {
                "type": "object",
                "maxProperties": 64,
                "additionalProperties": value,
                "description": "Labels with their values, all of which a namespace must have.",
                "x-kubernetes-validations": [
                    {"rule": "self.all(label, label.size() <= 317)", "message": "the name of a label has at most 317 characters"}
                ],
            },
            "matchExpressions": {
                "type": "array",
                "maxItems": 64,
                "items": requirement,
                "description": "Further requirements, all of which a namespace must meet.",
            },
        },
    })
}

/// What the operator observed of the cloud.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenStackStatus {
    /// `Ready`; `Reconciling` or `Stalled` while true.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Conditions,
    /// Generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Identifier of this cloud; part of the ownership marks on everything it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// Ready services of all services, such as `3/4`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<String>,
    /// The services in the order in which they start.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub services: Vec<ServiceSummary>,
}

/// One service as its own object reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceSummary {
    /// Kind of the service object.
    pub kind: String,
    /// Whether it is ready for the spec it has now.
    pub ready: bool,
    /// Whether it answers requests, perhaps not as its spec wants it now.
    #[serde(default)]
    pub available: bool,
    /// Reason of its `Ready` condition.
    pub reason: String,
    /// Message of its `Ready` condition.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Its URLs for users from outside of the cluster, by name. Empty unless it is exposed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub public_endpoints: BTreeMap<String, String>,
}

impl HasConditions for OpenStack {
    fn conditions(&self) -> &[k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition] {
        self.status.as_ref().map_or(&[], |s| &s.conditions)
    }
}
