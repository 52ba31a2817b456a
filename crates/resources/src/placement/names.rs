//! What host aggregates and flavors of ours are called, so that they are found again and are nobody else's.

use std::collections::BTreeMap;

use kupenstack_api::resources::VirtualMachine;
use kupenstack_core::{hash, ownership::ClusterId};
use serde::Serialize;

/// Labels that a node has to have.
pub(super) type Selector = BTreeMap<String, String>;

/// The longest name in Nova.
const LONGEST: usize = 255;
/// The longest key of a property: as an extra spec it comes after [`SCOPE`].
const LONGEST_PROPERTY: usize = LONGEST - SCOPE.len();
/// What an extra spec begins with that the aggregates of a host have to have.
const SCOPE: &str = "aggregate_instance_extra_specs:";
/// What the last word of a derived flavor's description begins with. It is no mark: no object has the flavor.
const DERIVED: &str = "kupenstack-derived";
/// How much of a hash tells selectors apart. Whoever makes two of the same only keeps himself from a flavor.
const DIGITS: usize = 16;

/// What all our aggregates are called at the beginning.
fn prefix(cluster: &ClusterId) -> String {
    format!("kupenstack:{cluster}:")
}

/// Whether an aggregate of this name is ours.
pub(super) fn is_ours(cluster: &ClusterId, name: &str) -> bool {
    name.starts_with(&prefix(cluster))
}

/// The name of the aggregate of a label. Nova's database takes names for the same that differ in case only.
pub(super) fn aggregate(cluster: &ClusterId, key: &str, value: &str) -> String {
    let (prefix, label) = (prefix(cluster), format!("{key}={value}"));
    if label.chars().any(|c| c.is_ascii_uppercase()) || prefix.len() + label.len() > LONGEST {
        let digest = hash::of_bytes(label.as_bytes());
        let room = LONGEST - prefix.len() - digest.len() - 1;
        return format!("{prefix}{}#{digest}", &label[..label.floor_char_boundary(room)]);
    }
    format!("{prefix}{label}")
}

/// The key of an aggregate's property that stands for the key of a label. Nova takes no slash, and takes keys for the same that
/// differ in case only. Other clusters' nodes have other labels.
pub(super) fn property(cluster: &ClusterId, key: &str) -> String {
    let mut property = format!("{cluster}.");
    for c in key.chars() {
        match c {
            '_' => property.push_str("__"),
            '/' => property.push_str("_."),
            c if c.is_ascii_uppercase() => property.extend(['_', c.to_ascii_lowercase()]),
            c => property.push(c),
        }
    }
    if property.len() > LONGEST_PROPERTY {
        // no digit comes after an underscore otherwise
        return format!("{cluster}._0{}", hash::of_bytes(key.as_bytes()));
    }
    property
}

/// The extra spec that asks for a label.
pub(super) fn extra_spec(cluster: &ClusterId, key: &str) -> String {
    format!("{SCOPE}{}", property(cluster, key))
}

/// What tells one from others.
fn digest(of: &impl Serialize) -> String {
    let mut digest = hash::of(of);
    digest.truncate(DIGITS);
    digest
}

/// The name in Nova of the flavor that a VM is to have, if it is to have a certain one. That of an adopted flavor is not its
/// object's.
pub(crate) fn flavor_of(vm: &VirtualMachine, adopted: Option<&str>) -> Option<String> {
    let named = vm.spec.flavor.as_deref()?;
    if vm.spec.node_selector.is_empty() {
        return Some(adopted.unwrap_or(named).to_owned());
    }
    Some(flavor(named, &vm.spec.node_selector))
}

/// The name of a flavor that is derived from another for a selector.
pub(super) fn flavor(base: &str, selector: &Selector) -> String {
    let beginning = &base[..base.floor_char_boundary(LONGEST - DIGITS - 1)];
    format!("{beginning}.{}", digest(&(base, selector)))
}

/// What stands for the UID of the object that a derived flavor does not have.
pub(super) fn derived_uid(base_uid: &str, selector: &Selector) -> String {
    format!("{base_uid}.{}", digest(&selector))
}

/// What a derived flavor's description has in the place of a mark.
pub(super) fn signature(cluster: &ClusterId, derived_uid: &str) -> String {
    format!("{DERIVED}:{cluster}:{derived_uid}")
}

/// Whether a flavor is one that this cluster has derived. A description is easily copied, so the identifier has to go with it.
pub(super) fn is_derived(cluster: &ClusterId, id: &str, description: Option<&str>) -> bool {
    let last = description.and_then(|text| text.rsplit(' ').next()).unwrap_or_default();
    let uid = last.strip_prefix(DERIVED).and_then(|rest| rest.strip_prefix(&format!(":{cluster}:")));
    uid.is_some_and(|uid| cluster.resource_id(uid) == id)
}

/// The labels that a VM asks for.
pub(crate) fn labels_of(vm: &VirtualMachine) -> String {
    shown(&vm.spec.node_selector)
}

/// A selector as `kubectl` writes it.
pub(super) fn shown(selector: &Selector) -> String {
    selector.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use kupenstack_core::ownership;

    use super::*;

    fn cluster(last: u8) -> ClusterId {
        format!("6f2b6a2e-1f0a-4a55-9c58-0d4f3ad0f7{last:02}").parse().unwrap()
    }

    fn selector(pairs: &[(&str, &str)]) -> Selector {
        pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    /// Keys that an encoding may take for one another, and the longest that there are.
    fn keys() -> Vec<String> {
        let mut keys: Vec<String> =
            ["a", "A", "a_", "a__", "_a", "a/a", "a_.a", "a.a", "a_/a", "a-b", "a_b", "aB", "a_B", "example.com/a"]
                .map(str::to_owned)
                .to_vec();
        for last in ["x", "X", "_", "y"] {
            keys.push(format!("{}/{}{last}", "d".repeat(253), "n".repeat(62)));
            keys.push(format!("{}{last}", "_".repeat(62)));
        }
        keys
    }

    #[test]
    fn nova_takes_each_key_and_tells_them_apart() {
        let mut seen = HashSet::new();
        for (cluster, key) in [cluster(1), cluster(2)].iter().flat_map(|c| keys().into_iter().map(move |key| (c, key)))
        {
            let spec = extra_spec(cluster, &key);
            assert!(
                spec.len() <= LONGEST && spec.chars().all(|c| c.is_ascii_alphanumeric() || "-_:. ".contains(c)),
                "{spec}"
            );
            assert_eq!(spec.split_once(':').unwrap(), ("aggregate_instance_extra_specs", &*property(cluster, &key)));
            assert!(seen.insert(spec.to_lowercase()), "{key} is taken for another");
        }
        assert_eq!(property(&cluster(1), "Example.com/a_b"), format!("{}._example.com_.a__b", cluster(1)));
    }

    #[test]
    fn aggregates_are_told_apart_by_nova_and_by_us() {
        let (one, two) = (cluster(1), cluster(2));
        let mut seen = HashSet::new();
        for (key, value) in keys().iter().flat_map(|key| ["", "ssd", "SSD", "s"].map(|value| (key, value))) {
            let name = aggregate(&one, key, value);
            assert!((1..=LONGEST).contains(&name.len()) && name.trim() == name, "{name}");
            assert!(is_ours(&one, &name) && !is_ours(&two, &name));
            assert!(seen.insert(name.to_lowercase()), "{key}={value} is taken for another");
        }
        assert_eq!(aggregate(&one, "disk", "ssd"), format!("kupenstack:{one}:disk=ssd"));
        for foreign in ["", "disk=ssd", "kupenstack:disk=ssd", &format!("kupenstack:{two}:disk=ssd")] {
            assert!(!is_ours(&one, foreign), "{foreign}");
        }
    }

    #[test]
    fn derived_flavors_have_names_of_their_own() {
        let (ssd, fast) = (selector(&[("disk", "ssd")]), selector(&[("disk", "ssd"), ("net", "fast")]));
        let name = flavor("small", &ssd);
        assert!(name.starts_with("small.") && name.len() == "small.".len() + DIGITS);
        assert_ne!(name, flavor("small", &fast));
        let long = ["x", "y"].map(|last| flavor(&format!("{}{last}", "x".repeat(252)), &ssd));
        assert!(long[0].len() == LONGEST && long[0] != long[1]);
    }

    #[test]
    fn derived_flavors_are_known_and_carry_no_mark() {
        let (one, two, ssd) = (cluster(1), cluster(2), selector(&[("disk", "ssd"), ("empty", "")]));
        let uid = derived_uid("u1", &ssd);
        let (id, text) = (one.resource_id(&uid), ownership::described(&shown(&ssd), &signature(&one, &uid)));
        assert!(text.starts_with("disk=ssd,empty= kupenstack-derived:"));
        assert!(is_derived(&one, &id, Some(&text)));
        assert!(!is_derived(&two, &id, Some(&text)) && !is_derived(&one, &two.resource_id(&uid), Some(&text)));
        assert!(!is_derived(&one, &id, None) && !is_derived(&one, &id, Some(&one.mark(&uid))));
        assert_eq!(ownership::mark_in(&text), None);
    }
}
