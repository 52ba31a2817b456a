//! One list on its way: nothing of it counts before it is complete.

use std::{collections::HashMap, sync::Arc};

use kupenstack_core::ownership::ClusterId;
use tokio::time::Instant;

use super::{Census, Kept, Listed, News, State};
use crate::cloud::Site;

/// A list that is being read. It holds only what differs from the list before.
pub(super) struct Draft<R> {
    site: Site,
    round: u64,
    began: Instant,
    changed: Vec<R>,
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
            *state = State { writes: std::mem::take(&mut state.writes), ..State::default() };
            state.site = Some(site.clone());
        }
        Self { site: site.clone(), round: state.round + 1, began: Instant::now(), changed: Vec::new() }
    }

    /// Takes in one resource. What is not ours is passed over.
    pub(super) fn take(&mut self, census: &Census<R>, resource: R) {
        let mut state = census.state();
        match state.kept.get_mut(resource.id()) {
            Some(kept) if *kept.resource == resource => kept.round = self.round,
            Some(_) => self.changed.push(resource),
            None if owner(&self.site.cluster, &resource).is_some() => self.changed.push(resource),
            None => {}
        }
    }

    /// Makes the list the one that counts, now that it is complete.
    pub(super) fn finish(self, census: &Census<R>) -> Finished {
        let Self { site, round, began, changed } = self;
        let mut state = census.state();
        let mut news = News::default();
        for resource in changed {
            let before = state.kept.remove(resource.id());
            let owned = before.and_then(|kept| kept.owner(&site.cluster).map(str::to_owned));
            let now = owner(&site.cluster, &resource).map(str::to_owned);
            let stripped_of = if now.is_none() { owned.clone().map(Into::into) } else { None };
            news.owners.extend(owned.into_iter().chain(now));
            news.resources.insert(resource.id().to_owned());
            state.kept.insert(resource.id().to_owned(), Kept { resource: Arc::new(resource), round, stripped_of });
        }
        for (id, kept) in state.kept.extract_if(|_, kept| kept.round != round) {
            news.owners.extend(kept.owner(&site.cluster).map(str::to_owned));
            news.resources.insert(id);
        }
        if state.round == 0 {
            // objects have waited for this list, or have looked for themselves
            news = News::default();
        }
        state.round = round;
        state.writes.retain(|_, ended| ended.is_none_or(|ended| ended >= began));
        state.several = several(&site.cluster, &state.kept);
        // they are looked at again until there is one left
        for (uid, resources) in &state.several {
            news.owners.insert(uid.clone());
            news.resources.extend(resources.iter().cloned());
        }
        Finished { moving: !news.is_empty() || !state.writes.is_empty(), news }
    }
}

impl<R: Listed> Kept<R> {
    /// The UID of the object that it belongs to.
    pub(super) fn owner<'a>(&'a self, cluster: &ClusterId) -> Option<&'a str> {
        self.stripped_of.as_deref().or_else(|| owner(cluster, self.resource.as_ref()))
    }
}

/// The UID in the mark, if the mark is this cluster's.
fn owner<'a>(cluster: &ClusterId, resource: &'a impl Listed) -> Option<&'a str> {
    cluster.marked(resource.mark()?)
}

fn several<R: Listed>(cluster: &ClusterId, kept: &HashMap<String, Kept<R>>) -> HashMap<String, Vec<String>> {
    let mut first: HashMap<&str, &String> = HashMap::with_capacity(kept.len());
    let mut several: HashMap<String, Vec<String>> = HashMap::new();
    for (id, kept) in kept {
        let Some(owner) = kept.owner(cluster) else { continue };
        if let Some(first) = first.insert(owner, id) {
            let all = several.entry(owner.to_owned()).or_default();
            if all.is_empty() {
                all.push(first.clone());
            }
            all.push(id.clone());
        }
    }
    several
}
