//! An object of whatever kind, and what may be declared of it.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{
    convert::plain,
    kinds::{Attribute, Kind, NETWORK, REMOTE_GROUP, Reserved, SECURITY_GROUP, When},
    ports::{DEVICE, PORT_GROUPS},
};
use crate::sim::{
    http::{Refusal, Request},
    service::Caller,
    table::Row,
};

/// What every object has beside its body.
pub(super) const OF_ALL: [&str; 6] = ["id", "project_id", "tenant_id", "revision_number", "created_at", "updated_at"];
/// What a project is called, now and formerly.
const PROJECT: [&str; 2] = ["project_id", "tenant_id"];

/// What an object is found by, beside its name and its project.
const KEYS: [&str; 6] = [SECURITY_GROUP, REMOTE_GROUP, NETWORK, DEVICE, "port_id", "router_id"];

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
        Self { id, project_id, body, revision: kind.first_revision, created_at: now, updated_at: now }
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

    /// The database finds a name in any case.
    fn keys(&self) -> Vec<(&'static str, String)> {
        let of_body = KEYS.map(|field| (field, self.text(field).to_owned()));
        let groups = self.body.get(PORT_GROUPS).and_then(Value::as_array).into_iter().flatten();
        let groups = groups.map(|group| (PORT_GROUPS, plain(group)));
        let own = [("name", self.text("name").to_lowercase()), ("project_id", self.project_id.clone())];
        of_body.into_iter().chain(groups).chain(own).collect()
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
    request: &Request,
    caller: &Caller,
    is_new: bool,
) -> Result<(Map<String, Value>, Option<String>), Refusal> {
    let given = given(kind, request)?;
    let project = project(&given, caller)?;
    let is_of_project = |name: &str| PROJECT.contains(&name);
    let mut asked = Map::new();
    let mut for_admins = None;
    for (name, value) in given.iter().filter(|(name, _)| !(is_new && is_of_project(name))) {
        let known = kind.attributes.iter().find(|known| known.name == name);
        let Some(attribute) = known.filter(|known| !(is_new && known.when == When::Later)) else {
            return Err(unknown(kind, &given, name, is_new));
        };
        if !is_new && attribute.when == When::New {
            return Err(Refusal::bad_request(format!("Cannot update read-only attribute {name}")));
        }
        let value = (attribute.convert)(value)?;
        (attribute.check)(&value)
            .map_err(|reason| Refusal::bad_request(format!("Invalid input for {name}. Reason: {reason}.")))?;
        let is_reserved = match attribute.reserved {
            Reserved::Nothing => false,
            Reserved::Changes => !is_new,
            Reserved::Everything => true,
        };
        for_admins = for_admins.or(is_reserved.then_some(name));
        asked.insert(name.clone(), value);
    }
    let is_missing = |known: &&Attribute| known.is_required && !asked.contains_key(known.name);
    if is_new && let Some(missing) = kind.attributes.iter().find(is_missing) {
        let words = format!("Failed to parse request. Required attribute '{}' not specified", missing.name);
        return Err(Refusal::bad_request(words));
    }
    // the policy is asked last
    match for_admins.filter(|_| !caller.is_admin()) {
        None => Ok((asked, project)),
        Some(name) => {
            let rule = format!("{}_{}", if is_new { "create" } else { "update" }, kind.member);
            let words = format!("(rule:{rule} and rule:{rule}:{name}) is disallowed by policy");
            Err(Refusal::forbidden(words).of_type("PolicyNotAuthorized"))
        }
    }
}

/// The object in a request's body.
fn given(kind: &Kind, request: &Request) -> Result<Map<String, Value>, Refusal> {
    if !request.body.is_empty() && request.json().is_null() {
        return Err(Refusal::bad_request("Body contains invalid data"));
    }
    match request.json().get(kind.member) {
        Some(Value::Object(given)) => Ok(given.clone()),
        Some(_) => Err(Refusal::bad_request(format!("Object '{}' contains invalid data", kind.member))),
        None => Err(Refusal::bad_request(format!("Unable to find '{}' in request body", kind.member))),
    }
}

/// The project that is asked for, by either of its names.
fn project(given: &Map<String, Value>, caller: &Caller) -> Result<Option<String>, Refusal> {
    let [project, tenant] = PROJECT.map(|name| given.get(name).map(plain));
    if project.is_some() && tenant.is_some() && project != tenant {
        return Err(Refusal::bad_request("'project_id' and 'tenant_id' do not match"));
    }
    let project = project.or(tenant);
    if project.as_deref().is_some_and(|project| project != caller.project()) && !caller.is_admin() {
        return Err(Refusal::bad_request(
            "Specifying 'project_id' other than the authenticated project in request is not allowed for the current user.",
        ));
    }
    Ok(project)
}

fn unknown(kind: &Kind, given: &Map<String, Value>, name: &str, is_new: bool) -> Refusal {
    let is_known = |name: &str| kind.attributes.iter().any(|known| known.name == name);
    let is_shown = |name: &str| (kind.defaults)().get(name).is_some() || OF_ALL.contains(&name);
    let strange: Vec<&str> =
        given.keys().map(String::as_str).filter(|name| !is_known(name) && !is_shown(name)).collect();
    Refusal::bad_request(match (strange.as_slice(), is_new) {
        ([], true) => format!("Attribute '{name}' not allowed in POST"),
        ([], false) => format!("Cannot update read-only attribute {name}"),
        (strange, _) => format!("Unrecognized attribute(s) '{}'", strange.join(", ")),
    })
}
