//! Unified limits: how much of a service's resources a project may have.

use futures::Stream;
use serde::Deserialize;
use serde_json::json;

use super::Identity;
use crate::{Error, service::given};

/// What every project may have of a resource, unless a [`Limit`] says otherwise. A service that asks Keystone for its
/// limits lets nobody have anything of a resource without one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RegisteredLimit {
    /// Its id.
    pub id: String,
    /// The service whose resource it is.
    pub service_id: String,
    /// The region of that service.
    #[serde(default)]
    pub region_id: Option<String>,
    /// The resource, such as `image_count_total`; in which unit it is counted is up to the service.
    pub resource_name: String,
    /// How much; -1 is without limit.
    pub default_limit: i64,
}

/// What one project may have of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Limit {
    /// Its id.
    pub id: String,
    /// The project; a limit of a whole domain has none.
    #[serde(default)]
    pub project_id: Option<String>,
    /// The service whose resource it is.
    pub service_id: String,
    /// The region of that service.
    #[serde(default)]
    pub region_id: Option<String>,
    /// The resource.
    pub resource_name: String,
    /// How much; -1 is without limit.
    pub resource_limit: i64,
    /// A text for people.
    #[serde(default)]
    pub description: Option<String>,
}

/// A limit to be made: there has to be a [`RegisteredLimit`] of the same service, region and resource.
#[derive(Debug, Clone)]
pub struct NewLimit {
    /// The project.
    pub project_id: String,
    /// The service whose resource it is.
    pub service_id: String,
    /// The region of that service.
    pub region_id: Option<String>,
    /// The resource.
    pub resource_name: String,
    /// How much; -1 is without limit. Keystone takes at most 2147483647.
    pub resource_limit: i64,
    /// A text for people.
    pub description: String,
}

impl Identity {
    /// All registered limits. Everyone may see them.
    pub fn list_registered_limits(&self) -> impl Stream<Item = Result<RegisteredLimit, Error>> + Send + use<> {
        self.service.clone().list("registered_limits".into(), Vec::new())
    }

    /// The limits of a project, or of all: others than an administrator see those of their own project only.
    pub fn list_limits(&self, project_id: Option<&str>) -> impl Stream<Item = Result<Limit, Error>> + Send + use<> {
        self.service.clone().list("limits".into(), given([("project_id", project_id.map(str::to_owned))]))
    }

    /// Makes a limit. A second one of the same project and resource is a conflict.
    pub async fn create_limit(&self, limit: &NewLimit) -> Result<Limit, Error> {
        let mut body = json!({
            "project_id": limit.project_id,
            "service_id": limit.service_id,
            "resource_name": limit.resource_name,
            "resource_limit": limit.resource_limit,
            "description": limit.description,
        });
        if let Some(region) = &limit.region_id {
            body["region_id"] = json!(region);
        }
        let answer = self.service.post(&["limits"], &json!({"limits": [body]})).await?;
        let mut made: Vec<Limit> = answer.member("limits")?;
        made.pop().ok_or_else(|| answer.malformed("no limit was made"))
    }

    /// Changes how much a limit allows, and tells what it allows then: Keystone (at least up to 30) answers a change to 0
    /// as done and leaves the limit as it is.
    pub async fn set_limit(&self, id: &str, resource_limit: i64) -> Result<Limit, Error> {
        let body = json!({"limit": {"resource_limit": resource_limit}});
        self.service.patch(&["limits", id], &body).await?.member("limit")
    }

    /// Deletes a limit; false if there is none of that id.
    pub async fn delete_limit(&self, id: &str) -> Result<bool, Error> {
        self.service.delete(&["limits", id]).await
    }
}
