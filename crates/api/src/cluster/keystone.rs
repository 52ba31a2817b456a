//! `Keystone`: the identity service.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::service::{CommonSpec, Own, ServiceStatus, Settings, file_rules, service_kind};

/// The identity service: projects, users, tokens and the catalogue of all services.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.kupenstack.io",
    version = "v1",
    kind = "Keystone",
    plural = "keystones",
    namespaced,
    category = "kupenstack",
    status = "ServiceStatus",
    derive = "PartialEq",
    validation = Rule::new("self.metadata.name == 'keystone'").message("the name must be 'keystone': one cloud has one Keystone")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = file_rules("Keystone", &["policy", "logging"])))]
pub struct KeystoneSpec {
    /// What all services share.
    #[serde(flatten)]
    pub common: CommonSpec,

    /// Number of pods by component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<KeystoneReplicas>,

    /// How the keys that tokens are made with are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fernet: Option<Fernet>,
}

/// How the keys that tokens are made with are replaced. A new key waits until all pods have it before tokens are made
/// with it, and an old one goes when no token made with it can be alive. No pod restarts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fernet {
    /// Time from one replacement to the next, such as `24h` (when absent) or `36h30m`. At least one hour: every pod has to
    /// have the next key before it is used, and Keystone reads all keys at every request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 16),
        regex(pattern = r"^([0-9]{1,5}[hms])+$"),
        extend("x-kubernetes-validations" = [{"rule": "duration(self) >= duration('1h')", "message": "must be at least 1h"}])
    )]
    pub rotation_interval: Option<String>,

    /// Number of keys that are kept, the next one included. When absent as many as no live token needs more; fewer are
    /// refused. Keystone's `[token] expiration` and `allow_expired_window` say how long a token lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 3, max = 256))]
    pub active_keys: Option<i32>,
}

/// Pods by component of `Keystone`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeystoneReplicas {
    /// API servers. 0 stops the service and keeps its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub api: Option<i32>,
}

/// `Keystone` as a part of `OpenStack`: every field that is set here is set on the `Keystone` object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = file_rules("Keystone", &["policy", "logging"])))]
pub struct KeystoneTemplate {
    /// Whether the cloud has this service; true when absent. A service that is switched off is removed, its data is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,

    /// Configuration, images, placement.
    #[serde(flatten)]
    pub settings: Settings,

    /// Number of pods by component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<KeystoneReplicas>,

    /// How the keys that tokens are made with are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fernet: Option<Fernet>,
}

service_kind!(Keystone {
    fn replicas(&self) -> BTreeMap<&'static str, i32> {
        let set = self.spec.replicas.as_ref();
        set.and_then(|r| r.api).map(|n| ("api", n)).into_iter().collect()
    }

    fn own(&self) -> Own {
        Own::Keystone(self.spec.fernet.clone())
    }
});
