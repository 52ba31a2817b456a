//! Which controllers a process runs.

use std::{collections::BTreeSet, fmt};

use anyhow::ensure;

use super::Named;
use crate::rbac::{self, Account};

/// Names of controllers, all of them known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Selection(BTreeSet<&'static str>);

impl Selection {
    /// The controllers named, or all if none is.
    pub(super) fn of(wanted: &[String]) -> anyhow::Result<Self> {
        let known: Vec<_> = [&rbac::CLOUD, &rbac::RESOURCES].into_iter().flat_map(Account::names).collect();
        let unknown: Vec<_> = wanted.iter().filter(|name| !known.contains(&name.as_str())).cloned().collect();
        ensure!(unknown.is_empty(), "no controller is named {}; there are: {}", unknown.join(", "), known.join(", "));
        let selected = known.into_iter().filter(|name| wanted.is_empty() || wanted.iter().any(|w| w == name));
        Ok(Self(selected.collect()))
    }

    /// Whether any controller of the account is selected.
    pub(super) fn any_of(&self, account: &Account) -> bool {
        account.names().any(|name| self.0.contains(name))
    }

    /// The selected ones of an account's controllers. Fails if one is missing, or is one that nobody can select: it has no rights.
    pub(super) fn pick(&self, account: &Account, all: Vec<Named>) -> anyhow::Result<Vec<Named>> {
        let nameless: Vec<_> =
            all.iter().map(|(name, _)| *name).filter(|name| !account.names().any(|n| n == *name)).collect();
        ensure!(nameless.is_empty(), "these controllers have no rights: {}", nameless.join(", "));
        let picked: Vec<_> = all.into_iter().filter(|(name, _)| self.0.contains(name)).collect();
        let wanted = account.names().filter(|name| self.0.contains(name));
        let missing: Vec<_> = wanted.filter(|name| !picked.iter().any(|(picked, _)| picked == name)).collect();
        ensure!(missing.is_empty(), "these controllers were not built: {}", missing.join(", "));
        Ok(picked)
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().copied().collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn of(names: &[&str]) -> anyhow::Result<Selection> {
        Selection::of(&names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>())
    }

    fn built(names: &[&'static str]) -> Vec<Named> {
        names.iter().map(|&name| (name, std::future::ready(()).boxed())).collect()
    }

    #[test]
    fn nothing_named_selects_all() {
        let all = of(&[]).unwrap();
        let mut every: Vec<_> = rbac::CLOUD.names().chain(rbac::RESOURCES.names()).collect();
        every.sort_unstable();
        assert_eq!(all.to_string(), every.join(","));
        assert!(every.contains(&"openstack") && every.contains(&"image"));
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_valid_ones() {
        let error = of(&["keystone", "keystnoe", "cinder"]).unwrap_err().to_string();
        assert!(error.contains("keystnoe, cinder;") && error.contains("openstack, mariadb"), "{error}");
    }

    #[test]
    fn what_is_not_selected_is_left_out() {
        let one = of(&["keystone"]).unwrap();
        assert!(!one.any_of(&rbac::RESOURCES));
        let names: Vec<_> =
            one.pick(&rbac::CLOUD, built(&["glance", "keystone"])).unwrap().into_iter().map(|(n, _)| n).collect();
        assert_eq!(names, ["keystone"]);
    }

    #[test]
    fn a_controller_without_rights_is_an_error_as_nobody_could_select_it() {
        let error = of(&["keystone"]).unwrap().pick(&rbac::CLOUD, built(&["keystone", "stray"])).err().unwrap();
        assert_eq!(error.to_string(), "these controllers have no rights: stray");
    }

    #[test]
    fn a_selected_controller_that_is_missing_is_an_error() {
        let selected = of(&["keystone", "image"]).unwrap();
        assert!(selected.pick(&rbac::CLOUD, built(&["glance"])).is_err());
        assert!(selected.pick(&rbac::RESOURCES, built(&["image"])).is_ok());
    }
}
