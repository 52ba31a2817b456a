//! The controllers against a real API server, a simulated OpenStack, and a web server.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail the test")]

mod adopt;
mod anti_affinity;
mod cloud;
mod cluster_image;
#[path = "../common/mod.rs"]
mod common;
mod console;
mod crash;
mod dead_hosts;
mod external_network;
mod flavor;
mod flavor_adopt;
mod floating_ip;
mod floating_ip_adopt;
mod handout;
mod homes;
mod image;
mod key_pair;
mod lifecycle;
mod needs;
mod network;
mod network_adopt;
mod observe;
mod placement;
mod port;
mod projects;
mod quota;
mod refused;
mod router;
mod security_group;
mod slow;
mod sources;
mod subnet;
mod virtual_machine;
mod virtual_machine_adopt;
mod virtual_machine_failures;
mod virtual_machine_networks;
mod virtual_machine_probe;
mod world;
