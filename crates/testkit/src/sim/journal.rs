//! What was asked of the cloud, and what came of it.

use std::collections::VecDeque;

use jiff::Timestamp;
use serde::Serialize;

/// One request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Its number, counted from 0 over the life of the cloud.
    pub number: u64,
    /// When it came, by the cloud's clock.
    pub at: Timestamp,
    /// The type of the service, such as `image`; empty if no service has that address.
    pub service: &'static str,
    /// The verb.
    pub method: String,
    /// The path as its service documents it, such as `/v2/images/{image_id}`; empty if it has no such path.
    pub template: &'static str,
    /// The path as it came, below the service's prefix, without the query.
    pub path: String,
    /// The query, which says what of a list is asked for; empty if there is none.
    pub query: String,
    /// Who asked, once that is known.
    pub user_id: Option<String>,
    /// In which project.
    pub project_id: Option<String>,
    /// The status of the answer; none if none was given (yet).
    pub status: Option<u16>,
    /// Whether it has changed what the cloud holds. A request whose answer is lost may do so later.
    pub committed: bool,
    /// The fault it met.
    pub fault: Option<&'static str>,
}

impl Entry {
    /// Whether it is made to change something. A login is not.
    pub fn is_write(&self) -> bool {
        !matches!(self.method.as_str(), "GET" | "HEAD") && self.template != "/v3/auth/tokens"
    }
}

/// The latest requests.
#[derive(Debug)]
pub struct Journal {
    entries: VecDeque<Entry>,
    capacity: usize,
    next: u64,
}

impl Journal {
    pub(super) fn new(capacity: usize) -> Self {
        Self { entries: VecDeque::new(), capacity, next: 0 }
    }

    /// The requests that are remembered, the oldest first.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// How many requests have come in all, forgotten ones included.
    pub fn total(&self) -> u64 {
        self.next
    }

    /// How many of the remembered requests have this method and template.
    pub fn count(&self, method: &str, template: &str) -> usize {
        self.entries().filter(|entry| entry.method == method && entry.template == template).count()
    }

    /// How many of the remembered requests are made to change something.
    pub fn writes(&self) -> usize {
        self.entries().filter(|entry| entry.is_write()).count()
    }

    /// Forgets all requests; the numbers go on.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    pub(super) fn add(&mut self, mut entry: Entry) -> u64 {
        entry.number = self.next;
        self.next += 1;
        self.entries.push_back(entry);
        while self.entries.len() > self.capacity {
            self.entries.pop_front();
        }
        self.next - 1
    }

    /// An entry to complete, unless it is forgotten.
    pub(super) fn entry(&mut self, number: u64) -> Option<&mut Entry> {
        let first = self.entries.front()?.number;
        let index = usize::try_from(number.checked_sub(first)?).ok()?;
        self.entries.get_mut(index)
    }
}
