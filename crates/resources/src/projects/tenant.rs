//! A namespace's project and user in Keystone.

use futures::TryStreamExt;
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt;
use kupenstack_core::{Outcome, names, reason};
use kupenstack_openstack::{Client, Error, ErrorKind, Identity, NewProject, NewUser, Project, ProjectFilter, User};

use super::{credentials::Password, leftovers};
use crate::{cloud::Site, stop::Stop};

/// The domain that every Keystone starts with.
const DOMAIN: &str = "default";
/// What a namespace's user may do in its project. Never `admin`: that on any project is admin of the cloud.
pub(super) const ROLES: [&str; 2] = ["member", "reader"];

/// How a project was come by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// It was there.
    There,
    /// It was made, under the namespace's name.
    Made,
    /// It was made under another name, since the namespace's was taken.
    MadeBeside,
}

/// A namespace as Keystone is to know it.
#[derive(Debug)]
pub(super) struct Tenant {
    namespace: String,
    uid: String,
    mark: String,
}

impl Tenant {
    pub(super) fn new(namespace: &Namespace, site: &Site) -> Self {
        let uid = namespace.uid().unwrap_or_default();
        Self { namespace: namespace.name_any(), mark: site.cluster.mark(&uid), uid }
    }

    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Name of the user. It is as unique as the namespace's UID and so is the mark itself.
    pub(super) fn user_name(&self) -> String {
        format!("{}-{}", self.namespace, self.uid)
    }

    /// Names of the project, in the order in which they are tried.
    fn project_names(&self) -> [String; 2] {
        let beside = names::joined(&self.namespace, self.uid.get(..8).unwrap_or(&self.uid));
        [self.namespace.clone(), beside]
    }

    /// The project. One that does not carry our mark is left alone, whatever its name.
    pub(super) async fn project(&self, identity: &Identity) -> Result<(Project, Found), Stop> {
        if let Some(project) = self.projects(identity).await?.into_iter().next() {
            return Ok((project, Found::There));
        }
        for (name, found) in self.project_names().into_iter().zip([Found::Made, Found::MadeBeside]) {
            match identity.create_project(&self.new_project(&name)).await {
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                result => return Ok((result?, found)),
            }
            // perhaps an earlier request of ours, whose answer was lost
            let ours = identity.find_project(&name, DOMAIN).await?.filter(|project| project.tags.contains(&self.mark));
            if let Some(project) = ours {
                return Ok((project, found));
            }
        }
        let [first, second] = self.project_names();
        let message =
            format!("projects named {first} and {second} exist and are not ours; rename or delete one of them");
        Err(Outcome::blocked(reason::NAME_CLASH, message).into())
    }

    /// The projects that carry our mark.
    async fn projects(&self, identity: &Identity) -> Result<Vec<Project>, Error> {
        let filter = ProjectFilter { tags: vec![self.mark.clone()], ..ProjectFilter::default() };
        identity.list_projects(&filter).try_collect().await
    }

    fn new_project(&self, name: &str) -> NewProject {
        NewProject {
            name: name.to_owned(),
            domain_id: DOMAIN.to_owned(),
            description: format!("Kubernetes namespace {}", self.namespace),
            tags: vec![self.mark.clone()],
            ..NewProject::default()
        }
    }

    /// The user. An existing one keeps its password.
    pub(super) async fn user(&self, identity: &Identity, password: &Password, project: &str) -> Result<User, Stop> {
        let name = self.user_name();
        if let Some(user) = identity.find_user(&name, DOMAIN).await? {
            return Ok(user);
        }
        let user = NewUser {
            name,
            domain_id: DOMAIN.to_owned(),
            password: password.secret().clone(),
            description: format!("acts for Kubernetes namespace {}", self.namespace),
            default_project_id: Some(project.to_owned()),
            extra: serde_json::Map::new(),
        };
        // a conflict is an earlier request of ours, whose answer was lost: the next pass finds its user
        Ok(identity.create_user(&user).await?)
    }

    /// Gives the user its roles in the project.
    pub(super) async fn grant(&self, identity: &Identity, project: &str, user: &str) -> Result<(), Stop> {
        for name in ROLES {
            let Some(role) = identity.find_role(name).await? else {
                let message = format!("Keystone has no role {name} yet");
                return Err(Outcome::waiting(reason::CLOUD_UNAVAILABLE, message).into());
            };
            if !identity.has_role(project, user, &role.id).await? {
                identity.assign_role(project, user, &role.id).await?;
            }
        }
        Ok(())
    }

    /// Removes user and project. Done when neither can be seen any more; else says what is waited for. Both are looked
    /// for twice: a server behind the others may not know yet of what was made a moment ago.
    pub(super) async fn remove(&self, admin: &Client, has_neutron: bool) -> Result<Option<Outcome>, Stop> {
        let (identity, name) = (&admin.identity(), self.user_name());
        if let Some(user) = identity.find_user(&name, DOMAIN).await? {
            identity.delete_user(&user.id).await?;
        }
        for project in self.projects(identity).await? {
            if has_neutron {
                leftovers::remove(admin, &project.id).await?;
            }
            identity.delete_project(&project.id).await?;
        }
        let waiting = |what: &str, name: &str| {
            Ok(Some(Outcome::waiting(reason::DELETING, format!("waiting until {what} {name} is gone"))))
        };
        if let Some(project) = self.projects(identity).await?.first() {
            return waiting("project", &project.name);
        }
        match identity.find_user(&name, DOMAIN).await? {
            Some(user) => waiting("user", &user.name),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::api::ObjectMeta;

    use super::*;

    #[test]
    fn names_fit_keystone_and_the_second_one_is_nobody_elses() {
        let metadata = ObjectMeta {
            name: Some("n".repeat(63)),
            uid: Some("0b7a5c1e-8a55-4f0e-9f30-3f2d2c6c0001".to_owned()),
            ..ObjectMeta::default()
        };
        let cluster = "6f2b6a2e-1f0a-4a55-9c58-0d4f3ad0f7a1".parse().unwrap();
        let site = Site { namespace: "cloud".to_owned(), cluster, life: "l".to_owned() };
        let tenant = Tenant::new(&Namespace { metadata, ..Namespace::default() }, &site);
        let [first, beside] = tenant.project_names();
        assert!(first.len() <= 64 && beside.len() <= 64, "a project's name has at most 64 characters");
        assert!(beside.ends_with("-0b7a5c1e"));
        assert!(tenant.user_name().len() <= 255 && tenant.user_name().ends_with(&tenant.uid));
        assert!(tenant.mark.len() <= 255 && !tenant.mark.contains([',', '/']), "a tag takes neither");
    }
}
