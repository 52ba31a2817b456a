//! Server groups, and which hosts they leave to a server.

use std::collections::BTreeMap;

use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Nova,
    flavor::{invalid, lacks},
    limit,
    servers::Server,
    speaks,
};
use crate::sim::{
    http::{Answer, Outcome, Refusal},
    service::{Call, Version},
    table::{Row, Table},
};

/// A server group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerGroup {
    /// Its id.
    pub id: String,
    /// Its name, not unique.
    pub name: String,
    /// What it asks for: `anti-affinity`, `soft-anti-affinity`, `affinity` or `soft-affinity`.
    pub policy: String,
    /// The project it belongs to.
    pub project_id: String,
    /// Who has made it.
    pub user_id: String,
    /// Ids of the servers that were made in it, whether they are there any more or not.
    pub members: Vec<String>,
}

/// What a group may ask for. What it is to keep together is not simulated.
const POLICIES: [&str; 4] = ["anti-affinity", "affinity", "soft-anti-affinity", "soft-affinity"];
/// The oldest microversions that change something.
const WITH_PROJECT: Version = (2, 13);
const WITH_SOFT_POLICIES: Version = (2, 15);
const WITH_ONE_POLICY: Version = (2, 64);
/// The limits that Nova asks for.
const COUNT: &str = "server_groups";
const MEMBERS: &str = "server_group_members";

impl ServerGroup {
    /// A group without servers.
    pub fn new(id: &str, name: &str, policy: &str, project_id: &str) -> Self {
        Self {
            id: id.to_owned(),
            name: name.to_owned(),
            policy: policy.to_owned(),
            project_id: project_id.to_owned(),
            user_id: String::new(),
            members: Vec::new(),
        }
    }

    /// What a request to make one asks for.
    fn asked(call: &mut Call<'_>) -> Result<Self, Refusal> {
        let body = call.request.json();
        let asked = &body["server_group"];
        let name = asked["name"].as_str().unwrap_or_default();
        if !(1..=255).contains(&name.chars().count()) || name.trim() != name {
            return Err(invalid("name", &asked["name"], "does not match any of the regexes"));
        }
        let key = if speaks(call, WITH_ONE_POLICY) { "policy" } else { "policies" };
        if asked.get(key).is_none() {
            return Err(lacks("server_group", asked, key));
        }
        let policy = if key == "policy" { &asked[key] } else { &asked[key][0] };
        let known = |policy: &&str| {
            POLICIES.contains(policy) && (speaks(call, WITH_SOFT_POLICIES) || !policy.starts_with("soft"))
        };
        let Some(policy) = policy.as_str().filter(known) else {
            return Err(invalid(key, policy, &format!("is not one of {POLICIES:?}")));
        };
        let (name, policy) = (name.to_owned(), policy.to_owned());
        let group = Self::new(&call.ids.uuid().to_string(), &name, &policy, call.caller.project());
        Ok(Self { user_id: call.caller.user_id.clone(), ..group })
    }

    fn is_of(&self, call: &Call<'_>) -> bool {
        call.caller.is_admin() || self.project_id == call.caller.project()
    }

    /// Of these hosts, one that the group leaves to a new server: with as few of its members as possible, and with none if
    /// its policy insists on that.
    pub(super) fn host<'h>(&self, hosts: &'h [String], servers: &Table<Server>) -> Option<&'h String> {
        let mut members = BTreeMap::<&str, usize>::new();
        for host in self.members.iter().filter_map(|member| servers.get(member)?.host.as_deref()) {
            *members.entry(host).or_default() += 1;
        }
        let number = |host: &String| members.get(host.as_str()).copied().unwrap_or_default();
        let insists = self.policy == "anti-affinity";
        hosts.iter().filter(|host| !insists || number(host) == 0).min_by_key(|host| number(host))
    }
}

impl Row for ServerGroup {
    fn id(&self) -> &str {
        &self.id
    }

    fn keys(&self) -> Vec<(&'static str, String)> {
        vec![("project", self.project_id.clone())]
    }
}

impl Nova {
    pub(super) fn list_server_groups(&mut self, call: &mut Call<'_>) -> Outcome {
        let groups = self.server_groups.view(call.as_of);
        // others get their own, whatever they ask for
        let everybodys = call.request.query("all_projects").is_some() && call.caller.is_admin();
        let found: Vec<_> =
            if everybodys { groups.all().collect() } else { groups.by("project", call.caller.project()).collect() };
        let offset = call.request.query("offset").and_then(|offset| offset.parse().ok()).unwrap_or_default();
        let page = found.into_iter().skip(offset).take(limit(call)?);
        let shown: Vec<Value> = page.map(|group| self.shown_group(call, group)).collect();
        Ok(Answer::ok(&json!({"server_groups": shown})))
    }

    pub(super) fn create_server_group(&mut self, call: &mut Call<'_>) -> Outcome {
        let project = call.caller.project().to_owned();
        let count = self.server_groups.by("project", &project).count() as u64;
        if call.quotas.exceeded(&project, COUNT, count, 1).is_some() {
            return Err(Refusal::forbidden("Quota exceeded, too many server groups."));
        }
        let group = ServerGroup::asked(call)?;
        let answer = Answer::ok(&json!({"server_group": self.shown_group(call, &group)}));
        self.put_server_group(call.now, group);
        Ok(answer)
    }

    pub(super) fn show_server_group(&mut self, call: &mut Call<'_>) -> Outcome {
        let groups = self.server_groups.view(call.as_of);
        let group =
            groups.get(call.param(0)).filter(|group| group.is_of(call)).ok_or_else(|| no_group(call.param(0)))?;
        Ok(Answer::ok(&json!({"server_group": self.shown_group(call, group)})))
    }

    pub(super) fn delete_server_group(&mut self, call: &mut Call<'_>) -> Outcome {
        let (id, now) = (call.param(0).to_owned(), call.now);
        self.server_group(&id).filter(|group| group.is_of(call)).ok_or_else(|| no_group(&id))?;
        self.remove_server_group(now, &id);
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }

    /// A server group by its id.
    pub fn server_group(&self, id: &str) -> Option<&ServerGroup> {
        self.server_groups.get(id).map(|group| &**group)
    }

    /// All server groups, the oldest first.
    pub fn server_groups(&self) -> impl Iterator<Item = &ServerGroup> {
        self.server_groups.all().map(|group| &**group)
    }

    /// Puts a server group there, or another in its place, as if somebody had made it so.
    pub fn put_server_group(&mut self, now: Timestamp, group: ServerGroup) {
        self.server_groups.put(now, group);
    }

    /// Deletes a server group as if somebody had done so. False if there is none.
    pub fn remove_server_group(&mut self, now: Timestamp, id: &str) -> bool {
        self.server_groups.remove(now, id).is_some()
    }

    /// The group that a request for a server asks for, whoever's it is.
    pub(super) fn wanted_group(&self, body: &Value) -> Result<Option<ServerGroup>, Refusal> {
        match &body["os:scheduler_hints"]["group"] {
            Value::Null => Ok(None),
            Value::String(id) => match self.server_group(id) {
                Some(group) => Ok(Some(group.clone())),
                None => Err(Refusal::bad_request(format!("Instance group {id} could not be found."))),
            },
            other => Err(invalid("group", other, "is not a 'uuid'")),
        }
    }

    /// Refuses more servers than a group may have.
    pub(super) fn check_members(&self, call: &Call<'_>, group: Option<&ServerGroup>) -> Result<(), Refusal> {
        let count = group.map_or(0, |group| self.members(group).count() as u64);
        match call.quotas.exceeded(call.caller.project(), MEMBERS, count, 1).filter(|_| group.is_some()) {
            Some(_) => Err(Refusal::forbidden("Quota exceeded, too many servers in group")),
            None => Ok(()),
        }
    }

    /// Puts a new server into its group.
    pub(super) fn join(&mut self, now: Timestamp, group: Option<ServerGroup>, server: &str) {
        if let Some(mut group) = group {
            group.members.push(server.to_owned());
            self.put_server_group(now, group);
        }
    }

    /// Ids of the groups that a server is in.
    pub(super) fn groups_of(&self, server: &str) -> Vec<&str> {
        let is_in = |group: &&ServerGroup| group.members.iter().any(|member| member == server);
        self.server_groups().filter(is_in).map(|group| group.id.as_str()).collect()
    }

    fn members<'a>(&'a self, group: &'a ServerGroup) -> impl Iterator<Item = &'a String> {
        group.members.iter().filter(|member| self.server(member).is_some())
    }

    fn shown_group(&self, call: &Call<'_>, group: &ServerGroup) -> Value {
        let members: Vec<&String> = self.members(group).collect();
        let mut shown = json!({"id": group.id, "name": group.name, "members": members});
        if speaks(call, WITH_ONE_POLICY) {
            shown["policy"] = json!(group.policy);
            shown["rules"] = json!({});
        } else {
            shown["policies"] = json!([group.policy]);
            shown["metadata"] = json!({});
        }
        if speaks(call, WITH_PROJECT) {
            shown["project_id"] = json!(group.project_id);
            shown["user_id"] = json!(group.user_id);
        }
        shown
    }
}

fn no_group(id: &str) -> Refusal {
    Refusal::not_found(format!("Instance group {id} could not be found."))
}
