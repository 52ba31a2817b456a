//! The catalogue as Keystone keeps it, for looking after it; calls use the copy that comes with the token.

use futures::TryStreamExt;
use serde::Deserialize;

use super::Identity;
use crate::Error;

/// A service in the catalogue. Neither its name nor its type is unique.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Service {
    /// The service's id.
    pub id: String,
    /// Its type, such as `image`.
    #[serde(rename = "type")]
    pub service_type: String,
    /// Its name, such as `glance`.
    #[serde(default)]
    pub name: String,
    /// Whether tokens list it.
    pub enabled: bool,
}

/// One address of a service.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Endpoint {
    /// The endpoint's id.
    pub id: String,
    /// The service it belongs to.
    pub service_id: String,
    /// `public`, `internal` or `admin`.
    pub interface: String,
    /// The region.
    #[serde(default)]
    pub region_id: Option<String>,
    /// The address.
    pub url: String,
    /// Whether tokens list it.
    pub enabled: bool,
}

impl Identity {
    /// All services.
    pub async fn list_services(&self) -> Result<Vec<Service>, Error> {
        self.service.clone().list("services".into(), Vec::new()).try_collect().await
    }

    /// All endpoints.
    pub async fn list_endpoints(&self) -> Result<Vec<Endpoint>, Error> {
        self.service.clone().list("endpoints".into(), Vec::new()).try_collect().await
    }
}
