//! What is kept of a resource between two lists. There may be very many, and each is looked at every few minutes only.

use std::marker::PhantomData;

use serde::{Serialize, de::DeserializeOwned};

/// A resource as its JSON: one piece of memory, where the value itself has one for each of its texts.
pub(super) struct Packed<R> {
    json: Box<[u8]>,
    resource: PhantomData<fn() -> R>,
}

impl<R: Serialize + DeserializeOwned> Packed<R> {
    /// None for what has no JSON, such as a number that is none.
    pub(super) fn of(resource: &R) -> Option<Self> {
        let json = serde_json::to_vec(resource).ok()?;
        Some(Self { json: json.into(), resource: PhantomData })
    }

    pub(super) fn unpacked(&self) -> Option<R> {
        serde_json::from_slice(&self.json).ok()
    }
}

impl<R> PartialEq for Packed<R> {
    fn eq(&self, other: &Self) -> bool {
        self.json == other.json
    }
}
