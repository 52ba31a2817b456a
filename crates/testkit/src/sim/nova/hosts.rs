//! Hosts: Nova's services that run servers, and which flavors' servers find a place there.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Flavor, Nova, aggregates::Aggregate, only_admin, speaks};
use crate::sim::{
    SimOptions,
    http::{Answer, Outcome},
    service::{Call, Version},
    table::Table,
};

/// Services are identified by UUIDs from here on.
const WITH_SERVICE_UUID: Version = (2, 53);
const WITH_FORCED_DOWN: Version = (2, 11);
/// What an extra spec that a host's aggregates have to have begins with.
const SCOPE: &str = "aggregate_instance_extra_specs";

/// The hosts that run servers, and the aggregates that they are in.
pub(super) struct Hosts {
    pub(super) names: Vec<String>,
    pub(super) aggregates: Table<Aggregate>,
    /// The number of the last aggregate.
    pub(super) last: u64,
}

impl Hosts {
    pub(super) fn new(options: &SimOptions) -> Self {
        Self { names: options.hosts.clone(), aggregates: Table::new(options.history), last: 0 }
    }

    /// The host for a server of a flavor; if it can be, another than the one it has.
    pub(super) fn place(&self, flavor: &Flavor, now_on: Option<&str>) -> Option<String> {
        let fitting = self.fitting(flavor);
        fitting.iter().find(|host| Some(host.as_str()) != now_on).or_else(|| fitting.first()).cloned()
    }

    /// The hosts that a server of a flavor can be on.
    pub(super) fn fitting(&self, flavor: &Flavor) -> Vec<String> {
        self.names.iter().filter(|host| self.fits(host, flavor)).cloned().collect()
    }

    /// As the filter `AggregateInstanceExtraSpecsFilter` judges. Words such as `<or>` are not simulated.
    fn fits(&self, host: &str, flavor: &Flavor) -> bool {
        flavor.extra_specs.iter().all(|(key, wanted)| {
            let key = match key.split_once(':') {
                Some((SCOPE, key)) => key,
                Some(_) => return true,
                None => key,
            };
            self.properties(host, key).contains(wanted.as_str())
        })
    }

    /// What a host's aggregates say about a key.
    fn properties(&self, host: &str, key: &str) -> BTreeSet<&str> {
        let its = self.aggregates.all().filter(|aggregate| aggregate.hosts.iter().any(|it| it == host));
        its.filter_map(|aggregate| aggregate.metadata.get(key))
            .flat_map(|value| value.split(',').map(str::trim))
            .collect()
    }
}

impl Nova {
    /// Sets which hosts there are. Servers stay where they are.
    pub fn set_hosts(&mut self, hosts: &[&str]) {
        self.hosts.names = hosts.iter().map(|&host| host.to_owned()).collect();
    }

    pub(super) fn list_services(&mut self, call: &mut Call<'_>) -> Outcome {
        only_admin(call, "os-services:list")?;
        let internal = ["nova-conductor", "nova-scheduler"].map(|binary| (binary, "control1", "internal"));
        let computes = self.hosts.names.iter().map(|host| ("nova-compute", host.as_str(), "nova"));
        let is_asked_for = |key, value: &str| call.request.query(key).is_none_or(|wanted| wanted == value);
        let asked = internal.into_iter().chain(computes);
        let asked = asked.filter(|(binary, host, _)| is_asked_for("binary", binary) && is_asked_for("host", host));
        let shown: Vec<Value> = asked.enumerate().map(|(index, service)| shown(call, index, service)).collect();
        Ok(Answer::ok(&json!({"services": shown})))
    }
}

fn shown(call: &Call<'_>, index: usize, (binary, host, zone): (&str, &str, &str)) -> Value {
    let id = if speaks(call, WITH_SERVICE_UUID) {
        json!(format!("00000000-0000-4000-8000-{:012}", index + 1))
    } else {
        json!(index + 1)
    };
    let mut shown = json!({
        "id": id, "binary": binary, "host": host, "zone": zone, "status": "enabled", "state": "up",
        "updated_at": call.now.strftime("%Y-%m-%dT%H:%M:%S.000000").to_string(), "disabled_reason": null,
    });
    if speaks(call, WITH_FORCED_DOWN) {
        shown["forced_down"] = json!(false);
    }
    shown
}
