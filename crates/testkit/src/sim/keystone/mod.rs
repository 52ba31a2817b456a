//! Keystone v3: domains, projects, users, roles, the catalogue, limits, tokens and application credentials.

mod catalog;
mod credentials;
mod entities;
mod grants;
mod kinds;
mod limits;
mod login;
mod tokens;

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

pub use self::entities::Entity;
pub(super) use self::tokens::{skewed, unauthorized};
use self::{
    kinds::{DOMAINS, ENDPOINTS, Kind, LIMITS, PROJECTS, REGIONS, REGISTERED_LIMITS, ROLES, SERVICES, USERS},
    tokens::Token,
};
use super::{
    SimOptions,
    http::{Answer, Refusal, Request},
    ids::Ids,
    service::{Call, NO_SUCH_PATH, Route, Service},
    table::Table,
};

/// Keystone and what it holds.
pub struct Keystone {
    tables: HashMap<&'static str, Table<Entity>>,
    /// Project or domain, user, role.
    grants: BTreeSet<(String, String, String)>,
    tokens: HashMap<String, Token>,
    /// How many tokens there may be before the ended ones are forgotten.
    sweep_at: usize,
    token_life: Duration,
    history: Duration,
}

/// What Keystone starts with.
pub(super) struct Bootstrap<'a> {
    pub(super) password: &'a str,
    pub(super) region: &'a str,
    /// Type, name and address.
    pub(super) services: &'a [(&'static str, &'static str, String)],
}

/// The web framework's own page.
const UNKNOWN_PATH: &str = "<!doctype html>\n<html lang=en>\n<title>404 Not Found</title>\n<h1>Not Found</h1>\n<p>The \
    requested URL was not found on the server. If you entered the URL manually please check your spelling and try \
    again.</p>\n";

/// What a bootstrapped Keystone has; each implies those after it, up to `reader`.
const HIERARCHY: [&str; 4] = ["admin", "manager", "member", "reader"];

impl Keystone {
    pub(super) fn new(options: &SimOptions, now: Timestamp, ids: &mut Ids, bootstrap: &Bootstrap<'_>) -> Self {
        let mut keystone = Self {
            tables: HashMap::new(),
            grants: BTreeSet::new(),
            tokens: HashMap::new(),
            sweep_at: 1_000,
            token_life: options.token_life,
            history: options.history,
        };
        keystone.bootstrap(now, ids, bootstrap);
        keystone
    }

    /// The same with an empty database in place of its own. Its keys are not lost: tokens of before can be read, and name
    /// users and projects that are not there.
    pub(super) fn replaced(&mut self, empty: Self) {
        let before = std::mem::replace(self, empty);
        self.tokens = before.tokens;
    }

    fn bootstrap(&mut self, now: Timestamp, ids: &mut Ids, bootstrap: &Bootstrap<'_>) {
        let mut add =
            |kind, id: Option<&str>, body| self.add(kind, now, id.map_or_else(|| ids.hex(), str::to_owned), body);
        add(&DOMAINS, Some("default"), json!({"name": "Default", "description": "The default domain"}));
        add(&REGIONS, Some(bootstrap.region), json!({}));
        let project = add(&PROJECTS, None, json!({"name": "admin", "domain_id": "default"}));
        let user = add(&USERS, None, json!({"name": "admin", "domain_id": "default", "password": bootstrap.password}));
        let roles = HIERARCHY.into_iter().chain(["service"]);
        let roles: Vec<String> =
            roles.map(|name| add(&ROLES, None, json!({"name": name, "options": {"immutable": true}}))).collect();
        for (service_type, name, url) in bootstrap.services {
            let service = add(&SERVICES, None, json!({"type": service_type, "name": name}));
            // Keystone has its version in the catalogue only where somebody put it there
            for interface in ["public", "internal", "admin"] {
                let endpoint =
                    json!({"service_id": service, "interface": interface, "url": url, "region_id": bootstrap.region});
                add(&ENDPOINTS, None, endpoint);
            }
        }
        self.grants.insert((project, user, roles[0].clone()));
    }

    /// Puts an object there as if an administrator had made it.
    fn add(&mut self, kind: &'static Kind, now: Timestamp, id: String, body: Value) -> String {
        let Value::Object(body) = body else { return id };
        let entity = Entity::new(kind, id.clone(), body);
        self.table_mut(kind).put(now, entity);
        id
    }

    /// Makes a project of this name in the domain `Default`.
    pub fn add_project(&mut self, now: Timestamp, id: &str, name: &str) {
        self.add(&PROJECTS, now, id.to_owned(), json!({"name": name, "domain_id": "default"}));
    }

    /// Makes a user of this name in the domain `Default`.
    pub fn add_user(&mut self, now: Timestamp, id: &str, name: &str, password: &str) {
        self.add(&USERS, now, id.to_owned(), json!({"name": name, "domain_id": "default", "password": password}));
    }

    /// Gives a user a role, by its name, in a project.
    pub fn grant(&mut self, project_id: &str, user_id: &str, role: &str) {
        let role = self.named(&ROLES, role, None).map(|role| role.id.clone());
        self.grants.extend(role.map(|role| (project_id.to_owned(), user_id.to_owned(), role)));
    }

    /// Makes a limit of all projects for a resource of the first service of this type; -1 is none.
    pub fn register_limit(&mut self, now: Timestamp, service_type: &str, resource: &str, limit: i64) {
        let service = self.all("services").find(|service| service.text("type") == service_type);
        let service = service.map(|service| service.id.clone());
        let region = self.all("regions").next().map(|region| region.id.clone());
        let body = json!({
            "service_id": service, "region_id": region, "resource_name": resource, "default_limit": limit,
        });
        self.add(&REGISTERED_LIMITS, now, format!("registered-{resource}"), body);
    }

    /// Takes a role, by its name, away from a user in a project. False if the user does not have it.
    pub fn revoke(&mut self, project_id: &str, user_id: &str, role: &str) -> bool {
        let role = self.named(&ROLES, role, None).map(|role| role.id.clone());
        role.is_some_and(|role| self.grants.remove(&(project_id.to_owned(), user_id.to_owned(), role)))
    }

    /// The objects of a collection, such as `projects`, the oldest first.
    pub fn all(&self, collection: &str) -> impl Iterator<Item = &Entity> {
        self.tables.get(collection).into_iter().flat_map(Table::all).map(|entity| &**entity)
    }

    /// An object of a collection.
    pub fn get(&self, collection: &str, id: &str) -> Option<&Entity> {
        self.tables.get(collection)?.get(id).map(|entity| &**entity)
    }

    /// The object of a collection that has this name, whatever its case.
    pub fn find(&self, collection: &str, name: &str) -> Option<&Entity> {
        self.tables.get(collection)?.by("name", &name.to_lowercase()).next().map(|entity| &**entity)
    }

    /// Changes an object's attributes as if an administrator had done so: a new `password` ends a user's tokens. False
    /// if there is no such object.
    pub fn edit(&mut self, now: Timestamp, collection: &str, id: &str, attributes: Map<String, Value>) -> bool {
        let Some(table) = self.tables.get_mut(collection) else { return false };
        let Some(mut entity) = table.get(id).map(|entity| (**entity).clone()) else { return false };
        entity.change(attributes);
        table.put(now, entity);
        true
    }

    /// Takes an object away as if an administrator had deleted it. False if there is none.
    pub fn remove(&mut self, now: Timestamp, collection: &str, id: &str) -> bool {
        let removed = self.tables.get_mut(collection).is_some_and(|table| table.remove(now, id).is_some());
        if removed {
            self.forget(now, id);
        }
        removed
    }

    /// What nobody but its owner may read: passwords, application credentials' secrets, tokens.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let held = self.tables.values().flat_map(Table::all).filter_map(|entity| entity.secret.as_deref());
        held.chain(self.tokens.keys().map(String::as_str))
    }

    /// Ends every token, as lost keys do.
    pub fn revoke_all(&mut self) {
        self.tokens.clear();
    }

    fn table(&self, kind: &Kind) -> Option<&Table<Entity>> {
        self.tables.get(kind.collection)
    }

    fn table_mut(&mut self, kind: &Kind) -> &mut Table<Entity> {
        let history = self.history;
        self.tables.entry(kind.collection).or_insert_with(|| Table::new(history))
    }

    fn entity(&self, kind: &Kind, id: &str) -> Option<&Entity> {
        self.table(kind)?.get(id).map(|entity| &**entity)
    }

    fn named(&self, kind: &Kind, name: &str, domain: Option<&str>) -> Option<&Entity> {
        let mut named = self.table(kind)?.by("name", &name.to_lowercase());
        named.find(|entity| domain.is_none_or(|domain| entity.text("domain_id") == domain)).map(|entity| &**entity)
    }
}

impl Service for Keystone {
    const TYPE: &'static str = "identity";
    const NAME: &'static str = "keystone";
    const ENDPOINT_PATH: &'static str = "/v3";
    const ROUTES: &'static [Route<Self>] = &[
        Route::new("GET", "/", |_, call| Ok(versions(call))).open(),
        Route::new("GET", "/v3", |_, call| Ok(version(call))).open(),
        Route::new("POST", "/v3/auth/tokens", Self::log_in).open(),
        Route::new("GET", "/v3/auth/tokens", Self::show_token),
        Route::new("DELETE", "/v3/auth/tokens", Self::revoke_token),
        Route::new("GET", "/v3/auth/catalog", |it, call| Ok(it.own_catalog(call))),
        Route::new("GET", "/v3/auth/projects", |it, call| Ok(it.own_projects(call, None))),
        Route::new("GET", "/v3/auth/domains", |_, call| Ok(entities::collection(call, "domains", &[]))),
        Route::new("GET", "/v3/domains", |it, call| it.list(&DOMAINS, call)),
        Route::new("POST", "/v3/domains", |it, call| it.create(&DOMAINS, call)),
        Route::new("GET", "/v3/domains/{domain_id}", |it, call| it.show(&DOMAINS, call)),
        Route::new("PATCH", "/v3/domains/{domain_id}", |it, call| it.update(&DOMAINS, call)),
        Route::new("DELETE", "/v3/domains/{domain_id}", |it, call| it.delete(&DOMAINS, call)),
        Route::new("GET", "/v3/projects", |it, call| it.list(&PROJECTS, call)),
        Route::new("POST", "/v3/projects", |it, call| it.create(&PROJECTS, call)),
        Route::new("GET", "/v3/projects/{project_id}", |it, call| it.show(&PROJECTS, call)),
        Route::new("PATCH", "/v3/projects/{project_id}", |it, call| it.update(&PROJECTS, call)),
        Route::new("DELETE", "/v3/projects/{project_id}", |it, call| it.delete(&PROJECTS, call)),
        Route::new("GET", "/v3/projects/{project_id}/tags", Self::list_tags),
        Route::new("PUT", "/v3/projects/{project_id}/tags", Self::set_tags),
        Route::new("PUT", "/v3/projects/{project_id}/users/{user_id}/roles/{role_id}", Self::add_grant),
        Route::new("GET", "/v3/projects/{project_id}/users/{user_id}/roles/{role_id}", Self::check_grant),
        Route::new("DELETE", "/v3/projects/{project_id}/users/{user_id}/roles/{role_id}", Self::delete_grant),
        Route::new("GET", "/v3/projects/{project_id}/users/{user_id}/roles", Self::list_grants),
        Route::new("PUT", "/v3/domains/{domain_id}/users/{user_id}/roles/{role_id}", Self::add_grant),
        Route::new("GET", "/v3/domains/{domain_id}/users/{user_id}/roles/{role_id}", Self::check_grant),
        Route::new("DELETE", "/v3/domains/{domain_id}/users/{user_id}/roles/{role_id}", Self::delete_grant),
        Route::new("GET", "/v3/domains/{domain_id}/users/{user_id}/roles", Self::list_grants),
        Route::new("GET", "/v3/role_assignments", Self::list_assignments),
        Route::new("GET", "/v3/users", |it, call| it.list(&USERS, call)),
        Route::new("POST", "/v3/users", |it, call| it.create(&USERS, call)),
        Route::new("GET", "/v3/users/{user_id}", |it, call| it.show(&USERS, call)),
        Route::new("PATCH", "/v3/users/{user_id}", |it, call| it.update(&USERS, call)),
        Route::new("DELETE", "/v3/users/{user_id}", |it, call| it.delete(&USERS, call)),
        Route::new("POST", "/v3/users/{user_id}/password", Self::change_password).open(),
        Route::new("GET", "/v3/users/{user_id}/projects", Self::projects_of),
        Route::new("GET", "/v3/users/{user_id}/application_credentials", Self::list_credentials),
        Route::new("POST", "/v3/users/{user_id}/application_credentials", Self::create_credential),
        Route::new("GET", "/v3/users/{user_id}/application_credentials/{id}", Self::show_credential),
        Route::new("DELETE", "/v3/users/{user_id}/application_credentials/{id}", Self::delete_credential),
        Route::new("GET", "/v3/roles", |it, call| it.list(&ROLES, call)),
        Route::new("POST", "/v3/roles", |it, call| it.create(&ROLES, call)),
        Route::new("GET", "/v3/roles/{role_id}", |it, call| it.show(&ROLES, call)),
        Route::new("PATCH", "/v3/roles/{role_id}", |it, call| it.update(&ROLES, call)),
        Route::new("DELETE", "/v3/roles/{role_id}", |it, call| it.delete(&ROLES, call)),
        Route::new("GET", "/v3/services", |it, call| it.list(&SERVICES, call)),
        Route::new("POST", "/v3/services", |it, call| it.create(&SERVICES, call)),
        Route::new("GET", "/v3/services/{service_id}", |it, call| it.show(&SERVICES, call)),
        Route::new("PATCH", "/v3/services/{service_id}", |it, call| it.update(&SERVICES, call)),
        Route::new("DELETE", "/v3/services/{service_id}", |it, call| it.delete(&SERVICES, call)),
        Route::new("GET", "/v3/endpoints", |it, call| it.list(&ENDPOINTS, call)),
        Route::new("POST", "/v3/endpoints", |it, call| it.create(&ENDPOINTS, call)),
        Route::new("GET", "/v3/endpoints/{endpoint_id}", |it, call| it.show(&ENDPOINTS, call)),
        Route::new("PATCH", "/v3/endpoints/{endpoint_id}", |it, call| it.update(&ENDPOINTS, call)),
        Route::new("DELETE", "/v3/endpoints/{endpoint_id}", |it, call| it.delete(&ENDPOINTS, call)),
        Route::new("GET", "/v3/regions", |it, call| it.list(&REGIONS, call)),
        Route::new("POST", "/v3/regions", |it, call| it.create(&REGIONS, call)),
        Route::new("GET", "/v3/regions/{region_id}", |it, call| it.show(&REGIONS, call)),
        Route::new("PATCH", "/v3/regions/{region_id}", |it, call| it.update(&REGIONS, call)),
        Route::new("DELETE", "/v3/regions/{region_id}", |it, call| it.delete(&REGIONS, call)),
        Route::new("GET", "/v3/registered_limits", |it, call| it.list_limits(&REGISTERED_LIMITS, call)),
        Route::new("POST", "/v3/registered_limits", |it, call| it.create_limits(&REGISTERED_LIMITS, call)),
        Route::new("GET", "/v3/registered_limits/{id}", |it, call| it.show_limit(&REGISTERED_LIMITS, call)),
        Route::new("PATCH", "/v3/registered_limits/{id}", |it, call| it.update_limit(&REGISTERED_LIMITS, call)),
        Route::new("DELETE", "/v3/registered_limits/{id}", |it, call| it.delete_limit(&REGISTERED_LIMITS, call)),
        Route::new("GET", "/v3/limits", |it, call| it.list_limits(&LIMITS, call)),
        Route::new("POST", "/v3/limits", |it, call| it.create_limits(&LIMITS, call)),
        Route::new("GET", "/v3/limits/{id}", |it, call| it.show_limit(&LIMITS, call)),
        Route::new("PATCH", "/v3/limits/{id}", |it, call| it.update_limit(&LIMITS, call)),
        Route::new("DELETE", "/v3/limits/{id}", |it, call| it.delete_limit(&LIMITS, call)),
    ];

    fn refuse(&self, request: &Request, refusal: &Refusal) -> Answer {
        let Refusal { status, message, .. } = refusal;
        if message == NO_SUCH_PATH {
            return Answer::empty(*status).with_body("text/html; charset=utf-8", UNKNOWN_PATH);
        }
        let title = status.canonical_reason().unwrap_or_default();
        let body = json!({"error": {"code": status.as_u16(), "message": message, "title": title}});
        let answer = Answer::json(*status, &body);
        if *status == StatusCode::UNAUTHORIZED {
            let host = request.header("host").unwrap_or_default();
            return answer.with_header("www-authenticate", &format!("Keystone uri=\"http://{host}/identity\""));
        }
        answer
    }

    fn advance(&mut self, now: Timestamp) {
        // Fernet tokens are not kept anywhere; here they are, for as long as they could be shown.
        if self.tokens.len() > self.sweep_at {
            self.tokens.retain(|_, token| token.expires_at > now);
            self.sweep_at = 1_000 + 2 * self.tokens.len();
        }
    }
}

fn discovery(call: &Call<'_>) -> Value {
    json!({
        "id": "v3.14",
        "status": "stable",
        "updated": "2020-04-07T00:00:00Z",
        "links": [{"rel": "self", "href": format!("{}/identity/v3/", call.base)}],
        "media-types": [{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}],
    })
}

fn versions(call: &Call<'_>) -> Answer {
    Answer::json(StatusCode::MULTIPLE_CHOICES, &json!({"versions": {"values": [discovery(call)]}}))
        .with_header("location", &format!("{}/identity/v3/", call.base))
}

fn version(call: &Call<'_>) -> Answer {
    Answer::ok(&json!({"version": discovery(call)}))
}

/// The refusal of a policy.
fn forbidden<T>(action: &str) -> Result<T, Refusal> {
    Err(Refusal::forbidden(format!("You are not authorized to perform the requested action: identity:{action}.")))
}

/// Lets pass administrators only.
fn admin_only(call: &Call<'_>, action: &str) -> Result<(), Refusal> {
    if call.caller.is_admin() { Ok(()) } else { forbidden(action) }
}

fn missing(what: &str, id: &str) -> Refusal {
    Refusal::not_found(format!("Could not find {what}: {id}."))
}

/// The object that a body wraps in the name of its kind.
fn wrapped(call: &Call<'_>, member: &str) -> Result<Map<String, Value>, Refusal> {
    match call.request.json().get_mut(member).map(Value::take) {
        Some(Value::Object(body)) => Ok(body),
        _ => Err(entities::lacks(member, &call.request.json(), member)),
    }
}

fn no_content() -> Answer {
    Answer::empty(StatusCode::NO_CONTENT)
}
