//! One server, and lists of them: filters, order, pages.

use std::{cmp::Ordering, sync::Arc};

use jiff::Timestamp;
use regex::{Regex, RegexBuilder};
use serde_json::{Value, json};

use super::{Detail, Nova, Server, no_server, peers};
use crate::sim::{
    http::{Answer, Outcome, Refusal},
    nova::{limit, next_page, no_marker, only_admin},
    service::Call,
    table::Table,
};

/// The parameters of lists that are simulated.
const PARAMETERS: [&str; 10] =
    ["all_tenants", "changes-since", "host", "limit", "marker", "name", "project_id", "sort_dir", "sort_key", "status"];

impl Nova {
    pub(in crate::sim::nova) fn show_server(&mut self, call: &mut Call<'_>) -> Outcome {
        let peers = peers(call)?;
        let servers = self.servers.all.view(call.as_of);
        let server = servers.get(call.param(0)).filter(|server| server.is_visible_to(&call.caller));
        let server = server.ok_or_else(|| no_server(call))?;
        let mut shown = server.shown(call, peers.neutron, Detail::Whole);
        if shown.get("server_groups").is_some() {
            shown["server_groups"] = json!(self.groups_of(&server.id));
        }
        Ok(Answer::ok(&json!({"server": shown})))
    }

    pub(in crate::sim::nova) fn list_servers(&mut self, call: &mut Call<'_>, detail: Detail) -> Outcome {
        let peers = peers(call)?;
        if let Some((odd, _)) = call.request.query.iter().find(|(key, _)| !PARAMETERS.contains(&key.as_str())) {
            return Err(Refusal::bad_request(format!("the parameter {odd} is not simulated")));
        }
        let project = project(call, detail)?;
        // from others than administrators it is as if they had not asked for it
        let host = call.request.query("host").filter(|_| call.caller.is_admin());
        let (name, status, order) = (name(call)?, call.request.query("status"), Order::of(call)?);
        let since = since(call)?;
        let servers = self.servers.all.view(call.as_of);
        let marker = marker(call, &servers)?;
        let fits = |server: &&Arc<Server>| {
            since.is_none_or(|since| server.updated_at >= since)
                && name.as_ref().is_none_or(|name| name.is_match(&server.name))
                && host.is_none_or(|host| server.host.as_deref() == Some(host))
                && status.is_none_or(|status| server.status().eq_ignore_ascii_case(status))
                && marker.as_ref().is_none_or(|marker| order.compare(marker, server) == Ordering::Less)
        };
        let mut found: Vec<&Arc<Server>> = match &project {
            Some(project) => servers.by("project", project).filter(fits).collect(),
            None => servers.all().filter(fits).collect(),
        };
        if since.is_some() {
            let now = call.as_of.unwrap_or(call.now);
            let of_project =
                |server: &&Arc<Server>| project.as_ref().is_none_or(|project| *project == server.project_id);
            let gone = self.servers.gone.iter().rev().filter(|server| server.updated_at <= now);
            found.extend(gone.filter(of_project).filter(fits));
        }
        let limit = limit(call)?;
        // a page of a large cloud is not worth sorting all of it
        if found.len() > limit {
            found.select_nth_unstable_by(limit, |a, b| order.compare(a, b));
            found.truncate(limit);
        }
        found.sort_unstable_by(|a, b| order.compare(a, b));
        let shown: Vec<Value> = found.iter().map(|server| server.shown(call, peers.neutron, detail)).collect();
        let mut body = json!({"servers": shown});
        // a full page may be the last one; Nova does not look
        if let Some(last) = found.last().filter(|_| found.len() == limit) {
            body["servers_links"] = next_page(call, &last.id);
        }
        Ok(Answer::ok(&body))
    }
}

/// Whose servers a list has; none for everybody's.
fn project(call: &Call<'_>, detail: Detail) -> Result<Option<String>, Refusal> {
    let all = call.request.query("all_tenants").map(str::to_lowercase);
    let all = all.is_some_and(|all| !["0", "f", "false", "off", "n", "no"].contains(&all.as_str()));
    if !all {
        return Ok(Some(call.caller.project().to_owned()));
    }
    let list = if detail == Detail::Brief { "index" } else { "detail" };
    only_admin(call, &format!("servers:{list}:get_all_tenants"))?;
    Ok(call.request.query("project_id").map(str::to_owned))
}

/// The databases that Nova is mostly used with don't tell capital letters from small ones.
fn name(call: &Call<'_>) -> Result<Option<Regex>, Refusal> {
    let Some(pattern) = call.request.query("name") else { return Ok(None) };
    let name = RegexBuilder::new(pattern).case_insensitive(true).build();
    name.map(Some).map_err(|_| {
        let words = "Invalid input for query parameters name. Value:";
        Refusal::bad_request(format!("{words} {pattern}. '{pattern}' is not a 'regex'"))
    })
}

/// From when on changes are asked for.
fn since(call: &Call<'_>) -> Result<Option<Timestamp>, Refusal> {
    let Some(since) = call.request.query("changes-since") else { return Ok(None) };
    since.parse().map(Some).map_err(|_| {
        let words = "Invalid input for query parameters changes-since. Value:";
        Refusal::bad_request(format!("{words} {since}. '{since}' is not a 'date-time'"))
    })
}

fn marker(call: &Call<'_>, servers: &Table<Server>) -> Result<Option<Arc<Server>>, Refusal> {
    let Some(marker) = call.request.query("marker") else { return Ok(None) };
    let server = servers.get(marker).filter(|server| server.is_visible_to(&call.caller));
    server.cloned().map(Some).ok_or_else(|| no_marker(marker))
}

/// How a list is sorted: the latest first, unless something else is asked for.
struct Order {
    key: fn(&Server, &Server) -> Ordering,
    falls: bool,
}

impl Order {
    fn of(call: &Call<'_>) -> Result<Self, Refusal> {
        let key: fn(&Server, &Server) -> Ordering = match call.request.query("sort_key") {
            None | Some("created_at") => |a, b| a.created_at.cmp(&b.created_at),
            Some("uuid") => |a, b| a.id.cmp(&b.id),
            Some("display_name") => |a, b| a.name.cmp(&b.name),
            Some(other) => {
                let words = "Invalid input for query parameters sort_key. Value:";
                return Err(Refusal::bad_request(format!("{words} {other}. '{other}' is not one of those known here")));
            }
        };
        Ok(Self { key, falls: call.request.query("sort_dir") != Some("asc") })
    }

    fn compare(&self, a: &Server, b: &Server) -> Ordering {
        let rising = (self.key)(a, b).then_with(|| a.id.cmp(&b.id));
        if self.falls { rising.reverse() } else { rising }
    }
}
