//! Whose a resource in OpenStack is that several objects mean: one object's only.

use kupenstack_api::resources::ResourceKind;

use super::{Directory, named};
use crate::{actuator::Actuator, needs::Key, observe::Listed};

impl Directory {
    /// Another object that has the resource of this identifier, for which this one has to leave it: one that has made it, or that
    /// has taken it over earlier. Of two that did so at the same time it is the one whose name comes first. Asked for objects
    /// that take something over; what is made for an object is its own.
    pub(crate) async fn rival<A: Actuator>(&self, object: &A::Kind, id: &str) -> Option<String> {
        if !object.adopts() {
            return None;
        }
        let kinds = self.state().standing_for(A::Resource::NOUN);
        self.known(&kinds).await;
        let (key, has_it) = (Key::of(object), object.recorded() == Some(id));
        let state = self.state();
        let rivals = state.entries.iter().filter(|(other, entry)| {
            kinds.contains(&other.kind)
                && **other != key
                && entry.known.id.as_deref() == Some(id)
                && (!has_it || !entry.adopts || **other < key)
        });
        rivals.map(|(other, entry)| named(&key, other, entry.known.is_leaving)).min()
    }
}

impl super::State {
    /// Those that may take over what an object had that is gone.
    pub(super) fn heirs_of(&self, key: &Key) -> impl Iterator<Item = &Key> {
        let noun = self.kinds.get(key.kind).map(|registered| registered.noun);
        let is_like = move |other: &&Key| self.kinds.get(other.kind).map(|registered| registered.noun) == noun;
        self.adopters.iter().filter(is_like)
    }

    /// Kinds whose objects stand for the same in OpenStack.
    fn standing_for(&self, noun: &str) -> Vec<&'static str> {
        self.kinds.iter().filter(|(_, registered)| registered.noun == noun).map(|(kind, _)| *kind).collect()
    }
}
