//! What carries our mark although its object does not exist: somebody took the finalizer off, or the object was deleted
//! with the policy to retain. It is told and left alone: nothing says any more that it is to be deleted.

use std::{
    collections::{HashMap, HashSet},
    sync::atomic::Ordering,
};

use kube::Resource;
use kupenstack_runtime::{Objects, metrics::Metrics};

use super::{Census, Listed, lock};

/// Who has resources.
pub(super) trait Owners: Send + Sync {
    /// UIDs of all objects of the kind; none while they are not all known.
    fn uids(&self) -> Option<HashSet<String>>;
}

impl<K> Owners for Objects<K>
where
    K: Resource<DynamicType = ()> + Clone + Send + Sync + 'static,
{
    fn uids(&self) -> Option<HashSet<String>> {
        let mut uids = HashSet::new();
        self.select(|meta, _| {
            uids.extend(meta.uid.clone());
            false
        });
        self.are_known().then_some(uids)
    }
}

/// What seemed to belong to nobody.
#[derive(Debug, Default)]
pub(super) struct Unowned {
    /// By identifier, and whether it was told.
    suspects: HashMap<String, bool>,
}

impl Unowned {
    /// Tells what two lists in a row showed without an owner: one that was just deleted is in one list only.
    pub(super) fn judge<R: Listed>(&mut self, census: &Census<R>, metrics: &Metrics) {
        let Some(owners) = owners(census) else { return };
        let now: Vec<(String, String)> = {
            let state = census.state();
            let unowned = state.kept.iter().filter(|(_, kept)| !owners.contains(&*kept.owner));
            unowned.map(|(id, kept)| (id.to_string(), kept.owner.to_string())).collect()
        };
        let before = std::mem::take(&mut self.suspects);
        for (id, uid) in now {
            let told = before.get(&id).copied();
            if told == Some(false) {
                tracing::warn!(kind = R::NOUN, id, object = uid, "carries our mark, and its object does not exist");
            }
            self.suspects.insert(id, told.is_some());
        }
        metrics.unowned(R::NOUN, self.suspects.values().filter(|told| **told).count());
    }
}

/// UIDs of the objects of all kinds; none while one of the kinds is not known, for it may own anything.
pub(super) fn owners<R: Listed>(census: &Census<R>) -> Option<HashSet<String>> {
    let owners = lock(&census.owners);
    if owners.len() < census.kinds.load(Ordering::Relaxed) {
        return None;
    }
    owners.iter().try_fold(HashSet::new(), |mut all, kind| {
        all.extend(kind.uids()?);
        Some(all)
    })
}
