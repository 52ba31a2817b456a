//! Extra specs of flavors.

use std::collections::BTreeMap;

use http::StatusCode;
use serde_json::{Value, json};

use super::{
    Nova,
    flavor::Flavor,
    flavors::{is_visible, no_flavor},
    only_admin,
};
use crate::sim::{
    http::{Answer, Outcome, Refusal},
    service::Call,
};

/// The longest name and the longest value.
const LONGEST: usize = 255;

impl Nova {
    pub(super) fn list_extra_specs(&mut self, call: &mut Call<'_>) -> Outcome {
        Ok(Answer::ok(&json!({"extra_specs": self.visible(call)?.extra_specs})))
    }

    pub(super) fn set_extra_specs(&mut self, call: &mut Call<'_>) -> Outcome {
        only_admin(call, "os-flavor-extra-specs:create")?;
        let body = call.request.json();
        let specs = read(body.get("extra_specs"))?;
        self.change(call, |flavor| flavor.extra_specs.extend(specs))?;
        Ok(Answer::ok(&body))
    }

    pub(super) fn show_extra_spec(&mut self, call: &mut Call<'_>) -> Outcome {
        let key = call.param(1);
        let value = self.visible(call)?.extra_specs.get(key).ok_or_else(|| no_spec(call))?;
        Ok(Answer::ok(&json!({key: value})))
    }

    pub(super) fn set_extra_spec(&mut self, call: &mut Call<'_>) -> Outcome {
        only_admin(call, "os-flavor-extra-specs:update")?;
        let body = call.request.json();
        let specs = read(Some(&body))?;
        if specs.len() != 1 || !specs.contains_key(call.param(1)) {
            return Err(Refusal::bad_request("Request body and URI mismatch"));
        }
        self.change(call, |flavor| flavor.extra_specs.extend(specs))?;
        Ok(Answer::ok(&body))
    }

    pub(super) fn remove_extra_spec(&mut self, call: &mut Call<'_>) -> Outcome {
        only_admin(call, "os-flavor-extra-specs:delete")?;
        let key = call.param(1).to_owned();
        if !self.visible(call)?.extra_specs.contains_key(&key) {
            return Err(no_spec(call));
        }
        self.change(call, |flavor| drop(flavor.extra_specs.remove(&key)))?;
        Ok(Answer::empty(StatusCode::OK))
    }

    fn visible(&self, call: &Call<'_>) -> Result<&Flavor, Refusal> {
        self.flavor(call.param(0)).filter(|flavor| is_visible(flavor, call)).ok_or_else(|| no_flavor(call))
    }

    fn change(&mut self, call: &Call<'_>, change: impl FnOnce(&mut Flavor)) -> Result<(), Refusal> {
        if self.edit_flavor(call.now, call.param(0), change) { Ok(()) } else { Err(no_flavor(call)) }
    }
}

fn no_spec(call: &Call<'_>) -> Refusal {
    Refusal::not_found(format!("Flavor {} has no extra specs with key {}.", call.param(0), call.param(1)))
}

fn read(specs: Option<&Value>) -> Result<BTreeMap<String, String>, Refusal> {
    let Some(specs) = specs.and_then(Value::as_object) else {
        return Err(Refusal::bad_request("'extra_specs' is a required property"));
    };
    specs.iter().map(|(key, value)| Ok((name(key)?, text(key, value)?))).collect()
}

fn name(key: &str) -> Result<String, Refusal> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_:. ".contains(c);
    if (1..=LONGEST).contains(&key.len()) && key.chars().all(allowed) {
        return Ok(key.to_owned());
    }
    Err(Refusal::bad_request(format!(
        "Invalid input for field/attribute extra_specs. '{key}' does not match any of the regexes: \
         '^[a-zA-Z0-9-_:. ]{{1,255}}$'"
    )))
}

/// A text, or a number as a text.
fn text(key: &str, value: &Value) -> Result<String, Refusal> {
    let text = match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    text.filter(|text| text.len() <= LONGEST).ok_or_else(|| {
        Refusal::bad_request(format!("Invalid input for field/attribute {key}. Value: {value}. {value} is no text"))
    })
}
