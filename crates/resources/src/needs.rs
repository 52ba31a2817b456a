//! What an object needs of others: which they are, and what is known of them in a pass.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kube::{Resource, ResourceExt, api::ObjectMeta};
use kupenstack_api::resources::ResourceKind;
use kupenstack_core::{Outcome, reason};

use crate::{
    actuator::Kind,
    realm::{Realm, place_of},
};

/// For so long an object that has just been made need not have said anything.
pub(crate) const YOUTH: SignedDuration = SignedDuration::from_secs(30);

/// An object of ours, by what people call it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) kind: &'static str,
    /// Its namespace; empty for what is in none.
    pub(crate) place: Arc<str>,
    pub(crate) name: Arc<str>,
}

impl Key {
    pub(crate) fn of<K: Kind>(object: &K) -> Self {
        Self::named::<K>(&place_of(object), &object.name_any())
    }

    /// The object of kind `K` with this metadata.
    pub(crate) fn of_meta<K: Kind>(meta: &ObjectMeta) -> Self {
        let text = |value: &Option<String>| value.as_deref().unwrap_or_default().to_owned();
        Self::named::<K>(&text(&meta.namespace), &text(&meta.name))
    }

    /// The object of kind `K` and this name.
    pub(crate) fn named<K: Kind>(place: &str, name: &str) -> Self {
        Self { kind: K::KIND, place: place.into(), name: name.into() }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

/// When an object needs another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum When {
    /// Its own resource can't be made before the other's is there and ready, and keeps that from being deleted.
    FromTheStart,
    /// Its own resource is made without it and completed when there is one. So two objects can need each other.
    InTheEnd,
}

/// That an object needs another.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Need {
    pub(crate) key: Key,
    pub(crate) when: When,
}

impl Need {
    /// That `object` needs the object of kind `N` and this name: in the same namespace, or in none if such are in none.
    pub(crate) fn of<N: Kind>(object: &impl ResourceExt, name: &str, when: When) -> Self {
        let place = <<N as Resource>::Scope as Realm>::beside(&place_of(object)).into();
        Self { key: Key { kind: N::KIND, place, name: name.into() }, when }
    }
}

/// What is known of an object that another needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// The recorded identifier of its resource.
    pub(crate) id: Option<Arc<str>>,
    /// Whether it is as declared.
    pub(crate) is_ready: bool,
    /// Whether it is being deleted.
    pub(crate) is_leaving: bool,
    /// When it was made, as long as it has said nothing.
    pub(crate) silent_since: Option<Timestamp>,
    /// What its kind tells of it beside that.
    pub(crate) told: Option<Arc<str>>,
}

impl Known {
    /// Whether it was made just now, and has said nothing yet.
    fn is_young(&self, now: Timestamp) -> bool {
        let age = self.silent_since.map(|since| now.duration_since(since));
        !self.is_leaving && age.is_some_and(|age| age < YOUTH)
    }
}

/// All that an object needs, as it stood when the pass began. What is not known does not exist.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needs(Vec<(Need, Option<Known>)>);

impl Needs {
    pub(crate) fn new(needs: Vec<(Need, Option<Known>)>) -> Self {
        Self(needs)
    }

    /// The identifier of the resource of a needed object. None as long as it has none.
    pub(crate) fn id_of<N: ResourceKind>(&self, name: &str) -> Option<&str> {
        self.known_of::<N>(name)?.id.as_deref()
    }

    /// What the kind of a needed object tells of it.
    pub(crate) fn told_of<N: ResourceKind>(&self, name: &str) -> Option<&str> {
        self.known_of::<N>(name)?.told.as_deref()
    }

    fn known_of<N: ResourceKind>(&self, name: &str) -> Option<&Known> {
        let found = self.0.iter().find(|(need, _)| need.key.kind == N::KIND && &*need.key.name == name)?;
        found.1.as_ref()
    }

    /// What has to come before the object's own resource can be made.
    pub(crate) fn before_creation(&self) -> Result<(), Outcome> {
        let from_the_start = self.0.iter().filter(|(need, _)| need.when == When::FromTheStart);
        lacking(from_the_start.filter_map(|(need, known)| Some((&need.key, flaw(known.as_ref())?))))
    }

    /// Whether all that has still to come before that is among these, which were made a moment ago and have said nothing yet.
    pub(crate) fn come_at_once(&self, parts: &[Key], now: Timestamp) -> bool {
        let comes = |(need, known): &(Need, Option<Known>)| {
            parts.contains(&need.key) && known.as_ref().is_none_or(|known| known.is_young(now))
        };
        let has_come =
            |(need, known): &(Need, Option<Known>)| need.when == When::InTheEnd || flaw(known.as_ref()).is_none();
        self.0.iter().all(|one| has_come(one) || comes(one))
    }

    /// What has to come before the object can be as declared.
    pub(crate) fn met(&self) -> Result<(), Outcome> {
        lacking(self.0.iter().filter_map(|(need, known)| Some((&need.key, absence(known.as_ref())?))))
    }
}

/// Why nothing can be made with an object, if so.
fn flaw(known: Option<&Known>) -> Option<&'static str> {
    match known {
        Some(known) if known.is_leaving => Some("is being deleted"),
        Some(known) if !known.is_ready => Some("is not ready"),
        known => absence(known),
    }
}

/// Why what is there can't be brought in line with an object, if so.
fn absence(known: Option<&Known>) -> Option<&'static str> {
    match known {
        None => Some("does not exist"),
        Some(Known { id: None, is_leaving: true, .. }) => Some("is being deleted"),
        Some(Known { id: None, .. }) => Some("is not ready"),
        Some(_) => None,
    }
}

/// A wait that names all that is lacking. Whatever comes of it is told to who waits.
fn lacking<'a>(lacking: impl Iterator<Item = (&'a Key, &'static str)>) -> Result<(), Outcome> {
    let all: Vec<String> = lacking.map(|(key, flaw)| format!("{key} {flaw}")).collect();
    if all.is_empty() {
        return Ok(());
    }
    Err(Outcome::waiting(reason::DEPENDENCY, all.join(", ")).within(super::directory::LOOK))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key { kind: "Port", place: "shop".into(), name: name.into() }
    }

    /// What has just been made for the object itself is only waited for, as long as it is young and has said nothing.
    #[test]
    fn of_its_own_parts_it_is_silent_at_first() {
        let now = Timestamp::UNIX_EPOCH;
        let silent =
            |seconds| Known { silent_since: Some(now - SignedDuration::from_secs(seconds)), ..Known::default() };
        let is_ready = Known { id: Some("p1".into()), is_ready: true, ..Known::default() };
        let comes = |name, when, known: Option<Known>| {
            Needs::new(vec![(Need { key: key(name), when }, known)]).come_at_once(&[key("own")], now)
        };
        let needs = |name, known| comes(name, When::FromTheStart, known);
        assert!(needs("own", None), "it is not in the store yet");
        assert!(needs("own", Some(silent(1))));
        assert!(!needs("own", Some(silent(30))), "it takes too long");
        assert!(!needs("own", Some(Known::default())), "it has said something");
        assert!(!needs("own", Some(Known { is_leaving: true, ..silent(1) })));
        assert!(needs("own", Some(is_ready.clone())));
        assert!(!needs("other", None) && !needs("other", Some(silent(1))), "others make that");
        assert!(needs("other", Some(is_ready)) && comes("other", When::InTheEnd, None), "that need not come");
    }
}
