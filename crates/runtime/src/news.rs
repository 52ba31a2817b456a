//! Which objects a pass is to look at, found out without remembering anything about those that are settled: there may
//! be very many of them.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use futures::{Stream, StreamExt, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Resource,
    runtime::{
        reflector::{ObjectRef, ObjectRefExtra, Store, store::Writer},
        watcher::Event,
    },
};
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

/// A round over all objects goes in so many steps.
const STEPS: u32 = 60;

/// A reference that says which object it is, and nothing else: kube keeps several of each.
pub(crate) fn bare<K: Resource>(mut key: ObjectRef<K>) -> ObjectRef<K> {
    key.extra = ObjectRefExtra::default();
    key
}

/// Keeps a store, and yields what differs from what was in it in more than its status and a new finalizer: those we write
/// ourselves, and it is yielded only if it is called for. What a list brings is yielded when all of it is in the store, so that
/// no pass sees an object as it was; the first one is told to `known`. All of it is told to `listener` before it is yielded.
pub(crate) fn news<K>(
    mut writer: Writer<K>,
    known: CancellationToken,
    is_called_for: impl Fn(&K) -> bool,
    mut listener: impl FnMut(&Event<K>),
    events: impl Stream<Item = Event<K>>,
) -> impl Stream<Item = ObjectRef<K>>
where
    K: Resource<DynamicType = ()> + Clone,
{
    let store = writer.as_reader();
    let mut listed = Vec::new();
    events.flat_map(move |event| {
        let news = match &event {
            Event::Apply(object) => news_of(&store, object, is_called_for(object)).into_iter().collect(),
            Event::InitApply(object) => {
                listed.extend(news_of(&store, object, is_called_for(object)));
                Vec::new()
            }
            Event::Init => {
                listed.clear();
                Vec::new()
            }
            Event::InitDone => std::mem::take(&mut listed),
            Event::Delete(_) => Vec::new(),
        };
        writer.apply_watcher_event(&event);
        listener(&event);
        if matches!(event, Event::InitDone) {
            known.cancel();
        }
        stream::iter(news)
    })
}

fn news_of<K>(store: &Store<K>, object: &K, is_called_for: bool) -> Option<ObjectRef<K>>
where
    K: Resource<DynamicType = ()> + Clone,
{
    let key = bare(ObjectRef::from(object));
    let is_same = || store.get(&key).is_some_and(|known| is_same(known.meta(), object.meta()));
    (is_called_for || !is_same()).then_some(key)
}

fn is_same(a: &ObjectMeta, b: &ObjectMeta) -> bool {
    a.uid == b.uid
        && a.generation == b.generation
        && a.deletion_timestamp.is_some() == b.deletion_timestamp.is_some()
        && keeps_all(a.finalizers.as_deref(), b.finalizers.as_deref())
        && a.annotations == b.annotations
        && a.labels == b.labels
}

/// Whether no finalizer was taken off. That one was put on is our own doing, or concerns nobody before the deletion.
fn keeps_all(before: Option<&[String]>, after: Option<&[String]>) -> bool {
    before.unwrap_or_default().iter().all(|finalizer| after.unwrap_or_default().contains(finalizer))
}

/// Yields every object once in each span of `every`, spread over it by their UIDs.
pub(crate) fn rounds<K>(store: Store<K>, every: Duration) -> impl Stream<Item = ObjectRef<K>>
where
    K: Resource<DynamicType = ()> + Clone,
{
    let pause = every / STEPS;
    let mut ticks = interval_at(Instant::now() + pause, pause);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    stream::unfold((ticks, 0), |(mut ticks, step)| async move {
        ticks.tick().await;
        Some((step, (ticks, (step + 1) % STEPS)))
    })
    .flat_map(move |step| {
        let due = store.state().into_iter().filter(move |object| step_of(object.meta()) == step);
        stream::iter(due.map(|object| bare(ObjectRef::from(object.as_ref()))).collect::<Vec<_>>())
    })
}

/// The step at which an object's turn comes.
fn step_of(meta: &ObjectMeta) -> u32 {
    let mut hasher = DefaultHasher::new();
    meta.uid.hash(&mut hasher);
    u32::try_from(hasher.finish() % u64::from(STEPS)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use futures::FutureExt;
    use k8s_openapi::api::core::v1::ConfigMap;
    use rstest::rstest;

    use super::*;

    fn object(name: &str, change: impl FnOnce(&mut ObjectMeta)) -> ConfigMap {
        let mut metadata = ObjectMeta {
            name: Some(name.to_owned()),
            uid: Some(format!("uid-{name}")),
            generation: Some(1),
            resource_version: Some("1".to_owned()),
            finalizers: Some(vec!["ours".to_owned()]),
            ..ObjectMeta::default()
        };
        change(&mut metadata);
        ConfigMap { metadata, ..ConfigMap::default() }
    }

    /// What each of these events makes news of.
    fn told(events: Vec<Event<ConfigMap>>) -> Vec<String> {
        let keys = news(Writer::default(), CancellationToken::new(), |_| false, |_| {}, stream::iter(events))
            .collect::<Vec<_>>()
            .now_or_never()
            .unwrap();
        keys.into_iter().map(|key| key.name).collect()
    }

    #[rstest]
    #[case::status(|meta: &mut ObjectMeta| meta.resource_version = Some("2".to_owned()), 1)]
    #[case::spec(|meta: &mut ObjectMeta| meta.generation = Some(2), 2)]
    #[case::annotation(|meta: &mut ObjectMeta| meta.annotations = Some(BTreeMap::from([("a".to_owned(), "b".to_owned())])), 2)]
    #[case::label(|meta: &mut ObjectMeta| meta.labels = Some(BTreeMap::from([("a".to_owned(), "b".to_owned())])), 2)]
    #[case::finalizer(|meta: &mut ObjectMeta| meta.finalizers = Some(vec!["ours".to_owned(), "a".to_owned()]), 1)]
    #[case::no_finalizer(|meta: &mut ObjectMeta| meta.finalizers = None, 2)]
    #[case::replaced(|meta: &mut ObjectMeta| meta.uid = Some("another".to_owned()), 2)]
    fn what_is_not_status_is_news(#[case] change: fn(&mut ObjectMeta), #[case] times: usize) {
        let events = vec![Event::Apply(object("a", |_| {})), Event::Apply(object("a", change))];
        assert_eq!(told(events).len(), times);
    }

    #[test]
    fn a_list_tells_of_what_was_missed_and_of_nothing_else() {
        let edited = |meta: &mut ObjectMeta| meta.generation = Some(2);
        let list = |b| vec![Event::Init, Event::InitApply(object("a", |_| {})), Event::InitApply(b), Event::InitDone];
        let mut events = list(object("b", |_| {}));
        events.extend(list(object("b", edited)));
        assert_eq!(told(events), ["a", "b", "b"]);
    }

    #[test]
    fn what_a_list_brings_is_in_the_store_when_it_is_told_of() {
        let writer = Writer::default();
        let store = writer.as_reader();
        let events = vec![Event::Init, Event::InitApply(object("a", |_| {})), Event::InitDone];
        let known = CancellationToken::new();
        let seen =
            news(writer, known.clone(), |_| false, |_| {}, stream::iter(events)).map(|key| store.get(&key).is_some());
        assert_eq!(seen.collect::<Vec<_>>().now_or_never().unwrap(), [true]);
        assert!(known.is_cancelled());
    }

    #[test]
    fn what_we_wrote_ourselves_is_news_if_it_is_called_for() {
        let events = [object("a", |_| {}), object("b", |_| {})].map(Event::Apply);
        let twice = events.clone().into_iter().chain(events);
        let is_called_for = |object: &ConfigMap| object.metadata.name.as_deref() == Some("b");
        let keys = news(Writer::default(), CancellationToken::new(), is_called_for, |_| {}, stream::iter(twice));
        let names: Vec<_> = keys.map(|key| key.name).collect().now_or_never().unwrap();
        assert_eq!(names, ["a", "b", "b"]);
    }

    #[tokio::test(start_paused = true)]
    async fn every_object_has_its_turn_once_in_each_round() {
        const EVERY: Duration = Duration::from_mins(10);
        let mut writer = Writer::default();
        for number in 0..500 {
            writer.apply_watcher_event(&Event::Apply(object(&format!("o-{number}"), |_| {})));
        }
        let began = Instant::now();
        let turns = rounds(writer.as_reader(), EVERY).map(|key| (key.name, began.elapsed()));
        let turns: Vec<_> = turns.take(1000).collect().await;
        assert!(began.elapsed() <= EVERY * 2);
        let (first, second) = turns.split_at(500);
        let mut latest = BTreeMap::new();
        for (name, at) in first {
            assert!(latest.insert(name, *at).is_none(), "{name} comes twice in a round");
        }
        assert!(second.iter().all(|(name, at)| *at == latest[name] + EVERY));
        let at_once = |at: &Duration| first.iter().filter(|(_, other)| other == at).count();
        assert!(latest.values().all(|at| at_once(at) < 50), "they are spread");
    }
}
