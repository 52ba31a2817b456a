//! The controllers against a real API server, a small Keystone and Glance that remember, and a web server.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail the test")]

mod cloud;
mod crash;
mod fake;
mod image;
mod projects;
mod slow;
mod world;
