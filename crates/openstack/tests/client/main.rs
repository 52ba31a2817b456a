//! The client against simulated services.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test says what is wrong by panicking")]

mod auth;
mod cache;
mod catalog;
mod compute;
mod identity;
mod image;
mod network;
mod paging;
mod retry;
mod secrets;
mod support;
mod upload;
