//! What there is in OpenStack, found out by one list for the whole cloud instead of one look per object.
//!
//! A [`Census`] lists all resources of one type as the administrator, again and again, and keeps those that are ours: what carries
//! our mark, and what objects have taken over, as they have recorded. While something moves, it asks only for what has changed,
//! where the API can tell; that list costs the same in a cloud of any size.
//! Its word goes only so far: that nothing has to be done for an object. Whatever is to be done, because something
//! differs or is missing, is preceded by a look at the resource itself, since a list is old when it has come and may
//! be of an ailing service. And it says nothing about an object that was written to since the list began.
//!
//! What can't be listed for the whole cloud every object looks at itself, and its look is [trusted](Listed::TRUSTED) for a
//! while.

mod draft;
mod owners;
mod pace;
mod packed;
mod rounds;
mod scope;
mod unowned;

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use jiff::Timestamp;
use kube::Resource;
use kupenstack_openstack::{self as openstack, Client};
use kupenstack_runtime::{Context, ObjectRef, Objects};
use serde::{Serialize, de::DeserializeOwned};
use tokio::{
    sync::{Notify, broadcast, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

pub(crate) use self::owners::Records;
use self::{
    owners::{Owners, Recorded},
    pace::Pace,
    packed::Packed,
};
use crate::cloud::{Cloud, Site};

/// A type of resource that can be listed.
pub(crate) trait Listed: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// What people call it.
    const NOUN: &'static str;
    /// Kinds of the service objects that have to be ready before it can be listed or made.
    const SERVICES: &'static [&'static str];

    /// Of the longest time between two lists, the part that they are apart while something moves.
    const QUICK: u32 = 12;

    /// Of a type that can't be listed for the whole cloud: how long a look at one counts. Every object then looks for itself,
    /// that often.
    const TRUSTED: Option<Duration> = None;

    /// All that there are, of all projects and whatever their state, as the administrator sees them. A list that
    /// changes while it is read must lose nothing that was there all the while. Not asked of a type whose looks are
    /// [trusted](Self::TRUSTED).
    fn list(_: &Client) -> BoxStream<'static, Result<Self, openstack::Error>> {
        stream::empty().boxed()
    }

    /// Those of them that have changed since, and those that [have gone](Self::is_gone) since; none if the API can't tell. Whatever
    /// this leaves out, the next list of all shows.
    fn list_changed(_: &Client, _since: Timestamp) -> Option<BoxStream<'static, Result<Self, openstack::Error>>> {
        None
    }

    /// When it changed last, by the service's clock.
    fn changed(&self) -> Option<Timestamp> {
        None
    }

    /// Whether a list of changes shows only that it is not there any more.
    fn is_gone(&self) -> bool {
        false
    }

    /// Its identifier.
    fn id(&self) -> &str;

    /// The mark that it carries.
    fn mark(&self) -> Option<&str>;

    /// Takes over from what a list showed what is shown to administrators only.
    fn complete(&mut self, _listed: &Self) {}

    /// Whether it is becoming something else by itself, so that the next list should come soon.
    fn is_moving(&self) -> bool {
        false
    }

    /// Whether it belongs to a project, or to the whole cloud and so to each.
    fn is_in(&self, project: &str) -> bool;
}

/// Of what was found, that which carries an object's mark. Of several, always the same one: the others were made by requests
/// whose answers were lost.
pub(crate) fn marked<R: Listed>(found: impl IntoIterator<Item = R>, mark: &str) -> Option<R> {
    found.into_iter().filter(|found| found.mark() == Some(mark)).min_by(|a, b| a.id().cmp(b.id()))
}

/// The resources of one type that are ours, as the last list showed them.
pub(crate) struct Census<R> {
    state: Mutex<State<R>>,
    /// The cloud that was listed, or tried in vain to be listed, at least once.
    tried: watch::Sender<Option<Site>>,
    news: broadcast::Sender<Arc<News>>,
    /// Something was written: the next list is to come soon.
    moved: Notify,
    owners: Mutex<Vec<Arc<dyn Owners>>>,
    /// How many kinds of objects are made of this type, whether they have joined yet or not.
    kinds: AtomicUsize,
    joined: Notify,
    stop: CancellationToken,
}

struct State<R> {
    /// The cloud that the rest is about.
    site: Option<Site>,
    /// The number of the last complete list; 0 before the first.
    round: u64,
    /// The number of the last list that was begun.
    begun: u64,
    /// By identifier.
    kept: HashMap<Arc<str>, Kept<R>>,
    /// By UID: objects that were written to since the last list began that shows what came of it, and when that ended.
    writes: HashMap<String, Option<Instant>>,
    /// UIDs of objects that lists had news of when they did not count for them.
    unheeded: HashSet<String>,
    /// By UID: what an object has of `kept`.
    owned: HashMap<Arc<str>, Vec<Arc<str>>>,
    /// Whether objects have looked for themselves since the last list, who see less than a list shows.
    have_looked: bool,
    /// By UID: what an object saw itself, of a type that can't be listed.
    looks: HashMap<String, Look<R>>,
}

impl<R> State<R> {
    /// Nothing that was listed counts any more.
    fn withdraw(&mut self) {
        let (writes, have_looked) = (std::mem::take(&mut self.writes), self.have_looked);
        *self = Self { writes, have_looked, ..Self::default() };
    }

    /// Nor can anything be listed now.
    fn refuse(&mut self) {
        self.withdraw();
        self.have_looked = true;
    }

    /// Whether what is kept is true of an object: it was not written to since the last list began.
    fn counts(&self, site: &Site, uid: &str) -> bool {
        self.site.as_ref() == Some(site) && !self.writes.contains_key(uid)
    }
}

impl<R> Default for State<R> {
    fn default() -> Self {
        let (kept, writes, owned, looks) = (HashMap::new(), HashMap::new(), HashMap::new(), HashMap::new());
        Self {
            site: None,
            round: 0,
            begun: 0,
            kept,
            writes,
            unheeded: HashSet::new(),
            owned,
            have_looked: false,
            looks,
        }
    }
}

struct Kept<R> {
    resource: Packed<R>,
    /// The list that showed it last; of those that show only changes, the one in which it was one.
    round: u64,
    /// The UID of the object that it belongs to, or did when it still carried our mark.
    owner: Arc<str>,
    /// Whether the object has taken it over, which nothing but the object tells.
    is_adopted: bool,
    /// As [`Listed::is_moving`].
    is_moving: bool,
}

/// What an object saw itself.
struct Look<R> {
    site: Site,
    resource: Packed<R>,
    at: Instant,
}

/// What a list showed to be otherwise than the one before.
#[derive(Debug, Default)]
struct News {
    /// UIDs of the objects concerned.
    owners: HashSet<String>,
    /// Identifiers of the resources concerned.
    resources: HashSet<String>,
    /// Every object has to look for itself: nothing can be listed, or not all news were heard.
    everything: bool,
}

impl News {
    fn is_empty(&self) -> bool {
        !self.everything && self.owners.is_empty() && self.resources.is_empty()
    }

    fn concern(&self, uid: Option<&String>, recorded: Option<&str>) -> bool {
        self.everything
            || uid.is_some_and(|uid| self.owners.contains(uid))
            || recorded.is_some_and(|id| self.resources.contains(id))
    }
}

impl<R: Listed> Census<R> {
    /// A census of a cloud, as often as `every` at least. It begins when the first kind of objects [joins](Self::join), and
    /// ends with the context.
    pub(crate) fn start(cloud: &Arc<Cloud>, context: &Context, every: Duration) -> Arc<Self> {
        let census = Arc::new(Self::new(context.stop.clone()));
        if R::TRUSTED.is_some() {
            return census;
        }
        let rounds = rounds::run(
            Arc::clone(&census),
            Arc::clone(cloud),
            Arc::clone(&context.metrics),
            Pace::new(every, R::QUICK),
        );
        tokio::spawn(context.stop.clone().run_until_cancelled_owned(rounds));
        census
    }

    fn new(stop: CancellationToken) -> Self {
        Self {
            state: Mutex::default(),
            tried: watch::Sender::new(None),
            news: broadcast::channel(64).0,
            moved: Notify::new(),
            owners: Mutex::default(),
            kinds: AtomicUsize::new(0),
            joined: Notify::new(),
            stop,
        }
    }

    /// A kind of objects is going to join. As long as it has not, any resource may be one of its objects'.
    pub(crate) fn announce(&self) {
        self.kinds.fetch_add(1, Ordering::Relaxed);
    }

    /// A kind of objects that was [announced](Self::announce) joins, with what an object has recorded. Yields those of them that a list shows to be concerned by a change.
    pub(crate) fn join<K>(
        self: &Arc<Self>,
        objects: Objects<K>,
        records: Records<K>,
    ) -> BoxStream<'static, ObjectRef<K>>
    where
        K: Resource<DynamicType = ()> + Clone + Send + Sync + 'static,
    {
        let recorded = records.made_or_adopted;
        let objects = Arc::new(Recorded { objects, records });
        lock(&self.owners).push(Arc::clone(&objects) as Arc<dyn Owners>);
        let news = self.news.subscribe();
        self.joined.notify_one();
        stream::unfold((news, objects), move |(mut news, objects)| async move {
            let heard = match news.recv().await {
                Ok(heard) => heard,
                Err(broadcast::error::RecvError::Lagged(_)) => Arc::new(News { everything: true, ..News::default() }),
                Err(broadcast::error::RecvError::Closed) => return None,
            };
            let known = &objects.objects;
            known.known().await;
            let concerned = known.select(|meta, object| heard.concern(meta.uid.as_ref(), object.and_then(recorded)));
            Some((stream::iter(concerned), (news, objects)))
        })
        .flatten()
        .boxed()
    }

    /// What the last list showed under an identifier; none if it can't be believed, since the object was written to
    /// after the list began. Waits until there has been a list, or the attempt at one.
    pub(crate) async fn seen(&self, site: &Site, uid: &str, id: &str) -> Option<R> {
        if let Some(trusted) = R::TRUSTED {
            let state = self.state();
            let look = state.looks.get(uid).filter(|look| look.site == *site && look.at.elapsed() < trusted)?;
            return look.resource.unpacked().filter(|resource| resource.id() == id);
        }
        self.listed(site, uid, id).await
    }

    /// As [`seen`](Self::seen), but nothing that an object saw itself.
    pub(crate) async fn listed(&self, site: &Site, uid: &str, id: &str) -> Option<R> {
        if R::TRUSTED.is_some() {
            return None;
        }
        let mut tried = self.tried.subscribe();
        let first = tried.wait_for(|tried| tried.as_ref() == Some(site));
        self.stop.run_until_cancelled(first).await?.ok()?;
        let state = self.state();
        state.kept.get(id).filter(|_| state.counts(site, uid))?.resource.unpacked()
    }

    /// Adds to what an object saw itself what only lists show.
    pub(crate) fn complete(&self, seen: &mut R) {
        let listed = self.state().kept.get(seen.id()).and_then(|kept| kept.resource.unpacked());
        if let Some(listed) = listed {
            seen.complete(&listed);
        }
    }

    /// Whether the last list shows that an object has nothing, and can be believed.
    pub(crate) fn shows_nothing(&self, site: &Site, uid: &str) -> bool {
        let state = self.state();
        state.round > 0 && state.counts(site, uid) && !state.owned.contains_key(uid)
    }

    /// Whether an object was written to so short a time ago that the list which says something about it is still to come.
    pub(crate) fn is_due(&self, uid: &str, within: Duration) -> bool {
        self.state().writes.get(uid).is_some_and(|ended| ended.is_some_and(|ended| ended.elapsed() < within))
    }

    /// Identifiers of what an object has in OpenStack beside the resource that it is to have.
    pub(crate) fn strays(&self, uid: &str, id: &str) -> Vec<String> {
        let mut all = self.all_of(uid);
        all.retain(|other| other != id);
        all
    }

    /// Identifiers of all that was made for an object and was in OpenStack when the last list was made: some of it may be gone by
    /// now.
    pub(crate) fn all_of(&self, uid: &str) -> Vec<String> {
        let state = self.state();
        let is_made = |id: &&Arc<str>| state.kept.get(*id).is_some_and(|kept| !kept.is_adopted);
        state.owned.get(uid).into_iter().flatten().filter(is_made).map(ToString::to_string).collect()
    }

    /// An object has seen its resource itself.
    pub(crate) fn looked(&self, site: &Site, uid: &str, resource: &R) {
        if R::TRUSTED.is_some()
            && let Some(resource) = Packed::of(resource)
        {
            self.state().looks.insert(uid.to_owned(), Look { site: site.clone(), resource, at: Instant::now() });
        }
    }

    /// An object has no resource any more.
    pub(crate) fn forget(&self, uid: &str) {
        self.state().looks.remove(uid);
    }

    /// To be held while something is written for an object: what lists say about it does not count until one has begun
    /// after that.
    pub(crate) fn writing(self: &Arc<Self>, uid: String) -> Writing<R> {
        match R::TRUSTED {
            Some(_) => self.forget(&uid),
            None => drop(self.state().writes.insert(uid.clone(), None)),
        }
        Writing { census: Arc::clone(self), uid }
    }

    fn state(&self) -> MutexGuard<'_, State<R>> {
        lock(&self.state)
    }
}

/// Something is being written for an object.
pub(crate) struct Writing<R: Listed> {
    census: Arc<Census<R>>,
    uid: String,
}

impl<R: Listed> Drop for Writing<R> {
    fn drop(&mut self) {
        if R::TRUSTED.is_none() {
            self.census.state().writes.insert(std::mem::take(&mut self.uid), Some(Instant::now()));
            self.census.moved.notify_one();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
