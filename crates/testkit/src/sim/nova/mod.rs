//! Nova v2.1: servers, server groups, flavors with their extra specs, key pairs, host aggregates, and who runs servers.

mod aggregates;
mod extra_specs;
mod flavor;
mod flavor_access;
mod flavors;
mod hosts;
mod key_pairs;
mod server_groups;
mod servers;

use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Value, json};

pub use self::{
    aggregates::Aggregate,
    flavor::Flavor,
    hosts::{Life as HostLife, Service as ComputeService},
    key_pairs::KeyPair,
    server_groups::ServerGroup,
    servers::{Server, ServerFault},
};
use self::{
    hosts::Hosts,
    servers::{Detail, Servers},
};
use super::{
    SimOptions,
    http::{Answer, Refusal, Request},
    service::{Call, Microversions, Route, Service, Version},
    table::Table,
};

/// Nova and what it holds.
pub struct Nova {
    flavors: Table<Flavor>,
    key_pairs: Table<KeyPair>,
    server_groups: Table<ServerGroup>,
    servers: Servers,
    hosts: Hosts,
}

/// From 2.86 on, Nova knows which values extra specs may have. That is not simulated.
const NEWEST: Version = (2, 85);

/// The most that a page has, as Nova's own configuration says.
const LARGEST_LIMIT: usize = 1000;

/// The oldest microversions that show something.
const WITH_DESCRIPTION: Version = (2, 55);
const WITH_EXTRA_SPECS: Version = (2, 61);
const WITH_NUMBER_FOR_NO_SWAP: Version = (2, 75);

impl Nova {
    pub(super) fn new(options: &SimOptions) -> Self {
        Self {
            flavors: Table::new(options.history),
            key_pairs: Table::new(options.history),
            server_groups: Table::new(options.history),
            servers: Servers::new(options),
            hosts: Hosts::new(options),
        }
    }

    /// All flavors, the oldest first.
    pub fn flavors(&self) -> impl Iterator<Item = &Flavor> {
        self.flavors.all().map(|flavor| &**flavor)
    }

    /// A flavor by its id.
    pub fn flavor(&self, id: &str) -> Option<&Flavor> {
        self.flavors.get(id).map(|flavor| &**flavor)
    }

    /// The flavor of this name.
    pub fn flavor_named(&self, name: &str) -> Option<&Flavor> {
        self.flavors.by("name", name).next().map(|flavor| &**flavor)
    }

    /// Puts a flavor there, or another in its place, as if somebody had made it so.
    pub fn put_flavor(&mut self, now: Timestamp, flavor: Flavor) {
        self.flavors.put(now, flavor);
    }

    /// Changes a flavor as if somebody had done so. False if there is none.
    pub fn edit_flavor(&mut self, now: Timestamp, id: &str, edit: impl FnOnce(&mut Flavor)) -> bool {
        let Some(mut flavor) = self.flavor(id).cloned() else { return false };
        edit(&mut flavor);
        self.put_flavor(now, flavor);
        true
    }

    /// Deletes a flavor as if somebody had done so. False if there is none.
    pub fn remove_flavor(&mut self, now: Timestamp, id: &str) -> bool {
        self.flavors.remove(now, id).is_some()
    }
}

impl Service for Nova {
    const TYPE: &'static str = "compute";
    const NAME: &'static str = "nova";
    const ENDPOINT_PATH: &'static str = "/v2.1";
    const MICROVERSIONS: Option<Microversions> = Some(Microversions { oldest: (2, 1), newest: NEWEST });
    const ROUTES: &'static [Route<Self>] = &[
        Route::new("GET", "/", |_, call| Ok(Answer::ok(&json!({"versions": [version(call)]})))).open(),
        Route::new("GET", "/v2.1", |_, call| Ok(Answer::ok(&json!({"version": version(call)})))).open(),
        Route::new("GET", "/v2.1/flavors", |it, call| it.list_flavors(call, Flavor::brief)),
        Route::new("GET", "/v2.1/flavors/detail", |it, call| it.list_flavors(call, Flavor::shown)),
        Route::new("POST", "/v2.1/flavors", Self::create_flavor),
        Route::new("GET", "/v2.1/flavors/{flavor_id}", Self::show_flavor),
        Route::new("PUT", "/v2.1/flavors/{flavor_id}", Self::describe_flavor),
        Route::new("DELETE", "/v2.1/flavors/{flavor_id}", Self::delete_flavor),
        Route::new("GET", "/v2.1/flavors/{flavor_id}/os-extra_specs", Self::list_extra_specs),
        Route::new("POST", "/v2.1/flavors/{flavor_id}/os-extra_specs", Self::set_extra_specs),
        Route::new("GET", "/v2.1/flavors/{flavor_id}/os-extra_specs/{key}", Self::show_extra_spec),
        Route::new("PUT", "/v2.1/flavors/{flavor_id}/os-extra_specs/{key}", Self::set_extra_spec),
        Route::new("DELETE", "/v2.1/flavors/{flavor_id}/os-extra_specs/{key}", Self::remove_extra_spec),
        Route::new("POST", "/v2.1/flavors/{flavor_id}/action", Self::act_on_flavor),
        Route::new("GET", "/v2.1/flavors/{flavor_id}/os-flavor-access", Self::list_flavor_access),
        Route::new("GET", "/v2.1/os-aggregates", Self::list_aggregates),
        Route::new("POST", "/v2.1/os-aggregates", Self::create_aggregate),
        Route::new("GET", "/v2.1/os-aggregates/{aggregate_id}", Self::show_aggregate),
        Route::new("DELETE", "/v2.1/os-aggregates/{aggregate_id}", Self::delete_aggregate),
        Route::new("POST", "/v2.1/os-aggregates/{aggregate_id}/action", Self::act_on_aggregate),
        Route::new("GET", "/v2.1/os-services", Self::list_services),
        Route::new("PUT", "/v2.1/os-services/{service_id}", Self::update_service),
        Route::new("DELETE", "/v2.1/os-services/{service_id}", Self::delete_service),
        Route::new("GET", "/v2.1/os-keypairs", Self::list_key_pairs),
        Route::new("POST", "/v2.1/os-keypairs", Self::create_key_pair),
        Route::new("GET", "/v2.1/os-keypairs/{keypair_name}", Self::show_key_pair),
        Route::new("DELETE", "/v2.1/os-keypairs/{keypair_name}", Self::delete_key_pair),
        Route::new("GET", "/v2.1/os-server-groups", Self::list_server_groups),
        Route::new("POST", "/v2.1/os-server-groups", Self::create_server_group),
        Route::new("GET", "/v2.1/os-server-groups/{server_group_id}", Self::show_server_group),
        Route::new("DELETE", "/v2.1/os-server-groups/{server_group_id}", Self::delete_server_group),
        Route::new("GET", "/v2.1/servers", |it, call| it.list_servers(call, Detail::Brief)),
        Route::new("GET", "/v2.1/servers/detail", |it, call| it.list_servers(call, Detail::Whole)),
        Route::new("POST", "/v2.1/servers", Self::create_server),
        Route::new("GET", "/v2.1/servers/{server_id}", Self::show_server),
        Route::new("PUT", "/v2.1/servers/{server_id}", Self::update_server),
        Route::new("DELETE", "/v2.1/servers/{server_id}", Self::delete_server),
        Route::new("POST", "/v2.1/servers/{server_id}/action", Self::act_on_server),
        Route::new("GET", "/v2.1/servers/{server_id}/metadata", Self::show_metadata),
        Route::new("POST", "/v2.1/servers/{server_id}/metadata", Self::add_metadata),
        Route::new("DELETE", "/v2.1/servers/{server_id}/metadata/{key}", Self::remove_metadata),
        Route::new("GET", "/v2.1/servers/{server_id}/os-interface", Self::list_attachments),
        Route::new("POST", "/v2.1/servers/{server_id}/os-interface", Self::attach),
        Route::new("DELETE", "/v2.1/servers/{server_id}/os-interface/{port_id}", Self::detach),
    ];

    /// One key that says what is wrong, with the code and the words in it.
    fn refuse(&self, _: &Request, refusal: &Refusal) -> Answer {
        let code = refusal.status.as_u16();
        if refusal.status == StatusCode::UNAUTHORIZED {
            // said by the middleware in front
            let error = json!({"code": code, "title": "Unauthorized", "message": refusal.message});
            return Answer::json(refusal.status, &json!({"error": error}));
        }
        let fault = match code {
            400 => "badRequest",
            403 => "forbidden",
            404 => "itemNotFound",
            405 => "badMethod",
            409 => "conflictingRequest",
            413 | 429 => "overLimit",
            415 => "badMediaType",
            501 => "notImplemented",
            503 => "serviceUnavailable",
            _ => "computeFault",
        };
        Answer::json(refusal.status, &json!({fault: {"code": code, "message": refusal.message}}))
    }
}

fn version(call: &Call<'_>) -> Value {
    let href = format!("{}/compute/v2.1/", call.base);
    json!({
        "id": "v2.1",
        "status": "CURRENT",
        "version": format!("{}.{}", NEWEST.0, NEWEST.1),
        "min_version": "2.1",
        "updated": "2013-07-23T11:33:21Z",
        "links": [{"rel": "self", "href": href}],
    })
}

/// Whether the agreed microversion is this one or a newer one.
fn speaks(call: &Call<'_>, version: Version) -> bool {
    call.microversion.is_some_and(|agreed| agreed >= version)
}

/// Leaves the page that is asked for of what a list has, and gives the links to the next one.
fn page<T>(call: &Call<'_>, found: &mut Vec<T>, marker_of: impl Fn(&T) -> &str) -> Result<Option<Value>, Refusal> {
    if let Some(marker) = call.request.query("marker") {
        let place = found.iter().position(|item| marker_of(item) == marker);
        let place = place.ok_or_else(|| no_marker(marker))?;
        found.drain(..=place);
    }
    let limit = limit(call)?;
    found.truncate(limit);
    // a full page may be the last one; Nova does not look
    Ok(found.last().filter(|_| found.len() == limit).map(|last| next_page(call, marker_of(last))))
}

/// The links of a list to what comes after this.
fn next_page(call: &Call<'_>, marker: &str) -> Value {
    let query = call.request.query_with(&[("marker", marker)]);
    json!([{"rel": "next", "href": format!("{}{}?{query}", call.base, call.request.path)}])
}

fn no_marker(marker: &str) -> Refusal {
    Refusal::bad_request(format!("marker [{marker}] not found"))
}

fn limit(call: &Call<'_>) -> Result<usize, Refusal> {
    let text = call.request.query("limit").unwrap_or("0");
    let limit: usize = text.parse().map_err(|_| {
        let words = "Invalid input for query parameters limit. Value:";
        Refusal::bad_request(format!("{words} {text}. '{text}' does not match '^[0-9]*$'"))
    })?;
    Ok(if limit == 0 { LARGEST_LIMIT } else { limit.min(LARGEST_LIMIT) })
}

/// Refuses whoever is no administrator, in the words of the policy.
fn only_admin(call: &Call<'_>, action: &str) -> Result<(), Refusal> {
    if call.caller.is_admin() {
        return Ok(());
    }
    Err(Refusal::forbidden(format!("Policy doesn't allow os_compute_api:{action} to be performed.")))
}
