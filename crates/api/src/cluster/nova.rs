//! `Nova`: VMs.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    nodes::{ComputeNodes, Nodes},
    service::{CommonSpec, Own, ServiceStatus, Settings, service_kind},
};

/// The compute service: VMs, on every node that has the label of those that carry them.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.kupenstack.io",
    version = "v1",
    kind = "Nova",
    plural = "novas",
    namespaced,
    category = "kupenstack",
    status = "ServiceStatus",
    derive = "PartialEq",
    validation = Rule::new("self.metadata.name == 'nova'").message("the name must be 'nova': one cloud has one Nova")
)]
#[serde(rename_all = "camelCase")]
pub struct NovaSpec {
    /// What all services share.
    #[serde(flatten)]
    pub common: CommonSpec,

    /// Number of pods by component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<NovaReplicas>,

    /// How and where VMs run.
    #[serde(flatten)]
    pub hypervisors: NovaHypervisors,
}

/// `Nova` as a part of `OpenStack`: every field that is set here is set on the `Nova` object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NovaTemplate {
    /// Whether the cloud has this service; false when absent. A service that is switched off is removed, its data is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,

    /// Configuration, images, placement.
    #[serde(flatten)]
    pub settings: Settings,

    /// Number of pods by component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<NovaReplicas>,

    /// How and where VMs run.
    #[serde(flatten)]
    pub hypervisors: NovaHypervisors,
}

/// Pods by component of `Nova`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = replica_rules()))]
pub struct NovaReplicas {
    /// API servers. 0 stops the service and keeps its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub api: Option<i32>,
    /// Servers that tell VMs about themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub metadata: Option<i32>,
    /// Conductors, which have the database for hypervisors; one at least, unless `api` is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub conductor: Option<i32>,
    /// Schedulers, which choose a hypervisor for a VM; one at least, unless `api` is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub scheduler: Option<i32>,
    /// Proxies to consoles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub console: Option<i32>,
}

/// An API that answers, and does nothing of what it is asked for, is no service.
fn replica_rules() -> Vec<Value> {
    let rule = |component: &str, without: &str| {
        json!({
            "rule": format!("self.?{component}.orValue(1) > 0 || self.?api.orValue(1) == 0"),
            "message": format!("{component}: without one {without}; keep one at least, or set api to 0 too, which stops Nova"),
        })
    };
    vec![rule("conductor", "no VM is made, changed or removed"), rule("scheduler", "no VM starts")]
}

/// How and where VMs run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NovaHypervisors {
    /// Who computes; `kvm` when absent, which needs `/dev/kvm` on every node with VMs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virt_type: Option<VirtType>,

    /// What VMs are made with; `libvirt` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<ComputeDriver>,

    /// Consent to remove the service though there are VMs. They run on, and nothing knows them any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub abandon_servers: bool,

    /// Where VMs are.
    #[serde(flatten)]
    pub nodes: ComputeNodes,
}

/// Who computes what a VM does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum VirtType {
    /// The node's processors themselves, where they can.
    Kvm,
    /// A program: anywhere, many times slower.
    Qemu,
}

/// What VMs are made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ComputeDriver {
    /// libvirt: real VMs.
    Libvirt,
    /// Nothing: VMs exist in Nova's records only, for tests of everything around them.
    Fake,
}

service_kind!(Nova {
    fn replicas(&self) -> BTreeMap<&'static str, i32> {
        let Some(set) = &self.spec.replicas else { return BTreeMap::new() };
        let all = [
            ("osapi", set.api),
            ("api_metadata", set.metadata),
            ("conductor", set.conductor),
            ("scheduler", set.scheduler),
            ("novncproxy", set.console),
        ];
        all.into_iter().filter_map(|(name, n)| Some((name, n?))).collect()
    }

    fn nodes(&self) -> BTreeMap<&'static str, Nodes> {
        BTreeMap::from([("compute", Nodes::from(&self.spec.hypervisors.nodes))])
    }

    fn own(&self) -> Own {
        Own::Nova(self.spec.hypervisors.clone())
    }
});
