//! Lists of images: who sees what, filters, order, pages.

use std::{cmp::Ordering, sync::Arc};

use serde_json::{Value, json};

use super::{Glance, Image};
use crate::sim::{
    http::{Answer, Outcome, Refusal},
    service::Call,
};

/// What Glance's own configuration has.
const DEFAULT_LIMIT: usize = 25;
const LARGEST_LIMIT: usize = 1000;

const SORT_KEYS: [&str; 8] =
    ["name", "status", "container_format", "disk_format", "size", "id", "created_at", "updated_at"];

/// Parameters that are no filters.
const NOT_FILTERS: [&str; 7] = ["limit", "marker", "sort", "sort_key", "sort_dir", "member_status", "visibility"];

impl Glance {
    pub(super) fn list(&mut self, call: &mut Call<'_>) -> Outcome {
        let limit = limit(call)?;
        let order = order(call)?;
        let images = self.images.view(call.as_of);
        let marker = call.request.query("marker");
        if let Some(marker) = marker.filter(|marker| images.get(marker).is_none()) {
            return Err(Refusal::bad_request(format!("No image found with ID {marker}")));
        }
        let fits = |image: &&Arc<Image>| is_listed(image, call) && fits(image, call);
        let keys = keys(call);
        let keys: Vec<(&'static str, &str)> = keys.iter().map(|(field, value)| (*field, value.as_str())).collect();
        let found: Vec<Value> = if order.is_empty() {
            images.newest_first(&keys, marker).filter(fits).take(limit).map(|image| image.shown()).collect()
        } else {
            let marker = marker.and_then(|marker| images.get(marker));
            let after = |image: &&Arc<Image>| marker.is_none_or(|marker| compare(marker, image, &order).is_lt());
            let mut rest: Vec<&Arc<Image>> = images.newest_first(&keys, None).filter(after).filter(fits).collect();
            if limit < rest.len() {
                rest.select_nth_unstable_by(limit, |a, b| compare(a, b, &order));
                rest.truncate(limit);
            }
            rest.sort_by(|a, b| compare(a, b, &order));
            rest.into_iter().map(|image| image.shown()).collect()
        };
        Ok(page(call, &found, limit))
    }
}

fn page(call: &Call<'_>, found: &[Value], limit: usize) -> Answer {
    let mut body = json!({"images": found, "first": "/v2/images", "schema": "/v2/schemas/images"});
    let first: Vec<_> = call.request.query.iter().filter(|(key, _)| key != "marker").collect();
    if !first.is_empty() {
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(first).finish();
        body["first"] = json!(format!("/v2/images?{query}"));
    }
    // A full page may be the last one; Glance does not look.
    if let Some(last) = found.last().filter(|_| found.len() == limit) {
        let marker = last["id"].as_str().unwrap_or_default();
        body["next"] = json!(format!("/v2/images?{}", call.request.query_with(&[("marker", marker)])));
    }
    Answer::ok(&body)
}

fn limit(call: &Call<'_>) -> Result<usize, Refusal> {
    match call.request.query("limit") {
        None => Ok(DEFAULT_LIMIT),
        Some(text) => match text.parse::<i64>() {
            Ok(limit) if limit < 0 => Err(Refusal::bad_request("limit param must be positive")),
            Ok(limit) => Ok(usize::try_from(limit).unwrap_or(LARGEST_LIMIT).min(LARGEST_LIMIT)),
            Err(_) => Err(Refusal::bad_request("limit param must be an integer")),
        },
    }
}

/// The indexes that have everything a caller's list could show.
fn keys(call: &Call<'_>) -> Vec<(&'static str, String)> {
    let caller = &call.caller;
    let query = |key| call.request.query(key).map(str::to_owned);
    // the most selective first: a name, then a project
    if let Some(name) = query("name").filter(|name| !name.starts_with("in:")) {
        return vec![("name", name)];
    }
    if let Some(owner) = query("owner") {
        return vec![("owner", owner)];
    }
    if caller.is_admin() {
        return Vec::new();
    }
    let mut keys = vec![("owner", caller.project().to_owned()), ("member", caller.project().to_owned())];
    keys.extend(["public", "community"].map(|visibility| ("visibility", visibility.to_owned())));
    keys
}

/// Whether an image is in a caller's lists: less than what he sees if he knows its id.
fn is_listed(image: &Image, call: &Call<'_>) -> bool {
    let caller = &call.caller;
    let own = caller.project() == image.owner;
    let member = image.members.get(caller.project()).filter(|_| image.visibility == "shared");
    let status = call.request.query("member_status").unwrap_or("accepted");
    let shared = member.is_some_and(|member| status == "all" || member.status == status);
    let wanted = call.request.query("visibility");
    let visible = own || shared || caller.is_admin() || matches!(image.visibility.as_str(), "public" | "community");
    let chosen = match wanted {
        None => image.visibility != "community" || own,
        Some("all") => true,
        Some(visibility) => image.visibility == visibility,
    };
    visible && chosen
}

fn fits(image: &Image, call: &Call<'_>) -> bool {
    let hidden = call.request.query("os_hidden").is_some_and(|wanted| wanted.eq_ignore_ascii_case("true"));
    let filters =
        call.request.query.iter().filter(|(key, _)| !NOT_FILTERS.contains(&key.as_str()) && key != "os_hidden");
    image.os_hidden == hidden && filters.into_iter().all(|(key, wanted)| has(image, key, wanted))
}

fn has(image: &Image, key: &str, wanted: &str) -> bool {
    let one_of = |is: Option<&str>| match wanted.strip_prefix("in:") {
        Some(list) => list.split(',').any(|one| Some(one.trim_matches('"')) == is),
        None => is == Some(wanted),
    };
    match key {
        "tag" => image.tags.contains(wanted),
        "id" => one_of(Some(&image.id)),
        "name" => one_of(image.name.as_deref()),
        "status" => one_of(Some(image.status)),
        "owner" => one_of(Some(&image.owner)),
        "disk_format" => one_of(image.disk_format.as_deref()),
        "container_format" => one_of(image.container_format.as_deref()),
        "checksum" => one_of(image.checksum.as_deref()),
        "os_hash_value" => one_of(image.sha512.as_deref()),
        "protected" => wanted == image.protected.to_string(),
        "min_disk" => wanted == image.min_disk.to_string(),
        "min_ram" => wanted == image.min_ram.to_string(),
        "size_min" => wanted.parse::<u64>().is_ok_and(|least| image.size.unwrap_or(0) >= least),
        "size_max" => wanted.parse::<u64>().is_ok_and(|most| image.size.unwrap_or(0) <= most),
        property => image.properties.get(property).is_some_and(|is| is == wanted),
    }
}

/// The keys to sort by and whether each rises; none is Glance's own order, the newest first.
fn order(call: &Call<'_>) -> Result<Vec<(String, bool)>, Refusal> {
    let all = |key: &'static str| {
        let given = call.request.query.iter().filter(move |(name, _)| name == key);
        given.map(|(_, value)| value.clone())
    };
    let mut order: Vec<(String, bool)> = if let Some(sort) = call.request.query("sort") {
        let parts = sort.split(',').map(|part| part.split_once(':').unwrap_or((part, "desc")));
        parts.map(|(key, direction)| (key.to_owned(), direction == "asc")).collect()
    } else {
        let directions: Vec<String> = all("sort_dir").collect();
        let mut keys: Vec<String> = all("sort_key").collect();
        if keys.is_empty() && !directions.is_empty() {
            keys.push("created_at".to_owned());
        }
        let direction = |at: usize| directions.get(at).or(directions.last()).is_some_and(|it| it == "asc");
        keys.into_iter().enumerate().map(|(at, key)| (key, direction(at))).collect()
    };
    if let Some((key, _)) = order.iter().find(|(key, _)| !SORT_KEYS.contains(&key.as_str())) {
        let known = SORT_KEYS.join(", ");
        return Err(Refusal::bad_request(format!(
            "Invalid sort key: {key}. It must be one of the following: {known}."
        )));
    }
    if order == [("created_at".to_owned(), false)] {
        order.clear();
    }
    Ok(order)
}

fn compare(a: &Image, b: &Image, order: &[(String, bool)]) -> Ordering {
    let by_key = order.iter().map(|(key, rises)| {
        let ordering = match key.as_str() {
            "name" => a.name.cmp(&b.name),
            "status" => a.status.cmp(b.status),
            "container_format" => a.container_format.cmp(&b.container_format),
            "disk_format" => a.disk_format.cmp(&b.disk_format),
            "size" => a.size.cmp(&b.size),
            // the database keeps whole seconds
            "created_at" => a.created_at.as_second().cmp(&b.created_at.as_second()),
            "updated_at" => a.updated_at.as_second().cmp(&b.updated_at.as_second()),
            _ => a.id.cmp(&b.id),
        };
        if *rises { ordering } else { ordering.reverse() }
    });
    by_key.fold(Ordering::Equal, Ordering::then).then_with(|| b.id.cmp(&a.id))
}
