//! The keys of a `ResourceQuota` that are ours, and how their values are read.

use std::fmt;

use kupenstack_api::resources::GROUP;

/// What Keystone can keep of a limit.
const MOST: u32 = 0x7FFF_FFFF;
/// The unit of the limits for sizes.
const MIB: u128 = 1 << 20;

/// A key of `spec.hard`, and the limit of the project that it becomes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// Its name behind `kupenstack.io/`.
    pub(super) name: &'static str,
    /// Type of the service whose limit it is.
    pub(super) service: &'static str,
    /// The limit's name there.
    pub(super) resource: &'static str,
    /// How many of what the key counts make one of what the limit counts.
    unit: u128,
}

/// All of them. `count/…` keys are Kubernetes' own: they count objects, not what is in OpenStack.
pub(super) static KEYS: [Key; 4] = [
    Key::count("images", "image", "image_count_total"),
    Key::size("image-storage", "image", "image_size_total"),
    Key::size("image-staging", "image", "image_stage_total"),
    Key::count("image-uploads", "image", "image_count_uploading"),
];

impl Key {
    /// A number of things.
    const fn count(name: &'static str, service: &'static str, resource: &'static str) -> Self {
        Self { name, service, resource, unit: 1 }
    }

    /// Bytes here, MiB there.
    const fn size(name: &'static str, service: &'static str, resource: &'static str) -> Self {
        Self { name, service, resource, unit: MIB }
    }

    /// The limit that a value comes to. What is not a whole number of the limit's units is rounded down: a quota allows
    /// no more than it says.
    pub(super) fn limit(&self, value: &str) -> Result<u32, Problem> {
        let asked = whole(value)?;
        if asked > 0 && asked < self.unit {
            return Err(Problem::TooSmall);
        }
        u32::try_from(asked / self.unit).ok().filter(|limit| *limit <= MOST).ok_or(Problem::TooLarge(self.most()))
    }

    /// The largest value that it takes.
    fn most(&self) -> u128 {
        u128::from(MOST) * self.unit
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{GROUP}/{}", self.name)
    }
}

/// What a key of `spec.hard` is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// One of ours.
    Ours(&'static Key),
    /// In our domain, but none that there is; perhaps another one was meant.
    Unknown(Option<&'static Key>),
    /// None of our business.
    Foreign,
}

/// What a key of `spec.hard` is. `requests.kupenstack.io/…`, Kubernetes' way to count what pods ask for, is none of ours:
/// no pod asks for an image.
pub(super) fn meaning(key: &str) -> Meaning {
    let Some((domain, name)) = key.split_once('/') else { return Meaning::Foreign };
    if domain != GROUP && domain.strip_suffix(GROUP).is_none_or(|rest| !rest.ends_with('.')) {
        return Meaning::Foreign;
    }
    match KEYS.iter().find(|key| key.name == name) {
        Some(key) if domain == GROUP => Meaning::Ours(key),
        Some(key) => Meaning::Unknown(Some(key)),
        None => Meaning::Unknown(nearest(name)),
    }
}

/// The key that was meant: at most a third of its letters is wrong, whatever their case and whatever joins its words.
fn nearest(name: &str) -> Option<&'static Key> {
    let name = name.to_lowercase().replace(['_', '.'], "-");
    let distance = |key: &&Key| strsim::damerau_levenshtein(&name, key.name);
    KEYS.iter().min_by_key(distance).filter(|key| distance(key) <= key.name.len() / 3)
}

/// Why a value is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Problem {
    /// Not the text of a quantity.
    #[error("is not a number")]
    NotANumber,
    /// Part of one.
    #[error("is not a whole number")]
    Fraction,
    /// Below 0.
    #[error("is negative; leave the key out where there is to be no limit")]
    Negative,
    /// Less than one of what the limit counts.
    #[error("is less than 1Mi; give a size with its unit, such as 100Gi")]
    TooSmall,
    /// More than Keystone can keep.
    #[error("is more than OpenStack can keep, which is {0}; leave the key out where there is to be no limit")]
    TooLarge(u128),
}

/// The whole number that a quantity is. The API server keeps it in its canonical form: digits and a suffix, which is a
/// fraction's `m` where a decimal point was given.
fn whole(quantity: &str) -> Result<u128, Problem> {
    let unsigned = quantity.trim_start_matches(['+', '-']);
    let end = unsigned.find(|c: char| !c.is_ascii_digit()).unwrap_or(unsigned.len());
    let (digits, suffix) = unsigned.split_at(end);
    if digits.is_empty() {
        return Err(Problem::NotANumber);
    }
    let huge = Problem::TooLarge(u128::from(MOST));
    let number: u128 = digits.parse().map_err(|_| huge)?;
    let factor = factor(suffix)?;
    if number > 0 && quantity.starts_with('-') {
        return Err(Problem::Negative);
    }
    match factor {
        _ if number == 0 => Ok(0),
        Some(factor) => number.checked_mul(factor).ok_or(huge),
        None => Err(huge),
    }
}

/// What a suffix stands for; none if that is more than can be counted.
fn factor(suffix: &str) -> Result<Option<u128>, Problem> {
    const PREFIXES: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
    const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if let Some(power) = PREFIXES.iter().position(|known| *known == suffix) {
        return Ok(Some(1000_u128.pow(u32::try_from(power).unwrap_or_default())));
    }
    if let Some(power) = BINARY.iter().position(|known| *known == suffix) {
        return Ok(Some(1 << (10 * power)));
    }
    match suffix.strip_prefix(['e', 'E']).map(str::parse::<i32>) {
        Some(Ok(exponent)) => match u32::try_from(exponent) {
            Ok(exponent) => Ok(10_u128.checked_pow(exponent)),
            Err(_) => Err(Problem::Fraction),
        },
        None if matches!(suffix, "m" | "u" | "n") || suffix.starts_with('.') => Err(Problem::Fraction),
        _ => Err(Problem::NotANumber),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn key(name: &str) -> &'static Key {
        KEYS.iter().find(|key| key.name == name).unwrap()
    }

    #[rstest]
    #[case("images", "5", 5)]
    #[case("images", "0", 0)]
    #[case("images", "-0", 0)]
    #[case("images", "2k", 2000)]
    #[case("images", "1e3", 1000)]
    #[case("images", "2147483647", MOST)]
    #[case("image-storage", "0", 0)]
    #[case("image-storage", "100Gi", 102_400)]
    #[case("image-storage", "1048576", 1)]
    #[case("image-storage", "1999999", 1)]
    #[case("image-storage", "1G", 953)]
    #[case("image-storage", "2047Ti", 2_146_435_072)]
    fn a_value_becomes_a_limit(#[case] name: &str, #[case] value: &str, #[case] limit: u32) {
        assert_eq!(key(name).limit(value), Ok(limit));
    }

    #[rstest]
    #[case("images", "-1", Problem::Negative)]
    #[case("images", "1.5", Problem::Fraction)]
    #[case("images", "1500m", Problem::Fraction)]
    #[case("images", "5e-1", Problem::Fraction)]
    #[case("images", "10Gi", Problem::TooLarge(2_147_483_647))]
    #[case("images", "2147483648", Problem::TooLarge(2_147_483_647))]
    #[case("images", "10e399", Problem::TooLarge(2_147_483_647))]
    #[case("images", "99999999999999999999999999999999999999999", Problem::TooLarge(2_147_483_647))]
    #[case("images", "99999999999999999999999999999Ei", Problem::TooLarge(2_147_483_647))]
    #[case("images", "10e99999999999", Problem::NotANumber)]
    #[case("images", "", Problem::NotANumber)]
    #[case("images", "Gi", Problem::NotANumber)]
    #[case("images", "5 apples", Problem::NotANumber)]
    #[case("image-storage", "100", Problem::TooSmall)]
    #[case("image-storage", "1k", Problem::TooSmall)]
    #[case("image-storage", "2Pi", Problem::TooLarge(2_251_799_812_636_672))]
    fn a_value_that_is_no_limit_is_told(#[case] name: &str, #[case] value: &str, #[case] problem: Problem) {
        assert_eq!(key(name).limit(value), Err(problem));
    }

    #[rstest]
    #[case("kupenstack.io/imagse", Some("images"))]
    #[case("kupenstack.io/Images", Some("images"))]
    #[case("kupenstack.io/image_storage", Some("image-storage"))]
    #[case("kupenstack.io/cpu", None)]
    #[case("requests.kupenstack.io/images", Some("images"))]
    fn a_key_that_is_none_of_ours_is_told_with_what_was_meant(#[case] text: &str, #[case] near: Option<&str>) {
        assert_eq!(meaning(text), Meaning::Unknown(near.map(key)));
    }

    #[rstest]
    #[case("pods")]
    #[case("requests.nvidia.com/gpu")]
    #[case("count/images.kupenstack.io")]
    #[case("notkupenstack.io/images")]
    fn keys_of_others_are_none_of_our_business(#[case] text: &str) {
        assert_eq!(meaning(text), Meaning::Foreign);
    }

    #[test]
    fn every_key_is_known_by_its_name_and_is_a_limit_of_its_own() {
        for key in &KEYS {
            assert_eq!(meaning(&key.to_string()), Meaning::Ours(key));
            let same = KEYS.iter().filter(|other| (other.service, other.resource) == (key.service, key.resource));
            assert_eq!(same.count(), 1, "{key}");
            let page = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/quotas.md"));
            let row = page.lines().find(|line| line.starts_with(&format!("| `{key}` |")));
            assert!(row.is_some_and(|row| row.contains(key.resource)), "docs/quotas.md has no row for {key}");
        }
    }
}
