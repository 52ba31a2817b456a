//! Hosts: Nova's services that run servers, and which flavors' servers find a place there.

use std::collections::{BTreeMap, BTreeSet};

use http::StatusCode;
use serde_json::{Value, json};

use super::{Flavor, Nova, aggregates::Aggregate, only_admin, speaks};
use crate::sim::{
    SimOptions,
    http::{Answer, Outcome, Refusal},
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
    /// What is otherwise than at most hosts.
    services: BTreeMap<String, Service>,
    pub(super) aggregates: Table<Aggregate>,
    /// The number of the last aggregate.
    pub(super) last: u64,
}

/// How the `nova-compute` of a host is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Service {
    /// Whether it does anything.
    pub life: Life,
    /// Whether Nova was told that it is down.
    pub forced_down: bool,
    /// Whether it is to get no more servers.
    pub is_disabled: bool,
    /// Why.
    pub disabled_reason: Option<String>,
    /// Whether it was deleted, and has not been started since.
    pub is_forgotten: bool,
}

/// Whether a `nova-compute` does anything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Life {
    /// It does.
    #[default]
    Alive,
    /// It does nothing any more, and Nova has not noticed.
    Dead,
    /// Its heartbeats have ceased for so long that Nova takes it for down: a minute, mostly.
    Missed,
}

impl Service {
    fn is_up(&self) -> bool {
        self.life != Life::Missed && !self.forced_down
    }
}

impl Hosts {
    pub(super) fn new(options: &SimOptions) -> Self {
        let (names, aggregates) = (options.hosts.clone(), Table::new(options.history));
        Self { names, services: BTreeMap::new(), aggregates, last: 0 }
    }

    fn service(&self, host: &str) -> Service {
        self.services.get(host).cloned().unwrap_or_default()
    }

    /// Whether somebody at the host does what Nova asks for.
    pub(super) fn obeys(&self, host: &str) -> bool {
        self.service(host).life == Life::Alive
    }

    /// Whether Nova believes so.
    pub(super) fn is_up(&self, host: &str) -> bool {
        self.service(host).is_up()
    }

    /// The host for a server of a flavor; if it can be, another than the one it has.
    pub(super) fn place(&self, flavor: &Flavor, now_on: Option<&str>) -> Option<String> {
        let fitting = self.fitting(flavor);
        fitting.iter().find(|host| Some(host.as_str()) != now_on).or_else(|| fitting.first()).cloned()
    }

    /// The hosts that a server of a flavor can be on.
    pub(super) fn fitting(&self, flavor: &Flavor) -> Vec<String> {
        let takes = |host: &str| {
            let service = self.service(host);
            service.is_up() && !service.is_disabled && !service.is_forgotten
        };
        self.names.iter().filter(|host| takes(host) && self.fits(host, flavor)).cloned().collect()
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

    /// How the `nova-compute` of a host is.
    pub fn service(&self, host: &str) -> Service {
        self.hosts.service(host)
    }

    /// Has the `nova-compute` of a host be otherwise, as if something had happened to it or somebody had said so.
    pub fn edit_service(&mut self, host: &str, edit: impl FnOnce(&mut Service)) {
        edit(self.hosts.services.entry(host.to_owned()).or_default());
    }

    pub(super) fn list_services(&mut self, call: &mut Call<'_>) -> Outcome {
        only_admin(call, "os-services:list")?;
        let is_asked_for = |key, value: &str| call.request.query(key).is_none_or(|wanted| wanted == value);
        let all = self.all_services();
        let asked = all.iter().filter(|one| is_asked_for("binary", one.binary) && is_asked_for("host", &one.host));
        let shown: Vec<Value> = asked.map(|one| one.shown(call)).collect();
        Ok(Answer::ok(&json!({"services": shown})))
    }

    /// From 2.53 on, when services have UUIDs.
    pub(super) fn update_service(&mut self, call: &mut Call<'_>) -> Outcome {
        only_admin(call, "os-services:update")?;
        let id = call.param(0);
        let one = self.service_with(id);
        let one = one.ok_or_else(|| Refusal::not_found(format!("Service {id} could not be found.")))?;
        if one.binary != "nova-compute" {
            let words = "Updating a nova-compute service is the only one supported";
            return Err(Refusal::bad_request(format!("{words}: {}", one.binary)));
        }
        let said = call.request.json();
        if said["status"] == "enabled" && !said["disabled_reason"].is_null() {
            return Err(Refusal::bad_request("Specifying 'disabled_reason' with status 'enabled' is invalid."));
        }
        self.edit_service(&one.host, |service| {
            if let Some(down) = said["forced_down"].as_bool() {
                service.forced_down = down;
            }
            if let Some(status) = said["status"].as_str() {
                service.is_disabled = status == "disabled";
                service.disabled_reason = said["disabled_reason"].as_str().map(str::to_owned);
            }
        });
        let now = self.all_services().into_iter().find(|now| now.index == one.index);
        Ok(Answer::ok(&json!({"service": now.map(|now| now.shown(call))})))
    }

    /// From 2.53 on. What counts the migrations of servers is not simulated.
    pub(super) fn delete_service(&mut self, call: &mut Call<'_>) -> Outcome {
        only_admin(call, "os-services:delete")?;
        let id = call.param(0);
        let one = self.service_with(id).ok_or_else(|| Refusal::not_found(format!("Service {id} not found.")))?;
        if one.binary == "nova-compute" {
            if self.servers().any(|server| server.host.as_deref() == Some(&one.host)) {
                let words = "Unable to delete compute service that is hosting instances. Migrate or delete the instances first.";
                return Err(Refusal::conflict(words));
            }
            self.leave_aggregates(call.now, &one.host);
            self.edit_service(&one.host, |service| service.is_forgotten = true);
        }
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }

    fn service_with(&self, id: &str) -> Option<Shown> {
        self.all_services().into_iter().find(|one| one.uuid() == id)
    }

    fn all_services(&self) -> Vec<Shown> {
        let internal = ["nova-conductor", "nova-scheduler"].map(|binary| (binary, "control1", "internal"));
        let computes = self.hosts.names.iter().map(|host| ("nova-compute", host.as_str(), "nova"));
        let all = internal.into_iter().chain(computes).enumerate();
        all.map(|(index, (binary, host, zone))| {
            let service = if binary == "nova-compute" { self.service(host) } else { Service::default() };
            Shown { index, binary, host: host.to_owned(), zone, service }
        })
        .filter(|one| !one.service.is_forgotten)
        .collect()
    }
}

/// One of Nova's processes.
struct Shown {
    index: usize,
    binary: &'static str,
    host: String,
    zone: &'static str,
    service: Service,
}

impl Shown {
    fn uuid(&self) -> String {
        format!("00000000-0000-4000-8000-{:012}", self.index + 1)
    }

    fn shown(&self, call: &Call<'_>) -> Value {
        let Self { index, binary, host, zone, service } = self;
        let id = if speaks(call, WITH_SERVICE_UUID) { json!(self.uuid()) } else { json!(index + 1) };
        let mut shown = json!({
            "id": id, "binary": binary, "host": host, "zone": zone,
            "status": if service.is_disabled { "disabled" } else { "enabled" },
            "state": if service.is_up() { "up" } else { "down" },
            "updated_at": call.now.strftime("%Y-%m-%dT%H:%M:%S.000000").to_string(),
            "disabled_reason": service.disabled_reason,
        });
        if speaks(call, WITH_FORCED_DOWN) {
            shown["forced_down"] = json!(service.forced_down);
        }
        shown
    }
}
