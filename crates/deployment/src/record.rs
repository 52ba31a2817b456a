//! Helm's records of a release, read from their labels: no helm process is needed to know where a release stands.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams},
};
use kupenstack_helm::{HASH_LABEL, ReleaseRef};

use crate::Error;

/// The newest record of a release, and what it takes to judge it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// Newest revision.
    pub(crate) revision: u32,
    /// Helm's word for its state.
    pub(crate) state: String,
    /// Content hash it was made from; empty when it was made by hand.
    pub(crate) hash: String,
    /// The newest revision that was ever deployed.
    pub(crate) last_deployed: Option<u32>,
}

/// What to do with a release before anything else.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Recovery {
    /// Nothing.
    None,
    /// The record of a killed run stands in the way of the same run: drop it and run forward.
    Drop(u32),
    /// A killed run had another target: go back to what was deployed last, which removes what that run made.
    RollBack(u32),
}

impl Record {
    /// Whether somebody else than this operator made it.
    pub(crate) fn is_by_hand(&self) -> bool {
        self.hash.is_empty()
    }

    /// Whether this very content is installed.
    pub(crate) fn is_deployed(&self, hash: &str) -> bool {
        self.state == "deployed" && self.hash == hash
    }

    /// A `pending-*` record is looked at only when it is the newest: a killed run stays in the history for ever.
    pub(crate) fn recovery(&self, hash: &str) -> Recovery {
        if !self.state.starts_with("pending-") {
            return Recovery::None;
        }
        match self.last_deployed {
            Some(deployed) if self.hash != hash => Recovery::RollBack(deployed),
            _ => Recovery::Drop(self.revision),
        }
    }
}

/// Reads the newest record; `None` when there is no release.
pub(crate) async fn newest(client: &Client, release: &ReleaseRef) -> Result<Option<Record>, Error> {
    let api: Api<Secret> = Api::namespaced(client.clone(), &release.namespace);
    let selector = format!("owner=helm,name={}", release.name);
    let records = api.list_metadata(&ListParams::default().labels(&selector)).await?;
    Ok(judge(records.items.iter().map(ResourceExt::labels)))
}

/// Deletes the record of one revision.
pub(crate) async fn drop(client: &Client, release: &ReleaseRef, revision: u32) -> Result<(), Error> {
    let api: Api<Secret> = Api::namespaced(client.clone(), &release.namespace);
    match api.delete(&release.record_name(revision), &DeleteParams::default()).await {
        Err(kube::Error::Api(e)) if e.is_not_found() => Ok(()),
        result => Ok(result.map(std::mem::drop)?),
    }
}

fn judge<'a>(records: impl Iterator<Item = &'a BTreeMap<String, String>>) -> Option<Record> {
    let mut newest: Option<Record> = None;
    let mut last_deployed = None;
    for labels in records {
        let get = |key: &str| labels.get(key).map(String::as_str).unwrap_or_default();
        let Ok(revision) = get("version").parse::<u32>() else { continue };
        if matches!(get("status"), "deployed" | "superseded") {
            last_deployed = last_deployed.max(Some(revision));
        }
        if newest.as_ref().is_none_or(|n| n.revision < revision) {
            let (state, hash) = (get("status").to_owned(), get(HASH_LABEL).to_owned());
            newest = Some(Record { revision, state, hash, last_deployed: None });
        }
    }
    newest.map(|n| Record { last_deployed, ..n })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn labels(revision: &str, status: &str, hash: &str) -> BTreeMap<String, String> {
        [("version", revision), ("status", status), (HASH_LABEL, hash)]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into()
    }

    #[rstest]
    #[case::first_install_killed(&[("1", "pending-install", "a")], Recovery::Drop(1))]
    #[case::upgrade_to_the_same_target_killed(&[("1", "deployed", "z"), ("2", "pending-upgrade", "a")], Recovery::Drop(2))]
    #[case::upgrade_to_another_target_killed(&[("9", "superseded", "y"), ("10", "deployed", "z"), ("11", "pending-upgrade", "b")], Recovery::RollBack(10))]
    #[case::an_old_killed_run_stays_in_history(&[("2", "pending-upgrade", "b"), ("3", "deployed", "z")], Recovery::None)]
    #[case::a_failed_one_is_simply_run_again(&[("1", "failed", "a")], Recovery::None)]
    fn helm_9548_pending_releases_recover(#[case] records: &[(&str, &str, &str)], #[case] expected: Recovery) {
        let all: Vec<_> = records.iter().map(|(r, s, h)| labels(r, s, h)).collect();
        assert_eq!(judge(all.iter()).unwrap().recovery("a"), expected);
    }

    #[test]
    fn revisions_are_numbers_not_text() {
        let all = [labels("9", "superseded", "a"), labels("10", "deployed", "b")];
        let record = judge(all.iter()).unwrap();
        assert_eq!((record.revision, record.is_deployed("b"), record.is_deployed("a")), (10, true, false));
    }
}
