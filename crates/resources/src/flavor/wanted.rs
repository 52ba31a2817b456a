//! What the Nova flavor of an object has to be, as a pure function of the object.

use std::collections::BTreeMap;

use kube::ResourceExt;
use kupenstack_api::resources::Flavor;
use kupenstack_core::{Outcome, reason};
use kupenstack_openstack::{self as openstack, NewFlavor};

use crate::neutron::description;

/// The flavor that an object declares.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wanted<'a> {
    /// That of an adopted one is whatever it is.
    pub(super) name: Option<String>,
    vcpus: u32,
    /// MiB.
    ram: u32,
    /// GiB.
    disk: u32,
    /// GiB.
    ephemeral: u32,
    /// MiB.
    swap: u32,
    is_public: bool,
    /// The object's own text, and the mark after it. An adopted one has no mark, and may keep the text that it has.
    description: Option<String>,
    extra_specs: &'a BTreeMap<String, String>,
}

/// Units of quantities, as powers of two.
const UNITS: [(&str, u32); 3] = [("Mi", 20), ("Gi", 30), ("Ti", 40)];
const MEBI: u32 = 20;
const GIBI: u32 = 30;

impl<'a> Wanted<'a> {
    /// Reads the object. What can't be is told by its field; the schema lets nothing of it through.
    pub(crate) fn of(flavor: &'a Flavor, mark: &str) -> Result<Self, Outcome> {
        let (spec, is_made) = (&flavor.spec, flavor.spec.adopt.is_none());
        let text = spec.description.as_deref().map(str::trim);
        let size = |field: &str, text: Option<&String>, unit: u32| match text {
            None => Ok(0),
            Some(text) => whole(text, unit).ok_or_else(|| {
                let example = if unit == MEBI { "512Mi" } else { "20Gi" };
                invalid(field, &format!("{text:?} is no size that Nova knows; write, for example, {example}"))
            }),
        };
        Ok(Self {
            name: is_made.then(|| flavor.name_any()),
            vcpus: u32::try_from(spec.vcpus).map_err(|_| invalid("vcpus", "out of range"))?,
            ram: size("ram", Some(&spec.ram), MEBI)?,
            disk: size("disk", spec.disk.as_ref(), GIBI)?,
            ephemeral: size("ephemeral", spec.ephemeral.as_ref(), GIBI)?,
            swap: size("swap", spec.swap.as_ref(), MEBI)?,
            is_public: spec.public.unwrap_or(true),
            description: description(text, mark, is_made),
            extra_specs: &spec.extra_specs,
        })
    }

    /// The flavor to be made.
    pub(crate) fn new_flavor(&self, id: &str) -> NewFlavor {
        NewFlavor {
            id: id.to_owned(),
            name: self.name.clone().unwrap_or_default(),
            vcpus: self.vcpus,
            ram: self.ram,
            disk: self.disk,
            ephemeral: self.ephemeral,
            swap: self.swap,
            is_public: self.is_public,
            description: self.description.clone().unwrap_or_default(),
        }
    }

    /// Why a flavor is not to be taken over as it is.
    pub(super) fn what_speaks_against(&self, flavor: &openstack::Flavor) -> Option<String> {
        let undeclared = self.extra_specs_to_remove(flavor).into_iter().next();
        self.what_can_not_be_set(flavor).or_else(|| {
            undeclared.map(|name| format!("it has the extra spec {name}, which spec.extraSpecs does not declare"))
        })
    }

    /// The description, if the flavor has another.
    pub(super) fn description_to_set(&self, flavor: &openstack::Flavor) -> Option<&str> {
        self.description.as_deref().filter(|wanted| flavor.description.as_deref() != Some(wanted))
    }

    /// The extra specs that the flavor lacks, or has with other values.
    pub(super) fn extra_specs_to_set(&self, flavor: &openstack::Flavor) -> BTreeMap<String, String> {
        let differing = self.extra_specs.iter().filter(|(name, value)| flavor.extra_specs.get(*name) != Some(value));
        differing.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// The names of the extra specs that the flavor has and that are not declared.
    pub(super) fn extra_specs_to_remove<'f>(&self, flavor: &'f openstack::Flavor) -> Vec<&'f str> {
        let names = flavor.extra_specs.keys().filter(|name| !self.extra_specs.contains_key(*name));
        names.map(String::as_str).collect()
    }

    /// What the flavor has otherwise than declared and Nova can't change, if somebody put another in its place.
    pub(crate) fn what_can_not_be_set(&self, flavor: &openstack::Flavor) -> Option<String> {
        let sizes = [
            ("vcpus", flavor.vcpus, self.vcpus),
            ("ram", flavor.ram, self.ram),
            ("disk", flavor.disk, self.disk),
            ("ephemeral", flavor.ephemeral, self.ephemeral),
            ("swap", flavor.swap, self.swap),
        ];
        if let Some((what, is, wanted)) = sizes.into_iter().find(|(_, is, wanted)| is != wanted) {
            return Some(format!("{what} is {is} in Nova and not {wanted}"));
        }
        if flavor.is_public != self.is_public {
            return Some(format!("public is {} in Nova and not {}", flavor.is_public, self.is_public));
        }
        let name = self.name.as_ref().filter(|name| **name != flavor.name);
        name.map(|name| format!("its name is {} in Nova and not {name}", flavor.name))
    }
}

/// A quantity as a whole number of units of 2^`unit` bytes.
fn whole(text: &str, unit: u32) -> Option<u32> {
    let (suffix, power) = UNITS.into_iter().find(|(suffix, _)| text.ends_with(suffix))?;
    let number: u64 = text.strip_suffix(suffix)?.parse().ok()?;
    u32::try_from(number.checked_mul(1_u64.checked_shl(power.checked_sub(unit)?)?)?).ok()
}

fn invalid(field: &str, problem: &str) -> Outcome {
    Outcome::blocked(reason::INVALID_SPEC, format!("spec.{field}: {problem}"))
}

#[cfg(test)]
mod tests {
    use kupenstack_api::resources::{Adoption, FlavorSpec};
    use rstest::rstest;

    use super::*;

    const MARK: &str = "kupenstack:6f2b6a2e-1f0a-4a55-9c58-0d4f3ad0f7a1:u1";

    fn small() -> Flavor {
        let spec =
            FlavorSpec { vcpus: 2, ram: "2Gi".to_owned(), disk: Some("20Gi".to_owned()), ..FlavorSpec::default() };
        Flavor::new("small", spec)
    }

    fn in_nova(wanted: &Wanted<'_>) -> openstack::Flavor {
        let NewFlavor { id, name, vcpus, ram, disk, ephemeral, swap, is_public, description } = wanted.new_flavor("i");
        let (description, extra_specs) = (Some(description), wanted.extra_specs.clone());
        openstack::Flavor { id, name, vcpus, ram, disk, ephemeral, swap, is_public, description, extra_specs }
    }

    #[rstest]
    #[case("512Mi", MEBI, Some(512))]
    #[case("2Gi", MEBI, Some(2048))]
    #[case("999Ti", MEBI, Some(1_047_527_424))]
    #[case("20Gi", GIBI, Some(20))]
    #[case("999999Ti", GIBI, Some(1_023_998_976))]
    #[case("512Mi", GIBI, None)]
    #[case("9999999Ti", MEBI, None)]
    #[case("2G", MEBI, None)]
    #[case("Gi", MEBI, None)]
    #[case("-1Gi", MEBI, None)]
    fn sizes_are_whole_numbers_of_novas_units(#[case] text: &str, #[case] unit: u32, #[case] number: Option<u32>) {
        assert_eq!(whole(text, unit), number);
    }

    #[test]
    fn a_size_that_is_none_is_told_by_its_field() {
        let mut flavor = small();
        flavor.spec.swap = Some("1M".to_owned());
        let blocked = Wanted::of(&flavor, MARK).unwrap_err();
        assert!(blocked.message().starts_with("spec.swap: \"1M\""), "{}", blocked.message());
    }

    #[rstest]
    #[case(None, MARK.to_owned())]
    #[case(Some(" "), MARK.to_owned())]
    #[case(Some("for all "), format!("for all {MARK}"))]
    fn the_mark_comes_after_the_text(#[case] text: Option<&str>, #[case] description: String) {
        let mut flavor = small();
        flavor.spec.description = text.map(ToOwned::to_owned);
        assert_eq!(Wanted::of(&flavor, MARK).unwrap().description, Some(description));
    }

    #[test]
    fn only_what_differs_is_set() {
        let mut flavor = small();
        flavor.spec.extra_specs = [("a", "1"), ("b", "2")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        let wanted = Wanted::of(&flavor, MARK).unwrap();
        let mut stored = in_nova(&wanted);
        assert_eq!(wanted.description_to_set(&stored), None);
        assert!(wanted.extra_specs_to_set(&stored).is_empty() && wanted.extra_specs_to_remove(&stored).is_empty());
        stored.extra_specs = [("b", "9"), ("c", "3")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        stored.description = None;
        assert_eq!(wanted.description_to_set(&stored), Some(MARK));
        assert_eq!(&wanted.extra_specs_to_set(&stored), wanted.extra_specs);
        assert_eq!(wanted.extra_specs_to_remove(&stored), ["c"]);
    }

    #[rstest]
    #[case(|flavor: &mut openstack::Flavor| flavor.ram = 1, "ram is 1 in Nova and not 2048")]
    #[case(|flavor: &mut openstack::Flavor| flavor.disk = 0, "disk is 0 in Nova and not 20")]
    #[case(|flavor: &mut openstack::Flavor| flavor.swap = 7, "swap is 7 in Nova and not 0")]
    #[case(|flavor: &mut openstack::Flavor| flavor.is_public = false, "public is false in Nova and not true")]
    #[case(|flavor: &mut openstack::Flavor| flavor.name = "big".to_owned(), "its name is big in Nova and not small")]
    fn what_nova_can_not_change_is_told(#[case] change: fn(&mut openstack::Flavor), #[case] told: &str) {
        let flavor = small();
        let wanted = Wanted::of(&flavor, MARK).unwrap();
        let mut stored = in_nova(&wanted);
        assert_eq!(wanted.what_can_not_be_set(&stored), None);
        change(&mut stored);
        assert_eq!(wanted.what_can_not_be_set(&stored).as_deref(), Some(told));
    }

    #[test]
    fn an_adopted_one_is_what_is_declared_and_keeps_its_name_and_text() {
        let mut flavor = small();
        flavor.spec.adopt = Some(Adoption { name: Some("Large".to_owned()), ..Adoption::default() });
        flavor.spec.extra_specs = [("a".to_owned(), "1".to_owned())].into();
        let wanted = Wanted::of(&flavor, MARK).unwrap();
        let stored = openstack::Flavor { name: "Large".to_owned(), description: None, ..in_nova(&wanted) };
        assert_eq!((wanted.what_speaks_against(&stored), wanted.description_to_set(&stored)), (None, None));
        let mut other = stored.clone();
        other.extra_specs.insert("b".to_owned(), "2".to_owned());
        let told = "it has the extra spec b, which spec.extraSpecs does not declare";
        assert_eq!(wanted.what_speaks_against(&other).as_deref(), Some(told));
        other.vcpus = 4;
        assert_eq!(wanted.what_speaks_against(&other).as_deref(), Some("vcpus is 4 in Nova and not 2"));
        flavor.spec.description = Some("ours".to_owned());
        assert_eq!(Wanted::of(&flavor, MARK).unwrap().description_to_set(&stored), Some("ours"));
    }
}
