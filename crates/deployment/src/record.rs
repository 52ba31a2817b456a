//! Helm's records of a release, read from their labels: no helm process is needed to know where a release stands.

use jiff::Timestamp;
use k8s_openapi::{api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{Api, Client, api::ListParams};
use kupenstack_helm::{HASH_LABEL, ReleaseRef};

use crate::{Error, removal::delete};

/// One recorded revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Revision {
    /// Its number; it counts up from 1.
    pub(crate) number: u32,
    /// Helm's word for its state.
    pub(crate) state: String,
    /// Label with the content hash it was made from; empty when it was made by hand. A revision made by hand upon one
    /// of ours inherits the label.
    pub(crate) hash: String,
    /// When the run began that made it.
    pub(crate) began: Option<Timestamp>,
    /// UID of the record: numbers start anew when a release is removed and made again.
    pub(crate) uid: String,
}

impl Revision {
    /// Whether somebody else than this operator made it.
    pub(crate) fn is_by_hand(&self) -> bool {
        self.hash.is_empty()
    }

    /// Whether a run of Helm is under way, or was killed.
    pub(crate) fn is_pending(&self) -> bool {
        self.state.starts_with("pending-")
    }

    /// Whether this very content is installed.
    pub(crate) fn is_deployed(&self, hash: &str) -> bool {
        self.state == "deployed" && self.hash == hash
    }

    fn was_deployed(&self) -> bool {
        matches!(self.state.as_str(), "deployed" | "superseded")
    }
}

/// The recorded revisions of a release, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct History(Vec<Revision>);

/// What to do with a release before anything else.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Recovery {
    /// Nothing.
    None,
    /// The record of a killed run stands in the way of the same run, or of any where none was ever completed: drop it
    /// and run forward.
    Drop(u32),
    /// A killed run had another target: go back to what was deployed last, which removes what that run made.
    RollBack(u32),
}

impl History {
    /// Reads the records of a release.
    pub(crate) async fn read(client: &Client, release: &ReleaseRef) -> Result<Self, Error> {
        let api: Api<Secret> = Api::namespaced(client.clone(), &release.namespace);
        let selector = format!("owner=helm,name={}", release.name);
        let records = api.list_metadata(&ListParams::default().labels(&selector)).await?;
        Ok(Self::of(records.items.iter().map(|r| &r.metadata)))
    }

    fn of<'a>(records: impl Iterator<Item = &'a ObjectMeta>) -> Self {
        let mut all: Vec<_> = records.filter_map(revision).collect();
        all.sort_by_key(|r| r.number);
        Self(all)
    }

    /// The newest revision.
    pub(crate) fn newest(&self) -> Option<&Revision> {
        self.0.last()
    }

    /// Numbers of all revisions.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.0.iter().map(|r| r.number)
    }

    /// The newest revision of this content that was once deployed.
    pub(crate) fn deployed_with(&self, hash: &str) -> Option<&Revision> {
        self.0.iter().rfind(|r| r.was_deployed() && r.hash == hash)
    }

    /// Whether any content was once deployed.
    pub(crate) fn was_ever_deployed(&self) -> bool {
        self.0.iter().any(Revision::was_deployed)
    }

    /// How many runs to this content failed one after the other, up to now.
    pub(crate) fn failures(&self, hash: &str) -> usize {
        self.0.iter().rev().take_while(|r| r.state == "failed" && r.hash == hash).count()
    }

    /// What stands in the way of a run to `hash`. A `pending-*` record is looked at only when it is the newest: a
    /// killed run stays in the history for ever.
    pub(crate) fn recovery(&self, hash: &str) -> Recovery {
        let Some(newest) = self.newest().filter(|n| n.is_pending()) else {
            return Recovery::None;
        };
        match self.0.iter().rfind(|r| r.was_deployed()) {
            Some(deployed) if newest.hash != hash => Recovery::RollBack(deployed.number),
            _ => Recovery::Drop(newest.number),
        }
    }
}

fn revision(meta: &ObjectMeta) -> Option<Revision> {
    let get = |key: &str| meta.labels.as_ref().and_then(|l| l.get(key)).cloned().unwrap_or_default();
    Some(Revision {
        number: get("version").parse().ok()?,
        state: get("status"),
        hash: get(HASH_LABEL),
        began: meta.creation_timestamp.as_ref().map(|t| t.0),
        uid: meta.uid.clone().unwrap_or_default(),
    })
}

/// Deletes the record of one revision.
pub(crate) async fn drop(client: &Client, release: &ReleaseRef, revision: u32) -> Result<(), Error> {
    let api: Api<Secret> = Api::namespaced(client.clone(), &release.namespace);
    delete(&api, &release.record_name(revision)).await
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn history(records: &[(&str, &str, &str)]) -> History {
        let metas: Vec<_> = records
            .iter()
            .map(|(number, state, hash)| ObjectMeta {
                labels: Some(
                    [("version", *number), ("status", *state), (HASH_LABEL, *hash)]
                        .map(|(k, v)| (k.to_owned(), v.to_owned()))
                        .into(),
                ),
                ..ObjectMeta::default()
            })
            .collect();
        History::of(metas.iter())
    }

    #[rstest]
    #[case::first_install_killed(&[("1", "pending-install", "a")], Recovery::Drop(1))]
    #[case::upgrade_to_the_same_target_killed(&[("1", "deployed", "z"), ("2", "pending-upgrade", "a")], Recovery::Drop(2))]
    #[case::upgrade_to_another_target_killed(&[("9", "superseded", "y"), ("10", "deployed", "z"), ("11", "pending-upgrade", "b")], Recovery::RollBack(10))]
    #[case::rollback_to_the_target_killed(&[("1", "superseded", "a"), ("2", "deployed", "b"), ("3", "pending-rollback", "a")], Recovery::Drop(3))]
    #[case::an_old_killed_run_stays_in_history(&[("2", "pending-upgrade", "b"), ("3", "deployed", "z")], Recovery::None)]
    #[case::a_failed_one_is_simply_run_again(&[("1", "failed", "a")], Recovery::None)]
    fn helm_9548_pending_releases_recover(#[case] records: &[(&str, &str, &str)], #[case] expected: Recovery) {
        assert_eq!(history(records).recovery("a"), expected);
    }

    #[test]
    fn revisions_are_numbers_not_text() {
        let history = history(&[("10", "deployed", "b"), ("9", "superseded", "a")]);
        let newest = history.newest().unwrap();
        assert_eq!((newest.number, newest.is_deployed("b"), newest.is_deployed("a")), (10, true, false));
        assert_eq!(history.deployed_with("a").unwrap().number, 9);
    }

    #[test]
    fn only_failures_of_this_content_in_a_row_count() {
        let all = [("1", "failed", "a"), ("2", "deployed", "z"), ("3", "failed", "a"), ("4", "failed", "a")];
        assert_eq!(history(&all).failures("a"), 2);
        assert_eq!(history(&all).failures("z"), 0);
    }
}
