//! The simulated OpenStack as a program: prints a `clouds.yaml` and answers until it is ended.

#![allow(clippy::print_stdout, reason = "what it prints is its result")]

use std::{fs, net::SocketAddr, path::PathBuf, time::Duration};

use clap::Parser;
use kupenstack_testkit::sim::{Rule, Sim, SimOptions};

/// A simulated OpenStack (Keystone, Glance, Nova and Neutron).
#[derive(Parser)]
struct Arguments {
    /// Where to listen.
    #[arg(long, default_value = "127.0.0.1:5000")]
    listen: SocketAddr,
    /// Where to write the clouds.yaml to, instead of printing it.
    #[arg(long)]
    clouds_yaml: Option<PathBuf>,
    /// A file with fault rules, a list in YAML or JSON.
    #[arg(long)]
    faults: Option<PathBuf>,
    /// Determines identifiers and the meeting of faults that have a probability.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How long each request takes at least, in milliseconds.
    #[arg(long, default_value_t = 0)]
    latency: u64,
    /// How long an image is saving after its last byte, in seconds.
    #[arg(long, default_value_t = 0)]
    saving: u64,
    /// How long whatever Nova does with a server takes, in seconds.
    #[arg(long, default_value_t = 0)]
    build_time: u64,
    /// How long a token lives, in seconds.
    #[arg(long, default_value_t = 3600)]
    token_life: u64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let rules: Vec<Rule> = match &arguments.faults {
        Some(path) => serde_saphyr::from_str(&fs::read_to_string(path)?)?,
        None => Vec::new(),
    };
    let sim = Sim::start(SimOptions {
        listen: arguments.listen,
        seed: arguments.seed,
        latency: Duration::from_millis(arguments.latency),
        saving: Duration::from_secs(arguments.saving),
        build_time: Duration::from_secs(arguments.build_time),
        token_life: Duration::from_secs(arguments.token_life),
        keep_data: 64 << 20,
        ..SimOptions::default()
    });
    for rule in rules {
        sim.cloud().faults.add(rule);
    }
    match &arguments.clouds_yaml {
        Some(path) => fs::write(path, sim.clouds_yaml())?,
        None => println!("{}", sim.clouds_yaml()),
    }
    loop {
        std::thread::park();
    }
}
