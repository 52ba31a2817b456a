//! Clients of many users of one cloud.

use std::{
    collections::HashMap,
    num::NonZeroUsize,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{Client, Credentials};

/// Keeps a client, and with it a token, for each of a bounded number of users, such as one per namespace.
///
/// A client whose credentials Keystone refused is not handed out again: the caller then reads the credentials anew.
#[derive(Debug)]
pub struct ClientCache {
    base: Client,
    capacity: NonZeroUsize,
    entries: Mutex<Entries>,
}

#[derive(Debug, Default)]
struct Entries {
    by_key: HashMap<String, Entry>,
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    client: Client,
    last_used: u64,
}

impl ClientCache {
    /// A cache of users of the cloud that `base` is a client of.
    pub fn new(base: Client, capacity: NonZeroUsize) -> Self {
        Self { base, capacity, entries: Mutex::default() }
    }

    /// The client kept under a key, unless its credentials were refused.
    pub fn get(&self, key: &str) -> Option<Client> {
        let mut entries = self.entries();
        let now = entries.tick();
        let entry = entries.by_key.get_mut(key)?;
        if entry.client.is_refused() {
            entries.by_key.remove(key);
            return None;
        }
        entry.last_used = now;
        Some(entry.client.clone())
    }

    /// Keeps a client for these credentials, in place of an earlier one; the least used gives way when it is full.
    pub fn insert(&self, key: impl Into<String>, credentials: Credentials) -> Client {
        let (key, client) = (key.into(), self.base.act_as(credentials));
        let mut entries = self.entries();
        if !entries.by_key.contains_key(&key) && entries.by_key.len() >= self.capacity.get() {
            entries.drop_least_recently_used();
        }
        let last_used = entries.tick();
        entries.by_key.insert(key, Entry { client: client.clone(), last_used });
        client
    }

    /// Forgets a client, for example because its password was changed.
    pub fn evict(&self, key: &str) {
        self.entries().by_key.remove(key);
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// A scan: it runs once per newcomer to a full cache, next to which a login is ages.
    fn drop_least_recently_used(&mut self) {
        let oldest = self.by_key.iter().min_by_key(|(_, entry)| entry.last_used).map(|(key, _)| key.clone());
        if let Some(key) = oldest {
            self.by_key.remove(&key);
        }
    }
}
