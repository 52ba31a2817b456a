//! Objects, and what can be done with objects of every kind.

use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{
    Keystone, admin_only, forbidden,
    kinds::{DOMAINS, Kind, LIMITS, Names, PROJECTS, USERS},
    missing, no_content, wrapped,
};
use crate::sim::{
    http::{Answer, Outcome, Refusal},
    service::Call,
    table::Row,
};

/// As many objects are on a page at most; Keystone's `max_db_limit`.
const LONGEST_PAGE: usize = 1000;

/// An object.
#[derive(Debug, Clone)]
pub struct Entity {
    /// Its id.
    pub id: String,
    /// Its attributes as Keystone shows them, but for the links.
    pub body: Map<String, Value>,
    /// A user's password, an application credential's secret.
    pub secret: Option<String>,
    /// Grows when what its tokens stand on has changed: they end then.
    pub(super) epoch: u64,
    kind: &'static Kind,
}

impl Entity {
    pub(super) fn new(kind: &'static Kind, id: String, mut asked: Map<String, Value>) -> Self {
        let secret = take_secret(&mut asked);
        Self { body: kind.complete(&id, asked), id, secret, epoch: 0, kind }
    }

    /// An attribute's text; empty if it has none.
    pub fn text(&self, attribute: &str) -> &str {
        self.body.get(attribute).and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.body.get("enabled") != Some(&json!(false))
    }

    /// Changes attributes; a new password or an end ends the tokens.
    pub(super) fn change(&mut self, mut asked: Map<String, Value>) {
        if let Some(secret) = take_secret(&mut asked) {
            self.secret = Some(secret);
            self.epoch += 1;
        }
        asked.remove("id");
        self.body.extend(asked);
        if !self.is_enabled() {
            self.epoch += 1;
        }
    }

    pub(super) fn shown(&self, base: &str, path: &str) -> Value {
        let mut body = self.body.clone();
        let link = format!("{base}/identity/v3/{path}/{}", self.id);
        body.insert("links".to_owned(), json!({"self": link}));
        Value::Object(body)
    }
}

fn take_secret(asked: &mut Map<String, Value>) -> Option<String> {
    let secrets = ["password", "secret"].map(|key| asked.remove(key));
    secrets.into_iter().flatten().find_map(|secret| secret.as_str().map(str::to_owned))
}

impl Row for Entity {
    fn id(&self) -> &str {
        &self.id
    }

    /// Names are found as MariaDB compares them: whatever their case.
    fn keys(&self) -> Vec<(&'static str, String)> {
        vec![("name", self.text("name").to_lowercase()), ("owner", self.text("user_id").to_owned())]
    }
}

impl Keystone {
    pub(super) fn list(&self, kind: &Kind, call: &Call<'_>) -> Outcome {
        if kind.collection != "regions" {
            admin_only(call, &format!("list_{}", kind.collection))?;
        }
        let Some(table) = self.table(kind) else { return Ok(collection(call, kind.collection, &[])) };
        let table = table.view(call.as_of);
        let fits = |entity: &&std::sync::Arc<Entity>| fits(kind, entity, call);
        let found: Vec<Value> = match call.request.query("name").filter(|_| kind.filters.contains(&"name")) {
            Some(name) => {
                let named = table.by("name", &name.to_lowercase());
                named.filter(fits).map(|entity| entity.shown(call.base, kind.collection)).collect()
            }
            None => table.all().filter(fits).map(|entity| entity.shown(call.base, kind.collection)).collect(),
        };
        page(kind, call, found)
    }

    pub(super) fn show(&self, kind: &Kind, call: &Call<'_>) -> Outcome {
        let id = call.param(0);
        may_see(kind, id, call)?;
        let table = self.table(kind).map(|table| table.view(call.as_of));
        match table.as_ref().and_then(|table| table.get(id)) {
            Some(entity) => Ok(Answer::ok(&json!({kind.member: entity.shown(call.base, kind.collection)}))),
            None => Err(missing(kind.member, id)),
        }
    }

    pub(super) fn create(&mut self, kind: &'static Kind, call: &mut Call<'_>) -> Outcome {
        admin_only(call, &format!("create_{}", kind.member))?;
        let asked = wrapped(call, kind.member)?;
        if let Some(required) = kind.required.iter().find(|required| !asked.contains_key(**required)) {
            return Err(lacks(kind.member, &Value::Object(asked.clone()), required));
        }
        validate(kind, &asked)?;
        // regions are named by whoever makes them
        let chosen = asked.get("id").and_then(Value::as_str).filter(|_| kind.collection == "regions");
        let id = chosen.map_or_else(|| call.ids.hex(), str::to_owned);
        if self.entity(kind, &id).is_some() {
            return Err(Refusal::conflict(format!(
                "Conflict occurred attempting to store {} - Duplicate ID, {id}.",
                kind.member
            )));
        }
        let entity = Entity::new(kind, id, asked);
        self.check_references(&entity)?;
        self.check_name(kind, &entity)?;
        let entity = self.table_mut(kind).put(call.now, entity);
        let body = json!({kind.member: entity.shown(call.base, kind.collection)});
        Ok(Answer::json(StatusCode::CREATED, &body))
    }

    pub(super) fn update(&mut self, kind: &'static Kind, call: &mut Call<'_>) -> Outcome {
        admin_only(call, &format!("update_{}", kind.member))?;
        let asked = wrapped(call, kind.member)?;
        validate(kind, &asked)?;
        let id = call.param(0);
        let mut entity = self.entity(kind, id).ok_or_else(|| missing(kind.member, id))?.clone();
        entity.change(asked);
        self.check_name(kind, &entity)?;
        let entity = self.table_mut(kind).put(call.now, entity);
        let mut shown = entity.shown(call.base, kind.collection);
        if !kind.columns.is_empty() {
            let extra = entity.body.iter().filter(|(key, _)| !kind.columns.contains(&key.as_str()));
            shown["extra"] = extra.map(|(key, value)| (key.clone(), value.clone())).collect();
        }
        Ok(Answer::ok(&json!({kind.member: shown})))
    }

    pub(super) fn delete(&mut self, kind: &'static Kind, call: &mut Call<'_>) -> Outcome {
        admin_only(call, &format!("delete_{}", kind.member))?;
        let id = call.param(0);
        let entity = self.entity(kind, id).ok_or_else(|| missing(kind.member, id))?;
        if kind.collection == "domains" && entity.is_enabled() {
            return Err(Refusal::forbidden("Cannot delete a domain that is enabled, please disable it first."));
        }
        self.remove(call.now, kind.collection, id);
        Ok(no_content())
    }

    /// What ends with an object: its grants, its limits, its application credentials, and being anybody's default project.
    pub(super) fn forget(&mut self, now: Timestamp, id: &str) {
        let of_it = self.all("limits").filter(|limit| limit.text("project_id") == id);
        for limit in of_it.map(|limit| limit.id.clone()).collect::<Vec<_>>() {
            self.table_mut(&LIMITS).remove(now, &limit);
        }
        self.grants.retain(|(target, user, role)| target != id && user != id && role != id);
        self.forget_credentials(now, id);
        let is_at_home = |user: &&Entity| user.text("default_project_id") == id;
        let homeless: Vec<Entity> = self.all("users").filter(is_at_home).cloned().collect();
        for mut user in homeless {
            user.body.remove("default_project_id");
            self.table_mut(&USERS).put(now, user);
        }
    }

    fn check_references(&self, entity: &Entity) -> Result<(), Refusal> {
        let domain = entity.text("domain_id");
        if matches!(entity.kind.collection, "users" | "projects") && self.entity(&DOMAINS, domain).is_none() {
            return Err(Refusal { status: StatusCode::BAD_REQUEST, ..missing("domain", domain) });
        }
        let service = entity.text("service_id");
        if entity.kind.collection == "endpoints" && self.get("services", service).is_none() {
            return Err(missing("service", service));
        }
        Ok(())
    }

    fn check_name(&self, kind: &Kind, entity: &Entity) -> Result<(), Refusal> {
        let (name, domain) = (entity.text("name"), entity.text("domain_id"));
        let taken = match kind.names {
            Names::Free => None,
            Names::Unique => self.named(kind, name, None),
            Names::UniqueInDomain => self.named(kind, name, Some(domain)),
        };
        if taken.is_none_or(|taken| taken.id == entity.id) {
            return Ok(());
        }
        let details = match (kind.collection, &kind.names) {
            ("projects", _) => {
                format!(
                    "it is not permitted to have two projects with either the same name or same id in the same domain: \
                     name is {name}, project id {}",
                    entity.id
                )
            }
            ("domains", _) => {
                format!("it is not permitted to have two projects acting as domains with the same name: {name}")
            }
            (_, Names::UniqueInDomain) => format!("Duplicate entry found with name {name} at domain ID {domain}"),
            _ => format!("Duplicate entry found with name {name}"),
        };
        Err(Refusal::conflict(format!("Conflict occurred attempting to store {} - {details}.", kind.member)))
    }

    pub(super) fn list_tags(&mut self, call: &mut Call<'_>) -> Outcome {
        may_see(&PROJECTS, call.param(0), call)?;
        let project = self.entity(&PROJECTS, call.param(0)).ok_or_else(|| missing("project", call.param(0)))?;
        Ok(Answer::ok(&json!({"tags": project.body.get("tags"), "links": {}})))
    }

    pub(super) fn set_tags(&mut self, call: &mut Call<'_>) -> Outcome {
        admin_only(call, "update_project_tags")?;
        let asked = Map::from_iter([("tags".to_owned(), call.request.json()["tags"].take())]);
        validate(&PROJECTS, &asked)?;
        let id = call.param(0);
        let mut project = self.entity(&PROJECTS, id).ok_or_else(|| missing("project", id))?.clone();
        project.change(asked);
        let body = json!({"tags": project.body.get("tags"), "links": {}});
        self.table_mut(&PROJECTS).put(call.now, project);
        Ok(Answer::ok(&body))
    }

    pub(super) fn change_password(&mut self, call: &mut Call<'_>) -> Outcome {
        let asked = wrapped(call, "user")?;
        let text = |key: &str| asked.get(key).and_then(Value::as_str);
        let user = self.entity(&USERS, call.param(0));
        let known = user.is_some_and(|user| user.secret.as_deref() == text("original_password"));
        let (Some(user), true, Some(password)) = (user, known, text("password")) else {
            return Err(Refusal::new(StatusCode::UNAUTHORIZED, "The request you have made requires authentication."));
        };
        let mut user = user.clone();
        user.change(Map::from_iter([("password".to_owned(), json!(password))]));
        self.table_mut(&USERS).put(call.now, user);
        Ok(no_content())
    }

    pub(super) fn projects_of(&mut self, call: &mut Call<'_>) -> Outcome {
        let user = call.param(0).to_owned();
        if call.caller.user_id != user && !call.caller.is_admin() {
            return forbidden("list_user_projects");
        }
        Ok(self.own_projects(call, Some(&user)))
    }
}

/// What a user may know about himself and where he is, without being an administrator.
fn may_see(kind: &Kind, id: &str, call: &Call<'_>) -> Result<(), Refusal> {
    let caller = &call.caller;
    let own = match kind.collection {
        "users" => caller.user_id == id,
        "projects" => caller.project_id.as_deref() == Some(id),
        "domains" => caller.domain_id.as_deref() == Some(id),
        "regions" => true,
        _ => false,
    };
    if own { Ok(()) } else { admin_only(call, &format!("get_{}", kind.member)) }
}

/// What Keystone's schemas refuse of what our callers could send.
fn validate(kind: &Kind, asked: &Map<String, Value>) -> Result<(), Refusal> {
    if let Some(name) = asked.get("name") {
        let Some(text) = name.as_str() else { return Err(invalid("name", name, "is not of type 'string'")) };
        if text.trim().is_empty() && kind.names != Names::Free {
            return Err(invalid("name", name, "should be non-empty"));
        }
        if text.chars().count() > kind.longest_name {
            return Err(invalid("name", name, "is too long"));
        }
    }
    for tag in asked.get("tags").and_then(Value::as_array).into_iter().flatten() {
        if tag.as_str().is_none_or(|tag| tag.is_empty() || tag.contains(['/', ','])) {
            return Err(invalid("tags", tag, "does not match '^[^,/]*$'"));
        }
    }
    match asked.get("enabled") {
        Some(value) if !value.is_boolean() => Err(invalid("enabled", value, "is not of type 'boolean'")),
        _ => Ok(()),
    }
}

fn invalid(field: &str, value: &Value, problem: &str) -> Refusal {
    let given = value.as_str().map_or_else(|| in_python(value), str::to_owned);
    let quoted = in_python(value);
    Refusal::bad_request(format!("Invalid input for field/attribute {field}. Value: {given}. {quoted} {problem}"))
}

/// The refusal of an object that lacks an attribute.
pub(super) fn lacks(field: &str, value: &Value, required: &str) -> Refusal {
    let given = in_python(value);
    let problem = format!("'{required}' is a required property");
    Refusal::bad_request(format!("Invalid input for field/attribute {field}. Value: {given}. {problem}"))
}

/// A value as Keystone's messages quote it.
fn in_python(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("'{text}'"),
        Value::Array(list) => format!("[{}]", list.iter().map(in_python).collect::<Vec<_>>().join(", ")),
        Value::Object(object) => {
            let members = object.iter().map(|(key, value)| format!("'{key}': {}", in_python(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
    }
}

pub(super) fn fits(kind: &Kind, entity: &Entity, call: &Call<'_>) -> bool {
    kind.filters.iter().all(|filter| match (call.request.query(filter), entity.body.get(*filter)) {
        (None, _) => true,
        (Some(wanted), Some(Value::String(is))) => wanted.to_lowercase() == is.to_lowercase(),
        (Some(wanted), Some(Value::Bool(is))) => matches!(wanted.to_lowercase().as_str(), "true" | "1" | "") == *is,
        (Some(_), _) => false,
    })
}

/// Whether an object as it is shown has the tags that are asked for.
fn is_tagged(shown: &Value, call: &Call<'_>) -> bool {
    let tags: Vec<&str> = shown["tags"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let has = |tag: &str| tags.contains(&tag);
    let wanted = |key: &str| call.request.query(key).map(|list| list.split(',').collect::<Vec<_>>());
    wanted("tags").is_none_or(|list| list.into_iter().all(has))
        && wanted("tags-any").is_none_or(|list| list.into_iter().any(has))
        && wanted("not-tags").is_none_or(|list| !list.into_iter().all(has))
        && wanted("not-tags-any").is_none_or(|list| !list.into_iter().any(has))
}

/// A list as a whole.
pub(super) fn collection(call: &Call<'_>, name: &str, found: &[Value]) -> Answer {
    let this = format!("{}{}", call.base, call.request.path);
    Answer::ok(&json!({name: found, "links": {"next": null, "self": this, "previous": null}}))
}

/// A list, or the page of it that is asked for. As Keystone does it, where there are pages a list that asks for none is
/// cut off at the longest, which nothing tells; tags are looked at after that; and a page that is full has a next one,
/// unless no tag on it fits.
pub(super) fn page(kind: &Kind, call: &Call<'_>, mut found: Vec<Value>) -> Outcome {
    if !kind.has_pages {
        found.retain(|one| is_tagged(one, call));
        return Ok(collection(call, kind.collection, &found));
    }
    let id = |one: &Value| one["id"].as_str().unwrap_or_default().to_owned();
    found.sort_by_cached_key(id);
    if let Some(marker) = call.request.query("marker") {
        let Some(index) = found.iter().position(|one| id(one) == marker) else {
            return Err(Refusal::not_found(format!("Marker {marker} could not be found.")));
        };
        found.drain(..=index);
    }
    let limit = match call.request.query("limit").map(|limit| (limit, limit.parse::<usize>())) {
        None => None,
        Some((_, Ok(limit))) => Some(limit.min(LONGEST_PAGE)),
        Some((limit, Err(_))) => return Err(Refusal::bad_request(format!("Invalid limit value: {limit}"))),
    };
    found.truncate(limit.filter(|limit| *limit > 0).unwrap_or(LONGEST_PAGE));
    let full = limit.filter(|limit| found.len() >= *limit);
    found.retain(|one| is_tagged(one, call));
    let Some(limit) = full else { return Ok(collection(call, kind.collection, &found)) };
    let this = format!("{}{}", call.base, call.request.path);
    let next = found.last().map(|last| {
        let query = call.request.query_with(&[("limit", limit.to_string().as_str()), ("marker", id(last).as_str())]);
        format!("{this}?{query}")
    });
    let links = json!({"next": next, "self": this, "previous": null});
    Ok(Answer::ok(&json!({kind.collection: found, "links": links, "truncated": true})))
}
