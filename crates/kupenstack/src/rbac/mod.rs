//! The rights of the operator's accounts: one table per controller, from which the chart's roles are written.
//!
//! Two accounts run the same program: `cloud` builds OpenStack in one namespace, `resources` makes what users
//! declare in theirs. Neither holds a wildcard or more than its controllers use; every right says what for.

mod cloud;
pub(crate) mod console;
mod render;
mod resources;
mod user_secrets;
mod users;
mod webhook;

pub(crate) use webhook::WEBHOOK;

use crate::output::Files;

/// Where a right holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// Everywhere, and for objects without a namespace.
    Cluster,
    /// In the cloud's namespace.
    CloudNamespace,
    /// In the namespace `default`, where events about objects without a namespace go.
    DefaultNamespace,
    /// In the operator's own namespace.
    OperatorNamespace,
}

/// Verbs on resources of one API group, and what they are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Right {
    scope: Scope,
    group: &'static str,
    resources: &'static [&'static str],
    /// The only objects that the right covers; empty for all.
    names: &'static [&'static str],
    verbs: &'static [&'static str],
    why: &'static str,
}

/// A controller by the name that `--controllers` takes, with its rights.
#[derive(Debug)]
struct Controller {
    name: &'static str,
    rights: &'static [&'static [Right]],
}

/// A `ServiceAccount` and the controllers that run under it.
#[derive(Debug)]
pub(crate) struct Account {
    name: &'static str,
    /// The lease that one of its processes holds, by itself in an array as rights name objects.
    lease: &'static [&'static str; 1],
    controllers: &'static [Controller],
}

/// The account that builds OpenStack.
pub(crate) static CLOUD: Account =
    Account { name: "cloud", lease: &["kupenstack-cloud"], controllers: cloud::CONTROLLERS };
/// The account that makes what users declare.
pub(crate) static RESOURCES: Account =
    Account { name: "resources", lease: &["kupenstack-resources"], controllers: resources::CONTROLLERS };

/// A rule of a role: rights that differ only in their resources, together.
#[derive(Debug)]
struct Rule {
    right: Right,
    resources: Vec<&'static str>,
}

impl Account {
    /// Its short name.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// The lease that its controllers work under.
    pub(crate) fn lease(&self) -> &'static str {
        self.lease[0]
    }

    /// The names of the controllers.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.controllers.iter().map(|c| c.name)
    }

    /// The rules that hold in `scope`: all rights of all controllers, each once.
    fn rules(&self, scope: Scope) -> Vec<Rule> {
        let mut rules: Vec<Rule> = Vec::new();
        for right in self.rights().filter(|r| r.scope == scope) {
            let known = rules.iter_mut().find(|rule| Right { resources: right.resources, ..rule.right } == right);
            match known {
                Some(rule) => rule.add(right.resources),
                None => rules.push(right.into()),
            }
        }
        rules
    }

    /// What its controllers need, and what every process of it does.
    fn rights(&self) -> impl Iterator<Item = Right> + use<> {
        self.controllers.iter().flat_map(|c| c.rights).copied().flatten().copied().chain(leading(self.lease))
    }
}

/// To be the one of several replicas that works.
fn leading(lease: &'static [&'static str]) -> [Right; 2] {
    let right = |names, verbs, why| Right {
        scope: Scope::OperatorNamespace,
        group: "coordination.k8s.io",
        resources: &["leases"],
        names,
        verbs,
        why,
    };
    [
        right(lease, &["get", "watch", "update"], "which of the replicas works"),
        right(
            &[],
            &["create"],
            "the lease anew, when somebody has deleted it; Kubernetes knows no names in this right",
        ),
    ]
}

impl From<Right> for Rule {
    fn from(right: Right) -> Self {
        Self { right, resources: right.resources.to_vec() }
    }
}

impl Rule {
    fn add(&mut self, resources: &[&'static str]) {
        for resource in resources {
            if !self.resources.contains(resource) {
                self.resources.push(resource);
            }
        }
    }
}

/// The chart's templates.
pub(crate) fn files() -> Files {
    let accounts = [&CLOUD, &RESOURCES].map(|a| (format!("{}.yaml", a.name), render::account(a)));
    let users = ("users.yaml".to_owned(), users::roles(&kupenstack_api::crds::all()));
    let names = ("_controllers.tpl".to_owned(), render::controllers(&[&CLOUD, &RESOURCES]));
    let webhook = ("webhook.yaml".to_owned(), webhook::roles());
    let console = ("console-log.yaml".to_owned(), console::roles());
    let user_secrets = ("user-secrets.yaml".to_owned(), user_secrets::roles());
    accounts.into_iter().chain([users, names, webhook, console, user_secrets]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_rights() -> impl Iterator<Item = Right> {
        [&CLOUD, &RESOURCES].into_iter().flat_map(Account::rights).chain(webhook::rights()).chain(console::rights())
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
        const SENSITIVE: &[&str] = &[
            "secrets",
            "roles",
            "rolebindings",
            "serviceaccounts",
            "pods",
            "deployments",
            "jobs",
            "validatingwebhookconfigurations",
        ];
        for right in all_rights().filter(|r| r.scope != Scope::CloudNamespace) {
            // a name of our own is one that nobody else's object has
            if !right.names.is_empty() && right.names.iter().all(|name| name.starts_with("kupenstack-")) {
                continue;
            }
            assert!(right.resources.iter().all(|r| !SENSITIVE.contains(r)), "{right:?}");
        }
    }

    #[test]
    fn a_right_that_two_controllers_need_is_one_rule() {
        let rules = CLOUD.rules(Scope::CloudNamespace);
        let statuses: Vec<_> = rules.iter().filter(|r| r.resources.contains(&"keystones/status")).collect();
        assert_eq!(statuses.len(), 1);
        assert!(statuses[0].resources.contains(&"glances/status"), "{statuses:?}");
        assert_eq!(rules.iter().filter(|r| r.resources.contains(&"pods/log")).count(), 1);
    }

    #[test]
    fn controllers_have_names_of_their_own() {
        let mut names: Vec<_> = [&CLOUD, &RESOURCES].into_iter().flat_map(Account::names).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
