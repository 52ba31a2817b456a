//! The operator's chart and definitions on a real API server: what it refuses, what it shows, who may do what.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed expectation is how a test fails")]

mod admission;
mod console;
#[path = "../common/operator.rs"]
mod operator;
mod process;
mod replicas;
mod rights;
mod stage;
mod texts;
mod webhook;
