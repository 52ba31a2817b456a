//! Security groups and their rules. Every project has one called `default` from when it first needs one.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{
    Item, Neutron,
    kinds::{GROUPS, RULES},
    missing,
};
use crate::sim::{http::Refusal, ids::Ids, service::Call};

/// The name that one group of each project has.
const DEFAULT: &str = "default";

/// What makes one rule another.
const IDENTITY: [&str; 8] = [
    "security_group_id",
    "direction",
    "ethertype",
    "protocol",
    "port_range_min",
    "port_range_max",
    "remote_ip_prefix",
    "remote_group_id",
];

impl Neutron {
    /// Makes a project's default group, if it has none yet.
    pub(super) fn ensure_default_group(&mut self, ids: &mut Ids, now: Timestamp, project: &str) {
        if project.is_empty() || self.default_group(project).is_some() {
            return;
        }
        let mut group = Item::new(&GROUPS, ids.uuid().to_string(), project, now);
        group.set(attributes(json!({"name": DEFAULT, "description": "Default security group"})));
        let id = group.id.clone();
        self.put(&GROUPS, now, group);
        self.add_egress(ids, now, &id, project);
        for ethertype in ["IPv4", "IPv6"] {
            let rule = json!({"security_group_id": id, "direction": "ingress", "ethertype": ethertype,
                "remote_group_id": id});
            self.add_rule(ids, now, project, rule);
        }
    }

    /// What every new group lets out.
    pub(super) fn add_egress(&mut self, ids: &mut Ids, now: Timestamp, group: &str, project: &str) {
        for ethertype in ["IPv4", "IPv6"] {
            let rule = json!({"security_group_id": group, "direction": "egress", "ethertype": ethertype});
            self.add_rule(ids, now, project, rule);
        }
    }

    fn add_rule(&mut self, ids: &mut Ids, now: Timestamp, project: &str, rule: Value) {
        let mut item = Item::new(&RULES, ids.uuid().to_string(), project, now);
        item.set(attributes(rule));
        self.put(&RULES, now, item);
    }

    fn default_group(&self, project: &str) -> Option<&Item> {
        let groups = self.table(&GROUPS).by("project_id", project);
        groups.map(|group| &**group).find(|group| group.text("name") == DEFAULT)
    }

    /// A new group. Its name is any but the one that is given by Neutron itself.
    pub(super) fn check_group(&self, item: &Item) -> Result<(), Refusal> {
        if item.text("name") == DEFAULT && self.default_group(&item.project_id).is_some_and(|group| group.id != item.id)
        {
            let words = "Default security group already exists.";
            return Err(Refusal::conflict(words).of_type("SecurityGroupDefaultAlreadyExists"));
        }
        Ok(())
    }

    /// The rules of a group, the oldest first.
    pub(super) fn rules_of<'a>(&'a self, group: &'a str) -> impl Iterator<Item = &'a Item> {
        self.all(RULES.collection).filter(move |rule| rule.text("security_group_id") == group)
    }

    /// A group that is to go, with its rules. The default one only an administrator deletes.
    pub(super) fn check_end_of_group(call: &Call<'_>, group: &Item) -> Result<(), Refusal> {
        if group.text("name") == DEFAULT && !call.caller.is_admin() {
            let words = "Insufficient rights for removing default security group.";
            return Err(Refusal::conflict(words).of_type("SecurityGroupCannotRemoveDefault"));
        }
        Ok(())
    }

    /// A new rule: of a group that the caller may change, with parts that go together, and not there yet.
    pub(super) fn check_rule(&self, call: &Call<'_>, rule: &Item) -> Result<(), Refusal> {
        let id = rule.text("security_group_id");
        let group = self.get(GROUPS.collection, id).filter(|group| group.is_changeable_by(&call.caller));
        group.ok_or_else(|| missing(&GROUPS, id))?;
        check_parts(rule)?;
        let same = |other: &&Item| IDENTITY.iter().all(|part| other.body.get(*part) == rule.body.get(*part));
        match self.all(RULES.collection).find(same) {
            None => Ok(()),
            Some(other) => {
                let words = format!("Security group rule already exists. Rule id is {}.", other.id);
                Err(Refusal::conflict(words).of_type("SecurityGroupRuleExists"))
            }
        }
    }

    /// A group has changed when its rules have.
    pub(super) fn touch_group(&mut self, now: Timestamp, rule: &Item) {
        let group = rule.text("security_group_id").to_owned();
        self.edit(now, GROUPS.collection, &group, |_| {});
    }
}

fn check_parts(rule: &Item) -> Result<(), Refusal> {
    let has = |part: &str| rule.body.get(part).is_some_and(|value| !value.is_null());
    let refused = |kind, words: String| Err(Refusal::bad_request(words).of_type(kind));
    if has("remote_ip_prefix") && has("remote_group_id") {
        let words = "Only remote_ip_prefix or remote_group_id may be provided.";
        return refused("SecurityGroupRemoteGroupAndRemoteIpPrefix", words.to_owned());
    }
    let (ethertype, prefix) = (rule.text("ethertype"), rule.text("remote_ip_prefix"));
    if has("remote_ip_prefix") && prefix.contains(':') != (ethertype == "IPv6") {
        let words = format!("Conflicting value ethertype {ethertype} for CIDR {prefix}");
        return refused("SecurityGroupRuleParameterConflict", words);
    }
    let port = |part: &str| rule.body.get(part).and_then(Value::as_u64);
    let (first, last) = (port("port_range_min"), port("port_range_max"));
    if first.or(last).is_some() && !has("protocol") {
        let words = "Must also specify protocol if port range is given.";
        return refused("SecurityGroupProtocolRequiredWithPorts", words.to_owned());
    }
    let is_of_ports = ["tcp", "udp", "6", "17"].contains(&rule.text("protocol"));
    if is_of_ports && (first.is_some() != last.is_some() || first > last) {
        let words = "For TCP/UDP protocols, port_range_min must be <= port_range_max";
        return refused("SecurityGroupInvalidPortRange", words.to_owned());
    }
    Ok(())
}

fn attributes(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(attributes) => attributes,
        _ => Map::new(),
    }
}
