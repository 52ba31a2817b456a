//! Who has which role where, as one list.

use futures::Stream;
use serde::Deserialize;

use super::Identity;
use crate::Error;

/// A grant: a role that a user or a group has somewhere.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "Shown")]
pub struct RoleAssignment {
    /// The role's id.
    pub role_id: String,
    /// The user who has it; none where a group does.
    pub user_id: Option<String>,
    /// The project that it is in; none where it is in a domain or in the whole system.
    pub project_id: Option<String>,
    /// Whether it counts below that project or domain only, and not there.
    pub inherited: bool,
}

/// A grant as Keystone shows it.
#[derive(Deserialize)]
struct Shown {
    role: Reference,
    user: Option<Reference>,
    scope: Scope,
}

#[derive(Deserialize)]
struct Reference {
    id: String,
}

#[derive(Deserialize)]
struct Scope {
    project: Option<Reference>,
    #[serde(rename = "OS-INHERIT:inherited_to")]
    inherited_to: Option<String>,
}

impl From<Shown> for RoleAssignment {
    fn from(Shown { role, user, scope }: Shown) -> Self {
        Self {
            role_id: role.id,
            user_id: user.map(|user| user.id),
            project_id: scope.project.map(|project| project.id),
            inherited: scope.inherited_to.is_some(),
        }
    }
}

impl Identity {
    /// Every grant of the cloud, for an administrator. Roles that others imply are not told.
    ///
    /// A grant that can't be read is left out, and told in the log.
    pub fn survey_role_assignments(&self) -> impl Stream<Item = Result<RoleAssignment, Error>> + Send + use<> {
        self.service.clone().survey("role_assignments".into(), Vec::new())
    }
}
