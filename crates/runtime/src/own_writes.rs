//! What a pass has written to its own object. A watch shows that a little later, and a pass that began with what was there
//! before would ask for things anew, or take back what was written.

use std::{
    cell::Cell,
    collections::{HashMap, hash_map::Entry},
    sync::{Mutex, MutexGuard, PoisonError},
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Resource,
    runtime::reflector::{ObjectRef, Store},
};

use crate::news::bare;

tokio::task_local! {
    static OWN: Own;
}

/// The object of the pass that this task runs.
struct Own {
    uid: Option<String>,
    /// The version that its last write has led to.
    version: Cell<Option<u64>>,
}

/// Notes what the API server has made of an object. Only what a pass writes to its own object counts.
pub(crate) fn note(written: &ObjectMeta) {
    // one that was deleted and held by nothing else has gone with that, and is shown at no later version; a namespace goes soon
    let is_gone = written.deletion_timestamp.is_some() && written.finalizers.as_ref().is_none_or(Vec::is_empty);
    let version = if is_gone { Some(u64::MAX) } else { version(written) };
    // outside of a pass there is nothing to note it for
    let _ = OWN.try_with(|own| {
        if own.uid == written.uid {
            own.version.set(own.version.get().max(version));
        }
    });
}

/// Objects with a pass under way, and those of which the store does not show yet what a pass has written. Entries go when it
/// does, or when the object goes.
pub(crate) struct OwnWrites<K: Resource<DynamicType = ()> + 'static> {
    store: Store<K>,
    all: Mutex<HashMap<ObjectRef<K>, Awaited>>,
}

#[derive(Debug, Default)]
struct Awaited {
    /// Of the object that it was written to: another one of its name is no older.
    uid: Option<String>,
    /// The version that is to be shown; none while the pass is under way.
    version: Option<u64>,
    /// Whether a pass waits for that.
    is_put_off: bool,
}

impl Awaited {
    fn is_newer_than(&self, object: &ObjectMeta) -> bool {
        let is_newer = || self.version.is_some_and(|awaited| version(object).is_some_and(|shown| shown < awaited));
        self.uid == object.uid && is_newer()
    }
}

impl<K: Resource<DynamicType = ()> + Clone + 'static> OwnWrites<K> {
    pub(crate) fn new(store: Store<K>) -> Self {
        Self { store, all: Mutex::new(HashMap::new()) }
    }

    /// Whether a pass over this object is to be put off, since it is older than what was written to it. It is
    /// [called for](Self::is_called_for) when that is shown.
    pub(crate) fn puts_off(&self, object: &K) -> bool {
        let mut all = self.all();
        let Some(awaited) = all.get_mut(&bare(ObjectRef::from(object))) else { return false };
        awaited.is_put_off = awaited.is_newer_than(object.meta());
        awaited.is_put_off
    }

    /// Whether a pass was put off until this was shown.
    pub(crate) fn is_called_for(&self, object: &K) -> bool {
        let mut all = self.all();
        let Entry::Occupied(entry) = all.entry(bare(ObjectRef::from(object))) else { return false };
        let is_shown = entry.get().version.is_some() && !entry.get().is_newer_than(object.meta());
        is_shown && entry.remove().is_put_off
    }

    /// Runs a pass over an object.
    pub(crate) async fn during<T>(&self, object: &K, pass: impl Future<Output = T>) -> T {
        let (key, before) = (bare(ObjectRef::from(object)), version(object.meta()));
        let own = Own { uid: object.meta().uid.clone(), version: Cell::new(before) };
        self.all().insert(key.clone(), Awaited::default());
        let (result, version) = OWN.scope(own, async { (pass.await, OWN.with(|own| own.version.get())) }).await;
        let (uid, version) = (object.meta().uid.clone(), version.filter(|_| version > before));
        let awaited = Awaited { uid, version, is_put_off: false };
        // one that has gone meanwhile has no entry, and gets none
        if let Entry::Occupied(mut entry) = self.all().entry(key.clone()) {
            match self.store.get(&key).filter(|shown| awaited.is_newer_than(shown.meta())) {
                Some(_) => drop(entry.insert(awaited)),
                None => drop(entry.remove()),
            }
        }
        result
    }

    /// An object is gone.
    pub(crate) fn forget(&self, key: &ObjectRef<K>) {
        self.all().remove(&bare(key.clone()));
    }

    fn all(&self) -> MutexGuard<'_, HashMap<ObjectRef<K>, Awaited>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Versions of objects of one kind are numbers that rise.
fn version(object: &ObjectMeta) -> Option<u64> {
    object.resource_version.as_deref()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
    use kube::runtime::{reflector::store::Writer, watcher::Event};

    use super::*;

    fn object(uid: &str, version: &str) -> ConfigMap {
        let (name, version) = (Some("a".to_owned()), Some(version.to_owned()));
        let metadata =
            ObjectMeta { name, uid: Some(uid.to_owned()), resource_version: version, ..ObjectMeta::default() };
        ConfigMap { metadata, ..ConfigMap::default() }
    }

    struct Stage {
        shown: Writer<ConfigMap>,
        writes: OwnWrites<ConfigMap>,
    }

    impl Stage {
        fn new() -> Self {
            let shown = Writer::default();
            let mut stage = Self { writes: OwnWrites::new(shown.as_reader()), shown };
            stage.show(&object("u1", "5"));
            stage
        }

        /// Whether a pass is called for.
        fn show(&mut self, object: &ConfigMap) -> bool {
            self.shown.apply_watcher_event(&Event::Apply(object.clone()));
            self.writes.is_called_for(object)
        }

        /// A pass over what was there at first, that makes it this.
        async fn writes(&self, versions: &[&str]) {
            let pass = async {
                for version in versions {
                    note(object("u1", version).meta());
                }
            };
            self.writes.during(&object("u1", "5"), pass).await;
        }
    }

    #[tokio::test]
    async fn a_pass_is_put_off_until_what_was_written_is_shown() {
        let mut stage = Stage::new();
        assert!(!stage.writes.puts_off(&object("u1", "5")));
        stage.writes(&["9", "7"]).await;
        assert!(stage.writes.puts_off(&object("u1", "5")) && stage.writes.puts_off(&object("u1", "8")));
        assert!(!stage.show(&object("u1", "7")));
        assert!(stage.show(&object("u1", "9")));
        assert!(!stage.writes.puts_off(&object("u1", "9")) && stage.writes.all().is_empty());
    }

    #[tokio::test]
    async fn without_a_pass_that_waits_none_is_called_for() {
        let mut stage = Stage::new();
        stage.writes(&["9"]).await;
        assert!(!stage.show(&object("u1", "9")) && stage.writes.all().is_empty());
        stage.writes(&["9"]).await;
        assert!(stage.writes.all().is_empty(), "it was shown before the pass was over");
    }

    #[tokio::test]
    async fn what_is_not_written_to_is_not_waited_for() {
        let stage = Stage::new();
        stage.writes(&["5"]).await;
        stage.writes(&[]).await;
        stage.writes.during(&object("u1", "5"), async { note(object("u2", "9").meta()) }).await;
        assert!(stage.writes.all().is_empty());
        note(object("u1", "9").meta());
    }

    #[tokio::test]
    async fn what_has_gone_is_not_waited_for() {
        let stage = Stage::new();
        let key = ObjectRef::from(&object("u1", "5"));
        stage.writes(&["9"]).await;
        stage.writes.forget(&key);
        assert!(!stage.writes.puts_off(&object("u1", "5")));
        let deleted_meanwhile = async {
            note(object("u1", "9").meta());
            stage.writes.forget(&key);
        };
        stage.writes.during(&object("u1", "5"), deleted_meanwhile).await;
        assert!(stage.writes.all().is_empty());
    }

    fn let_go(version: &str) -> ConfigMap {
        let mut object = object("u1", version);
        object.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        object
    }

    /// The API server answers with the version that it had.
    #[tokio::test]
    async fn what_goes_with_its_last_finalizer_is_not_looked_at_again() {
        let mut stage = Stage::new();
        stage.writes.during(&object("u1", "5"), async { note(let_go("5").meta()) }).await;
        assert!(stage.writes.puts_off(&object("u1", "5")) && stage.writes.puts_off(&object("u1", "6")));
        assert!(!stage.writes.puts_off(&object("u2", "7")), "another one of its name");
        assert!(!stage.show(&object("u2", "7")) && stage.writes.all().is_empty());
        stage.show(&object("u1", "5"));
        stage.writes.during(&object("u1", "5"), async { note(let_go("5").meta()) }).await;
        assert!(stage.writes.puts_off(&object("u1", "5")));
        assert!(stage.show(&object("u2", "7")), "whose pass may have been the one that was put off");
        let mut held = let_go("9");
        held.metadata.finalizers = Some(vec!["another.example".to_owned()]);
        stage.show(&object("u1", "5"));
        stage.writes.during(&object("u1", "5"), async { note(held.meta()) }).await;
        assert!(!stage.writes.puts_off(&object("u1", "9")), "another finalizer holds it");
    }

    #[tokio::test]
    async fn versions_that_are_no_numbers_hold_nothing_up() {
        let stage = Stage::new();
        stage.writes.during(&object("u1", "x"), async { note(object("u1", "y").meta()) }).await;
        assert!(!stage.writes.puts_off(&object("u1", "x")));
    }
}
