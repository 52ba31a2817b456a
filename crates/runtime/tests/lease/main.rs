//! The lease on a real API server: whatever happens, never do two work at once, and soon one does.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod frozen;
mod handover;
mod meddling;
mod outage;
mod proxy;
mod stage;
