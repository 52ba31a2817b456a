//! Identifiers as the services choose them, the same in every run of the same seed.

use rand::{Rng, SeedableRng, rngs::StdRng};
use uuid::{Builder, Uuid};

/// A source of random identifiers.
#[derive(Debug)]
pub struct Ids(StdRng);

impl Ids {
    /// The identifiers that follow from a seed.
    pub fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    /// A UUID, as Glance and Nova have them.
    pub fn uuid(&mut self) -> Uuid {
        Builder::from_random_bytes(self.0.random()).into_uuid()
    }

    /// A UUID without dashes, as Keystone has them.
    pub fn hex(&mut self) -> String {
        self.uuid().simple().to_string()
    }
}
