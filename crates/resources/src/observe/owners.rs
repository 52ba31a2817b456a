//! The objects that resources belong to, as their controllers know them.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, atomic::Ordering},
};

use kube::Resource;
use kupenstack_runtime::Objects;

use super::{Census, Listed, lock};

/// What an object of a kind has recorded.
pub(crate) struct Records<K> {
    /// The identifier of its resource.
    pub(crate) made_or_adopted: fn(&K) -> Option<&str>,
    /// The same, but only of one that it has taken over: that carries no mark.
    pub(crate) adopted: fn(&K) -> Option<&str>,
}

/// All objects of a kind.
pub(super) struct Recorded<K: Resource<DynamicType = ()> + 'static> {
    pub(super) objects: Objects<K>,
    pub(super) records: Records<K>,
}

/// Who has resources.
pub(super) trait Owners: Send + Sync {
    /// UIDs of all objects of the kind; none while they are not all known.
    fn uids(&self) -> Option<HashSet<String>>;

    /// What objects of the kind have taken over: the UID of each by the identifier.
    fn adopted(&self) -> HashMap<String, Arc<str>>;
}

impl<K> Owners for Recorded<K>
where
    K: Resource<DynamicType = ()> + Clone + Send + Sync + 'static,
{
    fn uids(&self) -> Option<HashSet<String>> {
        let mut uids = HashSet::new();
        self.objects.select(|meta, _| {
            uids.extend(meta.uid.clone());
            false
        });
        self.objects.are_known().then_some(uids)
    }

    fn adopted(&self) -> HashMap<String, Arc<str>> {
        let mut adopted = HashMap::new();
        self.objects.select(|meta, object| {
            let id = object.and_then(self.records.adopted);
            adopted.extend(id.zip(meta.uid.as_deref()).map(|(id, uid)| (id.to_owned(), uid.into())));
            false
        });
        adopted
    }
}

/// UIDs of the objects of all kinds; none while one of the kinds is not known, for it may own anything.
pub(super) fn uids<R: Listed>(census: &Census<R>) -> Option<HashSet<String>> {
    let owners = lock(&census.owners);
    if owners.len() < census.kinds.load(Ordering::Relaxed) {
        return None;
    }
    owners.iter().try_fold(HashSet::new(), |mut all, kind| {
        all.extend(kind.uids()?);
        Some(all)
    })
}

/// What objects of all kinds have taken over, as far as they are known.
pub(super) fn adopted<R: Listed>(census: &Census<R>) -> HashMap<String, Arc<str>> {
    lock(&census.owners).iter().flat_map(|kind| kind.adopted()).collect()
}
