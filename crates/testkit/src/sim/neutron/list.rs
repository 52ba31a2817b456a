//! Lists: who sees what, filters, order, pages.

use std::{cmp::Ordering, sync::Arc};

use serde_json::{Map, Value, json};

use super::{
    Item, Neutron,
    convert::plain,
    item::OF_ALL,
    kinds::{Kind, NETWORK, StrayMarker},
    missing,
};
use crate::sim::{
    http::{Answer, Outcome, Refusal},
    service::Call,
};

/// Parameters that are no filters.
const NOT_FILTERS: [&str; 6] = ["limit", "marker", "sort_key", "sort_dir", "fields", "page_reverse"];

impl Neutron {
    pub(super) fn list(&mut self, call: &mut Call<'_>, kind: &'static Kind) -> Outcome {
        let limit = limit(call)?;
        let order = order(call, kind)?;
        check_filters(call, kind)?;
        (kind.hooks.listing)(self, call);
        let items = self.table(kind).view(call.as_of);
        let visible = |item: &&Arc<Item>| self.shows(kind, item, &call.caller);
        let marker = match call.request.query("marker").filter(|_| limit.is_some()) {
            None => None,
            Some(marker) => match items.get(marker).filter(visible) {
                Some(found) => Some(found.shown()),
                None => match kind.lists.stray_marker {
                    StrayMarker::Refused => return Err(missing(kind, marker)),
                    StrayMarker::Ignored => None,
                    StrayMarker::Empty => return Ok(page(call, kind, Vec::new(), limit)),
                },
            },
        };
        let is_after = |shown: &Map<String, Value>| {
            marker.as_ref().is_none_or(|marker| compare(marker, shown, &order) == Ordering::Less)
        };
        let keys = keys(call);
        let keys: Vec<(&'static str, &str)> = keys.iter().map(|(field, value)| (*field, value.as_str())).collect();
        let shown = self.showing(kind, &call.caller, call.as_of);
        let mut found: Vec<_> = items
            .newest_first(&keys, None)
            .filter(visible)
            .map(|item| shown(item))
            .filter(|shown| fits(shown, kind, call) && is_after(shown))
            .collect();
        found.sort_by(|a, b| compare(a, b, &order));
        found.truncate(limit.unwrap_or(usize::MAX));
        for shown in &mut found {
            forget(shown, kind);
        }
        Ok(page(call, kind, found, limit))
    }
}

/// Leaves of its parts what a list knows.
fn forget(shown: &mut Map<String, Value>, kind: &Kind) {
    let parts = kind.parts.as_ref().and_then(|parts| shown.get_mut(parts.shown_as)?.as_array_mut());
    for part in parts.into_iter().flatten() {
        for name in kind.lists.unknown_of_parts {
            part[*name] = Value::Null;
        }
    }
}

fn page(call: &Call<'_>, kind: &Kind, found: Vec<Map<String, Value>>, limit: Option<usize>) -> Answer {
    let path = format!("{}{}", call.base, call.request.path);
    let link = |rel: &str, item: Option<&Map<String, Value>>, changes: &[(&str, &str)]| {
        let marker = item.and_then(|item| item["id"].as_str()).map(|id| ("marker", id));
        let changes: Vec<_> = marker.into_iter().chain(changes.iter().copied()).collect();
        json!({"rel": rel, "href": format!("{path}?{}", call.request.query_with(&changes))})
    };
    let mut links = Vec::new();
    if let Some(limit) = limit {
        // a full page may be the last one; Neutron does not look
        links.extend((limit == found.len()).then(|| link("next", found.last(), &[])));
        links.push(link("previous", found.first(), &[("page_reverse", "True")]));
    }
    let found = found.into_iter().map(|item| only_fields(call, item));
    let collection = kind.collection.replace('-', "_");
    let mut body = json!({collection.clone(): found.collect::<Vec<_>>()});
    if !links.is_empty() {
        body[format!("{collection}_links")] = json!(links);
    }
    Answer::ok(&body)
}

/// What is asked for of an object.
pub(super) fn only_fields(call: &Call<'_>, mut item: Map<String, Value>) -> Value {
    let wanted: Vec<&str> =
        call.request.query.iter().filter(|(key, _)| key == "fields").map(|(_, field)| field.as_str()).collect();
    item.retain(|name, _| wanted.is_empty() || wanted.contains(&name.as_str()));
    Value::Object(item)
}

/// None for no limit.
fn limit(call: &Call<'_>) -> Result<Option<usize>, Refusal> {
    let Some(text) = call.request.query("limit") else { return Ok(None) };
    let Ok(limit) = text.parse::<usize>() else {
        let words = format!("Bad limit request: Limit must be an integer 0 or greater and not '{text}'.");
        return Err(Refusal::bad_request(words).of_type("BadRequest"));
    };
    Ok(Some(limit).filter(|limit| *limit > 0))
}

/// The indexes that have everything a caller's list could show.
fn keys(call: &Call<'_>) -> Vec<(&'static str, String)> {
    let given = |key: &'static str| {
        let values = call.request.query.iter().filter(move |(name, _)| name == key);
        values.map(move |(_, value)| (key, value.to_lowercase())).collect::<Vec<_>>()
    };
    ["name", NETWORK, "project_id"].into_iter().map(given).find(|values| !values.is_empty()).unwrap_or_default()
}

/// Whether a kind shows an attribute, but for those of `without`.
fn has(kind: &Kind, name: &str, without: &[&str]) -> bool {
    let part = kind.parts.as_ref().map(|parts| parts.shown_as);
    let is_shown = kind.attributes.iter().any(|known| known.name == name)
        || OF_ALL.contains(&name)
        || part == Some(name)
        || (kind.defaults)().get(name).is_some();
    is_shown && !without.contains(&name)
}

fn check_filters(call: &Call<'_>, kind: &Kind) -> Result<(), Refusal> {
    let filters = call.request.query.iter().filter(|(key, _)| !NOT_FILTERS.contains(&key.as_str()));
    let mut unknown = Vec::new();
    for (key, value) in filters {
        match kind.attributes.iter().find(|known| known.name == key) {
            _ if !has(kind, key, kind.lists.no_filters) => unknown.push(format!("'{key}'")),
            Some(known) => drop((known.convert)(&json!(value))?),
            None => {}
        }
    }
    if unknown.is_empty() {
        return Ok(());
    }
    Err(Refusal::bad_request(format!("[{}] is invalid attribute for filtering", unknown.join(", "))))
}

/// Of several values of one name, any may fit, in whatever case.
fn fits(shown: &Map<String, Value>, kind: &Kind, call: &Call<'_>) -> bool {
    let mut filters = call.request.query.iter().filter(|(key, _)| !NOT_FILTERS.contains(&key.as_str()));
    filters.all(|(key, _)| {
        let Some(is) = shown.get(key) else { return false };
        let mut wanted = call.request.query.iter().filter(|(name, _)| name == key).map(|(_, wanted)| json!(wanted));
        let convert = kind.attributes.iter().find(|known| known.name == key).map(|known| known.convert);
        wanted.any(|wanted| {
            let wanted = convert.and_then(|convert| convert(&wanted).ok()).unwrap_or(wanted);
            matches(is, &plain(&wanted))
        })
    })
}

/// Whether a value is what is wanted. Of a list, any element may be; one that is an object is told by a member.
fn matches(is: &Value, wanted: &str) -> bool {
    match is {
        Value::Array(list) => list.iter().any(|one| matches(one, wanted)),
        Value::Object(object) => {
            let member = wanted.split_once('=');
            member.is_some_and(|(name, wanted)| object.get(name).is_some_and(|is| matches(is, wanted)))
        }
        other => plain(other).eq_ignore_ascii_case(wanted),
    }
}

/// The keys to sort by and whether each rises; the id comes last.
fn order(call: &Call<'_>, kind: &Kind) -> Result<Vec<(String, bool)>, Refusal> {
    let all =
        |key: &'static str| call.request.query.iter().filter(move |(name, _)| name == key).map(|(_, value)| value);
    let (keys, directions): (Vec<_>, Vec<_>) = (all("sort_key").collect(), all("sort_dir").collect());
    if keys.len() != directions.len() {
        return Err(Refusal::bad_request("The number of sort_keys and sort_dirs must be same"));
    }
    if let Some(direction) = directions.iter().find(|direction| !["asc", "desc"].contains(&direction.as_str())) {
        let words = format!("['{direction}'] is invalid value for sort_dirs, valid value is 'asc' and 'desc'");
        return Err(Refusal::bad_request(words));
    }
    let unknown: Vec<_> = keys.iter().filter(|key| !has(kind, key, kind.lists.no_sort_keys)).collect();
    if !unknown.is_empty() {
        let names: Vec<String> = unknown.iter().map(|key| format!("'{key}'")).collect();
        return Err(Refusal::bad_request(format!("[{}] is invalid attribute for sort_keys", names.join(", "))));
    }
    let mut order: Vec<(String, bool)> =
        keys.into_iter().zip(directions).map(|(key, direction)| (key.clone(), direction == "asc")).collect();
    order.push(("id".to_owned(), true));
    Ok(order)
}

fn compare(a: &Map<String, Value>, b: &Map<String, Value>, order: &[(String, bool)]) -> Ordering {
    let by_key = order.iter().map(|(key, rises)| {
        let ordering = match (a.get(key), b.get(key)) {
            (Some(Value::Number(a)), Some(Value::Number(b))) => a.as_i64().cmp(&b.as_i64()),
            (a, b) => a.map(plain).cmp(&b.map(plain)),
        };
        if *rises { ordering } else { ordering.reverse() }
    });
    by_key.fold(Ordering::Equal, Ordering::then)
}
