//! All objects of ours by name: who needs whom, what has come of it, and who is to be looked at when that changes.
//!
//! It is kept by the controllers' own watches and costs no request. An object that waits for another is looked at when the
//! other comes, is ready, or goes; one that is kept because others use it, when they have gone.

mod rivals;
mod shared;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::channel::mpsc::UnboundedSender;
use kube::api::ObjectMeta;
use kube::core::ApiResource;
use kupenstack_api::{FINALIZER, HasConditions, resources::ResourceKind};
use kupenstack_core::{
    Outcome,
    conditions::{self, READY},
};
use kupenstack_runtime::{ObjectRef, Told};
use tokio::sync::watch;

use self::shared::Sharing;
use crate::{
    actuator::{Actuator, Kind},
    needs::{Key, Known, Need, Needs, When},
    observe::Listed,
    parts::{Chore, Owned, Part, Standing},
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
    /// What belongs to the object of a UID.
    parts: HashMap<Arc<str>, BTreeSet<Key>>,
    /// What is being deleted.
    leaving: BTreeSet<Key>,
    /// Who shares what.
    sharing: HashMap<Key, Sharing>,
    /// Those that take something over. Few do.
    adopters: BTreeSet<Key>,
}

struct Registered {
    resource: ApiResource,
    /// What its objects stand for in OpenStack.
    noun: &'static str,
    needs: &'static [&'static str],
    goes_after: &'static [&'static str],
    wake: Box<dyn Fn(&Key) + Send>,
}

struct Entry {
    known: Known,
    /// Whose part it is, or was. Few are.
    owned: Option<Box<Owned>>,
    needs: Box<[Need]>,
    /// What it shares with others. Few do.
    shared: Option<Box<Key>>,
    /// Whether it does not go before we let it.
    is_held: bool,
    /// Whether it takes over what was there.
    adopts: bool,
}

impl Directory {
    /// A kind takes part as long as what this returns is kept, and hears from `calls` which of its objects are to be looked
    /// at. All kinds have to, before the first of them asks anything.
    pub(crate) fn register<A: Actuator>(self: &Arc<Self>, calls: UnboundedSender<ObjectRef<A::Kind>>) -> Registration {
        let wake = move |key: &Key| {
            let reference = ObjectRef::<A::Kind>::new(&key.name);
            let reference = if key.place.is_empty() { reference } else { reference.within(&key.place) };
            // without a listener the controller has ended
            drop(calls.unbounded_send(reference));
        };
        let resource = ApiResource::erase::<A::Kind>(&());
        let (noun, wake) = (A::Resource::NOUN, Box::new(wake));
        let registered = Registered { resource, noun, needs: A::NEEDS, goes_after: A::GOES_AFTER, wake };
        self.state().kinds.insert(A::Kind::KIND, registered);
        Registration { directory: Arc::clone(self), kind: A::Kind::KIND }
    }

    /// Takes in all that is told of the objects of a kind.
    pub(crate) fn follow<A: Actuator>(self: &Arc<Self>) -> impl FnMut(Told<'_, A::Kind>) + Send + 'static {
        let directory = Arc::clone(self);
        let mut shown = HashSet::new();
        move |told| match told {
            Told::Listing => shown.clear(),
            Told::There(meta, object) => {
                let key = Key::of_meta::<A::Kind>(meta);
                directory.put(&key, entry::<A>(meta, object));
                shown.insert(key);
            }
            Told::Gone(meta) => {
                directory.remove(&Key::of_meta::<A::Kind>(meta));
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
        let key = Key::of(object);
        let mut others = self.state().needing(&key);
        others.extend(self.state().goes_after(&key));
        self.known(&others).await;
        let state = self.state();
        in_use("used by", state.users_of(&key).map(|(user, is_leaving)| named(&key, user, is_leaving)))?;
        in_use("is deleted after", state.going_before(&key).map(|other| named(&key, other, true)))
    }

    /// What there is under the name of a part of the object with this UID.
    pub(crate) fn standing(&self, uid: &str, part: &Key) -> Standing {
        let state = self.state();
        let Some(entry) = state.entries.get(part) else { return Standing::Absent };
        match &entry.owned {
            _ if entry.known.is_leaving => Standing::Leaving,
            Some(owned) if owned.owner.is_none() => Standing::Released((**owned).clone()),
            Some(owned) if owned.owner.as_deref() == Some(uid) => Standing::Ours((**owned).clone()),
            _ => Standing::Foreign,
        }
    }

    /// What has to be done about parts of the object with this UID that are not wanted any more.
    pub(crate) fn surplus(&self, uid: &str, wanted: &[Part]) -> Vec<Chore> {
        let state = self.state();
        let all = state.parts.get(uid).into_iter().flatten();
        let unwanted = all.filter(|key| wanted.iter().all(|part| part.key != **key));
        let remove = |key: &Key| {
            let entry = state.entries.get(key).filter(|entry| !entry.known.is_leaving)?;
            let owned = entry.owned.as_deref()?.clone();
            Some(Chore::Remove(key.clone(), state.kinds.get(key.kind)?.resource.clone(), owned))
        };
        unwanted.filter_map(remove).collect()
    }

    /// Has objects looked at.
    pub(crate) fn wake(&self, keys: &[Key]) {
        self.state().wake(keys.iter());
    }

    /// Has the objects of a kind looked at whose recorded identifiers are among these.
    pub(crate) fn wake_those_with<K: Kind>(&self, ids: &HashSet<String>) {
        let state = self.state();
        let is_theirs = |key: &Key, entry: &Entry| {
            key.kind == K::KIND && entry.known.id.as_deref().is_some_and(|id| ids.contains(id))
        };
        state.wake(state.entries.iter().filter(|(key, entry)| is_theirs(key, entry)).map(|(key, _)| key));
    }

    /// Waits for the first list of these kinds; of those that nobody keeps in this process there is none to wait for.
    async fn known(&self, kinds: &[&'static str]) {
        let is_kept = |kind: &&&'static str| self.state().kinds.contains_key(**kind);
        let all = |listed: &BTreeSet<&'static str>| kinds.iter().filter(is_kept).all(|kind| listed.contains(kind));
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
        if let Some(owner) = entry.owned.as_ref().and_then(|owned| owned.owner.as_ref()) {
            state.parts.entry(Arc::clone(owner)).or_default().insert(key.clone());
        }
        if entry.known.is_leaving {
            state.leaving.insert(key.clone());
        }
        if entry.adopts {
            state.adopters.insert(key.clone());
        }
        state.share(key, &entry);
        let lost = before.map(|before| before.needs).unwrap_or_default();
        state.wake(lost.iter().filter(|need| !entry.needs.contains(need)).map(|need| &need.key));
        state.entries.insert(key.clone(), entry);
        if is_news {
            state.wake(state.users.get(key).into_iter().flatten());
            state.wake(state.going_after(key));
        }
    }

    fn remove(&self, key: &Key) {
        let mut state = self.state();
        let Some(entry) = state.take(key) else { return };
        state.unshare(key, &entry, true);
        // what it needed may go now, and what needs it is to say so
        state.wake(entry.needs.iter().map(|need| &need.key));
        state.wake(state.users.get(key).into_iter().flatten());
        state.wake(state.going_after(key));
        state.wake(state.heirs_of(key));
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

/// A kind takes part. One whose controller is not to run, or has ended, does not.
pub(crate) struct Registration {
    directory: Arc<Directory>,
    kind: &'static str,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.directory.state().kinds.remove(self.kind);
        // whoever waits for its list looks again
        self.directory.listed.send_modify(|listed| {
            listed.remove(self.kind);
        });
    }
}

impl State {
    fn take(&mut self, key: &Key) -> Option<Entry> {
        let entry = self.entries.remove(key)?;
        self.leaving.remove(key);
        self.adopters.remove(key);
        self.unshare(key, &entry, false);
        for need in &entry.needs {
            if let Some(users) = self.users.get_mut(&need.key) {
                users.remove(key);
                if users.is_empty() {
                    self.users.remove(&need.key);
                }
            }
        }
        if let Some(owner) = entry.owned.as_ref().and_then(|owned| owned.owner.as_ref())
            && let Some(parts) = self.parts.get_mut(owner)
        {
            parts.remove(key);
            if parts.is_empty() {
                self.parts.remove(owner);
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

    /// Kinds whose objects may need that of a key.
    fn needing(&self, key: &Key) -> Vec<&'static str> {
        let needing = self.kinds.iter().filter(|(_, registered)| registered.needs.contains(&key.kind));
        needing.map(|(kind, _)| *kind).collect()
    }

    /// Kinds whose objects go before that of a key.
    fn goes_after(&self, key: &Key) -> &'static [&'static str] {
        self.kinds.get(key.kind).map_or(&[], |registered| registered.goes_after)
    }

    /// What is being deleted, and has a resource that has to go before that of an object.
    fn going_before(&self, key: &Key) -> impl Iterator<Item = &Key> {
        let own = self.entries.get(key).map_or(&[][..], |entry| &entry.needs);
        let leaving = self.goes_after(key).iter().flat_map(|kind| self.leaving(kind, &key.place));
        leaving.filter(move |other| {
            let shares = |need: &Need| own.iter().any(|own| own.key == need.key);
            self.entries.get(other).is_some_and(|entry| entry.known.id.is_some() && entry.needs.iter().any(shares))
        })
    }

    /// What is being deleted and may wait for an object to go first.
    fn going_after(&self, key: &Key) -> impl Iterator<Item = &Key> {
        let kinds = self.kinds.iter().filter(|(_, registered)| registered.goes_after.contains(&key.kind));
        kinds.flat_map(|(kind, _)| self.leaving(kind, &key.place))
    }

    /// What is being deleted, of a kind and in a place.
    fn leaving(&self, kind: &'static str, place: &Arc<str>) -> impl Iterator<Item = &Key> {
        let first = Key { kind, place: Arc::clone(place), name: "".into() };
        self.leaving.range(first..).take_while(move |key| key.kind == kind && key.place == *place)
    }

    fn wake<'a>(&self, keys: impl Iterator<Item = &'a Key>) {
        for key in keys {
            if let Some(kind) = self.kinds.get(key.kind) {
                (kind.wake)(key);
            }
        }
    }
}

/// That some have to go first, as a wait that names them.
fn in_use(how: &str, others: impl Iterator<Item = String>) -> Result<(), Outcome> {
    let others: Vec<String> = others.collect();
    if others.is_empty() {
        return Ok(());
    }
    let rest = if others.len() > NAMED { format!(" and {} more", others.len() - NAMED) } else { String::new() };
    let message = format!("{how} {}{rest}", others[..others.len().min(NAMED)].join(", "));
    Err(Outcome::waiting("InUse", message).within(LOOK))
}

/// A user of `key` by its name, with its namespace if that is another.
fn named(key: &Key, user: &Key, is_leaving: bool) -> String {
    let is_near = user.place == key.place || user.place.is_empty();
    let place = if is_near { String::new() } else { format!(" in namespace {}", user.place) };
    let leaving = if is_leaving { ", which is being deleted" } else { "" };
    format!("{user}{place}{leaving}")
}

/// An object that we have let go has nothing any more and uses nothing, however long others keep it.
fn entry<A: Actuator>(meta: &ObjectMeta, object: Option<&A::Kind>) -> Entry {
    let is_leaving = meta.deletion_timestamp.is_some();
    let is_held = meta.finalizers.iter().flatten().any(|finalizer| finalizer == FINALIZER);
    let shared = object.and_then(A::shared).map(Box::new);
    let object = object.filter(|_| is_held || !is_leaving);
    let is_silent = object.is_some_and(|object| object.conditions().is_empty());
    let known = Known {
        id: object.and_then(ResourceKind::recorded).map(Into::into),
        is_ready: object.is_some_and(|object| conditions::is_true(object.conditions(), READY)),
        is_leaving,
        silent_since: meta.creation_timestamp.as_ref().map(|at| at.0).filter(|_| is_silent),
        told: object.and_then(A::tells).map(Into::into),
    };
    let needs = object.map(A::needs).unwrap_or_default().into();
    let adopts = object.is_some_and(ResourceKind::adopts);
    Entry { known, owned: Owned::of(meta).map(Box::new), needs, shared, is_held, adopts }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, StreamExt, channel::mpsc};
    use kupenstack_api::resources::{FloatingIP, Network, Router, Subnet};
    use serde_json::json;

    use super::*;
    use crate::neutron::NeutronActuator;

    type Networks = NeutronActuator<Network>;
    type Subnets = NeutronActuator<Subnet>;

    fn network(ready: &str) -> Network {
        let conditions = json!([{"type": "Ready", "status": ready, "reason": "r", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        serde_json::from_value(json!({"apiVersion": "kupenstack.io/v1", "kind": "Network",
            "metadata": {"name": "net", "namespace": "shop"}, "spec": {}, "status": {"id": "n1", "conditions": conditions}}))
        .unwrap()
    }

    fn subnet() -> Subnet {
        serde_json::from_value(json!({"apiVersion": "kupenstack.io/v1", "kind": "Subnet",
            "metadata": {"name": "sub", "namespace": "shop"}, "spec": {"network": "net", "cidr": "10.0.0.0/24"},
            "status": {"id": "s1"}}))
        .unwrap()
    }

    #[tokio::test]
    async fn nothing_is_said_before_all_that_matters_is_listed() {
        let directory = Arc::new(Directory::default());
        let _networks = directory.register::<Networks>(mpsc::unbounded().0);
        let subnets = directory.register::<Subnets>(mpsc::unbounded().0);
        assert!(directory.free(&network("True")).now_or_never().is_none(), "a subnet may use it");
        assert!(directory.needs::<Subnets>(&subnet()).now_or_never().is_none(), "the network may be there");
        assert!(directory.free(&subnet()).now_or_never().is_some(), "nobody is known to need subnets");
        // its controller is not to run in this process
        drop(subnets);
        assert!(directory.free(&network("True")).now_or_never().unwrap().is_ok());
    }

    #[tokio::test]
    async fn those_that_need_each_other_hear_of_each_other() {
        let directory = Arc::new(Directory::default());
        let (calls, mut of_networks) = mpsc::unbounded();
        let _networks = directory.register::<Networks>(calls);
        let (calls, mut of_subnets) = mpsc::unbounded();
        let _subnets = directory.register::<Subnets>(calls);
        let (mut networks, mut subnets) = (directory.follow::<Networks>(), directory.follow::<Subnets>());
        let user = subnet();
        for told in [Told::Listing, Told::There(&user.metadata, Some(&user)), Told::Listed] {
            subnets(told);
        }
        for told in [Told::Listing, Told::Listed] {
            networks(told);
        }
        let needs = directory.needs::<Subnets>(&user).await;
        assert_eq!(needs.before_creation().unwrap_err().message(), "Network net does not exist");
        for (ready, flaw) in [("False", Some("Network net is not ready")), ("True", None)] {
            let network = network(ready);
            networks(Told::There(&network.metadata, Some(&network)));
            assert_eq!(of_subnets.next().now_or_never().flatten().unwrap().name, "sub", "it is news for who needs it");
            // what is no news is not told
            networks(Told::There(&network.metadata, Some(&network)));
            assert!(of_subnets.next().now_or_never().is_none());
            let waits = directory.needs::<Subnets>(&user).await.before_creation().err();
            assert_eq!(waits.as_ref().map(Outcome::message), flaw);
        }
        assert_eq!(directory.free(&network("True")).await.unwrap_err().message(), "used by Subnet sub");
        // a list that does not show it, as after a watch that was interrupted
        while of_networks.next().now_or_never().flatten().is_some() {}
        for told in [Told::Listing, Told::Listed] {
            subnets(told);
        }
        assert_eq!(of_networks.next().now_or_never().flatten().unwrap().name, "net", "nobody uses it any more");
        assert!(directory.free(&network("True")).await.is_ok());
    }

    /// A leaving floating IP goes before the router of its namespace, which hears of it.
    #[tokio::test]
    async fn what_goes_first_is_waited_for() {
        let directory = Arc::new(Directory::default());
        let (calls, mut of_routers) = mpsc::unbounded();
        let _routers = directory.register::<NeutronActuator<Router>>(calls);
        let _floating = directory.register::<NeutronActuator<FloatingIP>>(mpsc::unbounded().0);
        let mut routers = directory.follow::<NeutronActuator<Router>>();
        let mut floating = directory.follow::<NeutronActuator<FloatingIP>>();
        let meta = |place: &str| {
            json!({"name": "one", "namespace": place, "finalizers": [FINALIZER],
                "deletionTimestamp": "2026-01-01T00:00:00Z"})
        };
        let object = |kind: &str, place: &str, network: &str| {
            json!({"apiVersion": "kupenstack.io/v1", "kind": kind, "metadata": meta(place),
                "spec": {"externalNetwork": network}, "status": {"id": "r1"}})
        };
        let router: Router = serde_json::from_value(object("Router", "shop", "out")).unwrap();
        let floating_ip = |place: &str, network: &str| {
            serde_json::from_value::<FloatingIP>(object("FloatingIP", place, network)).unwrap()
        };
        let (ours, others, unrelated) =
            (floating_ip("shop", "out"), floating_ip("shop-two", "out"), floating_ip("shop", "elsewhere"));
        for told in [Told::Listing, Told::There(&router.metadata, Some(&router)), Told::Listed] {
            routers(told);
        }
        assert!(directory.free(&router).now_or_never().is_none(), "floating IPs are not known yet");
        for told in [Told::Listing, Told::There(&others.metadata, Some(&others)), Told::Listed] {
            floating(told);
        }
        assert!(directory.free(&router).await.is_ok(), "that is in another namespace");
        floating(Told::There(&unrelated.metadata, Some(&unrelated)));
        assert!(directory.free(&router).await.is_ok(), "that is of another network");
        floating(Told::There(&ours.metadata, Some(&ours)));
        let wait = directory.free(&router).await.unwrap_err();
        assert_eq!(wait.message(), "is deleted after FloatingIP one, which is being deleted");
        while of_routers.next().now_or_never().flatten().is_some() {}
        floating(Told::Gone(&ours.metadata));
        assert_eq!(of_routers.next().now_or_never().flatten().unwrap().name, "one");
        assert!(directory.free(&router).await.is_ok());
    }
}
