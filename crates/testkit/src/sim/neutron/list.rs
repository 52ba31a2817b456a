//! Lists: who sees what, filters, order, pages.

use std::{cmp::Ordering, sync::Arc};

use serde_json::{Map, Value, json};

use super::{
    Item, Neutron,
    kinds::{Kind, NETWORK},
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
        let order = order(call)?;
        (kind.hooks.listing)(self, call);
        let items = self.table(kind).view(call.as_of);
        let marker = match call.request.query("marker").filter(|_| limit.is_some()) {
            None => None,
            Some(marker) => Some(items.get(marker).ok_or_else(|| missing(kind, marker))?.shown()),
        };
        let is_after = |shown: &Map<String, Value>| {
            marker.as_ref().is_none_or(|marker| compare(marker, shown, &order) == Ordering::Less)
        };
        let keys = keys(call);
        let keys: Vec<(&'static str, &str)> = keys.iter().map(|(field, value)| (*field, value.as_str())).collect();
        let visible = |item: &&Arc<Item>| self.shows(kind, item, &call.caller);
        let shown = self.showing(kind, call.as_of);
        let mut found: Vec<_> = items
            .newest_first(&keys, None)
            .filter(visible)
            .map(|item| shown(item))
            .filter(|shown| fits(shown, call) && is_after(shown))
            .collect();
        found.sort_by(|a, b| compare(a, b, &order));
        found.truncate(limit.unwrap_or(usize::MAX));
        Ok(page(call, kind, found, limit))
    }
}

fn page(call: &Call<'_>, kind: &Kind, found: Vec<Map<String, Value>>, limit: Option<usize>) -> Answer {
    let path = format!("{}{}", call.base, call.request.path);
    let link = |rel: &str, item: &Map<String, Value>| {
        let marker = item["id"].as_str().unwrap_or_default();
        json!({"rel": rel, "href": format!("{path}?{}", call.request.query_with(&[("marker", marker)]))})
    };
    let mut links = Vec::new();
    if let Some((first, last)) = limit.and(found.first().zip(found.last())) {
        // a full page may be the last one; Neutron does not look
        links.extend((limit == Some(found.len())).then(|| link("next", last)));
        links.push(link("previous", first));
    }
    let wanted: Vec<&str> =
        call.request.query.iter().filter(|(key, _)| key == "fields").map(|(_, field)| field.as_str()).collect();
    let found = found.into_iter().map(|mut item| {
        item.retain(|name, _| wanted.is_empty() || wanted.contains(&name.as_str()));
        Value::Object(item)
    });
    let collection = kind.collection.replace('-', "_");
    let mut body = json!({collection.clone(): found.collect::<Vec<_>>()});
    if !links.is_empty() {
        body[format!("{collection}_links")] = json!(links);
    }
    Answer::ok(&body)
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
    ["name", NETWORK, "project_id"]
        .into_iter()
        .find_map(|key| call.request.query(key).map(|value| vec![(key, value.to_owned())]))
        .unwrap_or_default()
}

fn fits(shown: &Map<String, Value>, call: &Call<'_>) -> bool {
    let mut filters = call.request.query.iter().filter(|(key, _)| !NOT_FILTERS.contains(&key.as_str()));
    filters.all(|(key, _)| {
        let is = match shown.get(key) {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => return false,
        };
        // of several values of one name, any may fit
        let mut wanted = call.request.query.iter().filter(|(name, _)| name == key);
        wanted.any(|(_, wanted)| wanted.eq_ignore_ascii_case(&is))
    })
}

/// The keys to sort by and whether each rises; the id comes last.
fn order(call: &Call<'_>) -> Result<Vec<(String, bool)>, Refusal> {
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
    let mut order: Vec<(String, bool)> =
        keys.into_iter().zip(directions).map(|(key, direction)| (key.clone(), direction == "asc")).collect();
    order.push(("id".to_owned(), true));
    Ok(order)
}

fn compare(a: &Map<String, Value>, b: &Map<String, Value>, order: &[(String, bool)]) -> Ordering {
    let by_key = order.iter().map(|(key, rises)| {
        let text = |item: &Map<String, Value>| item.get(key).map(ToString::to_string);
        let ordering = text(a).cmp(&text(b));
        if *rises { ordering } else { ordering.reverse() }
    });
    by_key.fold(Ordering::Equal, Ordering::then)
}
