//! One list on its way: nothing of it counts before it is complete.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use jiff::Timestamp;
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
    /// Of a list of changes: UIDs of the objects whose resources it shows. Of all others it says nothing.
    shown: Option<HashSet<Arc<str>>>,
    /// Of a list of changes: identifiers of what has gone, or is no object's any more.
    gone: Vec<String>,
    /// When anything of it changed last.
    latest: Option<Timestamp>,
}

/// A resource that is not as it was in the list before.
struct Changed<R> {
    id: Arc<str>,
    resource: Packed<R>,
    is_moving: bool,
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
    /// Whether a list of changes shows nothing of what was written to before it: only a list of all tells more.
    pub(super) is_short: bool,
    /// When anything that the list shows changed last, by the service's clock.
    pub(super) latest: Option<Timestamp>,
}

impl<R: Listed> Draft<R> {
    /// A list of all, or of what has changed since the last one.
    pub(super) fn begin(census: &Census<R>, site: &Site, is_whole: bool) -> Self {
        let adopted = owners::adopted(census);
        let mut state = census.state();
        if state.site.as_ref() != Some(site) {
            // another cloud: nothing that is known of the one before is true of it
            state.withdraw();
            state.site = Some(site.clone());
        }
        // a list that broke off has left its number behind
        state.begun += 1;
        let (round, began) = (state.begun, Instant::now());
        let shown = (!is_whole).then(HashSet::new);
        Self { site: site.clone(), round, began, adopted, changed: Vec::new(), shown, gone: Vec::new(), latest: None }
    }

    /// Takes in one resource. What is not ours is passed over.
    pub(super) fn take(&mut self, census: &Census<R>, resource: &R) {
        self.latest = self.latest.max(resource.changed());
        let mut state = census.state();
        let (kept, owner) = (state.kept.get_mut(resource.id()), self.owner(resource));
        // one that lost its mark is still its object's, and one that was taken over is so only as long as an object says it
        if owner.is_none() && kept.as_ref().is_none_or(|kept| kept.is_adopted) {
            if self.shown.is_some() && kept.is_some() {
                self.gone.push(resource.id().to_owned());
            }
            return;
        }
        if let Some(shown) = &mut self.shown {
            let before = kept.as_ref().map(|kept| Arc::clone(&kept.owner));
            shown.extend(owner.iter().map(|owner| Arc::clone(&owner.uid)).chain(before));
        }
        if resource.is_gone() {
            return self.gone.push(resource.id().to_owned());
        }
        let Some(packed) = Packed::of(resource) else { return };
        match kept {
            Some(kept) if kept.resource == packed && owner.as_ref().is_none_or(|owner| owner.has(kept)) => {
                kept.round = self.round;
            }
            _ => {
                let (id, is_moving) = (resource.id().into(), resource.is_moving());
                self.changed.push(Changed { id, resource: packed, is_moving, owner });
            }
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
        let Self { site: _, round, began, adopted: _, changed, shown, gone, latest } = self;
        let tells_of = |uid: &str| shown.as_ref().is_none_or(|shown| shown.contains(uid));
        let mut state = census.state();
        let mut news = News::default();
        for Changed { id, resource, is_moving, owner } in changed {
            let before = state.kept.remove(&id).map(|kept| Owner { uid: kept.owner, is_adopted: kept.is_adopted });
            news.owners.extend(before.iter().chain(&owner).map(|owner| owner.uid.to_string()));
            news.resources.insert(id.to_string());
            if let Some(Owner { uid: owner, is_adopted }) = owner.or(before) {
                state.kept.insert(id, Kept { resource, round, owner, is_adopted, is_moving });
            }
        }
        let gone: HashSet<String> = gone.into_iter().collect();
        let is_there =
            |id: &str, kept: &Kept<R>| if shown.is_some() { !gone.contains(id) } else { kept.round == round };
        for (id, kept) in state.kept.extract_if(|id, kept| !is_there(id, kept)) {
            news.owners.insert(kept.owner.to_string());
            news.resources.insert(id.to_string());
        }
        if state.round == 0 && !std::mem::take(&mut state.have_looked) {
            // objects have waited for this list
            news = News::default();
        }
        state.round = round;
        state.owned = by_owner(&state.kept);
        let State { kept, writes, unheeded, owned, .. } = &mut *state;
        let is_before = |ended: Option<Instant>| ended.is_some_and(|ended| ended < began);
        let counts_now = writes.extract_if(|uid, ended| is_before(*ended) && tells_of(uid));
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
        let moving = kept.values().any(|kept| kept.is_moving) || !news.is_empty() || !writes.is_empty();
        Finished { news, moving, is_short: writes.values().any(|ended| is_before(*ended)), latest }
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
