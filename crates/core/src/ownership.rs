//! Ownership marks: how we know from the create call on that a resource in OpenStack is ours.
//!
//! We adopt only what carries our mark and delete only what carries it or is recorded as ours. The mark names the
//! cluster and the object's UID, so that two clusters that share one cloud, or an object that is deleted and made
//! anew, never take each other's resources. It holds no slash: Nova refuses slashes in tags and metadata keys.

use std::{fmt, str::FromStr};

use uuid::Uuid;

/// Prefix of every mark.
const PREFIX: &str = "kupenstack";

/// Identifier of a Kubernetes cluster: the UID of its `kube-system` namespace, which lives as long as the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClusterId(Uuid);

/// The text is not a UUID.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a UUID")]
pub struct NotAnId(String);

impl FromStr for ClusterId {
    type Err = NotAnId;

    fn from_str(s: &str) -> Result<Self, NotAnId> {
        s.parse().map(Self).map_err(|_| NotAnId(s.to_owned()))
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Whether an identifier is the one that the object in a mark has chosen for its resource, in the mark's own cluster.
pub fn is_own_id(mark: &str, id: &str) -> bool {
    parts(mark)
        .is_some_and(|(cluster, uid)| cluster.parse::<ClusterId>().is_ok_and(|cluster| cluster.resource_id(uid) == id))
}

impl ClusterId {
    /// The mark on what is made for the object with this UID.
    pub fn mark(&self, uid: &str) -> String {
        format!("{PREFIX}:{}:{uid}", self.0)
    }

    /// The UID in a mark of this cluster; none in what is no mark, or another cluster's.
    pub fn marked<'a>(&self, mark: &'a str) -> Option<&'a str> {
        let (cluster, uid) = parts(mark)?;
        cluster.parse::<Uuid>().is_ok_and(|cluster| cluster == self.0).then_some(uid)
    }

    /// An identifier in OpenStack for the object with this UID, for APIs that let the caller choose it: a second
    /// create is then refused by OpenStack itself.
    pub fn resource_id(&self, uid: &str) -> String {
        Uuid::new_v5(&self.0, uid.as_bytes()).to_string()
    }
}

/// A description in OpenStack: the user's text, and behind it the mark.
pub fn described(text: &str, mark: &str) -> String {
    if text.is_empty() { mark.to_owned() } else { format!("{text} {mark}") }
}

/// The mark at the end of a description, of whichever cluster.
pub fn mark_in(description: &str) -> Option<&str> {
    let last = description.rsplit(' ').next()?;
    let rest = last.strip_prefix(PREFIX)?;
    rest.starts_with(':').then_some(last)
}

/// The UID in a mark, of whichever cluster; none in what is no mark.
pub fn uid_in(mark: &str) -> Option<&str> {
    parts(mark).map(|(_, uid)| uid)
}

/// The cluster and the UID.
fn parts(mark: &str) -> Option<(&str, &str)> {
    mark.strip_prefix(PREFIX)?.strip_prefix(':')?.split_once(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLUSTER: &str = "6f2b6a2e-1f0a-4a55-9c58-0d4f3ad0f7a1";

    #[test]
    fn marks_and_ids_depend_on_cluster_and_object() {
        let one: ClusterId = CLUSTER.parse().unwrap();
        let two: ClusterId = "00000000-0000-4000-8000-000000000001".parse().unwrap();
        assert_eq!(one.mark("u1"), format!("kupenstack:{CLUSTER}:u1"));
        assert_ne!(one.resource_id("u1"), one.resource_id("u2"));
        assert_ne!(one.resource_id("u1"), two.resource_id("u1"));
        assert_eq!(one.resource_id("u1"), one.resource_id("u1"));
    }

    #[test]
    fn an_identifier_goes_with_one_mark() {
        let one: ClusterId = CLUSTER.parse().unwrap();
        assert!(is_own_id(&one.mark("u1"), &one.resource_id("u1")));
        assert!(!is_own_id(&one.mark("u2"), &one.resource_id("u1")));
        assert!(!is_own_id("kupenstack:x:u1", &one.resource_id("u1")));
        assert!(!is_own_id("", ""));
    }

    #[test]
    fn a_mark_tells_whose_it_is_to_its_own_cluster() {
        let one: ClusterId = CLUSTER.parse().unwrap();
        let two: ClusterId = "00000000-0000-4000-8000-000000000001".parse().unwrap();
        assert_eq!(one.marked(&one.mark("u1")), Some("u1"));
        assert_eq!(two.marked(&one.mark("u1")), None);
        for other in ["", "kupenstack", "kupenstack:u1", "kupenstack:x:u1", "other:x:u1"] {
            assert_eq!(one.marked(other), None, "{other}");
        }
    }

    #[test]
    fn a_mark_fits_where_it_goes() {
        let mark = CLUSTER.parse::<ClusterId>().unwrap().mark(CLUSTER);
        assert!(!mark.contains('/') && mark.len() <= 255);
    }

    #[test]
    fn a_mark_stands_behind_the_text_of_a_description() {
        let mark = CLUSTER.parse::<ClusterId>().unwrap().mark("u1");
        for text in ["", "frontend", "two  spaces", "kupenstack:x:y", "ends with a space "] {
            assert_eq!(mark_in(&described(text, &mark)), Some(mark.as_str()), "{text:?}");
        }
        for other in ["", "frontend", "kupenstack", &format!("{mark} changed"), &format!("{mark}\n?")] {
            assert_ne!(mark_in(other), Some(mark.as_str()), "{other:?}");
        }
        // 160 characters of a user's are let through, and OpenStack takes 255
        assert!(described(&"x".repeat(160), &CLUSTER.parse::<ClusterId>().unwrap().mark(CLUSTER)).len() <= 255);
    }

    #[test]
    fn other_text_is_no_cluster_id() {
        assert!("cluster-1".parse::<ClusterId>().is_err());
    }

    #[test]
    fn the_uid_is_in_the_mark_of_whichever_cluster() {
        let cluster: ClusterId = CLUSTER.parse().unwrap();
        assert_eq!(uid_in(&cluster.mark("u1")), Some("u1"));
        assert_eq!(uid_in("kupenstack:another:u1"), Some("u1"));
        for other in ["", "u1", "kupenstack", "kupenstack:u1", "other:another:u1"] {
            assert_eq!(uid_in(other), None, "{other}");
        }
    }
}
