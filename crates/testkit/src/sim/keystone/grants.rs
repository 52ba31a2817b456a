//! Who has which role where.

use std::collections::BTreeSet;

use http::StatusCode;
use serde_json::{Value, json};

use super::{
    HIERARCHY, Keystone, admin_only,
    entities::collection,
    kinds::{DOMAINS, PROJECTS, ROLES, USERS},
    missing, no_content,
};
use crate::sim::{
    http::{Answer, Outcome, Refusal},
    service::Call,
};

impl Keystone {
    /// Whether a user has a role, by its name and a grant of its own, in a project.
    pub fn has_role(&self, project_id: &str, user_id: &str, role: &str) -> bool {
        self.granted(project_id, user_id)
            .any(|id| self.entity(&ROLES, id).is_some_and(|found| found.text("name") == role))
    }

    /// All grants: project or domain, user, and the role's name.
    pub fn grants(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        let name = |id: &str| self.entity(&ROLES, id).map_or("", |role| role.text("name"));
        self.grants.iter().map(move |(target, user, role)| (target.as_str(), user.as_str(), name(role)))
    }

    fn granted(&self, target: &str, user: &str) -> impl Iterator<Item = &str> {
        let first = (target.to_owned(), user.to_owned(), String::new());
        let (target, user) = (target.to_owned(), user.to_owned());
        let own = self.grants.range(first..).take_while(move |(t, u, _)| *t == target && *u == user);
        own.map(|(_, _, role)| role.as_str())
    }

    /// The ids and names of a user's roles in a project or domain, with those that they imply.
    pub(super) fn roles(&self, target: &str, user: &str) -> Vec<(String, String)> {
        self.implied(self.granted(target, user))
    }

    pub(super) fn implied<'a>(&self, ids: impl Iterator<Item = &'a str>) -> Vec<(String, String)> {
        let mut names = BTreeSet::new();
        for role in ids.filter_map(|id| self.entity(&ROLES, id)) {
            let name = role.text("name");
            names.insert(name);
            if let Some(index) = HIERARCHY.iter().position(|implying| *implying == name) {
                names.extend(&HIERARCHY[index..]);
            }
        }
        let roles = names.into_iter().filter_map(|name| self.named(&ROLES, name, None));
        roles.map(|role| (role.id.clone(), role.text("name").to_owned())).collect()
    }

    /// The target, the user and the role of a path, if they are all there.
    fn grant_of(&self, call: &Call<'_>) -> Result<(String, String, String), Refusal> {
        let kind = if call.template.starts_with("/v3/projects") { &PROJECTS } else { &DOMAINS };
        for (kind, id) in [(&ROLES, call.param(2)), (&USERS, call.param(1)), (kind, call.param(0))] {
            if self.entity(kind, id).is_none() {
                return Err(missing(kind.member, id));
            }
        }
        Ok((call.param(0).to_owned(), call.param(1).to_owned(), call.param(2).to_owned()))
    }

    pub(super) fn add_grant(&mut self, call: &mut Call<'_>) -> Outcome {
        admin_only(call, "create_grant")?;
        let grant = self.grant_of(call)?;
        self.grants.insert(grant);
        Ok(no_content())
    }

    pub(super) fn check_grant(&mut self, call: &mut Call<'_>) -> Outcome {
        admin_only(call, "check_grant")?;
        let grant = self.grant_of(call)?;
        if self.grants.contains(&grant) { Ok(no_content()) } else { Err(no_assignment(&grant)) }
    }

    pub(super) fn delete_grant(&mut self, call: &mut Call<'_>) -> Outcome {
        admin_only(call, "revoke_grant")?;
        let grant = self.grant_of(call)?;
        if self.grants.remove(&grant) { Ok(no_content()) } else { Err(no_assignment(&grant)) }
    }

    pub(super) fn list_grants(&mut self, call: &mut Call<'_>) -> Outcome {
        admin_only(call, "list_grants")?;
        let roles = self.granted(call.param(0), call.param(1)).filter_map(|id| self.entity(&ROLES, id));
        let roles: Vec<Value> = roles.map(|role| role.shown(call.base, "roles")).collect();
        Ok(collection(call, "roles", &roles))
    }

    pub(super) fn list_assignments(&mut self, call: &mut Call<'_>) -> Outcome {
        admin_only(call, "list_role_assignments")?;
        let request = call.request;
        let wanted = |key: &str, is: &str| request.query(key).is_none_or(|wanted| wanted == is);
        let with_names = request.query("include_names").is_some_and(|value| !matches!(value, "0" | "false" | "False"));
        let mut found = Vec::new();
        for (target, user, role) in &self.grants {
            let is_project = self.entity(&PROJECTS, target).is_some();
            let (kind, key) = if is_project { (&PROJECTS, "scope.project.id") } else { (&DOMAINS, "scope.domain.id") };
            let other = if is_project { "scope.domain.id" } else { "scope.project.id" };
            if !wanted(key, target)
                || request.query(other).is_some()
                || !wanted("user.id", user)
                || !wanted("role.id", role)
            {
                continue;
            }
            let name = |kind, id: &str| self.named_reference(kind, id, with_names);
            let link = format!("{}/identity/v3/{}/{target}/users/{user}/roles/{role}", call.base, kind.collection);
            found.push(json!({
                "scope": {kind.member: name(kind, target)},
                "user": name(&USERS, user),
                "role": name(&ROLES, role),
                "links": {"assignment": link},
            }));
        }
        Ok(collection(call, "role_assignments", &found))
    }

    fn named_reference(&self, kind: &super::Kind, id: &str, with_names: bool) -> Value {
        let Some(entity) = self.entity(kind, id).filter(|_| with_names) else { return json!({"id": id}) };
        let mut reference = json!({"id": id, "name": entity.text("name")});
        if let Some(domain) = self.entity(&DOMAINS, entity.text("domain_id")) {
            reference["domain"] = json!({"id": domain.id, "name": domain.text("name")});
        }
        reference
    }

    /// The projects that a user has a role in: the caller, if no other is meant.
    pub(super) fn own_projects(&self, call: &Call<'_>, user: Option<&str>) -> Answer {
        let user = user.unwrap_or(&call.caller.user_id);
        let ids: BTreeSet<&str> =
            self.grants.iter().filter(|grant| grant.1 == user).map(|grant| grant.0.as_str()).collect();
        let projects =
            ids.into_iter().filter_map(|id| self.entity(&PROJECTS, id)).filter(|project| project.is_enabled());
        let projects: Vec<Value> = projects.map(|project| project.shown(call.base, "projects")).collect();
        collection(call, "projects", &projects)
    }
}

fn no_assignment((target, user, role): &(String, String, String)) -> Refusal {
    Refusal::new(
        StatusCode::NOT_FOUND,
        format!(
            "Could not find role assignment with role: {role}, user or group: {user}, project, domain, or system: {target}."
        ),
    )
}
