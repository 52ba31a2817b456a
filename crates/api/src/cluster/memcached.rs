//! `Memcached`: the cache of the cloud.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::service::{CommonSpec, ServiceStatus, Settings, flat_rules, service_kind};

/// The cache that the OpenStack services share, mostly for tokens.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.kupenstack.io",
    version = "v1",
    kind = "Memcached",
    plural = "memcacheds",
    namespaced,
    category = "kupenstack",
    status = "ServiceStatus",
    derive = "PartialEq",
    validation = Rule::new("self.metadata.name == 'memcached'").message("the name must be 'memcached': one cloud has one Memcached")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = flat_rules("Memcached", &["memcached"])))]
pub struct MemcachedSpec {
    /// What all services share.
    #[serde(flatten)]
    pub common: CommonSpec,

    /// Number of pods by component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<MemcachedReplicas>,
}

/// Pods by component of `Memcached`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemcachedReplicas {
    /// Cache servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub server: Option<i32>,
}

/// `Memcached` as a part of `OpenStack`: every field that is set here is set on the `Memcached` object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = flat_rules("Memcached", &["memcached"])))]
pub struct MemcachedTemplate {
    /// Whether the cloud has this service; true when absent. A service that is switched off is removed, its data is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,

    /// Configuration, images, placement.
    #[serde(flatten)]
    pub settings: Settings,

    /// Number of pods by component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<MemcachedReplicas>,
}

service_kind!(Memcached {
    fn replicas(&self) -> BTreeMap<&'static str, i32> {
        let set = self.spec.replicas.as_ref();
        set.and_then(|r| r.server).map(|n| ("server", n)).into_iter().collect()
    }
});
