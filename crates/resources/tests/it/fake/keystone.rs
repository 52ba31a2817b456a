//! Keystone: projects, users, roles, tokens.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};
use wiremock::{Request, ResponseTemplate};

use super::{ADMIN_PASSWORD, body, ok, query, refusal};

/// Who sends a request.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) project: String,
    pub(crate) is_admin: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Project {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) tags: Vec<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct User {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) password: String,
}

#[derive(Default)]
pub(crate) struct Keystone {
    uri: String,
    next: usize,
    pub(crate) projects: Vec<Project>,
    pub(crate) users: Vec<User>,
    /// Project, user, role.
    pub(crate) grants: Vec<(String, String, String)>,
    tokens: HashMap<String, Caller>,
    /// Tokens of a database that was replaced. They still can be read, but what they stand for is gone.
    stale: HashSet<String>,
}

const ROLES: [&str; 3] = ["admin", "member", "reader"];

impl Keystone {
    /// As it is after its bootstrap: a project and a user `admin`, and a project `service` of somebody else.
    pub(crate) fn bootstrapped(uri: &str) -> Self {
        let mut keystone = Self { uri: uri.to_owned(), ..Self::default() };
        for name in ["admin", "service"] {
            keystone.add_project(name, &[]);
        }
        keystone.add_user("admin", ADMIN_PASSWORD);
        keystone.grants.push(("project-admin".to_owned(), "user-admin".to_owned(), "role-admin".to_owned()));
        keystone
    }

    pub(crate) fn add_project(&mut self, name: &str, tags: &[&str]) -> Project {
        let tags = tags.iter().map(|&tag| tag.to_owned()).collect();
        let project = Project { id: format!("project-{name}"), name: name.to_owned(), tags };
        self.projects.push(project.clone());
        project
    }

    fn add_user(&mut self, name: &str, password: &str) -> User {
        let user = User { id: format!("user-{name}"), name: name.to_owned(), password: password.to_owned() };
        self.users.push(user.clone());
        user
    }

    pub(crate) fn project(&self, name: &str) -> Option<Project> {
        self.projects.iter().find(|project| project.name == name).cloned()
    }

    /// The only user whose name begins like this.
    pub(crate) fn user(&self, beginning: &str) -> Option<User> {
        let mut all = self.users.iter().filter(|user| user.name.starts_with(beginning));
        let user = all.next().cloned();
        assert!(all.next().is_none(), "one user per namespace");
        user
    }

    pub(crate) fn set_password(&mut self, name: &str, password: &str) {
        self.users.iter_mut().filter(|user| user.name == name).for_each(|user| password.clone_into(&mut user.password));
        self.tokens.retain(|_, caller| caller.is_admin);
    }

    /// Every token of this project's users ends.
    pub(crate) fn revoke(&mut self, project: &str) {
        self.tokens.retain(|_, caller| caller.project != project);
    }

    /// Puts an empty database in place of this one.
    pub(crate) fn replace(&mut self) {
        let stale = self.tokens.keys().cloned().collect();
        *self = Self { next: self.next, stale, ..Self::bootstrapped(&self.uri) };
    }

    pub(super) fn caller(&self, request: &Request) -> Option<Caller> {
        self.tokens.get(request.headers.get("x-auth-token")?.to_str().ok()?).cloned()
    }

    fn is_stale(&self, request: &Request) -> bool {
        let token = request.headers.get("x-auth-token").and_then(|token| token.to_str().ok());
        token.is_some_and(|token| self.stale.contains(token))
    }

    pub(super) fn answer(&mut self, request: &Request, path: &[&str]) -> ResponseTemplate {
        if path == ["auth", "tokens"] {
            return self.login(&body(request)).unwrap_or_else(|| refusal(401, "the request requires authentication"));
        }
        match self.caller(request) {
            None if self.is_stale(request) => refusal(404, "Could not find project"),
            None => refusal(401, "no such token"),
            Some(caller) if !caller.is_admin => refusal(403, "you are not authorized"),
            Some(_) => self.administer(request, path),
        }
    }

    fn login(&mut self, body: &Value) -> Option<ResponseTemplate> {
        let asked = body.pointer("/auth/identity/password/user")?;
        let (name, password) = (asked["name"].as_str()?, asked["password"].as_str()?);
        let user = self.users.iter().find(|user| user.name == name && user.password == password)?;
        let scope = body.pointer("/auth/scope/project");
        let (id, name) = (scope.and_then(|s| s["id"].as_str()), scope.and_then(|s| s["name"].as_str()));
        let project = self.projects.iter().find(|p| Some(p.id.as_str()) == id || Some(p.name.as_str()) == name)?;
        let roles: Vec<_> = self.grants.iter().filter(|g| g.0 == project.id && g.1 == user.id).collect();
        if roles.is_empty() {
            return None;
        }
        let caller =
            Caller { project: project.id.clone(), is_admin: roles.iter().any(|grant| grant.2 == "role-admin") };
        let body = json!({"token": {
            "user": {"id": user.id, "name": user.name},
            "project": {"id": project.id, "name": project.name},
            "issued_at": "2026-11-27T10:00:00.000000Z",
            "expires_at": "2026-11-27T22:00:00.000000Z",
            "catalog": [{"type": "image", "name": "glance", "id": "s1", "endpoints": [
                {"interface": "internal", "region": "RegionOne", "region_id": "RegionOne", "url": self.uri, "id": "e1"},
            ]}],
        }});
        self.next += 1;
        let token = format!("token-{}", self.next);
        self.tokens.insert(token.clone(), caller);
        Some(ok(201, body).insert_header("x-subject-token", token.as_str()))
    }

    fn administer(&mut self, request: &Request, path: &[&str]) -> ResponseTemplate {
        match (request.method.as_str(), path) {
            ("GET", ["projects"]) => self.list_projects(request),
            ("POST", ["projects"]) => self.create_project(&body(request)["project"]),
            ("GET", ["projects", id]) => {
                found(self.projects.iter().find(|p| p.id == *id).map(Project::json), "project")
            }
            ("DELETE", ["projects", id]) => removed(&mut self.projects, |project| project.id == *id),
            ("GET", ["users"]) => self.list_users(request),
            ("POST", ["users"]) => self.create_user(&body(request)["user"]),
            ("PATCH", ["users", id]) => self.patch_user(id, &body(request)["user"]),
            ("DELETE", ["users", id]) => removed(&mut self.users, |user| user.id == *id),
            ("GET", ["roles"]) => list_roles(request),
            ("HEAD", ["projects", project, "users", user, "roles", role]) => {
                let has = self.grants.iter().any(|(p, u, r)| p == project && u == user && r == role);
                ResponseTemplate::new(if has { 204 } else { 404 })
            }
            ("PUT", ["projects", project, "users", user, "roles", role]) => {
                self.grants.push(((*project).to_owned(), (*user).to_owned(), (*role).to_owned()));
                ResponseTemplate::new(204)
            }
            _ => refusal(404, "not found"),
        }
    }

    fn list_projects(&self, request: &Request) -> ResponseTemplate {
        let (name, tags) = (query(request, "name"), query(request, "tags"));
        let fits = |project: &&Project| {
            name.as_ref().is_none_or(|name| *name == project.name)
                && tags.as_ref().is_none_or(|tags| tags.split(',').all(|tag| project.tags.iter().any(|t| t == tag)))
        };
        ok(200, json!({"projects": self.projects.iter().filter(fits).map(Project::json).collect::<Vec<_>>()}))
    }

    fn create_project(&mut self, asked: &Value) -> ResponseTemplate {
        let name = asked["name"].as_str().unwrap_or_default();
        if self.project(name).is_some() {
            return refusal(409, "Conflict occurred attempting to store project - it is not permitted to have two");
        }
        let tags: Vec<_> = asked["tags"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let project = self.add_project(name, &tags);
        ok(201, json!({"project": project.json()}))
    }

    fn list_users(&self, request: &Request) -> ResponseTemplate {
        let name = query(request, "name");
        let fits = |user: &&User| name.as_ref().is_none_or(|name| *name == user.name);
        ok(200, json!({"users": self.users.iter().filter(fits).map(User::json).collect::<Vec<_>>()}))
    }

    fn create_user(&mut self, asked: &Value) -> ResponseTemplate {
        let (name, password) =
            (asked["name"].as_str().unwrap_or_default(), asked["password"].as_str().unwrap_or_default());
        if self.users.iter().any(|user| user.name == name) {
            return refusal(409, "Conflict occurred attempting to store user");
        }
        let user = self.add_user(name, password);
        ok(201, json!({"user": user.json()}))
    }

    fn patch_user(&mut self, id: &str, asked: &Value) -> ResponseTemplate {
        let Some(user) = self.users.iter_mut().find(|user| user.id == id) else { return refusal(404, "no such user") };
        if let Some(password) = asked["password"].as_str() {
            password.clone_into(&mut user.password);
        }
        ok(200, json!({"user": user.json()}))
    }
}

impl Project {
    fn json(&self) -> Value {
        let Self { id, name, tags } = self;
        json!({"id": id, "name": name, "tags": tags, "domain_id": "default", "enabled": true, "description": ""})
    }
}

impl User {
    fn json(&self) -> Value {
        json!({"id": self.id, "name": self.name, "domain_id": "default", "enabled": true})
    }
}

fn list_roles(request: &Request) -> ResponseTemplate {
    let name = query(request, "name");
    let roles = ROLES.iter().filter(|role| name.as_deref().is_none_or(|name| name == **role));
    ok(200, json!({"roles": roles.map(|role| json!({"id": format!("role-{role}"), "name": role})).collect::<Vec<_>>()}))
}

fn found(value: Option<Value>, key: &str) -> ResponseTemplate {
    value.map_or_else(|| refusal(404, "not found"), |value| ok(200, json!({key: value})))
}

fn removed<T>(all: &mut Vec<T>, is_it: impl Fn(&T) -> bool) -> ResponseTemplate {
    let before = all.len();
    all.retain(|one| !is_it(one));
    if all.len() < before { ResponseTemplate::new(204) } else { refusal(404, "not found") }
}
