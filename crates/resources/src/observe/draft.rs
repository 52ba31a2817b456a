//! One list on its way: nothing of it counts before it is complete.

use std::{collections::HashMap, sync::Arc};

use tokio::time::Instant;

use super::{Census, Kept, Listed, News, State, owners, packed::Packed};
use crate::cloud::Site;

/// A list that is being read. It holds only what differs from the list before.
pub(super) struct Draft<R> {
    site: Site,
    round: u64,
    began: Instant,
    /// By identifier: the UID of the object that has taken it over.
    adopted: HashMap<String, Arc<str>>,
    changed: Vec<Changed<R>>,
    /// Whether any of it moves.
    moving: bool,
}

/// A resource that is not as it was in the list before.
struct Changed<R> {
    id: Arc<str>,
    resource: Packed<R>,
    /// The object that it belongs to; none if it carried our mark in the list before.
    owner: Option<Owner>,
}

/// Who has a resource.
struct Owner {
    uid: Arc<str>,
    /// Whether it was taken over, and does not say whose it is.
    is_adopted: bool,
}

/// What a complete list has come to.
pub(super) struct Finished {
    pub(super) news: News,
    /// Whether something is being made or changed, so that the next list should come soon.
    pub(super) moving: bool,
}

impl<R: Listed> Draft<R> {
    pub(super) fn begin(census: &Census<R>, site: &Site) -> Self {
        let adopted = owners::adopted(census);
        let mut state = census.state();
        if state.site.as_ref() != Some(site) {
            // another cloud: nothing that is known of the one before is true of it
            state.withdraw();
            state.site = Some(site.clone());
        }
        let (round, began) = (state.round + 1, Instant::now());
        Self { site: site.clone(), round, began, adopted, changed: Vec::new(), moving: false }
    }

    /// Takes in one resource. What is not ours is passed over.
    pub(super) fn take(&mut self, census: &Census<R>, resource: &R) {
        let mut state = census.state();
        let (kept, owner) = (state.kept.get_mut(resource.id()), self.owner(resource));
        // one that lost its mark is still its object's, and one that was taken over is so only as long as an object says it
        if owner.is_none() && kept.as_ref().is_none_or(|kept| kept.is_adopted) {
            return;
        }
        self.moving |= resource.is_moving();
        let Some(packed) = Packed::of(resource) else { return };
        match kept {
            Some(kept) if kept.resource == packed && owner.as_ref().is_none_or(|owner| owner.has(kept)) => {
                kept.round = self.round;
            }
            _ => self.changed.push(Changed { id: resource.id().into(), resource: packed, owner }),
        }
    }

    /// Whose it is by its mark, if that is this cluster's, or by what an object has recorded.
    fn owner(&self, resource: &R) -> Option<Owner> {
        if let Some(uid) = resource.mark().and_then(|mark| self.site.cluster.marked(mark)) {
            return Some(Owner { uid: uid.into(), is_adopted: false });
        }
        Some(Owner { uid: Arc::clone(self.adopted.get(resource.id())?), is_adopted: true })
    }

    /// Makes the list the one that counts, now that it is complete.
    pub(super) fn finish(self, census: &Census<R>) -> Finished {
        let Self { site: _, round, began, adopted: _, changed, moving } = self;
        let mut state = census.state();
        let mut news = News::default();
        for Changed { id, resource, owner } in changed {
            let before = state.kept.remove(&id).map(|kept| Owner { uid: kept.owner, is_adopted: kept.is_adopted });
            news.owners.extend(before.iter().chain(&owner).map(|owner| owner.uid.to_string()));
            news.resources.insert(id.to_string());
            if let Some(Owner { uid: owner, is_adopted }) = owner.or(before) {
                state.kept.insert(id, Kept { resource, round, owner, is_adopted });
            }
        }
        for (id, kept) in state.kept.extract_if(|_, kept| kept.round != round) {
            news.owners.insert(kept.owner.to_string());
            news.resources.insert(id.to_string());
        }
        if state.round == 0 && !std::mem::take(&mut state.have_looked) {
            // objects have waited for this list
            news = News::default();
        }
        state.round = round;
        state.owned = by_owner(&state.kept);
        let State { writes, unheeded, owned, .. } = &mut *state;
        let counts_now = writes.extract_if(|_, ended| ended.is_some_and(|ended| ended < began));
        // of some of them the list shows nothing, though it began after they were written to: others were faster
        news.owners.extend(counts_now.map(|(uid, _)| uid).filter(|uid| !owned.contains_key(uid.as_str())));
        // they are looked at again until there is one left
        for (uid, resources) in owned.iter().filter(|(_, resources)| resources.len() > 1) {
            news.owners.insert(uid.to_string());
            news.resources.extend(resources.iter().map(ToString::to_string));
        }
        // a pass that such news has woken has looked for itself, and may have seen less than a list shows
        news.owners.extend(unheeded.extract_if(|uid| !writes.contains_key(uid)));
        unheeded.extend(news.owners.iter().filter(|uid| writes.contains_key(*uid)).cloned());
        Finished { moving: moving || !news.is_empty() || !state.writes.is_empty(), news }
    }
}

impl Owner {
    fn has<R>(&self, kept: &Kept<R>) -> bool {
        *self.uid == *kept.owner && self.is_adopted == kept.is_adopted
    }
}

/// What each object has.
fn by_owner<R>(kept: &HashMap<Arc<str>, Kept<R>>) -> HashMap<Arc<str>, Vec<Arc<str>>> {
    let mut owned: HashMap<Arc<str>, Vec<Arc<str>>> = HashMap::with_capacity(kept.len());
    for (id, kept) in kept {
        // there may be very many, and nearly all have one
        owned.entry(Arc::clone(&kept.owner)).or_insert_with(|| Vec::with_capacity(1)).push(Arc::clone(id));
    }
    owned
}
