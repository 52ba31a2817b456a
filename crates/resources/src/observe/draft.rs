//! One list on its way: nothing of it counts before it is complete.

use std::{collections::HashMap, sync::Arc};

use kupenstack_core::ownership::ClusterId;
use tokio::time::Instant;

use super::{Census, Kept, Listed, News, State, packed::Packed};
use crate::cloud::Site;

/// A list that is being read. It holds only what differs from the list before.
pub(super) struct Draft<R> {
    site: Site,
    round: u64,
    began: Instant,
    changed: Vec<Changed<R>>,
    /// Whether any of it moves.
    moving: bool,
}

/// A resource that is not as it was in the list before.
struct Changed<R> {
    id: Arc<str>,
    resource: Packed<R>,
    /// The UID in its mark.
    owner: Option<Arc<str>>,
}

/// What a complete list has come to.
pub(super) struct Finished {
    pub(super) news: News,
    /// Whether something is being made or changed, so that the next list should come soon.
    pub(super) moving: bool,
}

impl<R: Listed> Draft<R> {
    pub(super) fn begin(census: &Census<R>, site: &Site) -> Self {
        let mut state = census.state();
        if state.site.as_ref() != Some(site) {
            // another cloud: nothing that is known of the one before is true of it
            state.withdraw();
            state.site = Some(site.clone());
        }
        Self { site: site.clone(), round: state.round + 1, began: Instant::now(), changed: Vec::new(), moving: false }
    }

    /// Takes in one resource. What is not ours is passed over.
    pub(super) fn take(&mut self, census: &Census<R>, resource: &R) {
        let mut state = census.state();
        let (kept, owner) = (state.kept.get_mut(resource.id()), owner(&self.site.cluster, resource));
        if kept.is_none() && owner.is_none() {
            return;
        }
        self.moving |= resource.is_moving();
        let Some(packed) = Packed::of(resource) else { return };
        match kept {
            Some(kept) if kept.resource == packed => kept.round = self.round,
            _ => {
                let (id, owner) = (resource.id().into(), owner.map(Into::into));
                self.changed.push(Changed { id, resource: packed, owner });
            }
        }
    }

    /// Makes the list the one that counts, now that it is complete.
    pub(super) fn finish(self, census: &Census<R>) -> Finished {
        let Self { site: _, round, began, changed, moving } = self;
        let mut state = census.state();
        let mut news = News::default();
        for Changed { id, resource, owner } in changed {
            let before = state.kept.remove(&id).map(|kept| kept.owner);
            news.owners.extend(before.iter().chain(&owner).map(ToString::to_string));
            news.resources.insert(id.to_string());
            if let Some(owner) = owner.or(before) {
                state.kept.insert(id, Kept { resource, round, owner });
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

/// The UID in the mark, if the mark is this cluster's.
fn owner<'a>(cluster: &ClusterId, resource: &'a impl Listed) -> Option<&'a str> {
    cluster.marked(resource.mark()?)
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
