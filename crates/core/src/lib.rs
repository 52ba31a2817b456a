//! Domain logic without I/O: outcomes and conditions, ownership marks, merging, hashing, names.
//!
//! Everything here is a pure function of its arguments. This crate must not know a Kubernetes client,
//! OpenStack's REST APIs, Helm, or the time: a caller passes `now`.

pub mod admission;
pub mod conditions;
pub mod hash;
pub mod merge;
pub mod names;
mod outcome;
pub mod ownership;
pub mod text;

pub use outcome::{Outcome, reason};
