use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{FutureExt, stream::BoxStream};
use kupenstack_openstack::{Client, Error};
use kupenstack_runtime::metrics::Metrics;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::{
    Census, Listed,
    draft::{Draft, Finished},
    lock,
    owners::Owners,
    unowned::Unowned,
};
use crate::cloud::Site;

const CLUSTER: &str = "6f2b6a2e-1f0a-4a55-9c58-0d4f3ad0f7a1";

#[derive(Debug, Serialize, Deserialize)]
struct Thing {
    id: String,
    mark: Option<String>,
    size: u32,
}

impl Listed for Thing {
    const NOUN: &'static str = "thing";
    const SERVICES: &'static [&'static str] = &[];

    fn list(_: &Client) -> BoxStream<'static, Result<Self, Error>> {
        unreachable!("these tests read their lists aloud")
    }

    fn id(&self) -> &str {
        &self.id
    }

    fn mark(&self) -> Option<&str> {
        self.mark.as_deref()
    }

    fn is_gone(&self) -> bool {
        self.size == GONE
    }

    fn is_moving(&self) -> bool {
        self.size == MOVING
    }

    fn is_in(&self, _: &str) -> bool {
        true
    }
}

/// Sizes of what has gone, as a list of changes shows it, and of what becomes something else.
const GONE: u32 = 0;
const MOVING: u32 = 99;

fn site() -> Site {
    Site { namespace: "cloud".to_owned(), cluster: CLUSTER.parse().unwrap(), life: "one".to_owned() }
}

fn thing(id: &str, owner: &str, size: u32) -> Thing {
    Thing { id: id.to_owned(), mark: Some(site().cluster.mark(owner)), size }
}

fn census() -> Arc<Census<Thing>> {
    Arc::new(Census::new(CancellationToken::new()))
}

fn begin(census: &Census<Thing>, things: &[Thing]) -> Draft<Thing> {
    let mut draft = Draft::begin(census, &site(), true);
    for thing in things {
        draft.take(census, thing);
    }
    draft
}

/// A complete list, as a round makes it.
fn list(census: &Census<Thing>, things: &[Thing]) -> Finished {
    let finished = begin(census, things).finish(census);
    census.tried.send_replace(Some(site()));
    finished
}

/// A list of what has changed.
fn list_changed(census: &Census<Thing>, things: &[Thing]) -> Finished {
    let mut draft = Draft::begin(census, &site(), false);
    for thing in things {
        draft.take(census, thing);
    }
    draft.finish(census)
}

fn seen(census: &Census<Thing>, owner: &str, id: &str) -> Option<u32> {
    census.seen(&site(), owner, id).now_or_never().expect("something was listed").map(|thing| thing.size)
}

fn owners(finished: &Finished) -> Vec<&str> {
    let mut owners: Vec<_> = finished.news.owners.iter().map(String::as_str).collect();
    owners.sort_unstable();
    owners
}

#[tokio::test]
async fn nothing_is_said_before_the_first_list() {
    let census = census();
    assert!(census.seen(&site(), "u1", "a").now_or_never().is_none());
    assert!(!list(&census, &[thing("a", "u1", 1)]).moving, "whoever waited is not woken");
    assert_eq!((seen(&census, "u1", "a"), seen(&census, "u1", "b")), (Some(1), None));
}

#[tokio::test]
async fn the_end_of_the_process_ends_the_wait_for_a_list() {
    let census = census();
    census.stop.cancel();
    assert_eq!(seen(&census, "u1", "a"), None);
}

#[tokio::test]
async fn what_changed_appeared_or_vanished_concerns_its_object_and_nothing_else_does() {
    let census = census();
    list(&census, &[thing("a", "u1", 1), thing("b", "u2", 1), thing("c", "u3", 1)]);
    let same = list(&census, &[thing("a", "u1", 1), thing("b", "u2", 1), thing("c", "u3", 1)]);
    assert!(same.news.is_empty() && !same.moving);
    let changed = list(&census, &[thing("a", "u1", 2), thing("c", "u3", 1), thing("d", "u4", 1)]);
    assert_eq!(owners(&changed), ["u1", "u2", "u4"]);
    assert!(changed.moving && changed.news.concern(None, Some("b")) && !changed.news.concern(None, Some("c")));
    assert_eq!((seen(&census, "u1", "a"), seen(&census, "u2", "b")), (Some(2), None));
}

#[tokio::test]
async fn a_list_of_changes_leaves_the_rest_as_it_was() {
    let census = census();
    list(&census, &[thing("a", "u1", 1), thing("b", "u2", 1), thing("c", "u3", 1)]);
    let none = list_changed(&census, &[]);
    assert!(none.news.is_empty() && !none.moving);
    let changed =
        list_changed(&census, &[thing("a", "u1", 1), thing("b", "u2", 2), thing("c", "u3", GONE), thing("d", "u4", 1)]);
    assert_eq!(owners(&changed), ["u2", "u3", "u4"]);
    let all = [seen(&census, "u1", "a"), seen(&census, "u2", "b"), seen(&census, "u3", "c"), seen(&census, "u4", "d")];
    assert_eq!(all, [Some(1), Some(2), None, Some(1)]);
    assert!(list_changed(&census, &[thing("c", "u3", GONE)]).news.is_empty(), "it was told");
    assert_eq!(
        owners(&list(&census, &[thing("a", "u1", 1), thing("b", "u2", 2)])),
        ["u4"],
        "that is all that there is"
    );
}

#[tokio::test]
async fn what_moves_moves_until_a_list_shows_otherwise() {
    let census = census();
    list(&census, &[thing("a", "u1", MOVING)]);
    assert!(list_changed(&census, &[]).moving, "it has not changed");
    list_changed(&census, &[thing("a", "u1", 1)]);
    assert!(!list_changed(&census, &[]).moving);
}

#[tokio::test(start_paused = true)]
async fn of_what_was_written_to_a_list_of_changes_tells_only_what_it_shows() {
    let second = || tokio::time::advance(Duration::from_secs(1));
    let census = census();
    list(&census, &[thing("a", "u1", 1), thing("b", "u2", 1)]);
    for owner in ["u1", "u2", "u3"] {
        drop(census.writing(owner.to_owned()));
    }
    second().await;
    let changed = list_changed(&census, &[thing("a", "u1", 2), thing("c", "u3", GONE)]);
    assert!(changed.is_short && changed.moving, "of one it says nothing");
    assert_eq!((seen(&census, "u1", "a"), seen(&census, "u2", "b")), (Some(2), None));
    assert!(owners(&changed).contains(&"u3") && census.shows_nothing(&site(), "u3"), "it came and went");
    let all = list(&census, &[thing("a", "u1", 2), thing("b", "u2", 1)]);
    assert!(!all.is_short);
    assert_eq!(seen(&census, "u2", "b"), Some(1));
    let writing = census.writing("u1".to_owned());
    second().await;
    assert!(!list_changed(&census, &[]).is_short, "it is still being written");
    drop(writing);
}

#[tokio::test]
async fn what_is_not_ours_is_not_kept() {
    let census = census();
    let other = Thing { mark: Some("kupenstack:another:u1".to_owned()), ..thing("a", "u1", 1) };
    let foreign = Thing { mark: None, ..thing("b", "u2", 1) };
    list(&census, &[other, foreign]);
    assert!(census.state().kept.is_empty());
}

#[tokio::test]
async fn a_mark_that_was_taken_off_concerns_the_object_it_named() {
    let census = census();
    list(&census, &[thing("a", "u1", 1)]);
    let bare = Thing { mark: None, ..thing("a", "u1", 1) };
    assert_eq!(owners(&list(&census, std::slice::from_ref(&bare))), ["u1"]);
    assert!(list(&census, &[bare]).news.is_empty());
    assert_eq!(owners(&list(&census, &[])), ["u1"], "also when it vanishes later");
}

#[tokio::test]
async fn a_list_that_breaks_off_changes_nothing() {
    let census = census();
    list(&census, &[thing("a", "u1", 1), thing("b", "u2", 1)]);
    drop(begin(&census, &[thing("a", "u1", 2)]));
    assert_eq!((seen(&census, "u1", "a"), seen(&census, "u2", "b")), (Some(1), Some(1)));
    let next = list(&census, &[thing("a", "u1", 2), thing("b", "u2", 1)]);
    assert_eq!(owners(&next), ["u1"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_says_nothing_about_what_was_written_since_it_began() {
    let second = || tokio::time::advance(std::time::Duration::from_secs(1));
    let census = census();
    list(&census, &[thing("a", "u1", 1), thing("b", "u2", 1)]);
    let writing = census.writing("u1".to_owned());
    assert_eq!((seen(&census, "u1", "a"), seen(&census, "u2", "b")), (None, Some(1)));
    second().await;
    assert!(list(&census, &[thing("a", "u1", 1), thing("b", "u2", 1)]).moving);
    assert_eq!(seen(&census, "u1", "a"), None, "it is still being written");

    second().await;
    let early = begin(&census, &[thing("a", "u1", 1), thing("b", "u2", 1)]);
    second().await;
    drop(writing);
    early.finish(&census);
    assert_eq!(seen(&census, "u1", "a"), None, "the list had begun before the write ended");

    second().await;
    list(&census, &[thing("a", "u1", 2), thing("b", "u2", 1)]);
    assert_eq!(seen(&census, "u1", "a"), Some(2));
    assert!(census.state().writes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn that_an_object_has_nothing_only_a_list_says_that_began_after_all_writes() {
    let census = census();
    assert!(!census.shows_nothing(&site(), "u1"), "there was no list");
    let _draft = begin(&census, &[]);
    assert!(!census.shows_nothing(&site(), "u1"), "it is not complete");
    list(&census, &[thing("b", "u2", 1)]);
    assert!(census.shows_nothing(&site(), "u1") && !census.shows_nothing(&site(), "u2"));
    assert!(!census.shows_nothing(&Site { life: "two".to_owned(), ..site() }, "u1"), "that is another cloud");
    let second = Duration::from_secs(1);
    let writing = census.writing("u1".to_owned());
    assert!(!census.is_due("u1", second), "it is being written");
    drop(writing);
    assert!(!census.shows_nothing(&site(), "u1") && census.is_due("u1", second), "it was written to");
    tokio::time::advance(second).await;
    assert!(!census.is_due("u1", second), "no list came");
    list(&census, &[]);
    assert!(census.shows_nothing(&site(), "u1") && census.shows_nothing(&site(), "u2"));
}

/// Nova shows a server's host to administrators only.
#[tokio::test(start_paused = true)]
async fn news_that_came_while_lists_did_not_count_is_told_again() {
    let second = || tokio::time::advance(Duration::from_secs(1));
    let census = census();
    list(&census, &[thing("a", "u1", 1)]);
    let writing = census.writing("u1".to_owned());
    second().await;
    let early = begin(&census, &[thing("a", "u1", 2)]);
    second().await;
    drop(writing);
    assert_eq!(owners(&early.finish(&census)), ["u1"], "and its pass has to look for itself");
    second().await;
    let again = list(&census, &[thing("a", "u1", 2)]);
    assert_eq!((owners(&again), seen(&census, "u1", "a")), (vec!["u1"], Some(2)));
    assert!(list(&census, &[thing("a", "u1", 2)]).news.is_empty());
}

#[tokio::test]
async fn what_can_be_listed_again_is_told_to_those_who_have_looked_for_themselves() {
    let census = census();
    list(&census, &[thing("a", "u1", 1)]);
    census.state().refuse();
    assert_eq!(seen(&census, "u1", "a"), None);
    assert_eq!(owners(&list(&census, &[thing("a", "u1", 1)])), ["u1"]);
    assert!(list(&census, &[thing("a", "u1", 1)]).news.is_empty());
}

#[tokio::test]
async fn another_cloud_is_another_census() {
    let census = census();
    list(&census, &[thing("a", "u1", 1)]);
    let other = Site { life: "two".to_owned(), ..site() };
    assert!(census.seen(&other, "u1", "a").now_or_never().is_none(), "it waits for a list of that cloud");
    let draft = Draft::begin(&census, &other, true);
    draft.finish(&census);
    census.tried.send_replace(Some(other.clone()));
    assert!(matches!(census.seen(&other, "u1", "a").now_or_never(), Some(None)));
}

#[tokio::test]
async fn an_object_with_two_resources_is_looked_at_until_it_has_one() {
    let census = census();
    let both = [thing("a", "u1", 1), thing("b", "u1", 1), thing("c", "u2", 1)];
    for _ in 0..2 {
        assert_eq!(owners(&list(&census, &both)), ["u1"]);
        assert_eq!(census.strays("u1", "b"), ["a"]);
        assert!(census.strays("u2", "c").is_empty());
        assert_eq!(census.all_of("u2"), ["c"]);
    }
    list(&census, &both[1..]);
    assert!(census.strays("u1", "b").is_empty());
}

#[tokio::test]
async fn what_others_deleted_before_a_list_could_show_it_is_missed() {
    let census = census();
    list(&census, &[thing("b", "u2", 1)]);
    drop(census.writing("u1".to_owned()));
    drop(census.writing("u2".to_owned()));
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    assert_eq!(owners(&list(&census, &[thing("b", "u2", 1)])), ["u1"]);
    assert!(owners(&list(&census, &[thing("b", "u2", 1)])).is_empty(), "it is told once");
}

/// Objects that have taken something over.
#[derive(Default)]
struct Adopters(Mutex<HashMap<String, Arc<str>>>);

impl Adopters {
    fn of(census: &Census<Thing>) -> Arc<Self> {
        let adopters = Arc::new(Self::default());
        lock(&census.owners).push(Arc::clone(&adopters) as Arc<dyn Owners>);
        adopters
    }

    fn set(&self, id: &str, uid: Option<&str>) {
        match uid {
            Some(uid) => drop(lock(&self.0).insert(id.to_owned(), uid.into())),
            None => drop(lock(&self.0).remove(id)),
        }
    }
}

impl Owners for Adopters {
    fn uids(&self) -> Option<HashSet<String>> {
        Some(lock(&self.0).values().map(ToString::to_string).collect())
    }

    fn adopted(&self) -> HashMap<String, Arc<str>> {
        lock(&self.0).clone()
    }
}

fn foreign(id: &str, size: u32) -> Thing {
    Thing { mark: None, ..thing(id, "nobody", size) }
}

#[tokio::test]
async fn what_an_object_has_taken_over_is_kept_for_as_long_as_it_says_so() {
    let census = census();
    let adopters = Adopters::of(&census);
    list(&census, &[foreign("a", 1), foreign("b", 1)]);
    assert_eq!(seen(&census, "u1", "a"), None);
    adopters.set("a", Some("u1"));
    assert_eq!(owners(&list(&census, &[foreign("a", 1), foreign("b", 1)])), ["u1"]);
    assert_eq!((seen(&census, "u1", "a"), seen(&census, "u1", "b")), (Some(1), None));
    assert!(list(&census, &[foreign("a", 1), foreign("b", 1)]).news.is_empty());
    assert_eq!(owners(&list(&census, &[foreign("a", 2)])), ["u1"], "a change is told");
    assert!(!census.shows_nothing(&site(), "u1"));
    assert!(census.all_of("u1").is_empty(), "it is nothing that was made for the object");
    adopters.set("a", Some("u2"));
    assert_eq!(owners(&list(&census, &[foreign("a", 2)])), ["u1", "u2"], "another one has taken it over");
    assert_eq!(owners(&list(&census, &[])), ["u2"], "it is missed");
    list(&census, &[foreign("a", 2)]);
    adopters.set("a", None);
    list(&census, &[foreign("a", 2)]);
    assert!(census.state().kept.is_empty(), "the object has gone and left it there");
}

#[tokio::test]
async fn a_list_of_changes_lets_go_what_no_object_has_taken_over_any_more() {
    let census = census();
    let adopters = Adopters::of(&census);
    adopters.set("a", Some("u1"));
    list(&census, &[foreign("a", 1)]);
    adopters.set("a", None);
    list_changed(&census, &[foreign("a", 2)]);
    adopters.set("a", Some("u2"));
    assert_eq!(seen(&census, "u2", "a"), None, "the next one does not see it as it was");
}

#[tokio::test]
async fn what_a_list_that_broke_off_has_shown_is_missed_by_the_next_one() {
    let census = census();
    list(&census, &[thing("a", "u1", 1), thing("b", "u2", 1)]);
    drop(begin(&census, &[thing("a", "u1", 1)]));
    assert_eq!(owners(&list(&census, &[thing("b", "u2", 1)])), ["u1"]);
}

#[tokio::test]
async fn nothing_that_an_object_has_taken_over_is_told_to_have_none() {
    let (census, metrics) = (census(), Metrics::default());
    let adopters = Adopters::of(&census);
    adopters.set("a", Some("u1"));
    adopters.set("b", Some("u2"));
    let all = [foreign("a", 1), thing("b", "u-of-an-object-that-left-it", 1), thing("c", "u-of-none", 1)];
    let mut unowned = Unowned::default();
    for _ in 0..2 {
        list(&census, &all);
        unowned.judge(&census, &metrics);
    }
    assert_eq!(unowned.suspects, HashMap::from([("c".to_owned(), true)]));
}

/// A thing that nobody can list.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Private(String);

impl Listed for Private {
    const NOUN: &'static str = "private thing";
    const SERVICES: &'static [&'static str] = &[];
    const TRUSTED: Option<Duration> = Some(Duration::from_hours(1));

    fn id(&self) -> &str {
        &self.0
    }

    fn mark(&self) -> Option<&str> {
        None
    }

    fn is_in(&self, _: &str) -> bool {
        true
    }
}

#[tokio::test(start_paused = true)]
async fn a_look_at_what_can_not_be_listed_counts_for_its_time() {
    let census = Arc::new(Census::<Private>::new(CancellationToken::new()));
    let thing = || Private("a".to_owned());
    assert_eq!(census.seen(&site(), "u1", "a").await, None, "without a list to wait for");
    census.looked(&site(), "u1", &thing());
    assert_eq!(census.seen(&site(), "u1", "a").await, Some(thing()));
    let another = Site { life: "two".to_owned(), ..site() };
    assert_eq!(census.seen(&another, "u1", "a").await, None, "another cloud");
    assert_eq!(census.seen(&site(), "u1", "b").await, None, "another identifier");
    assert_eq!(census.seen(&site(), "u2", "a").await, None, "another object");
    tokio::time::advance(Duration::from_mins(59)).await;
    assert_eq!(census.seen(&site(), "u1", "a").await, Some(thing()));
    tokio::time::advance(Duration::from_mins(1)).await;
    assert_eq!(census.seen(&site(), "u1", "a").await, None);
    census.looked(&site(), "u1", &thing());
    drop(census.writing("u1".to_owned()));
    assert_eq!(census.seen(&site(), "u1", "a").await, None, "it was written to");
}
