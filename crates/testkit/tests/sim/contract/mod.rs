//! The contract suite: the same calls to the simulation and to real services, which must answer alike in status, media
//! type, shape and words.
//!
//! What real services answered is recorded beside this file and compared with in every run. With
//! `KUPENSTACK_CONTRACT_CLOUDS` naming a `clouds.yaml` with an administrator, and `--ignored`, the services of its cloud
//! (`KUPENSTACK_CONTRACT_CLOUD`, or the only one) are asked; `KUPENSTACK_CONTRACT_RECORD=yes` writes down what they say.
//! The suite removes what it makes.

mod calls;
mod neutron;
mod nova;
mod ports;
mod routers;
mod security_groups;
mod servers;
mod subnets;
mod target;

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
};

use kupenstack_testkit::{
    crate_folder,
    sim::{Sim, SimOptions},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use self::target::Target;

/// One call's answer, without what differs from run to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    status: u16,
    media_type: String,
    /// An image's status, what a limit allows, or whatever values the call wants to be alike.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    state: String,
    /// The keys and types of a JSON body.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    shape: Value,
    /// A refusal's body, with a name in the place of each value of this run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    words: String,
}

type Record = BTreeMap<String, Seen>;

fn recorded() -> std::path::PathBuf {
    crate_folder().join("tests/sim/contract/recorded.json")
}

/// The keys and types of a value. Of a list, those of all its elements together.
fn shape(value: &Value) -> Value {
    match value {
        Value::Null => json!("null"),
        Value::Bool(_) => json!("bool"),
        Value::Number(_) => json!("number"),
        Value::String(_) => json!("string"),
        Value::Array(list) => match list.iter().map(shape).reduce(merged) {
            Some(element) => json!([element]),
            None => json!([]),
        },
        Value::Object(object) => {
            object.iter().map(|(key, value)| (key.clone(), shape(value))).collect::<Map<_, _>>().into()
        }
    }
}

fn merged(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::Object(mut one), Value::Object(other)) => {
            for (key, value) in other {
                let both = match one.remove(&key) {
                    Some(here) => merged(here, value),
                    None => value,
                };
                one.insert(key, both);
            }
            Value::Object(one)
        }
        (one, other) if one == other || other == "null" => one,
        (Value::Array(one), other) if one.is_empty() => other,
        (one, _) if one != "null" => one,
        (_, other) => other,
    }
}

async fn observe(target: &Target) -> Record {
    let mut run = target::Run::new(target);
    let mut record = Record::new();
    for call in calls::all() {
        if !run.has(call.service) {
            continue;
        }
        let answer = match run.send(&call).await {
            Ok(answer) => answer,
            Err(error) => {
                // a cloud that went away in the middle is to be left as it was found
                for call in calls::ends() {
                    let _ = run.send(&call).await;
                }
                panic!("{}: {error}", call.name);
            }
        };
        let name = call.name.to_owned();
        assert!(record.insert(name, answer).is_none(), "two calls are named {:?}", call.name);
    }
    record
}

fn compare(simulated: &Record, real: &Record) {
    // a cloud need not have every service that is simulated
    let calls = calls::all();
    let recorded: BTreeSet<_> = calls.iter().filter(|call| real.contains_key(call.name)).map(|it| it.service).collect();
    let wanted = calls.iter().filter(|call| recorded.contains(call.service)).count();
    let same = |seen: &Seen, name: &str| {
        let Some(mut simulated) = simulated.get(name).cloned() else { return false };
        if seen.state.is_empty() {
            // a record from before states were written down
            simulated.state.clear();
        }
        simulated == *seen
    };
    let differ = real.iter().filter(|(name, seen)| !same(seen, name));
    let told: Vec<String> = differ
        .map(|(name, seen)| {
            let text = |seen: Option<&Seen>| serde_json::to_string(&seen).unwrap();
            format!("{name}\n  real      {}\n  simulated {}", text(Some(seen)), text(simulated.get(name)))
        })
        .collect();
    assert!(told.is_empty(), "{} of {} calls differ:\n{}", told.len(), real.len(), told.join("\n"));
    assert_eq!(wanted, real.len(), "calls without a record: record them");
}

/// One as those of `dev/up`, whose Neutron keeps no DNS names.
fn a_cloud() -> Sim {
    kupenstack_testkit::install_tls_provider();
    let hosts = vec!["contract-node".to_owned()];
    Sim::start(SimOptions { standing_clock: true, network_dns: false, hosts, ..SimOptions::default() })
}

#[tokio::test]
async fn the_simulation_answers_as_was_recorded() {
    let sim = a_cloud();
    let simulated = observe(&Target::simulated(&sim)).await;
    let real: Record = serde_json::from_str(&std::fs::read_to_string(recorded()).unwrap()).unwrap();
    compare(&simulated, &real);
}

#[tokio::test]
#[ignore = "needs a real cloud"]
async fn the_simulation_answers_as_a_real_cloud() {
    let real = observe(&Target::real()).await;
    if env::var("KUPENSTACK_CONTRACT_RECORD").is_ok_and(|value| value == "yes") {
        std::fs::write(recorded(), serde_json::to_string_pretty(&real).unwrap() + "\n").unwrap();
    }
    let sim = a_cloud();
    compare(&observe(&Target::simulated(&sim)).await, &real);
}
