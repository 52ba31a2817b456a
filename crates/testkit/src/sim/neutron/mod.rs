//! Neutron v2.0: networks, subnets and ports, security groups and their rules, routers, floating IPs.

mod addresses;
mod agents;
mod convert;
mod devices;
mod floating_ips;
mod groups;
mod interfaces;
mod item;
mod kinds;
mod list;
mod networks;
mod ports;
mod protocols;
mod quotas;
mod routers;
mod rules;
mod span;
mod subnets;
mod uses;
mod values;

use std::collections::{BTreeMap, HashMap};

use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

pub use self::{agents::Agent, item::Item};
use self::{
    floating_ips::FLOATING_IPS,
    item::attributes,
    kinds::{GROUPS, Kind, NETWORKS, RULES},
    ports::PORTS,
    routers::ROUTERS,
    subnets::SUBNETS,
};
use super::{
    SimOptions,
    http::{Answer, Outcome, Refusal, Request},
    service::{Call, Caller, Route, Service},
    table::Table,
};

/// Every kind of object.
static KINDS: [&Kind; 7] = [&NETWORKS, &SUBNETS, &PORTS, &GROUPS, &RULES, &ROUTERS, &FLOATING_IPS];

/// What Neutron says it can do.
const EXTENSIONS: [&str; 17] = [
    "router",
    "extraroute",
    "ext-gw-mode",
    "external-net",
    "binding",
    "allowed-address-pairs",
    "provider",
    "subnet-service-types",
    "security-group",
    "stateful-security-group",
    "standard-attr-description",
    "standard-attr-revisions",
    "revision-if-match",
    "net-mtu-writable",
    "port-security",
    "dns-integration",
    "pagination",
];

/// Its words for what it has no words for.
const MALFORMED: &str =
    "The server could not comply with the request since it is either malformed or otherwise incorrect.";

/// Neutron and what it holds.
pub struct Neutron {
    tables: BTreeMap<&'static str, Table<Item>>,
    /// What it was told of projects and resources.
    quotas: HashMap<(String, &'static str), i64>,
    keeps_dns: bool,
    agents: Vec<Agent>,
}

impl Neutron {
    pub(super) fn new(options: &SimOptions) -> Self {
        Self {
            tables: KINDS.iter().map(|kind| (kind.collection, Table::new(options.history))).collect(),
            quotas: HashMap::new(),
            keeps_dns: options.network_dns,
            agents: Vec::new(),
        }
    }

    /// All objects of a collection, such as `networks`, the oldest first.
    pub fn all(&self, collection: &str) -> impl Iterator<Item = &Item> {
        self.tables.get(collection).into_iter().flat_map(Table::all).map(|item| &**item)
    }

    /// An object by its id.
    pub fn get(&self, collection: &str, id: &str) -> Option<&Item> {
        self.tables.get(collection)?.get(id).map(|item| &**item)
    }

    /// Puts an object with these attributes there, as if its project had made it.
    pub fn add(&mut self, now: Timestamp, collection: &str, id: &str, project_id: &str, body: Value) {
        let Some(kind) = KINDS.iter().find(|kind| kind.collection == collection) else { return };
        let mut item = Item::new(kind, id.to_owned(), project_id, now);
        item.body.extend(attributes(body));
        self.put(kind, now, item);
    }

    /// Changes an object as if somebody had done so. False if there is none.
    pub fn edit(&mut self, now: Timestamp, collection: &str, id: &str, edit: impl FnOnce(&mut Item)) -> bool {
        let Some(table) = self.tables.get_mut(collection) else { return false };
        let Some(mut item) = table.get(id).map(|item| Item::clone(item)) else { return false };
        edit(&mut item);
        item.touch(now);
        table.put(now, item);
        true
    }

    /// Deletes an object as if somebody had done so. False if there is none.
    pub fn remove(&mut self, now: Timestamp, collection: &str, id: &str) -> bool {
        self.tables.get_mut(collection).is_some_and(|table| table.remove(now, id).is_some())
    }

    fn table(&self, kind: &Kind) -> &Table<Item> {
        &self.tables[kind.collection]
    }

    fn put(&mut self, kind: &Kind, now: Timestamp, item: Item) {
        if let Some(table) = self.tables.get_mut(kind.collection) {
            table.put(now, item);
        }
    }

    fn create(&mut self, call: &mut Call<'_>, kind: &'static Kind) -> Outcome {
        let (asked, project) = item::asked(kind, call.request, &call.caller, true)?;
        let project = project.unwrap_or_else(|| call.caller.project().to_owned());
        let mut item = Item::new(kind, call.ids.uuid().to_string(), &project, call.now);
        item.body.extend(asked);
        (kind.hooks.creating)(self, call, &project);
        (kind.hooks.complete)(self, call, &mut item, None)?;
        (kind.hooks.check)(self, call, &item)?;
        self.check_quota(call, kind, &project)?;
        self.put(kind, call.now, item.clone());
        (kind.hooks.created)(self, call, &item);
        let mut shown = self.showing(kind, &call.caller, None)(&item);
        shown.extend(attributes((kind.views.when_new)()));
        Ok(Answer::json(StatusCode::CREATED, &json!({kind.member: shown})))
    }

    /// How objects of a kind are shown to somebody, with what belonged to them at a time.
    fn showing(
        &self,
        kind: &'static Kind,
        caller: &Caller,
        as_of: Option<Timestamp>,
    ) -> impl Fn(&Item) -> Map<String, Value> {
        let parts = kind.parts.as_ref().map(|parts| (parts, self.table(parts.kind).view(as_of)));
        let for_admins = attributes((kind.views.for_admins)());
        let is_admin = caller.is_admin();
        move |item| {
            let mut shown = item.shown();
            if is_admin {
                for (name, value) in &for_admins {
                    shown.entry(name).or_insert_with(|| value.clone());
                }
            } else {
                shown.retain(|name, _| !for_admins.contains_key(name));
            }
            if let Some((parts, all)) = &parts {
                let own: Vec<_> = all.by(parts.key, &item.id).map(|part| (parts.shown)(part)).collect();
                shown.insert(parts.shown_as.to_owned(), json!(own));
            }
            (kind.hooks.extend)(self, &mut shown);
            shown
        }
    }

    fn show(&mut self, call: &mut Call<'_>, kind: &'static Kind) -> Outcome {
        let (id, items) = (call.param(0), self.table(kind).view(call.as_of));
        let item = items.get(id).filter(|item| self.shows(kind, item, &call.caller));
        let item = item.ok_or_else(|| missing(kind, id))?;
        let shown = self.showing(kind, &call.caller, call.as_of)(item);
        Ok(Answer::ok(&json!({kind.member: list::only_fields(call, shown)})))
    }

    fn update(&mut self, call: &mut Call<'_>, kind: &'static Kind) -> Outcome {
        let mut item = self.own(call, kind, "update")?.clone();
        let (asked, _) = item::asked(kind, call.request, &call.caller, false)?;
        check_revision(call, &item)?;
        if !kind.can_change {
            return Err(broken());
        }
        let before = item.clone();
        item.body.extend(asked.clone());
        (kind.hooks.complete)(self, call, &mut item, Some(&before))?;
        (kind.hooks.check)(self, call, &item)?;
        if (kind.hooks.revises)(&asked, &before, &item) {
            item.touch(call.now);
        }
        // what is as it was is no change
        if item != before {
            self.put(kind, call.now, item.clone());
            (kind.hooks.changed)(self, call, &before, &item);
        }
        Ok(Answer::ok(&json!({kind.member: self.showing(kind, &call.caller, None)(&item)})))
    }

    fn delete(&mut self, call: &mut Call<'_>, kind: &'static Kind) -> Outcome {
        let item = self.own(call, kind, "delete")?;
        check_revision(call, item)?;
        (kind.hooks.check_end)(self, call, item)?;
        let item = item.clone();
        self.remove(call.now, kind.collection, &item.id);
        (kind.hooks.deleted)(self, call, &item);
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }

    /// An object that the caller may change.
    fn own(&self, call: &Call<'_>, kind: &Kind, action: &str) -> Result<&Item, Refusal> {
        let id = call.param(0);
        let item = self.get(kind.collection, id).filter(|item| self.shows(kind, item, &call.caller));
        let item = item.ok_or_else(|| missing(kind, id))?;
        if item.is_changeable_by(&call.caller) {
            return Ok(item);
        }
        let words = format!("rule:{action}_{} is disallowed by policy", kind.member);
        Err(Refusal::forbidden(words).of_type("PolicyNotAuthorized"))
    }

    fn shows(&self, kind: &Kind, item: &Item, caller: &Caller) -> bool {
        item.is_visible_to(caller) || (kind.hooks.is_shared)(self, caller, item)
    }

    /// How many objects of a kind a project has; of a kind that is not simulated, none.
    fn used(&self, project: &str, member: &str) -> u64 {
        let kind = KINDS.iter().find(|kind| kind.member == member);
        let count = kind.map_or(0, |kind| self.table(kind).by("project_id", project).count());
        u64::try_from(count).unwrap_or(u64::MAX)
    }

    fn check_quota(&self, call: &Call<'_>, kind: &Kind, project: &str) -> Result<(), Refusal> {
        let used = self.used(project, kind.member);
        let told = self.quota(project, kind.member).is_some_and(|limit| used >= limit);
        if told || call.quotas.exceeded(project, kind.member, used, 1).is_some() {
            let words = format!("Quota exceeded for resources: ['{}'].", kind.member);
            return Err(Refusal::conflict(words).of_type("OverQuota"));
        }
        Ok(())
    }
}

/// What Neutron says of what it did not foresee.
fn broken() -> Refusal {
    let words = "Request Failed: internal server error while processing your request.";
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, words)
}

fn missing(kind: &Kind, id: &str) -> Refusal {
    let [noun, end] = kind.called;
    Refusal::not_found(format!("{noun} {id} {end}")).of_type(kind.missing)
}

/// What is asked for is not possible.
fn invalid(reason: &str) -> Refusal {
    Refusal::bad_request(format!("Invalid input for operation: {reason}.")).of_type("InvalidInput")
}

/// `If-Match: revision_number=…`. Another tag is taken for none.
fn check_revision(call: &Call<'_>, item: &Item) -> Result<(), Refusal> {
    let wanted = call.request.header("if-match").and_then(|header| header.strip_prefix("revision_number="));
    let Some(wanted) = wanted else { return Ok(()) };
    let Ok(wanted) = wanted.trim().parse::<u64>() else {
        let words = "Bad if-match request: Revision number etag must be in the format of revision_number=<int>.";
        return Err(Refusal::bad_request(words).of_type("BadRequest"));
    };
    if wanted == item.revision {
        return Ok(());
    }
    let words = format!("Constrained to {wanted}, but current revision is {}", item.revision);
    Err(Refusal::new(StatusCode::PRECONDITION_FAILED, words).of_type("RevisionNumberConstraintFailed"))
}

/// What it answers about itself, quotas, and the five routes of each kind.
macro_rules! routes {
    ($(($kind:ident, $all:literal, $one:literal)),+ $(,)?) => {
        [
            Route::new("GET", "/", |_, call| Ok(versions(call))).open(),
            Route::new("GET", "/v2.0/extensions", |_, _| Ok(extensions())),
            Route::new("GET", "/v2.0/quotas/{project_id}", Self::show_quotas),
            Route::new("PUT", "/v2.0/quotas/{project_id}", Self::set_quotas),
            Route::new("DELETE", "/v2.0/quotas/{project_id}", Self::forget_quotas),
            Route::new("GET", "/v2.0/agents", |it, call| Ok(it.list_agents(call))),
            Route::new("DELETE", "/v2.0/agents/{agent_id}", Self::delete_agent),
            Route::new("PUT", "/v2.0/routers/{router_id}/add_router_interface", Self::add_interface),
            Route::new("PUT", "/v2.0/routers/{router_id}/remove_router_interface", Self::remove_interface),
            $(Route::new("GET", $all, |it, call| it.list(call, &$kind)),
            Route::new("POST", $all, |it, call| it.create(call, &$kind)),
            Route::new("GET", $one, |it, call| it.show(call, &$kind)),
            Route::new("PUT", $one, |it, call| it.update(call, &$kind)),
            Route::new("DELETE", $one, |it, call| it.delete(call, &$kind)),)+
        ]
    };
}

impl Service for Neutron {
    const TYPE: &'static str = "network";
    const NAME: &'static str = "neutron";
    const ROUTES: &'static [Route<Self>] = &routes!(
        (NETWORKS, "/v2.0/networks", "/v2.0/networks/{network_id}"),
        (SUBNETS, "/v2.0/subnets", "/v2.0/subnets/{subnet_id}"),
        (PORTS, "/v2.0/ports", "/v2.0/ports/{port_id}"),
        (ROUTERS, "/v2.0/routers", "/v2.0/routers/{router_id}"),
        (FLOATING_IPS, "/v2.0/floatingips", "/v2.0/floatingips/{floatingip_id}"),
        (GROUPS, "/v2.0/security-groups", "/v2.0/security-groups/{security_group_id}"),
        (RULES, "/v2.0/security-group-rules", "/v2.0/security-group-rules/{rule_id}"),
    );

    fn refuse(&self, _: &Request, refusal: &Refusal) -> Answer {
        let status = refusal.status;
        if status == StatusCode::UNAUTHORIZED {
            // the middleware in front of it
            let words = "The request you have made requires authentication.";
            return Answer::json(
                status,
                &json!({"error": {"code": status.as_u16(), "title": "Unauthorized", "message": words}}),
            );
        }
        let kind = refusal.kind.map_or_else(|| format!("HTTP{}", name(status)), str::to_owned);
        let message = match status {
            StatusCode::METHOD_NOT_ALLOWED => MALFORMED,
            _ => &refusal.message,
        };
        let detail = refusal.detail.as_deref().unwrap_or_default();
        Answer::json(status, &json!({"NeutronError": {"type": kind, "message": message, "detail": detail}}))
    }
}

/// A status as the name of an exception has it.
fn name(status: StatusCode) -> String {
    status.canonical_reason().unwrap_or_default().split_whitespace().collect()
}

fn versions(call: &Call<'_>) -> Answer {
    let link = json!({"rel": "self", "href": format!("{}/network/v2.0/", call.base)});
    Answer::ok(&json!({"versions": [{"id": "v2.0", "status": "CURRENT", "links": [link]}]}))
}

fn extensions() -> Answer {
    let extension = |alias: &str| json!({"alias": alias, "name": alias, "description": "", "updated": "2016-01-01T00:00:00-00:00", "links": []});
    Answer::ok(&json!({"extensions": EXTENSIONS.map(extension)}))
}
