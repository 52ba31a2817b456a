//! `RabbitMQ`: the message broker of the cloud.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::service::{CommonSpec, ServiceStatus, Settings, VolumeClaim, flat_rules, service_kind};

/// The message broker that the services of networks and VMs talk through.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.kupenstack.io",
    version = "v1",
    kind = "RabbitMQ",
    plural = "rabbitmqs",
    namespaced,
    category = "kupenstack",
    status = "ServiceStatus",
    derive = "PartialEq",
    validation = Rule::new("self.metadata.name == 'rabbitmq'").message("the name must be 'rabbitmq': one cloud has one RabbitMQ")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = flat_rules("RabbitMQ", &["rabbitmq"])))]
pub struct RabbitMQSpec {
    /// What all services share.
    #[serde(flatten)]
    pub common: CommonSpec,

    /// The volume that holds users and messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeClaim>,
}

/// `RabbitMQ` as a part of `OpenStack`: every field that is set here is set on the `RabbitMQ` object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = flat_rules("RabbitMQ", &["rabbitmq"])))]
pub struct RabbitMQTemplate {
    /// Whether the cloud has this service; false when absent. A service that is switched off is removed, its data is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,

    /// Configuration, images, placement.
    #[serde(flatten)]
    pub settings: Settings,

    /// The volume that holds users and messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeClaim>,
}

service_kind!(RabbitMQ {
    fn volume(&self) -> Option<&VolumeClaim> {
        self.spec.volume.as_ref()
    }
});
