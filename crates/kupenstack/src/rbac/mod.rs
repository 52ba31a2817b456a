//! The rights of the operator's accounts: one table per controller, from which the chart's roles are written.
//!
//! Two accounts run the same program: `cloud` builds OpenStack in one namespace, `resources` makes what users
//! declare in theirs. Neither holds a wildcard or more than its controllers use; every right says what for.

mod cloud;
mod render;
mod resources;
mod users;

use crate::output::Files;

/// Where a right holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Everywhere, and for objects without a namespace.
    Cluster,
    /// In the cloud's namespace.
    CloudNamespace,
    /// In the namespace `default`, where events about objects without a namespace go.
    DefaultNamespace,
}

/// Verbs on resources of one API group, and what they are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Right {
    pub(crate) scope: Scope,
    pub(crate) group: &'static str,
    pub(crate) resources: &'static [&'static str],
    /// The only objects that the right covers; empty for all.
    pub(crate) names: &'static [&'static str],
    pub(crate) verbs: &'static [&'static str],
    pub(crate) why: &'static str,
}

/// A controller by the name that `--controllers` takes, with its rights.
#[derive(Debug)]
pub(crate) struct Controller {
    pub(crate) name: &'static str,
    rights: &'static [&'static [Right]],
}

/// A `ServiceAccount` and the controllers that run under it.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) name: &'static str,
    pub(crate) controllers: &'static [Controller],
}

/// The account that builds OpenStack.
pub(crate) const CLOUD: Account = Account { name: "cloud", controllers: cloud::CONTROLLERS };
/// The account that makes what users declare.
pub(crate) const RESOURCES: Account = Account { name: "resources", controllers: resources::CONTROLLERS };

impl Account {
    /// All rights of the controllers, each once.
    fn rights(&self, scope: Scope) -> Vec<Right> {
        let mut rights = Vec::new();
        for right in self.controllers.iter().flat_map(|c| c.rights).copied().flatten() {
            if right.scope == scope && !rights.contains(right) {
                rights.push(*right);
            }
        }
        rights
    }
}

/// The chart's templates.
pub(crate) fn files() -> Files {
    let accounts = [&CLOUD, &RESOURCES].map(|a| (format!("{}.yaml", a.name), render::account(a)));
    let users = ("users.yaml".to_owned(), users::roles(&kupenstack_api::crds::all()));
    accounts.into_iter().chain([users]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_rights() -> Vec<Right> {
        let scopes = [Scope::Cluster, Scope::CloudNamespace, Scope::DefaultNamespace];
        [CLOUD, RESOURCES].iter().flat_map(|a| scopes.iter().flat_map(|s| a.rights(*s))).collect()
    }

    #[test]
    fn no_right_is_a_wildcard_and_each_has_a_reason() {
        for right in all_rights() {
            let words = [right.resources, right.verbs, &[right.group]].concat();
            assert!(words.iter().all(|w| !w.contains('*')), "{right:?}");
            assert!(!right.resources.is_empty() && !right.verbs.is_empty() && !right.why.is_empty(), "{right:?}");
        }
    }

    #[test]
    fn what_could_take_over_the_cluster_stays_in_the_clouds_namespace() {
        const SENSITIVE: &[&str] = &["secrets", "roles", "rolebindings", "serviceaccounts", "pods", "deployments", "jobs"];
        for right in all_rights().iter().filter(|r| r.scope != Scope::CloudNamespace) {
            assert!(right.resources.iter().all(|r| !SENSITIVE.contains(r)), "{right:?}");
        }
    }

    #[test]
    fn controllers_have_names_of_their_own() {
        let mut names: Vec<_> = [CLOUD, RESOURCES].iter().flat_map(|a| a.controllers).map(|c| c.name).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
