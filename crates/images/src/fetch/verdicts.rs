//! Files that were found wrong, so that they are not fetched again and again to find the same.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::answer::Identity;
use crate::{Error, Source};

/// How many are remembered; then the oldest is forgotten.
const MOST: usize = 1024;
/// How long a file is believed to be the same when its server says so.
const LONG: Duration = Duration::from_hours(24);
/// How long when nothing but its length says so, or when the machine may have been to blame.
const SHORT: Duration = Duration::from_hours(1);

/// The file's address, its checksum and what it is wanted for, digested: an address may carry secrets.
type Key = [u8; 32];

#[derive(Debug, Default)]
pub(super) struct Verdicts(Mutex<HashMap<Key, Verdict>>);

#[derive(Debug)]
struct Verdict {
    identity: Identity,
    error: Error,
    since: Instant,
    until: Instant,
}

/// A file that was found wrong.
pub(super) struct Known {
    pub(super) identity: Identity,
    pub(super) error: Error,
}

impl Verdicts {
    pub(super) fn remember(&self, source: &Source, identity: Identity, error: &Error) {
        self.remember_at(source, identity, error, Instant::now());
    }

    pub(super) fn known(&self, source: &Source) -> Option<Known> {
        self.known_at(source, Instant::now())
    }

    fn remember_at(&self, source: &Source, identity: Identity, error: &Error, now: Instant) {
        let Some(error) = error.about_the_file() else { return };
        let certain = identity.is_strong() && !matches!(error, Error::Damaged { .. } | Error::ConversionFailed { .. });
        let until = now + if certain { LONG } else { SHORT };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = key(source);
        if all.len() >= MOST && !all.contains_key(&key) {
            let oldest = all.iter().min_by_key(|(_, verdict)| verdict.since).map(|(&key, _)| key);
            oldest.map(|key| all.remove(&key));
        }
        all.insert(key, Verdict { identity, error, since: now, until });
    }

    fn known_at(&self, source: &Source, now: Instant) -> Option<Known> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = key(source);
        let verdict = all.get(&key)?;
        if verdict.until <= now {
            all.remove(&key);
            return None;
        }
        Some(Known { identity: verdict.identity.clone(), error: verdict.error.about_the_file()? })
    }
}

fn key(source: &Source) -> Key {
    let checksum = source.checksum().map(ToString::to_string).unwrap_or_default();
    let format = source.wanted().map(|format| format.to_string()).unwrap_or_default();
    let parts = [source.url().as_str(), &checksum, &format];
    parts.iter().fold(Sha256::new(), |digest, part| digest.chain_update(part).chain_update("\0")).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(index: usize) -> Source {
        Source::http(&format!("http://images.example/{index}"), None).unwrap()
    }

    fn identity(etag: Option<&str>) -> Identity {
        Identity::for_tests(etag)
    }

    fn wrong() -> Error {
        Error::ChecksumMismatch { expected: "a".to_owned(), actual: "b".to_owned() }
    }

    #[test]
    fn is_believed_for_as_long_as_what_vouches_for_it_is_good() {
        let (verdicts, now) = (Verdicts::default(), Instant::now());
        for (index, etag) in [Some("\"v1\""), None].into_iter().enumerate() {
            verdicts.remember_at(&source(index), identity(etag), &wrong(), now);
        }
        let known = |index, later| verdicts.known_at(&source(index), now + later).is_some();
        assert!(known(0, LONG / 2) && known(1, SHORT / 2));
        assert!(!known(1, SHORT) && !known(0, LONG) && !known(2, Duration::ZERO));
    }

    #[test]
    fn what_is_not_about_the_file_is_not_remembered() {
        let verdicts = Verdicts::default();
        verdicts.remember(&source(0), identity(Some("\"v1\"")), &Error::NoSpace { needed: None });
        assert!(verdicts.known(&source(0)).is_none());
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_goes() {
        let (verdicts, now) = (Verdicts::default(), Instant::now());
        for index in 0..=MOST {
            let later = now + Duration::from_millis(u64::try_from(index).unwrap());
            verdicts.remember_at(&source(index), identity(Some("\"v1\"")), &wrong(), later);
        }
        assert_eq!(verdicts.0.lock().unwrap().len(), MOST);
        assert!(verdicts.known_at(&source(0), now).is_none() && verdicts.known_at(&source(MOST), now).is_some());
    }
}
