//! Security groups and their rules. Every project has one called `default` from when it first needs one.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Item, Neutron,
    item::attributes,
    kinds::{GROUPS, RULES, SECURITY_GROUP},
    missing,
};
use crate::sim::{http::Refusal, service::Call};

/// The name that one group of each project has.
const DEFAULT: &str = "default";

/// What makes one rule another.
const IDENTITY: [&str; 8] = [
    SECURITY_GROUP,
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
    pub(super) fn ensure_default_group(&mut self, call: &mut Call<'_>, project: &str) {
        if project.is_empty() || self.default_group(project).is_some() {
            return;
        }
        let mut group = Item::new(&GROUPS, call.ids.uuid().to_string(), project, call.now);
        group.body.extend(attributes(json!({"name": DEFAULT, "description": "Default security group"})));
        self.put(&GROUPS, call.now, group.clone());
        self.add_egress(call, &group);
        for ethertype in ["IPv4", "IPv6"] {
            let rule = json!({"direction": "ingress", "ethertype": ethertype, "remote_group_id": group.id});
            self.add_rule(call, &group, rule);
        }
    }

    /// Makes that of the caller's project.
    pub(super) fn ensure_own_default_group(&mut self, call: &mut Call<'_>) {
        let project = call.caller.project().to_owned();
        self.ensure_default_group(call, &project);
    }

    /// What every new group lets out.
    pub(super) fn add_egress(&mut self, call: &mut Call<'_>, group: &Item) {
        for ethertype in ["IPv4", "IPv6"] {
            self.add_rule(call, group, json!({"direction": "egress", "ethertype": ethertype}));
        }
    }

    fn add_rule(&mut self, call: &mut Call<'_>, group: &Item, rule: Value) {
        let mut item = Item::new(&RULES, call.ids.uuid().to_string(), &group.project_id, call.now);
        item.body.extend(attributes(rule));
        item.body.insert(SECURITY_GROUP.to_owned(), json!(group.id));
        self.put(&RULES, call.now, item);
    }

    fn default_group(&self, project: &str) -> Option<&Item> {
        let groups = self.table(&GROUPS).by("project_id", project);
        groups.map(|group| &**group).find(|group| group.text("name") == DEFAULT)
    }

    /// The name of a group is any but the one that is given by Neutron itself.
    pub(super) fn check_group(&self, _: &Call<'_>, item: &Item) -> Result<(), Refusal> {
        if item.text("name") == DEFAULT && self.default_group(&item.project_id).is_some_and(|group| group.id != item.id)
        {
            let words = "Default security group already exists.";
            return Err(Refusal::conflict(words).of_type("SecurityGroupDefaultAlreadyExists"));
        }
        Ok(())
    }

    /// The default group only an administrator deletes.
    pub(super) fn check_end_of_group(call: &Call<'_>, group: &Item) -> Result<(), Refusal> {
        if group.text("name") == DEFAULT && !call.caller.is_admin() {
            let words = "Insufficient rights for removing default security group.";
            return Err(Refusal::conflict(words).of_type("SecurityGroupCannotRemoveDefault"));
        }
        Ok(())
    }

    /// A group's rules go with it.
    pub(super) fn remove_rules(&mut self, call: &Call<'_>, group: &Item) {
        let rules: Vec<_> = self.table(&RULES).by(SECURITY_GROUP, &group.id).map(|rule| rule.id.clone()).collect();
        for rule in rules {
            self.remove(call.now, RULES.collection, &rule);
        }
    }

    /// A rule is one of a group that the caller may change, has parts that go together, and is the only one like it.
    pub(super) fn check_rule(&self, call: &Call<'_>, rule: &Item) -> Result<(), Refusal> {
        let id = rule.text(SECURITY_GROUP);
        let group = self.get(GROUPS.collection, id).filter(|group| group.is_changeable_by(&call.caller));
        group.ok_or_else(|| missing(&GROUPS, id))?;
        check_parts(rule)?;
        let same = |other: &&Arc<Item>| {
            other.id != rule.id && IDENTITY.iter().all(|part| other.body.get(*part) == rule.body.get(*part))
        };
        match self.table(&RULES).by(SECURITY_GROUP, id).find(same) {
            None => Ok(()),
            Some(other) => {
                let words = format!("Security group rule already exists. Rule id is {}.", other.id);
                Err(Refusal::conflict(words).of_type("SecurityGroupRuleExists"))
            }
        }
    }

    /// A group has changed when its rules have.
    pub(super) fn touch_group(&mut self, now: Timestamp, rule: &Item) {
        self.edit(now, GROUPS.collection, rule.text(SECURITY_GROUP), |_| {});
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
