//! Host aggregates.

use std::collections::BTreeMap;

use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Nova, flavor::invalid, only_admin, speaks};
use crate::sim::{
    http::{Answer, Outcome, Refusal},
    service::{Call, Version},
    table::Row,
};

const WITH_UUID: Version = (2, 41);
/// The longest name, key and value.
const LONGEST: usize = 255;
/// The property that is shown by itself.
const ZONE: &str = "availability_zone";

/// A host aggregate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aggregate {
    /// Its number.
    pub id: String,
    /// Its identifier, which nothing takes.
    pub uuid: String,
    /// Its name, unique.
    pub name: String,
    /// The hosts in it.
    pub hosts: Vec<String>,
    /// Its properties.
    pub metadata: BTreeMap<String, String>,
    /// When it was made.
    pub created_at: Timestamp,
}

impl Row for Aggregate {
    fn id(&self) -> &str {
        &self.id
    }

    // as MySQL compares names
    fn keys(&self) -> Vec<(&'static str, String)> {
        vec![("name", self.name.to_lowercase())]
    }
}

impl Aggregate {
    fn shown(&self, call: &Call<'_>) -> Value {
        let created = self.created_at.strftime("%Y-%m-%dT%H:%M:%S.000000").to_string();
        let mut shown = json!({
            "id": self.id.parse::<u64>().unwrap_or_default(), "name": self.name, ZONE: self.metadata.get(ZONE),
            "hosts": self.hosts, "metadata": self.metadata,
            "created_at": created, "updated_at": null, "deleted": false, "deleted_at": null,
        });
        if speaks(call, WITH_UUID) {
            shown["uuid"] = json!(self.uuid);
        }
        shown
    }
}

impl Nova {
    /// All aggregates, the oldest first.
    pub fn aggregates(&self) -> impl Iterator<Item = &Aggregate> {
        self.hosts.aggregates.all().map(|aggregate| &**aggregate)
    }

    /// Makes an aggregate as if somebody had done so, and returns its number.
    pub fn add_aggregate(&mut self, now: Timestamp, name: &str, hosts: &[&str], metadata: &[(&str, &str)]) -> String {
        self.hosts.last += 1;
        let id = self.hosts.last.to_string();
        let aggregate = Aggregate {
            id: id.clone(),
            uuid: format!("00000000-0000-4000-9000-{:012}", self.hosts.last),
            name: name.to_owned(),
            hosts: hosts.iter().map(|&host| host.to_owned()).collect(),
            metadata: metadata.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect(),
            created_at: now,
        };
        self.hosts.aggregates.put(now, aggregate);
        id
    }

    /// Changes an aggregate as if somebody had done so. False if there is none.
    pub fn edit_aggregate(&mut self, now: Timestamp, id: &str, edit: impl FnOnce(&mut Aggregate)) -> bool {
        let Some(mut aggregate) = self.hosts.aggregates.get(id).map(|aggregate| Aggregate::clone(aggregate)) else {
            return false;
        };
        edit(&mut aggregate);
        self.hosts.aggregates.put(now, aggregate);
        true
    }

    /// Takes an aggregate away as if somebody had deleted it. False if there is none.
    pub fn remove_aggregate(&mut self, now: Timestamp, id: &str) -> bool {
        self.hosts.aggregates.remove(now, id).is_some()
    }

    /// As when a host is forgotten.
    pub(super) fn leave_aggregates(&mut self, now: Timestamp, host: &str) {
        let with = self.aggregates().filter(|aggregate| aggregate.hosts.iter().any(|it| it == host));
        for id in with.map(|aggregate| aggregate.id.clone()).collect::<Vec<_>>() {
            self.edit_aggregate(now, &id, |aggregate| aggregate.hosts.retain(|it| it != host));
        }
    }

    pub(super) fn list_aggregates(&mut self, call: &mut Call<'_>) -> Outcome {
        only_admin(call, "os-aggregates:index")?;
        let aggregates = self.hosts.aggregates.view(call.as_of);
        let shown: Vec<Value> = aggregates.all().map(|aggregate| aggregate.shown(call)).collect();
        Ok(Answer::ok(&json!({"aggregates": shown})))
    }

    pub(super) fn create_aggregate(&mut self, call: &mut Call<'_>) -> Outcome {
        only_admin(call, "os-aggregates:create")?;
        let body = call.request.json();
        let asked = &body["aggregate"];
        if asked["availability_zone"].is_string() {
            return Err(invalid(ZONE, &asked[ZONE], "is not simulated"));
        }
        let name = match asked["name"].as_str() {
            Some(name) if (1..=LONGEST).contains(&name.chars().count()) && name.trim() == name => name,
            _ => return Err(invalid("name", &asked["name"], "does not match any of the regexes")),
        };
        if self.hosts.aggregates.by("name", &name.to_lowercase()).next().is_some() {
            return Err(Refusal::conflict(format!("Aggregate {name} already exists.")));
        }
        let id = self.add_aggregate(call.now, name, &[], &[]);
        let mut shown = self.aggregate(&id)?.shown(call);
        if let Some(shown) = shown.as_object_mut() {
            shown.remove("hosts");
            shown.remove("metadata");
        }
        Ok(Answer::ok(&json!({"aggregate": shown})))
    }

    pub(super) fn show_aggregate(&mut self, call: &mut Call<'_>) -> Outcome {
        only_admin(call, "os-aggregates:show")?;
        Ok(Answer::ok(&json!({"aggregate": self.aggregate(call.param(0))?.shown(call)})))
    }

    pub(super) fn delete_aggregate(&mut self, call: &mut Call<'_>) -> Outcome {
        only_admin(call, "os-aggregates:delete")?;
        let aggregate = self.aggregate(call.param(0))?;
        if !aggregate.hosts.is_empty() {
            let words = "Reason: Host aggregate is not empty.";
            return Err(Refusal::bad_request(format!("Cannot remove host from aggregate {}. {words}", aggregate.id)));
        }
        self.remove_aggregate(call.now, call.param(0));
        Ok(Answer::empty(StatusCode::OK))
    }

    pub(super) fn act_on_aggregate(&mut self, call: &mut Call<'_>) -> Outcome {
        let body = call.request.json();
        let (action, how) = body.as_object().and_then(|body| body.iter().next()).unzip();
        let (action, how) = (action.map(String::as_str).unwrap_or_default(), how.cloned().unwrap_or_default());
        match action {
            "add_host" => self.add_host(call, &how)?,
            "remove_host" => self.remove_host(call, &how)?,
            "set_metadata" => self.set_aggregate_metadata(call, &how)?,
            other => return Err(Refusal::bad_request(format!("There is no such action: {other}"))),
        }
        let mut shown = self.aggregate(call.param(0))?.shown(call);
        if action == "set_metadata" {
            // that of the answer only
            shown["updated_at"] = shown["created_at"].clone();
        }
        Ok(Answer::ok(&json!({"aggregate": shown})))
    }

    fn add_host(&mut self, call: &Call<'_>, how: &Value) -> Result<(), Refusal> {
        only_admin(call, "os-aggregates:add_host")?;
        let host = host(how)?;
        if !self.hosts.names.contains(&host) {
            return Err(Refusal::not_found(format!("Compute host {host} could not be found.")));
        }
        let id = &self.aggregate(call.param(0))?.id;
        if self.aggregate(id)?.hosts.contains(&host) {
            return Err(Refusal::conflict(format!("Aggregate {id} already has host {host}.")));
        }
        self.edit_aggregate(call.now, call.param(0), |aggregate| aggregate.hosts.push(host));
        Ok(())
    }

    fn remove_host(&mut self, call: &Call<'_>, how: &Value) -> Result<(), Refusal> {
        only_admin(call, "os-aggregates:remove_host")?;
        let (host, id) = (host(how)?, call.param(0));
        if !self.aggregate(id).is_ok_and(|aggregate| aggregate.hosts.contains(&host)) {
            return Err(Refusal::not_found(format!("Cannot remove host {host} in aggregate {id}")));
        }
        self.edit_aggregate(call.now, id, |aggregate| aggregate.hosts.retain(|other| *other != host));
        Ok(())
    }

    fn set_aggregate_metadata(&mut self, call: &Call<'_>, how: &Value) -> Result<(), Refusal> {
        only_admin(call, "os-aggregates:set_metadata")?;
        let asked = how["metadata"].as_object().cloned().unwrap_or_default();
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_:. ".contains(c);
        if let Some(odd) = asked.keys().find(|key| !(1..=LONGEST).contains(&key.len()) || !key.chars().all(allowed)) {
            return Err(invalid("metadata", &json!(odd), "does not match any of the regexes"));
        }
        if let Some((_, odd)) = asked.iter().find(|(_, value)| !value.is_null() && !is_text(value)) {
            return Err(invalid("metadata", odd, "is not valid under any of the given schemas"));
        }
        self.aggregate(call.param(0))?;
        self.edit_aggregate(call.now, call.param(0), |aggregate| {
            for (key, value) in asked {
                match value {
                    Value::String(value) => drop(aggregate.metadata.insert(key, value)),
                    _ => drop(aggregate.metadata.remove(&key)),
                }
            }
        });
        Ok(())
    }

    fn aggregate(&self, id: &str) -> Result<&Aggregate, Refusal> {
        let found = self.hosts.aggregates.get(id).map(|aggregate| &**aggregate);
        found.ok_or_else(|| Refusal::not_found(format!("Aggregate {id} could not be found.")))
    }
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.chars().count() <= LONGEST)
}

fn host(how: &Value) -> Result<String, Refusal> {
    match how["host"].as_str() {
        Some(host) if (1..=LONGEST).contains(&host.len()) => Ok(host.to_owned()),
        _ => Err(invalid("host", &how["host"], "does not match '^[a-zA-Z0-9-._]*$'")),
    }
}
