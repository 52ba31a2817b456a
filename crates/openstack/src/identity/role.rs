//! Roles and who has them where.

use futures::Stream;
use http::Method;
use serde::Deserialize;

use super::Identity;
use crate::Error;

/// A role: what policies ask for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Role {
    /// The role's id.
    pub id: String,
    /// The role's name, such as `member`.
    pub name: String,
}

impl Role {
    /// Whether it has this name. Keystone treats role names alike whatever their case, and some clouds have a `Member`.
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

impl Identity {
    /// A role by its name; roles of a single domain are not meant.
    pub async fn find_role(&self, name: &str) -> Result<Option<Role>, Error> {
        self.find("roles", vec![("name", name.to_owned())], |role: &Role| role.is(name)).await
    }

    /// All roles but those of a single domain.
    pub fn list_roles(&self) -> impl Stream<Item = Result<Role, Error>> + Send + use<> {
        self.service.clone().list("roles".into(), Vec::new())
    }

    /// Gives a user a role on a project; it may have it already.
    pub async fn assign_role(&self, project_id: &str, user_id: &str, role_id: &str) -> Result<(), Error> {
        let call = self.service.call(Method::PUT, &grant(project_id, user_id, role_id)).await?;
        self.service.send(&call).await.map(drop)
    }

    /// Whether a user has a role on a project, by a grant of its own. False too if one of the three does not exist.
    pub async fn has_role(&self, project_id: &str, user_id: &str, role_id: &str) -> Result<bool, Error> {
        self.service.exists(&grant(project_id, user_id, role_id)).await
    }
}

fn grant<'a>(project_id: &'a str, user_id: &'a str, role_id: &'a str) -> [&'a str; 6] {
    ["projects", project_id, "users", user_id, "roles", role_id]
}
