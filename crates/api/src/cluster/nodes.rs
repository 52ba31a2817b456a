//! Which nodes pods run on: by a label that these have, and by taints that keep other pods away.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// One label that a node must have: its name and its value. Empty when nothing is said.
pub type NodeSelector = BTreeMap<String, String>;

/// The nodes that some pods run on. What is empty says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nodes {
    /// The label that they have.
    pub selector: NodeSelector,
    /// The taints that they may have.
    pub tolerations: Vec<Toleration>,
}

/// Which nodes carry VMs, for a service that runs there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComputeNodes {
    /// The label of the nodes that carry VMs; `{openstack-compute-node: enabled}` when absent.
    #[serde(default, skip_serializing_if = "NodeSelector::is_empty")]
    #[schemars(schema_with = "node_selector_schema")]
    pub compute_nodes: NodeSelector,

    /// Taints that nodes with VMs may have. One with another taint carries none, whatever its labels are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub compute_tolerations: Vec<Toleration>,
}

impl From<&ComputeNodes> for Nodes {
    fn from(nodes: &ComputeNodes) -> Self {
        Self { selector: nodes.compute_nodes.clone(), tolerations: nodes.compute_tolerations.clone() }
    }
}

/// Taints of nodes that pods bear with, as in the spec of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = toleration_rules()))]
pub struct Toleration {
    /// Key of the taint; every key when absent, which takes the operator `Exists`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 317))]
    pub key: Option<String>,
    /// Whether the taint's value has to be `value` (`Equal`, also when absent) or may be any (`Exists`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<TolerationOperator>,
    /// Value of the taint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub value: Option<String>,
    /// Effect of the taint; every effect when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<TaintEffect>,
    /// For how many seconds a running pod bears with a taint of effect `NoExecute`; for ever when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub toleration_seconds: Option<i64>,
}

/// How a toleration's value is compared with a taint's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TolerationOperator {
    /// It is the same.
    Equal,
    /// It may be any.
    Exists,
}

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    /// New ones don't come.
    NoSchedule,
    /// New ones come if there is no other node.
    PreferNoSchedule,
    /// New ones don't come, and those that run go.
    NoExecute,
}

/// What Kubernetes would refuse, but only of the pods.
fn toleration_rules() -> Vec<Value> {
    let rule = |rule: &str, message: &str| json!({"rule": rule, "message": message});
    vec![
        rule(
            "self.?operator.orValue('Equal') != 'Exists' || self.?value.orValue('') == ''",
            "value: the operator Exists takes none; leave it out, or use Equal",
        ),
        rule(
            "self.?key.orValue('') != '' || self.?operator.orValue('Equal') == 'Exists'",
            "key: without one the operator has to be Exists, which bears with every taint",
        ),
        rule(
            "!has(self.tolerationSeconds) || self.?effect.orValue('') == 'NoExecute'",
            "tolerationSeconds: only for the effect NoExecute",
        ),
    ]
}

pub(super) fn node_selector_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "maxProperties": 1,
        "additionalProperties": {"type": "string", "maxLength": 63},
        "x-kubernetes-validations": [{"rule": "self.all(label, label.size() <= 317)", "message": "the name of a label has at most 317 characters"}]
    })
}
