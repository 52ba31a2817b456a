//! Server groups: servers that Nova keeps apart.

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Compute, LARGEST_PAGE};
use crate::{
    Error,
    service::{Query, ServiceClient},
};

/// From here on a group has one policy instead of a list of them.
const MICROVERSION: &str = "2.64";
/// A shorter page is the last one: nobody has Nova give less than this at once, and it gives no links.
const SURELY_FULL: usize = 100;

/// A server group. Neither its name nor its policy can be changed, and names are not unique.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct ServerGroup {
    /// The group's id.
    pub id: String,
    /// The group's name.
    pub name: String,
    /// What Nova sees to: `anti-affinity`, `soft-anti-affinity`, `affinity` or `soft-affinity`.
    pub policy: String,
    /// Ids of its servers, whatever their state. One that is deleted is none any more.
    #[serde(default)]
    pub members: Vec<String>,
    /// The project it belongs to.
    pub project_id: String,
}

impl Compute {
    /// The server groups of the project that the user is in.
    pub async fn list_server_groups(&self) -> Result<Vec<ServerGroup>, Error> {
        self.server_groups(&[]).await
    }

    /// Every server group of every project, for an administrator; others get those of their own project.
    pub async fn survey_server_groups(&self) -> Result<Vec<ServerGroup>, Error> {
        self.server_groups(&[("all_projects", "True".to_owned())]).await
    }

    /// Makes a server group in the project that the user is in. Nothing keeps a repeated request from making another one.
    pub async fn create_server_group(&self, name: &str, policy: &str) -> Result<ServerGroup, Error> {
        let body = json!({"server_group": {"name": name, "policy": policy}});
        self.groups().post(&["os-server-groups"], &body).await?.member("server_group")
    }

    /// Deletes a server group; false if there is none of that id. Its servers stay, each for itself.
    pub async fn delete_server_group(&self, id: &str) -> Result<bool, Error> {
        self.groups().delete(&["os-server-groups", id]).await
    }

    async fn server_groups(&self, query: &[(&'static str, String)]) -> Result<Vec<ServerGroup>, Error> {
        let (service, mut all) = (self.groups(), Vec::<ServerGroup>::new());
        loop {
            let mut query: Query = query.to_vec();
            query.push(("limit", LARGEST_PAGE.to_string()));
            if !all.is_empty() {
                query.push(("offset", all.len().to_string()));
            }
            let call = service.call(Method::GET, &["os-server-groups"]).await?.query(&query);
            let page: Vec<ServerGroup> = service.send(&call).await?.member("server_groups")?;
            let is_last = page.len() < SURELY_FULL;
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }

    fn groups(&self) -> ServiceClient {
        self.service.clone().at_microversion(MICROVERSION)
    }
}
