//! An object of whatever kind, and what may be declared of it.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::kinds::{Attribute, Kind, NETWORK, SECURITY_GROUP};
use crate::sim::{http::Refusal, service::Caller, table::Row};

/// An object.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Its id.
    pub id: String,
    /// The project it belongs to.
    pub project_id: String,
    /// Its attributes, but for those that every object has.
    pub body: Map<String, Value>,
    /// Grows with every change.
    pub revision: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl Item {
    /// An object with what Neutron gives it that is not asked for.
    pub(super) fn new(kind: &Kind, id: String, project_id: &str, now: Timestamp) -> Self {
        let (project_id, body) = (project_id.to_owned(), attributes((kind.defaults)()));
        Self { id, project_id, body, revision: 1, created_at: now, updated_at: now }
    }

    /// An attribute's text; empty if it has none.
    pub fn text(&self, attribute: &str) -> &str {
        self.body.get(attribute).and_then(Value::as_str).unwrap_or_default()
    }

    /// Whether an attribute is true.
    pub fn is(&self, attribute: &str) -> bool {
        self.body.get(attribute) == Some(&json!(true))
    }

    pub(super) fn is_visible_to(&self, caller: &Caller) -> bool {
        self.is_changeable_by(caller) || self.is("shared") || self.is("router:external")
    }

    pub(super) fn is_changeable_by(&self, caller: &Caller) -> bool {
        caller.is_admin() || (!self.project_id.is_empty() && caller.project() == self.project_id)
    }

    /// The object as Neutron shows it.
    pub(super) fn shown(&self) -> Map<String, Value> {
        let mut shown = self.body.clone();
        shown.extend(attributes(json!({
            "id": self.id, "project_id": self.project_id, "tenant_id": self.project_id,
            "revision_number": self.revision, "created_at": stamp(self.created_at), "updated_at": stamp(self.updated_at),
        })));
        shown
    }

    /// Another has changed it, or something that belongs to it.
    pub(super) fn touch(&mut self, now: Timestamp) {
        self.revision += 1;
        self.updated_at = now;
    }
}

impl Row for Item {
    fn id(&self) -> &str {
        &self.id
    }

    fn keys(&self) -> Vec<(&'static str, String)> {
        let of_body = ["name", SECURITY_GROUP, NETWORK].map(|field| (field, self.text(field).to_owned()));
        of_body.into_iter().chain([("project_id", self.project_id.clone())]).collect()
    }
}

/// What is written as an object of JSON.
pub(super) fn attributes(object: Value) -> Map<String, Value> {
    match object {
        Value::Object(attributes) => attributes,
        _ => Map::new(),
    }
}

fn stamp(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// What a request asks for, checked attribute by attribute. `project_id` is none of them.
pub(super) fn asked(
    kind: &Kind,
    body: &Value,
    caller: &Caller,
    is_new: bool,
) -> Result<(Map<String, Value>, Option<String>), Refusal> {
    let Some(Value::Object(given)) = body.get(kind.member) else {
        return Err(Refusal::bad_request(format!("Unable to find '{}' in request body", kind.member)));
    };
    let mut asked = Map::new();
    let mut project = None;
    for (name, value) in given {
        if is_new && ["project_id", "tenant_id"].contains(&name.as_str()) {
            project = value.as_str().map(str::to_owned);
            continue;
        }
        let Some(attribute) = kind.attributes.iter().find(|known| known.name == name) else {
            return Err(unknown(kind, name, is_new));
        };
        if !is_new && !attribute.changes {
            return Err(Refusal::bad_request(format!("Cannot update read-only attribute {name}")));
        }
        check(attribute, value, caller, is_new)?;
        asked.insert(name.clone(), value.clone());
    }
    if let Some(missing) = kind.attributes.iter().find(|known| known.is_required && !asked.contains_key(known.name))
        && is_new
    {
        let words = format!("Failed to parse request. Required attribute '{}' not specified", missing.name);
        return Err(Refusal::bad_request(words));
    }
    if project.as_deref().is_some_and(|project| project != caller.project()) && !caller.is_admin() {
        return Err(Refusal::bad_request(
            "Specifying 'project_id' or 'tenant_id' other than the authenticated project in \
             request requires admin privileges",
        ));
    }
    Ok((asked, project))
}

fn unknown(kind: &Kind, name: &str, is_new: bool) -> Refusal {
    let is_shown = (kind.defaults)().get(name).is_some()
        || ["id", "project_id", "tenant_id", "revision_number", "created_at", "updated_at"].contains(&name);
    Refusal::bad_request(match (is_shown, is_new) {
        (true, true) => format!("Attribute '{name}' not allowed in POST"),
        (true, false) => format!("Cannot update read-only attribute {name}"),
        (false, _) => format!("Unrecognized attribute(s) '{name}'"),
    })
}

fn check(attribute: &Attribute, value: &Value, caller: &Caller, is_new: bool) -> Result<(), Refusal> {
    let name = attribute.name;
    if attribute.is_for_admins && !caller.is_admin() {
        let action = if is_new { "create" } else { "update" };
        let words = format!("rule:{action} and rule:{action}:{name} is disallowed by policy");
        return Err(Refusal::forbidden(words).of_type("PolicyNotAuthorized"));
    }
    (attribute.check)(value)
        .map_err(|reason| Refusal::bad_request(format!("Invalid input for {name}. Reason: {reason}.")))
}
