//! What carries our mark although its object does not exist: somebody took the finalizer off, or the object was deleted
//! with the policy to retain. It is told and left alone: nothing says any more that it is to be deleted.

use std::collections::HashMap;

use kupenstack_runtime::metrics::Metrics;

use super::{Census, Listed, owners};

/// What seemed to belong to nobody.
#[derive(Debug, Default)]
pub(super) struct Unowned {
    /// By identifier, and whether it was told.
    pub(super) suspects: HashMap<String, bool>,
}

impl Unowned {
    /// Tells what two lists in a row showed without an owner: one that was just deleted is in one list only.
    pub(super) fn judge<R: Listed>(&mut self, census: &Census<R>, metrics: &Metrics) {
        let Some(owners) = owners::uids(census) else { return };
        // what somebody has taken over may still carry the mark of the object that had it before
        let adopted = owners::adopted(census);
        let is_owned = |id: &str, owner: &str| owners.contains(owner) || adopted.contains_key(id);
        let now: Vec<(String, String)> = {
            let state = census.state();
            let unowned = state.kept.iter().filter(|(id, kept)| !kept.is_adopted && !is_owned(id, &kept.owner));
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
