//! `MariaDB`: the database of the cloud.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::service::{CommonSpec, ServiceStatus, Settings, VolumeClaim, file_rules, service_kind};

/// The SQL database that the OpenStack services keep their state in.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cluster.kupenstack.io",
    version = "v1",
    kind = "MariaDB",
    plural = "mariadbs",
    namespaced,
    category = "kupenstack",
    status = "ServiceStatus",
    derive = "PartialEq",
    validation = Rule::new("self.metadata.name == 'mariadb'").message("the name must be 'mariadb': one cloud has one MariaDB")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = file_rules("MariaDB", &[])))]
pub struct MariaDBSpec {
    /// What all services share.
    #[serde(flatten)]
    pub common: CommonSpec,

    /// The volume that holds the database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeClaim>,
}

/// `MariaDB` as a part of `OpenStack`: every field that is set here is set on the `MariaDB` object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = file_rules("MariaDB", &[])))]
pub struct MariaDBTemplate {
    /// Whether the cloud has this service; true when absent. A service that is switched off is removed, its data is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,

    /// Configuration, images, placement.
    #[serde(flatten)]
    pub settings: Settings,

    /// The volume that holds the database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<VolumeClaim>,
}

service_kind!(MariaDB {
    fn volume(&self) -> Option<&VolumeClaim> {
        self.spec.volume.as_ref()
    }
});
