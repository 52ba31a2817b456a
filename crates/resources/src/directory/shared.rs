//! What objects of a place share in OpenStack without it being an object: the first that needs it makes it, and it goes with
//! the last. They take turns at that, so that none makes what another removes.

use std::{collections::BTreeSet, sync::Arc};

use kupenstack_api::resources::ResourceKind;
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::{Directory, Entry, State};
use crate::{actuator::Actuator, needs::Key};

/// Who shares something.
#[derive(Default)]
pub(super) struct Sharing {
    turn: Arc<Mutex<()>>,
    /// Objects that say so.
    all: BTreeSet<Key>,
    /// Those of them that have had a turn to make it: that they are held is not told at once.
    begun: BTreeSet<Key>,
}

/// An object's turn at what it shares. No other has one meanwhile.
pub(crate) struct Turn {
    _guard: OwnedMutexGuard<()>,
    /// Whether another object has to keep it.
    pub(crate) is_needed: bool,
}

impl Directory {
    /// Waits for an object's turn at what it shares, to make it or to use it. None if it shares nothing.
    pub(crate) async fn turn_to_use<A: Actuator>(&self, object: &A::Kind) -> Option<Turn> {
        self.turn::<A>(object, true).await
    }

    /// Waits for an object's turn at what it shares, to remove what is not needed. None if it shares nothing.
    pub(crate) async fn turn_to_leave<A: Actuator>(&self, object: &A::Kind) -> Option<Turn> {
        self.turn::<A>(object, false).await
    }

    /// How many other objects need what this one shares.
    pub(crate) fn sharers<A: Actuator>(&self, object: &A::Kind) -> usize {
        A::shared(object).map_or(0, |shared| self.state().needed_by(&shared, &Key::of(object)).count())
    }

    async fn turn<A: Actuator>(&self, object: &A::Kind, begins: bool) -> Option<Turn> {
        let (key, shared) = (Key::of(object), A::shared(object)?);
        self.known(&[A::Kind::KIND]).await;
        let turn = Arc::clone(&self.state().sharing.entry(shared.clone()).or_default().turn);
        let guard = turn.lock_owned().await;
        let mut state = self.state();
        if begins {
            state.sharing.entry(shared.clone()).or_default().begun.insert(key.clone());
        }
        let is_needed = state.needed_by(&shared, &key).next().is_some();
        Some(Turn { _guard: guard, is_needed })
    }
}

impl State {
    pub(super) fn share(&mut self, key: &Key, entry: &Entry) {
        if let Some(shared) = &entry.shared {
            self.sharing.entry((**shared).clone()).or_default().all.insert(key.clone());
        }
    }

    /// What is told of an object now counts; it may be told of again, unless it `is_gone`.
    pub(super) fn unshare(&mut self, key: &Key, entry: &Entry, is_gone: bool) {
        let Some(shared) = &entry.shared else { return };
        let Some(sharing) = self.sharing.get_mut(&**shared) else { return };
        sharing.all.remove(key);
        if is_gone {
            sharing.begun.remove(key);
        }
        // who waits for a turn has a part in it
        if sharing.all.is_empty() && sharing.begun.is_empty() && Arc::strong_count(&sharing.turn) == 1 {
            self.sharing.remove(&**shared);
        }
    }

    /// Those beside `own` that are to stay and may have made or used what they share. What was never held, and has had no
    /// turn, has not, and could go without anybody being told.
    fn needed_by<'a>(&'a self, shared: &Key, own: &'a Key) -> impl Iterator<Item = &'a Key> {
        let sharing = self.sharing.get(shared);
        sharing.into_iter().flat_map(|sharing| sharing.all.iter().map(move |key| (sharing, key))).filter_map(
            move |(sharing, key)| {
                let entry = self.entries.get(key).filter(|entry| key != own && !entry.known.is_leaving)?;
                (entry.is_held || sharing.begun.contains(key)).then_some(key)
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::{FutureExt, channel::mpsc};
    use kupenstack_api::{FINALIZER, resources::VirtualMachine};
    use kupenstack_runtime::Told;
    use serde_json::{Value, json};

    use super::*;
    use crate::{directory::Registration, virtual_machine::VirtualMachineActuator};

    type Vms = VirtualMachineActuator;

    fn vm(name: &str, meta: &Value) -> VirtualMachine {
        let mut all = json!({"name": name, "namespace": "shop"});
        all.as_object_mut().unwrap().extend(meta.as_object().unwrap().clone());
        serde_json::from_value(json!({"apiVersion": "kupenstack.io/v1", "kind": "VirtualMachine", "metadata": all,
            "spec": {"flavor": "small", "image": "linux", "networks": [], "antiAffinity": {"group": "web"}}}))
        .unwrap()
    }

    fn held(name: &str) -> VirtualMachine {
        vm(name, &json!({"finalizers": [FINALIZER]}))
    }

    fn leaving(name: &str) -> VirtualMachine {
        vm(name, &json!({"finalizers": [FINALIZER], "deletionTimestamp": "2026-01-01T00:00:00Z"}))
    }

    /// A directory that has been told of these.
    fn directory(vms: &[VirtualMachine]) -> (Arc<Directory>, Registration) {
        let directory = Arc::new(Directory::default());
        let registration = directory.register::<Vms>(mpsc::unbounded().0);
        let mut follow = directory.follow::<Vms>();
        follow(Told::Listing);
        for vm in vms {
            follow(Told::There(&vm.metadata, Some(vm)));
        }
        follow(Told::Listed);
        (directory, registration)
    }

    async fn is_needed(directory: &Directory, vm: &VirtualMachine) -> bool {
        directory.turn_to_leave::<Vms>(vm).await.unwrap().is_needed
    }

    #[tokio::test]
    async fn what_is_shared_goes_with_the_last_that_stays() {
        let one = leaving("one");
        for (other, needed) in [
            (held("two"), true),
            (leaving("two"), false),
            (vm("two", &json!({})), false),
            (vm("two", &json!({"namespace": "another", "finalizers": [FINALIZER]})), false),
        ] {
            let (directory, _kept) = directory(&[one.clone(), other]);
            assert_eq!(is_needed(&directory, &one).await, needed);
        }
    }

    /// The watch tells later that it is held.
    #[tokio::test]
    async fn one_that_has_begun_counts_at_once_and_until_it_is_gone() {
        let (one, two) = (leaving("one"), vm("two", &json!({})));
        let (directory, _kept) = directory(&[one.clone(), two.clone()]);
        let turn = directory.turn_to_use::<Vms>(&two).await.unwrap();
        assert!(!turn.is_needed);
        assert!(directory.turn_to_leave::<Vms>(&one).now_or_never().is_none(), "it is another's turn");
        drop(turn);
        assert!(is_needed(&directory, &one).await);
        assert_eq!(directory.sharers::<Vms>(&one), 1);
        let mut follow = directory.follow::<Vms>();
        // what was under way when it began
        follow(Told::There(&two.metadata, Some(&two)));
        assert!(is_needed(&directory, &one).await);
        follow(Told::Gone(&two.metadata));
        assert!(!is_needed(&directory, &one).await);
        follow(Told::Gone(&one.metadata));
        assert!(directory.state().sharing.is_empty(), "nothing is kept for nobody");
    }

    #[tokio::test]
    async fn nothing_is_decided_before_all_are_known() {
        let directory = Arc::new(Directory::default());
        let _kept = directory.register::<Vms>(mpsc::unbounded().0);
        assert!(directory.turn_to_leave::<Vms>(&leaving("one")).now_or_never().is_none());
    }
}
