//! Flavors: who sees which, lists, what an administrator does with them.

use std::{cmp::Ordering, sync::Arc};

use http::StatusCode;
use serde_json::{Value, json};

use super::{Nova, flavor, flavor::Flavor, only_admin, page};
use crate::sim::{
    http::{Answer, Outcome, Refusal},
    service::Call,
};

impl Nova {
    pub(super) fn list_flavors(&mut self, call: &mut Call<'_>, show: fn(&Flavor, &Call<'_>) -> Value) -> Outcome {
        let wanted = visibility(call)?;
        let least = |key| match call.request.query(key) {
            None => Ok(0),
            Some(text) => {
                text.parse::<u64>().map_err(|_| Refusal::bad_request(format!("Invalid {key} filter [{text}]")))
            }
        };
        let (ram, disk) = (least("minRam")?, least("minDisk")?);
        let key = call.request.query("sort_key").unwrap_or("flavorid");
        let falls = call.request.query("sort_dir") == Some("desc");
        let flavors = self.flavors.view(call.as_of);
        let is_admin = call.caller.is_admin();
        let fits = |flavor: &&Arc<Flavor>| {
            // to whoever may not choose, what he may use is as good as public
            let is_wanted = wanted.is_none_or(|wanted| flavor.is_public == wanted);
            (is_wanted || !is_admin && is_visible(flavor, call)) && flavor.ram >= ram && flavor.disk >= disk
        };
        let mut found: Vec<&Arc<Flavor>> = flavors.all().filter(fits).collect();
        found.sort_by(|a, b| if falls { compare(b, a, key) } else { compare(a, b, key) });
        let next = page(call, &mut found, |flavor| &flavor.id)?;
        let shown: Vec<Value> = found.iter().map(|flavor| show(flavor, call)).collect();
        let mut body = json!({"flavors": shown});
        if let Some(next) = next {
            body["flavors_links"] = next;
        }
        Ok(Answer::ok(&body))
    }

    pub(super) fn create_flavor(&mut self, call: &mut Call<'_>) -> Outcome {
        only_admin(call, "os-flavor-manage:create")?;
        let flavor = Flavor::asked(call)?;
        if self.flavor(&flavor.id).is_some() {
            return Err(Refusal::conflict(format!("Flavor with ID {} already exists.", flavor.id)));
        }
        if self.flavor_named(&flavor.name).is_some() {
            return Err(Refusal::conflict(format!("Flavor with name {} already exists.", flavor.name)));
        }
        let body = json!({"flavor": flavor.shown(call)});
        self.put_flavor(call.now, flavor);
        Ok(Answer::ok(&body))
    }

    pub(super) fn show_flavor(&mut self, call: &mut Call<'_>) -> Outcome {
        let flavors = self.flavors.view(call.as_of);
        let flavor = flavors.get(call.param(0)).filter(|flavor| is_visible(flavor, call));
        let flavor = flavor.ok_or_else(|| no_flavor(call))?;
        Ok(Answer::ok(&json!({"flavor": flavor.shown(call)})))
    }

    pub(super) fn describe_flavor(&mut self, call: &mut Call<'_>) -> Outcome {
        only_admin(call, "os-flavor-manage:update")?;
        let body = call.request.json();
        let asked = body["flavor"].get("description");
        let asked = asked.ok_or_else(|| Refusal::bad_request("'description' is a required property"))?;
        let description = flavor::text(Some(asked))?;
        let mut flavor = self.flavor(call.param(0)).ok_or_else(|| no_flavor(call))?.clone();
        flavor.description = description;
        let body = json!({"flavor": flavor.shown(call)});
        self.put_flavor(call.now, flavor);
        Ok(Answer::ok(&body))
    }

    pub(super) fn delete_flavor(&mut self, call: &mut Call<'_>) -> Outcome {
        only_admin(call, "os-flavor-manage:delete")?;
        if !self.remove_flavor(call.now, call.param(0)) {
            return Err(no_flavor(call));
        }
        Ok(Answer::empty(StatusCode::ACCEPTED))
    }
}

pub(super) fn no_flavor(call: &Call<'_>) -> Refusal {
    Refusal::not_found(format!("Flavor {} could not be found.", call.param(0)))
}

pub(super) fn is_visible(flavor: &Flavor, call: &Call<'_>) -> bool {
    flavor.is_public || call.caller.is_admin() || flavor.projects.contains(call.caller.project())
}

/// Which flavors a list is to have: public ones, others, or all. Only an administrator may choose.
fn visibility(call: &Call<'_>) -> Result<Option<bool>, Refusal> {
    if !call.caller.is_admin() {
        return Ok(Some(true));
    }
    match call.request.query("is_public").map(str::to_lowercase).as_deref() {
        None | Some("1" | "t" | "true" | "on" | "y" | "yes") => Ok(Some(true)),
        Some("0" | "f" | "false" | "off" | "n" | "no") => Ok(Some(false)),
        Some("none") => Ok(None),
        Some(other) => Err(Refusal::bad_request(format!("Invalid is_public filter [{other}]"))),
    }
}

fn compare(a: &Flavor, b: &Flavor, key: &str) -> Ordering {
    let by_key = match key {
        "name" => a.name.cmp(&b.name),
        "vcpus" => a.vcpus.cmp(&b.vcpus),
        "memory_mb" => a.ram.cmp(&b.ram),
        "root_gb" => a.disk.cmp(&b.disk),
        _ => Ordering::Equal,
    };
    by_key.then_with(|| a.id.cmp(&b.id))
}
