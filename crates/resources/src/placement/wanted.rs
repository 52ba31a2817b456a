//! What there is to be in Nova for what VMs wish, as a pure function of that, of what nodes there are, and of flavors.

use std::collections::{BTreeMap, BTreeSet};

use kupenstack_api::resources::{Flavor, FlavorSpec};
use kupenstack_core::ownership::ClusterId;

use super::{
    names::{self, Selector},
    wishes::{Declared, Wish},
};

/// The hosts that run servers and are nodes, with their labels.
pub(super) type Labels = BTreeMap<String, Selector>;

/// What there is to be.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Wanted {
    /// By name.
    pub(super) aggregates: BTreeMap<String, WantedAggregate>,
    pub(super) flavors: BTreeMap<Wish, WantedFlavor>,
    /// What no node fulfils, and why.
    pub(super) unmet: BTreeMap<Wish, String>,
}

/// An aggregate of a label.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WantedAggregate {
    /// The property that it has.
    pub(super) property: (String, String),
    pub(super) hosts: BTreeSet<String>,
}

/// A flavor that is derived from another.
#[derive(Debug, PartialEq)]
pub(super) struct WantedFlavor {
    pub(super) id: String,
    /// What it would be declared as, if it were.
    pub(super) declared: Flavor,
    /// What its description has in the place of a mark.
    pub(super) signature: String,
    /// The identifier of the flavor that it is derived from, if not everybody may use that.
    pub(super) private_base: Option<String>,
    /// The projects that are to use it.
    pub(super) projects: BTreeSet<String>,
    /// The hosts that its servers are put on.
    pub(super) hosts: BTreeSet<String>,
}

impl Wanted {
    /// What is wanted for wishes, each with the projects of those who have it.
    pub(super) fn of<'a>(
        cluster: &ClusterId,
        wishes: BTreeMap<Wish, BTreeSet<String>>,
        nodes: &Labels,
        flavor: impl Fn(&str) -> Option<&'a Declared>,
    ) -> Self {
        let mut wanted = Self::default();
        for (wish, projects) in wishes {
            // who wishes for one that is not declared says so
            let Some(declared) = flavor(&wish.flavor) else { continue };
            let hosts = having(nodes, &wish.selector);
            if hosts.is_empty() {
                let message = lack(nodes, &wish.selector);
                wanted.unmet.insert(wish, message);
                continue;
            }
            for (key, value) in &wish.selector {
                wanted.aggregates.entry(names::aggregate(cluster, key, value)).or_insert_with(|| WantedAggregate {
                    property: (names::property(cluster, key), value.clone()),
                    hosts: having(nodes, &[(key.clone(), value.clone())].into()),
                });
            }
            let derived = WantedFlavor::of(cluster, &wish, declared, projects, hosts);
            wanted.flavors.insert(wish, derived);
        }
        wanted
    }
}

impl WantedFlavor {
    fn of(
        cluster: &ClusterId,
        wish: &Wish,
        base: &Declared,
        projects: BTreeSet<String>,
        hosts: BTreeSet<String>,
    ) -> Self {
        let Wish { flavor, selector } = wish;
        let uid = names::derived_uid(&base.uid, selector);
        let mut extra_specs = base.spec.extra_specs.clone();
        extra_specs.extend(selector.iter().map(|(key, value)| (names::extra_spec(cluster, key), value.clone())));
        let spec = FlavorSpec {
            public: Some(false),
            description: Some(format!("{flavor} on nodes with {}", names::shown(selector))),
            extra_specs,
            adopt: None,
            ..base.spec.clone()
        };
        Self {
            id: cluster.resource_id(&uid),
            declared: Flavor::new(&names::flavor(flavor, selector), spec),
            signature: names::signature(cluster, &uid),
            private_base: (base.spec.public == Some(false))
                .then(|| base.adopted.clone().unwrap_or_else(|| cluster.resource_id(&base.uid))),
            projects,
            hosts,
        }
    }
}

fn has(labels: &Selector, key: &str, value: &str) -> bool {
    labels.get(key).is_some_and(|is| is == value)
}

/// Whether labels are such as a selector asks for.
pub(super) fn fulfils(labels: &Selector, selector: &Selector) -> bool {
    selector.iter().all(|(key, value)| has(labels, key, value))
}

fn having(nodes: &Labels, selector: &Selector) -> BTreeSet<String> {
    nodes.iter().filter(|(_, labels)| fulfils(labels, selector)).map(|(host, _)| host.clone()).collect()
}

/// What is lacking: the labels that no node has, or else that none has all of them.
fn lack(nodes: &Labels, selector: &Selector) -> String {
    let nowhere = |(key, value): &(&String, &String)| !nodes.values().any(|labels| has(labels, key, value));
    let absent: Selector = selector.iter().filter(nowhere).map(|(key, value)| (key.clone(), value.clone())).collect();
    let which = match (absent.is_empty(), selector.len()) {
        (true, _) => format!("all of the labels {}", names::shown(selector)),
        (false, _) if absent.len() == 1 => format!("the label {}", names::shown(&absent)),
        (false, _) => format!("any of the labels {}", names::shown(&absent)),
    };
    format!("no node that runs VMs has {which}; it goes on as soon as one has (kubectl label node)")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn cluster() -> ClusterId {
        "6f2b6a2e-1f0a-4a55-9c58-0d4f3ad0f7a1".parse().unwrap()
    }

    fn labels(text: &str) -> Selector {
        let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
        pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    fn nodes() -> Labels {
        [("n1", "disk=ssd,zone=west"), ("n2", "disk=ssd"), ("n3", "zone=east")]
            .map(|(host, text)| (host.to_owned(), labels(text)))
            .into()
    }

    fn small() -> Declared {
        let extra_specs = [("hw:cpu_policy".to_owned(), "shared".to_owned())].into();
        let spec = FlavorSpec { vcpus: 2, ram: "2Gi".to_owned(), extra_specs, ..FlavorSpec::default() };
        Declared { uid: "u1".to_owned(), spec, adopted: None }
    }

    fn wanted(selectors: &[&str], small: &Declared) -> Wanted {
        let wish = |text: &&str| Wish { flavor: "small".to_owned(), selector: labels(text) };
        let wishes = selectors.iter().map(|text| (wish(text), BTreeSet::from(["p1".to_owned()])));
        Wanted::of(&cluster(), wishes.collect(), &nodes(), |name| (name == "small").then_some(small))
    }

    fn hosts(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn each_label_that_is_asked_for_has_its_nodes() {
        let small = small();
        let Wanted { aggregates, flavors, unmet } = wanted(&["disk=ssd", "disk=ssd,zone=west"], &small);
        assert!(unmet.is_empty());
        let name = |label: &str| format!("kupenstack:{}:{label}", cluster());
        let of = |key: &str, value: &str| (format!("{}.{key}", cluster()), value.to_owned());
        let ssd = WantedAggregate { property: of("disk", "ssd"), hosts: hosts(&["n1", "n2"]) };
        let west = WantedAggregate { property: of("zone", "west"), hosts: hosts(&["n1"]) };
        assert_eq!(aggregates, [(name("disk=ssd"), ssd), (name("zone=west"), west)].into());
        let found: Vec<_> = flavors.values().map(|flavor| flavor.hosts.clone()).collect();
        assert_eq!(found, [hosts(&["n1", "n2"]), hosts(&["n1"])]);
    }

    #[test]
    fn a_derived_flavor_is_as_large_as_its_base_and_for_those_who_wish_for_it() {
        let small = small();
        let all = wanted(&["disk=ssd"], &small);
        let derived = all.flavors.values().next().unwrap();
        assert_eq!((derived.declared.spec.vcpus, derived.declared.spec.ram.as_str()), (2, "2Gi"));
        assert_eq!((derived.declared.spec.public, &derived.private_base), (Some(false), &None));
        let specs = [
            ("hw:cpu_policy".to_owned(), "shared".to_owned()),
            (format!("aggregate_instance_extra_specs:{}.disk", cluster()), "ssd".to_owned()),
        ];
        assert_eq!(derived.declared.spec.extra_specs, specs.into());
        assert_eq!(derived.projects, hosts(&["p1"]));
        let hidden = Declared { spec: FlavorSpec { public: Some(false), ..small.spec.clone() }, ..small };
        let all = wanted(&["disk=ssd"], &hidden);
        assert_eq!(all.flavors.values().next().unwrap().private_base, Some(cluster().resource_id("u1")));
        let adopted = Declared { adopted: Some("7".to_owned()), ..hidden };
        let all = wanted(&["disk=ssd"], &adopted);
        assert_eq!(all.flavors.values().next().unwrap().private_base.as_deref(), Some("7"));
    }

    #[rstest]
    #[case("disk=tape", "the label disk=tape;")]
    #[case("disk=ssd,gpu=a,zone=north", "any of the labels gpu=a,zone=north;")]
    #[case("disk=ssd,zone=east", "all of the labels disk=ssd,zone=east;")]
    fn what_no_node_has_is_named(#[case] selector: &str, #[case] told: &str) {
        let small = small();
        let all = wanted(&[selector], &small);
        assert!(all.aggregates.is_empty() && all.flavors.is_empty());
        let message = all.unmet.into_values().next().unwrap();
        assert!(message.starts_with(&format!("no node that runs VMs has {told}")), "{message}");
    }

    #[test]
    fn of_a_flavor_that_is_not_declared_none_is_derived() {
        let wish = Wish { flavor: "other".to_owned(), selector: labels("disk=ssd") };
        let wishes = [(wish, BTreeSet::new())].into();
        assert_eq!(Wanted::of(&cluster(), wishes, &nodes(), |_| None), Wanted::default());
    }
}
