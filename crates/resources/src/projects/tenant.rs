//! A namespace's project and user in Keystone.

use futures::TryStreamExt;
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt;
use kupenstack_core::{Outcome, names, reason};
use kupenstack_openstack::{Client, Error, ErrorKind, Identity, NewProject, NewUser, Project, ProjectFilter, User};

use super::{admin::Admin, credentials::Password, home::Home, leftovers};
use crate::{
    cloud::{Cloud, NamespaceMeta, Site},
    stop::Stop,
};

/// The domain that every Keystone starts with.
pub(super) const DOMAIN: &str = "default";
/// What a namespace's user may do in its project. Never `admin`: that on any project is admin of the cloud.
pub(super) const ROLES: [&str; 2] = ["member", "reader"];
/// Characters of a UID in Kubernetes.
const UID_LENGTH: usize = 36;

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

    pub(super) fn uid(&self) -> &str {
        &self.uid
    }

    /// Name of the user. It is as unique as the namespace's UID and so is the mark itself.
    pub(super) fn user_name(&self) -> String {
        user_name(&self.namespace, &self.uid)
    }

    /// The UID in a user's name, if it has the form of ours.
    pub(super) fn uid_in(user_name: &str) -> Option<&str> {
        let (namespace, uid) = user_name.split_at_checked(user_name.len().checked_sub(UID_LENGTH)?)?;
        namespace.ends_with('-').then_some(uid)
    }

    /// The user's identifier, if a list of the cloud shows project, user and grants as they are to be.
    pub(super) fn settled_in<'a>(&self, home: &'a Home) -> Option<&'a str> {
        let is_ours = home.enabled && home.mark.as_ref() == Some(&self.mark);
        let dweller = home.dweller.as_ref().filter(|_| is_ours)?;
        let is_as_wanted = dweller.enabled && dweller.is_at_home && dweller.is_granted;
        (is_as_wanted && dweller.name == self.user_name()).then_some(&dweller.id)
    }

    /// Names of the project, in the order in which they are tried.
    fn project_names(&self) -> [String; 2] {
        let beside = names::joined(&self.namespace, self.uid.get(..8).unwrap_or(&self.uid));
        [self.namespace.clone(), beside]
    }

    /// The project. One that does not carry our mark is left alone, whatever its name. One that is disabled is too:
    /// whoever did that meant it.
    pub(super) async fn project(&self, admin: &Admin) -> Result<(Project, Found), Stop> {
        let (project, found) = match self.projects(admin).await?.into_iter().next() {
            Some(project) => (project, Found::There),
            None => self.make_project(admin).await?,
        };
        if !project.enabled {
            let message = format!("project {} is disabled in Keystone; enable it there", project.name);
            return Err(Outcome::blocked("ProjectDisabled", message).into());
        }
        Ok((project, found))
    }

    async fn make_project(&self, admin: &Admin) -> Result<(Project, Found), Stop> {
        for (name, found) in self.project_names().into_iter().zip([Found::Made, Found::MadeBeside]) {
            match admin.write().create_project(&self.new_project(&name)).await {
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                result => return Ok((result?, found)),
            }
            // perhaps an earlier request of ours, whose answer was lost
            if let Some(project) = self.project_named(admin.look(), &name).await? {
                return Ok((project, found));
            }
        }
        let [first, second] = self.project_names();
        let message =
            format!("projects named {first} and {second} exist and are not ours; rename or delete one of them");
        Err(Outcome::blocked(reason::NAME_CLASH, message).into())
    }

    /// The projects that carry our mark. Keystone looks for tags among its first thousand projects only; beyond them
    /// ours is found by its name, or, if others have changed that, because a list has shown it.
    async fn projects(&self, admin: &Admin) -> Result<Vec<Project>, Error> {
        let filter = ProjectFilter { tags: vec![self.mark.clone()], ..ProjectFilter::default() };
        let mut found: Vec<Project> = admin.look().list_projects(&filter).try_collect().await?;
        if found.is_empty() {
            for name in self.project_names() {
                found.extend(self.project_named(admin.look(), &name).await?);
            }
        }
        if found.is_empty() {
            for id in admin.listed() {
                found.extend(admin.look().get_project(&id).await?.filter(|project| self.is_ours(project)));
            }
        }
        Ok(found)
    }

    async fn project_named(&self, identity: &Identity, name: &str) -> Result<Option<Project>, Error> {
        Ok(identity.find_project(name, DOMAIN).await?.filter(|project| self.is_ours(project)))
    }

    fn is_ours(&self, project: &Project) -> bool {
        project.tags.contains(&self.mark)
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

    /// The user, at home in a project. An existing one keeps its password; one that is disabled is left alone.
    pub(super) async fn user(&self, admin: &Admin, password: &Password, project: &str) -> Result<User, Stop> {
        let name = self.user_name();
        let Some(user) = admin.look().find_user(&name, DOMAIN).await? else {
            let user = NewUser {
                name,
                domain_id: DOMAIN.to_owned(),
                password: password.secret().clone(),
                description: format!("acts for Kubernetes namespace {}", self.namespace),
                default_project_id: Some(project.to_owned()),
                extra: serde_json::Map::new(),
            };
            // a conflict is an earlier request of ours, whose answer was lost: the next pass finds its user
            return Ok(admin.write().create_user(&user).await?);
        };
        if !user.enabled {
            let message = format!("user {name} is disabled in Keystone; enable it there");
            return Err(Outcome::blocked("UserDisabled", message).into());
        }
        if user.default_project_id.as_deref() != Some(project) {
            admin.write().set_default_project(&user.id, project).await?;
        }
        Ok(user)
    }

    /// Gives the user its roles in the project.
    pub(super) async fn grant(&self, admin: &Admin, project: &str, user: &str) -> Result<(), Stop> {
        for name in ROLES {
            let Some(role) = admin.look().find_role(name).await? else {
                let message = format!("Keystone has no role {name} yet");
                return Err(Outcome::waiting(reason::CLOUD_UNAVAILABLE, message).into());
            };
            if !admin.look().has_role(project, user, &role.id).await? {
                admin.write().assign_role(project, user, &role.id).await?;
            }
        }
        Ok(())
    }

    /// Removes user and project. Done when neither can be seen any more; else says what is waited for. Both are looked
    /// for twice: a server behind the others may not know yet of what was made a moment ago.
    pub(super) async fn remove(&self, cloud: &Cloud, admin: &Admin) -> Result<Option<Outcome>, Stop> {
        let name = self.user_name();
        if let Some(user) = admin.look().find_user(&name, DOMAIN).await? {
            admin.write().delete_user(&user.id).await?;
        }
        for project in self.projects(admin).await? {
            leftovers::remove(cloud, admin, &project.id, &self.mark).await?;
            admin.write().delete_project(&project.id).await?;
        }
        let waiting = |what: &str, name: &str| {
            Ok(Some(Outcome::waiting(reason::DELETING, format!("waiting until {what} {name} is gone"))))
        };
        if let Some(project) = self.projects(admin).await?.first() {
            return waiting("project", &project.name);
        }
        match admin.look().find_user(&name, DOMAIN).await? {
            Some(user) => waiting("user", &user.name),
            None => Ok(None),
        }
    }
}

fn user_name(namespace: &str, uid: &str) -> String {
    format!("{namespace}-{uid}")
}

/// The user of a namespace, as an administrator finds it.
pub(crate) async fn user_of(admin: &Client, namespace: &NamespaceMeta) -> Result<Option<User>, Error> {
    let name = user_name(&namespace.name_any(), &namespace.uid().unwrap_or_default());
    admin.identity().find_user(&name, DOMAIN).await
}

#[cfg(test)]
mod tests {
    use kube::api::ObjectMeta;
    use rstest::rstest;

    use super::{super::home::Dweller, *};

    const UID: &str = "0b7a5c1e-8a55-4f0e-9f30-3f2d2c6c0001";

    fn tenant(name: &str) -> Tenant {
        let metadata = ObjectMeta { name: Some(name.to_owned()), uid: Some(UID.to_owned()), ..ObjectMeta::default() };
        let cluster = "6f2b6a2e-1f0a-4a55-9c58-0d4f3ad0f7a1".parse().unwrap();
        let site = Site { namespace: "cloud".to_owned(), cluster, life: "l".to_owned() };
        Tenant::new(&Namespace { metadata, ..Namespace::default() }, &site)
    }

    #[test]
    fn names_fit_keystone_and_the_second_one_is_nobody_elses() {
        let tenant = tenant(&"n".repeat(63));
        let [first, beside] = tenant.project_names();
        assert!(first.len() <= 64 && beside.len() <= 64, "a project's name has at most 64 characters");
        assert!(beside.ends_with("-0b7a5c1e"));
        assert!(tenant.user_name().len() <= 255 && tenant.user_name().ends_with(&tenant.uid));
        assert!(tenant.mark.len() <= 255 && !tenant.mark.contains([',', '/']), "a tag takes neither");
    }

    #[test]
    fn the_uid_is_found_in_the_name_of_a_user() {
        assert_eq!(Tenant::uid_in(&tenant("shop").user_name()), Some(UID));
        for other in ["", "admin", UID, "ein-sehr-langer-name-mit-ümläuten-darin-ä"] {
            assert_eq!(Tenant::uid_in(other), None, "{other}");
        }
    }

    /// A change that makes a home another than it is to be.
    type Spoil = fn(&mut Home, &mut Dweller);

    #[rstest]
    #[case::as_wanted(|_: &mut Home, _: &mut Dweller| {}, true)]
    #[case::anothers_mark(|home: &mut Home, _: &mut Dweller| home.mark = Some("kupenstack:another:u1".to_owned()), false)]
    #[case::no_mark(|home: &mut Home, _: &mut Dweller| home.mark = None, false)]
    #[case::a_disabled_project(|home: &mut Home, _: &mut Dweller| home.enabled = false, false)]
    #[case::a_disabled_user(|_: &mut Home, user: &mut Dweller| user.enabled = false, false)]
    #[case::another_user(|_: &mut Home, user: &mut Dweller| user.name.insert(0, 'x'), false)]
    #[case::a_user_at_home_elsewhere(|_: &mut Home, user: &mut Dweller| user.is_at_home = false, false)]
    #[case::a_missing_role(|_: &mut Home, user: &mut Dweller| user.is_granted = false, false)]
    fn a_home_counts_only_as_it_is_to_be(#[case] spoil: Spoil, #[case] settled: bool) {
        let tenant = tenant("shop");
        let mut user =
            Dweller { id: "u".to_owned(), name: tenant.user_name(), enabled: true, is_at_home: true, is_granted: true };
        let (id, name, mark) = ("p".to_owned(), "shop".to_owned(), Some(tenant.mark.clone()));
        let mut home = Home { id, name, mark, enabled: true, dweller: None };
        assert_eq!(tenant.settled_in(&home), None, "without a user");
        spoil(&mut home, &mut user);
        home.dweller = Some(user);
        assert_eq!(tenant.settled_in(&home), settled.then_some("u"));
    }
}
