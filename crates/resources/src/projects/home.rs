//! What namespaces have in Keystone, as the whole cloud's lists show it.

use std::collections::HashMap;

use futures::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use kupenstack_core::ownership;
use kupenstack_openstack::{Client, Error, Identity, Project, RoleAssignment, User};
use serde::{Deserialize, Serialize};

use super::tenant::{DOMAIN, ROLES, Tenant};
use crate::observe::Listed;

/// A project with the user who acts in it. No more of them is kept than is compared.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Home {
    /// Identifier of the project.
    pub(super) id: String,
    /// Name of the project.
    pub(super) name: String,
    /// Our mark on the project, of whichever cluster.
    pub(super) mark: Option<String>,
    /// Whether anybody may act in the project.
    pub(super) enabled: bool,
    /// The user, if there is one.
    pub(super) dweller: Option<Dweller>,
}

/// A namespace's user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Dweller {
    pub(super) id: String,
    pub(super) name: String,
    /// Whether it may log in.
    pub(super) enabled: bool,
    /// Whether it acts in its project when it names none.
    pub(super) is_at_home: bool,
    /// Whether it has all its roles in its project.
    pub(super) is_granted: bool,
}

impl Listed for Home {
    const NOUN: &'static str = "Keystone project";
    const SERVICES: &'static [&'static str] = super::SERVICES;

    fn list(admin: &Client) -> BoxStream<'static, Result<Self, Error>> {
        let identity = admin.identity();
        let homes = async move {
            let dwellers = Dwellers::list(&identity).await?;
            Ok(identity.survey_projects(DOMAIN).map_ok(move |project| dwellers.at_home(project)))
        };
        stream::once(homes).try_flatten().boxed()
    }

    fn id(&self) -> &str {
        &self.id
    }

    fn mark(&self) -> Option<&str> {
        self.mark.as_deref()
    }

    fn is_in(&self, project: &str) -> bool {
        self.id == project
    }
}

/// The users of namespaces, of whichever cluster, by the UID in their names.
struct Dwellers(HashMap<String, Known>);

/// What is known of a user before its project is.
struct Known {
    user: User,
    /// Which of the roles it has, in which projects.
    grants: Vec<(String, usize)>,
}

impl Dwellers {
    async fn list(identity: &Identity) -> Result<Self, Error> {
        let mut roles = HashMap::new();
        let mut all = std::pin::pin!(identity.list_roles());
        while let Some(role) = all.try_next().await? {
            roles.extend(ROLES.iter().position(|name| role.is(name)).map(|which| (role.id, which)));
        }
        let (mut known, mut uids) = (HashMap::new(), HashMap::new());
        let mut users = std::pin::pin!(identity.survey_users(DOMAIN));
        while let Some(user) = users.try_next().await? {
            if let Some(uid) = Tenant::uid_in(&user.name).map(ToOwned::to_owned) {
                uids.insert(user.id.clone(), uid.clone());
                known.insert(uid, Known { user, grants: Vec::new() });
            }
        }
        let mut grants = std::pin::pin!(identity.survey_role_assignments());
        while let Some(grant) = grants.try_next().await? {
            let RoleAssignment { role_id, user_id: Some(user), project_id: Some(project), inherited: false } = grant
            else {
                continue;
            };
            let known = uids.get(&user).and_then(|uid| known.get_mut(uid));
            if let (Some(known), Some(which)) = (known, roles.get(&role_id)) {
                known.grants.push((project, *which));
            }
        }
        Ok(Self(known))
    }

    /// A project with who is at home in it.
    fn at_home(&self, project: Project) -> Home {
        let Project { id, name, enabled, tags, .. } = project;
        let mark = tags.into_iter().find(|tag| ownership::uid_in(tag).is_some());
        let known = mark.as_deref().and_then(ownership::uid_in).and_then(|uid| self.0.get(uid));
        let dweller = known.map(|Known { user, grants }| Dweller {
            id: user.id.clone(),
            name: user.name.clone(),
            enabled: user.enabled,
            is_at_home: user.default_project_id.as_deref() == Some(&id),
            is_granted: (0..ROLES.len()).all(|role| grants.iter().any(|(at, which)| *at == id && *which == role)),
        });
        Home { id, name, mark, enabled, dweller }
    }
}
