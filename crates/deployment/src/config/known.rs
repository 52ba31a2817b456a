//! The options that a service of a release has, and which of them a misspelt name was meant to be.
//!
//! The lists are made from the services' own images by `images/openstack/options.sh`.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use crate::service::Kind;

/// Section of a list for what is valid in any section that the list does not name.
const ANY: &str = "*";

static LISTS: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let parse = |release, kind, text| Known { release, kind, sections: sections(text) };
    vec![
        parse("2026.1", Kind::Keystone, include_str!("../../options/2026.1/keystone.txt")),
        parse("2026.1", Kind::Glance, include_str!("../../options/2026.1/glance.txt")),
        parse("2026.1", Kind::Placement, include_str!("../../options/2026.1/placement.txt")),
        parse("2026.1", Kind::Neutron, include_str!("../../options/2026.1/neutron.txt")),
        parse("2026.1", Kind::Nova, include_str!("../../options/2026.1/nova.txt")),
        parse("2026.2", Kind::Keystone, include_str!("../../options/2026.2/keystone.txt")),
        parse("2026.2", Kind::Glance, include_str!("../../options/2026.2/glance.txt")),
        parse("2026.2", Kind::Placement, include_str!("../../options/2026.2/placement.txt")),
        parse("2026.2", Kind::Neutron, include_str!("../../options/2026.2/neutron.txt")),
        parse("2026.2", Kind::Nova, include_str!("../../options/2026.2/nova.txt")),
    ]
});

/// The options of one service in one release.
pub(super) struct Known {
    release: &'static str,
    kind: Kind,
    sections: BTreeMap<&'static str, Section>,
}

#[derive(Default)]
struct Section {
    options: BTreeSet<&'static str>,
    secrets: BTreeSet<&'static str>,
}

/// What is wrong with a name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    /// There is no such section; perhaps that one was meant.
    Section(Option<&'static str>),
    /// The section has no such option; perhaps that one was meant.
    Option(Option<String>),
}

/// The list of a service; `None` for one whose options are not known.
pub(super) fn of(release: &str, kind: Kind) -> Option<&'static Known> {
    LISTS.iter().find(|known| known.release == release && known.kind == kind)
}

/// Whether any service of the release has the option.
pub(super) fn anywhere(release: &str, section: &str, option: &str) -> bool {
    LISTS.iter().any(|known| known.release == release && known.has(section, option))
}

impl Known {
    /// Whether the option's value is a secret.
    pub(super) fn is_secret(&self, section: &str, option: &str) -> bool {
        self.section(section).or_else(|| self.section(ANY)).is_some_and(|s| s.secrets.contains(option))
    }

    /// Whether there is such an option.
    pub(super) fn has(&self, section: &str, option: &str) -> bool {
        self.section(section).or_else(|| self.section(ANY)).is_none_or(|s| s.options.contains(option))
    }

    /// What is wrong with an option's name, and what it may have been meant to be; `None` when there is such an option.
    pub(super) fn check(&self, section: &str, option: &str) -> Option<Unknown> {
        let Some(known) = self.section(section) else {
            let any = self.section(ANY)?;
            let near = nearest(section, self.sections.keys().copied().filter(|s| *s != ANY));
            return (!any.options.contains(option)).then_some(Unknown::Section(near));
        };
        if known.options.contains(option) {
            return None;
        }
        let near = nearest(option, known.options.iter().copied()).map(str::to_owned);
        let elsewhere = || {
            let mut sections = self.sections.iter();
            let (name, _) = sections.find(|(name, s)| **name != ANY && s.options.contains(option))?;
            Some(format!("{option} in [{name}]"))
        };
        Some(Unknown::Option(near.or_else(elsewhere)))
    }

    /// Names of sections are compared as oslo.config does: without regard to case.
    fn section(&self, name: &str) -> Option<&Section> {
        self.sections.get(name).or_else(|| {
            let mut sections = self.sections.iter();
            sections.find(|(known, _)| **known != "DEFAULT" && known.eq_ignore_ascii_case(name)).map(|(_, s)| s)
        })
    }
}

/// The word that was meant: at most a quarter of its letters is wrong, or two of a short one's.
fn nearest(word: &str, words: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let tolerance = (word.chars().count() / 4).max(2);
    words
        .filter(|w| w.len().abs_diff(word.len()) <= tolerance)
        .map(|w| (strsim::damerau_levenshtein(word, w), w))
        .filter(|(distance, w)| *distance <= tolerance && *distance < w.len())
        .min()
        .map(|(_, w)| w)
}

fn sections(text: &'static str) -> BTreeMap<&'static str, Section> {
    let mut sections = BTreeMap::new();
    let mut current = "";
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            current = name;
            continue;
        }
        let section: &mut Section = sections.entry(current).or_default();
        let name = line.trim_end_matches(" *");
        section.options.insert(name);
        if name != line {
            section.secrets.insert(name);
        }
    }
    sections
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn check(section: &str, option: &str) -> Option<Unknown> {
        of("2026.2", Kind::Keystone).unwrap().check(section, option)
    }

    fn wrong_option(section: &str, option: &str, meant: Option<&str>) {
        assert_eq!(check(section, option), Some(Unknown::Option(meant.map(str::to_owned))));
    }

    #[rstest]
    #[case("DEFAULT", "debug")]
    #[case("database", "connection")]
    #[case("Database", "connection")]
    #[case::deprecated("DEFAULT", "log_config")]
    #[case::a_federation_protocol("openid", "remote_id_attribute")]
    fn known_options(#[case] section: &str, #[case] name: &str) {
        assert_eq!(check(section, name), None);
    }

    #[test]
    fn understack_2345_a_misspelt_option_finds_the_one_that_was_meant() {
        wrong_option("DEFAULT", "debgu", Some("debug"));
        wrong_option("token", "experation", Some("expiration"));
        wrong_option("DEFAULT", "max_pool_size", Some("max_pool_size in [database]"));
        wrong_option("DEFAULT", "wholly_unlike_anything", None);
        assert_eq!(check("databse", "connection"), Some(Unknown::Section(Some("database"))));
    }

    #[test]
    fn stores_of_glance_have_names_that_the_user_chose() {
        let glance = of("2026.2", Kind::Glance).unwrap();
        assert_eq!(glance.check("my-ceph", "rbd_store_pool"), None);
        assert!(glance.is_secret("my-bucket", "s3_store_secret_key"));
        assert!(!glance.is_secret("my-ceph", "rbd_store_pool"));
        assert!(glance.is_secret("keystone_authtoken", "password"));
    }

    #[test]
    fn every_release_has_lists_of_all_services() {
        for release in crate::catalogue::RELEASES {
            for kind in
                Kind::ALL.into_iter().filter(|k| crate::services::of(*k).format() == crate::service::Format::Oslo)
            {
                let known = of(release.name, kind).unwrap();
                assert!(known.sections.len() >= 10 && known.check("DEFAULT", "debug").is_none(), "{}", release.name);
            }
        }
    }
}
