//! Names derived from other names, within the limits of the systems they are for.

use crate::hash;

/// Longest name of most Kubernetes objects that end up in a DNS label.
pub const MAX_LABEL: usize = 63;

/// `base` and `suffix` joined by a dash, at most [`MAX_LABEL`] long. A base that is too long is cut and gets its
/// own hash, so that two long names which differ only at the end stay different.
pub fn joined(base: &str, suffix: &str) -> String {
    let whole = format!("{base}-{suffix}");
    if whole.len() <= MAX_LABEL {
        return whole;
    }
    let digest = hash::of_bytes(base.as_bytes());
    let room = MAX_LABEL.saturating_sub(suffix.len() + 1 + 8 + 1);
    let cut = base.get(..room.min(base.len())).unwrap_or_default().trim_end_matches(['-', '.']);
    format!("{cut}-{}-{suffix}", hash::short(&digest))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("keystone-db-sync", "0a1b2c3d", "keystone-db-sync-0a1b2c3d")]
    #[case("a", "b", "a-b")]
    fn short_names_are_joined_as_they_are(#[case] base: &str, #[case] suffix: &str, #[case] expected: &str) {
        assert_eq!(joined(base, suffix), expected);
    }

    #[test]
    fn long_names_stay_different_and_within_the_limit() {
        let a = joined(&format!("{}a", "x".repeat(80)), "etc");
        let b = joined(&format!("{}b", "x".repeat(80)), "etc");
        assert_ne!(a, b);
        assert!(a.len() <= MAX_LABEL && a.ends_with("-etc"), "{a}");
    }
}
