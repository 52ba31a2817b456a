//! What the tests of the controllers share: a cluster with the cloud's objects in it, the controllers at work, and how
//! to look at what they do.

#![allow(dead_code, unused_imports, reason = "each test binary uses its part")]

pub(crate) mod cluster;
pub(crate) mod lent;
pub(crate) mod look;
pub(crate) mod operator;
