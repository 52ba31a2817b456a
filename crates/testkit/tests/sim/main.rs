//! The simulated OpenStack, as our own client sees it, and compared with the real one.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what is wrong by panicking")]

mod aggregates;
mod contract;
mod faults;
mod life;
mod network;
mod nova;
mod scale;
mod servers;
mod support;
