//! Where a service keeps its objects: found by id and by indexed fields, in the order of their creation, and as they
//! were a while ago.

use std::{
    collections::{BTreeSet, HashMap, VecDeque, btree_set},
    iter::{Peekable, Rev},
    ops::Deref,
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;

use super::clock::earlier;

/// What a [`Table`] keeps.
pub trait Row: Send + Sync + 'static {
    /// Its id.
    fn id(&self) -> &str;

    /// The fields it can be found by.
    fn keys(&self) -> Vec<(&'static str, String)>;
}

/// The index that has every row.
const ALL: &str = "";

type Place = u64;

/// Objects of one kind. Rows never change in place, so that a reader or the history may hold on to them.
#[derive(Debug)]
pub struct Table<R> {
    places: HashMap<String, Place>,
    rows: HashMap<Place, Arc<R>>,
    index: HashMap<(&'static str, String), BTreeSet<Place>>,
    next: Place,
    history: VecDeque<Change<R>>,
    window: Duration,
}

/// One change, as what it takes to undo it.
#[derive(Debug)]
struct Change<R> {
    at: Timestamp,
    place: Place,
    id: String,
    before: Option<Arc<R>>,
}

impl<R: Row> Table<R> {
    /// An empty table that remembers what it was for as long as `window`.
    pub fn new(window: Duration) -> Self {
        Self {
            places: HashMap::new(),
            rows: HashMap::new(),
            index: HashMap::new(),
            next: 0,
            history: VecDeque::new(),
            window,
        }
    }

    /// A row by its id.
    pub fn get(&self, id: &str) -> Option<&Arc<R>> {
        self.rows.get(self.places.get(id)?)
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Puts a row in, in the place of the one of its id if there is one.
    pub fn put(&mut self, now: Timestamp, row: R) -> Arc<R> {
        let place = self.places.get(row.id()).copied().unwrap_or(self.next);
        self.next = self.next.max(place + 1);
        let (id, row) = (row.id().to_owned(), Arc::new(row));
        let before = self.set(place, &id, Some(Arc::clone(&row)));
        self.remember(Change { at: now, place, id, before });
        row
    }

    /// Takes a row out.
    pub fn remove(&mut self, now: Timestamp, id: &str) -> Option<Arc<R>> {
        let place = *self.places.get(id)?;
        let before = self.set(place, id, None);
        self.remember(Change { at: now, place, id: id.to_owned(), before: before.clone() });
        before
    }

    /// All rows, the oldest first.
    pub fn all(&self) -> impl Iterator<Item = &Arc<R>> {
        self.by(ALL, "")
    }

    /// The rows that have this value in an indexed field, the oldest first.
    pub fn by<'a>(&'a self, field: &'static str, value: &str) -> impl Iterator<Item = &'a Arc<R>> + use<'a, R> {
        let places = self.index.get(&(field, value.to_owned()));
        places.into_iter().flatten().filter_map(|place| self.rows.get(place))
    }

    /// The rows that have one of these values in their indexed fields, the newest first, from after a given one. No
    /// keys mean all rows. It costs what is read of it, however many rows there are.
    pub fn newest_first<'a>(
        &'a self,
        keys: &[(&'static str, &str)],
        after: Option<&str>,
    ) -> impl Iterator<Item = &'a Arc<R>> + use<'a, R> {
        let end = after.and_then(|id| self.places.get(id)).copied().unwrap_or(Place::MAX);
        let keys = if keys.is_empty() { &[(ALL, "")] } else { keys };
        let sets = keys.iter().filter_map(|(field, value)| self.index.get(&(*field, (*value).to_owned())));
        let merged = Merged(sets.map(|places| places.range(..end).rev().peekable()).collect());
        merged.filter_map(|place| self.rows.get(&place))
    }

    /// The table, or what it was at a time before now.
    pub(super) fn view(&self, at: Option<Timestamp>) -> View<'_, R> {
        match at {
            Some(at) => View::Past(Box::new(self.as_of(at))),
            None => View::Now(self),
        }
    }

    fn as_of(&self, at: Timestamp) -> Self {
        let mut past = Self {
            places: self.places.clone(),
            rows: self.rows.clone(),
            index: self.index.clone(),
            next: self.next,
            history: VecDeque::new(),
            window: Duration::ZERO,
        };
        for change in self.history.iter().rev().take_while(|change| change.at > at) {
            past.set(change.place, &change.id, change.before.clone());
        }
        past
    }

    fn set(&mut self, place: Place, id: &str, row: Option<Arc<R>>) -> Option<Arc<R>> {
        let before = self.rows.remove(&place);
        for key in before.iter().flat_map(|row| keys(&**row)) {
            if let Some(places) = self.index.get_mut(&key) {
                places.remove(&place);
                if places.is_empty() {
                    self.index.remove(&key);
                }
            }
        }
        match row {
            Some(row) => {
                for key in keys(&*row) {
                    self.index.entry(key).or_default().insert(place);
                }
                self.places.insert(id.to_owned(), place);
                self.rows.insert(place, row);
            }
            None => drop(self.places.remove(id)),
        }
        before
    }

    fn remember(&mut self, change: Change<R>) {
        let oldest = earlier(change.at, self.window);
        while self.history.front().is_some_and(|change| change.at < oldest) {
            self.history.pop_front();
        }
        if !self.window.is_zero() {
            self.history.push_back(change);
        }
    }
}

fn keys(row: &impl Row) -> impl Iterator<Item = (&'static str, String)> {
    row.keys().into_iter().chain([(ALL, String::new())])
}

/// Several ordered sets as one, the greatest first.
struct Merged<'a>(Vec<Peekable<Rev<btree_set::Range<'a, Place>>>>);

impl Iterator for Merged<'_> {
    type Item = Place;

    fn next(&mut self) -> Option<Place> {
        let greatest = *self.0.iter_mut().filter_map(Peekable::peek).max()?;
        for set in &mut self.0 {
            set.next_if_eq(&greatest);
        }
        Some(*greatest)
    }
}

/// A table as a request sees it.
pub(super) enum View<'a, R> {
    Now(&'a Table<R>),
    Past(Box<Table<R>>),
}

impl<R> Deref for View<'_, R> {
    type Target = Table<R>;

    fn deref(&self) -> &Table<R> {
        match self {
            Self::Now(table) => table,
            Self::Past(table) => table,
        }
    }
}
