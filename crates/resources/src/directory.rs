//! All objects of ours by name: who needs whom, what has come of it, and who is to be looked at when that changes.
//!
//! It is kept by the controllers' own watches and costs no request. An object that waits for another is looked at when the
//! other comes, is ready, or goes; one that is kept because others use it, when they have gone.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::channel::mpsc::UnboundedSender;
use kube::api::ObjectMeta;
use kupenstack_api::{HasConditions, resources::ResourceKind};
use kupenstack_core::{
    Outcome,
    conditions::{self, READY},
};
use kupenstack_runtime::{ObjectRef, Told};
use tokio::sync::watch;

use crate::{
    actuator::{Actuator, Kind},
    needs::{Key, Known, Need, Needs, When},
};

/// How soon an object that waits for others is looked at if nothing is heard of them.
pub(crate) const LOOK: Duration = Duration::from_mins(5);
/// How many are named of those that use an object.
const NAMED: usize = 5;

/// The objects of all kinds.
#[derive(Default)]
pub(crate) struct Directory {
    state: Mutex<State>,
    /// Kinds whose first list is complete.
    listed: watch::Sender<BTreeSet<&'static str>>,
}

#[derive(Default)]
struct State {
    entries: HashMap<Key, Entry>,
    /// Who needs an object, whether that exists or not.
    users: HashMap<Key, BTreeSet<Key>>,
    kinds: HashMap<&'static str, Registered>,
}

struct Registered {
    needs: &'static [&'static str],
    wake: Box<dyn Fn(&Key) + Send>,
}

struct Entry {
    known: Known,
    needs: Box<[Need]>,
}

impl Directory {
    /// A kind takes part, and hears from `calls` which of its objects are to be looked at. All kinds have to, before the
    /// first of them asks anything.
    pub(crate) fn register<A: Actuator>(&self, calls: UnboundedSender<ObjectRef<A::Kind>>) {
        let wake = move |key: &Key| {
            let reference = ObjectRef::<A::Kind>::new(&key.name);
            let reference = if key.place.is_empty() { reference } else { reference.within(&key.place) };
            // without a listener the controller has ended
            drop(calls.unbounded_send(reference));
        };
        self.state().kinds.insert(A::Kind::KIND, Registered { needs: A::NEEDS, wake: Box::new(wake) });
    }

    /// Takes in all that is told of the objects of a kind.
    pub(crate) fn follow<A: Actuator>(self: &Arc<Self>) -> impl FnMut(Told<'_, A::Kind>) + Send + 'static {
        let directory = Arc::clone(self);
        let mut shown = HashSet::new();
        move |told| match told {
            Told::Listing => shown.clear(),
            Told::There(meta, object) => {
                let key = key::<A::Kind>(meta);
                directory.put(&key, entry::<A>(meta, object));
                shown.insert(key);
            }
            Told::Gone(meta) => {
                directory.remove(&key::<A::Kind>(meta));
            }
            Told::Listed => {
                directory.keep(A::Kind::KIND, &std::mem::take(&mut shown));
                directory.listed.send_if_modified(|listed| listed.insert(A::Kind::KIND));
            }
        }
    }

    /// What an object needs, once all kinds that it needs something of are known.
    pub(crate) async fn needs<A: Actuator>(&self, object: &A::Kind) -> Needs {
        self.known(A::NEEDS).await;
        let state = self.state();
        let known = |need: Need| {
            let known = state.entries.get(&need.key).map(|entry| entry.known.clone());
            (need, known)
        };
        Needs::new(A::needs(object).into_iter().map(known).collect())
    }

    /// Who keeps an object from being deleted, as a wait that names them.
    pub(crate) async fn free<K: Kind>(&self, object: &K) -> Result<(), Outcome> {
        let needing: Vec<_> = {
            let state = self.state();
            let needing = state.kinds.iter().filter(|(_, registered)| registered.needs.contains(&K::KIND));
            needing.map(|(kind, _)| *kind).collect()
        };
        self.known(&needing).await;
        let key = Key::of(object);
        let state = self.state();
        let users: Vec<String> = state.users_of(&key).map(|(user, is_leaving)| named(&key, user, is_leaving)).collect();
        if users.is_empty() {
            return Ok(());
        }
        let rest = if users.len() > NAMED { format!(" and {} more", users.len() - NAMED) } else { String::new() };
        let message = format!("used by {}{rest}", users[..users.len().min(NAMED)].join(", "));
        Err(Outcome::waiting("InUse", message).within(LOOK))
    }

    async fn known(&self, kinds: &[&'static str]) {
        let all = |listed: &BTreeSet<&'static str>| kinds.iter().all(|kind| listed.contains(kind));
        // the sender is here, so it can't be gone
        drop(self.listed.subscribe().wait_for(all).await);
    }

    fn put(&self, key: &Key, entry: Entry) {
        let mut state = self.state();
        let before = state.take(key);
        let is_news = before.as_ref().is_none_or(|before| before.known != entry.known);
        for need in &entry.needs {
            state.users.entry(need.key.clone()).or_default().insert(key.clone());
        }
        let lost = before.map(|before| before.needs).unwrap_or_default();
        state.wake(lost.iter().filter(|need| !entry.needs.contains(need)).map(|need| &need.key));
        state.entries.insert(key.clone(), entry);
        if is_news {
            state.wake(state.users.get(key).into_iter().flatten());
        }
    }

    fn remove(&self, key: &Key) {
        let mut state = self.state();
        let Some(entry) = state.take(key) else { return };
        // what it needed may go now, and what needs it is to say so
        state.wake(entry.needs.iter().map(|need| &need.key));
        state.wake(state.users.get(key).into_iter().flatten());
    }

    /// Removes the objects of a kind that a complete list did not show.
    fn keep(&self, kind: &'static str, shown: &HashSet<Key>) {
        let gone: Vec<Key> = {
            let state = self.state();
            let of_kind = state.entries.keys().filter(|key| key.kind == kind);
            of_kind.filter(|key| !shown.contains(key)).cloned().collect()
        };
        for key in &gone {
            self.remove(key);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(&mut self, key: &Key) -> Option<Entry> {
        let entry = self.entries.remove(key)?;
        for need in &entry.needs {
            if let Some(users) = self.users.get_mut(&need.key) {
                users.remove(key);
                if users.is_empty() {
                    self.users.remove(&need.key);
                }
            }
        }
        Some(entry)
    }

    /// Those that have a resource which uses that of an object, and whether they are being deleted.
    fn users_of(&self, key: &Key) -> impl Iterator<Item = (&Key, bool)> {
        let users = self.users.get(key).into_iter().flatten().filter(move |user| *user != key);
        users.filter_map(move |user| {
            let entry = self.entries.get(user)?;
            let leaving = entry.known.is_leaving;
            // what only completes another goes with it in any order
            let holds = |need: &Need| need.key == *key && (need.when == When::FromTheStart || !leaving);
            (entry.known.id.is_some() && entry.needs.iter().any(holds)).then_some((user, leaving))
        })
    }

    fn wake<'a>(&self, keys: impl Iterator<Item = &'a Key>) {
        for key in keys {
            if let Some(kind) = self.kinds.get(key.kind) {
                (kind.wake)(key);
            }
        }
    }
}

/// A user of `key` by its name, with its namespace if that is another.
fn named(key: &Key, user: &Key, is_leaving: bool) -> String {
    let place = if user.place == key.place { String::new() } else { format!(" in namespace {}", user.place) };
    let leaving = if is_leaving { ", which is being deleted" } else { "" };
    format!("{user}{place}{leaving}")
}

fn key<K: Kind>(meta: &ObjectMeta) -> Key {
    let text = |value: &Option<String>| value.as_deref().unwrap_or_default().into();
    Key { kind: K::KIND, place: text(&meta.namespace), name: text(&meta.name) }
}

fn entry<A: Actuator>(meta: &ObjectMeta, object: Option<&A::Kind>) -> Entry {
    let id = object.and_then(|object| <A::Kind as ResourceKind>::id(object.status()?));
    let known = Known {
        id: id.map(Into::into),
        is_ready: object.is_some_and(|object| conditions::is_true(object.conditions(), READY)),
        is_leaving: meta.deletion_timestamp.is_some(),
    };
    Entry { known, needs: object.map(A::needs).unwrap_or_default().into() }
}
