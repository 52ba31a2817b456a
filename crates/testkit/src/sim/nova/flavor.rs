//! What a flavor is, and what Nova takes for one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::{WITH_DESCRIPTION, WITH_EXTRA_SPECS, WITH_NUMBER_FOR_NO_SWAP, speaks};
use crate::sim::{http::Refusal, service::Call, table::Row};

/// A flavor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flavor {
    /// Its id: any text.
    pub id: String,
    /// Its name, unique.
    pub name: String,
    /// Virtual processors.
    pub vcpus: u64,
    /// MiB.
    pub ram: u64,
    /// GiB.
    pub disk: u64,
    /// GiB.
    pub ephemeral: u64,
    /// MiB.
    pub swap: u64,
    /// Whether every project sees it.
    pub is_public: bool,
    /// The projects that see it if not every one does.
    pub projects: BTreeSet<String>,
    /// A text for people.
    pub description: Option<String>,
    /// What else is asked of a host.
    pub extra_specs: BTreeMap<String, String>,
}

impl Row for Flavor {
    fn id(&self) -> &str {
        &self.id
    }

    fn keys(&self) -> Vec<(&'static str, String)> {
        vec![("name", self.name.clone())]
    }
}

/// The largest number that Nova's database holds.
const LARGEST: u64 = 0x7fff_ffff;
/// The longest description.
const LONGEST_TEXT: usize = 65_535;

const KNOWN: [&str; 9] = [
    "name",
    "id",
    "ram",
    "vcpus",
    "disk",
    "OS-FLV-EXT-DATA:ephemeral",
    "swap",
    "rxtx_factor",
    "os-flavor-access:is_public",
];

impl Flavor {
    /// A small public flavor.
    pub fn new(id: &str, name: &str) -> Self {
        Self {
            id: id.to_owned(),
            name: name.to_owned(),
            vcpus: 1,
            ram: 512,
            disk: 1,
            ephemeral: 0,
            swap: 0,
            is_public: true,
            projects: BTreeSet::new(),
            description: None,
            extra_specs: BTreeMap::new(),
        }
    }

    /// What a request to make one asks for.
    pub(super) fn asked(call: &mut Call<'_>) -> Result<Self, Refusal> {
        let body = call.request.json();
        let asked =
            body["flavor"].as_object().ok_or_else(|| Refusal::bad_request("'flavor' is a required property"))?;
        if let Some(missing) = ["name", "ram", "vcpus", "disk"].into_iter().find(|key| !asked.contains_key(*key)) {
            let words = "Invalid input for field/attribute flavor. Value:";
            return Err(Refusal::bad_request(format!("{words} {asked:?}. '{missing}' is a required property")));
        }
        let description = speaks(call, WITH_DESCRIPTION).then_some("description");
        let is_known = |key: &str| KNOWN.contains(&key) || description == Some(key);
        if let Some(odd) = asked.keys().find(|key| !is_known(key)) {
            let words = "Additional properties are not allowed";
            return Err(Refusal::bad_request(format!("{words} ('{odd}' was unexpected)")));
        }
        let id = match &asked.get("id") {
            Some(Value::String(id)) if is_id(id) => id.clone(),
            Some(Value::Number(id)) => id.to_string(),
            None | Some(Value::Null) => call.ids.uuid().to_string(),
            Some(other) => return Err(invalid("id", other, "is no identifier")),
        };
        Ok(Self {
            id,
            name: name(&asked["name"])?,
            vcpus: number(asked, "vcpus", 1)?,
            ram: number(asked, "ram", 1)?,
            disk: number(asked, "disk", 0)?,
            ephemeral: number(asked, "OS-FLV-EXT-DATA:ephemeral", 0)?,
            swap: number(asked, "swap", 0)?,
            is_public: asked.get("os-flavor-access:is_public").is_none_or(|it| it.as_bool() != Some(false)),
            projects: BTreeSet::new(),
            description: text(asked.get("description"))?,
            extra_specs: BTreeMap::new(),
        })
    }

    /// As a list without details shows it.
    pub(super) fn brief(&self, call: &Call<'_>) -> Value {
        let of_flavor = format!("flavors/{}", self.id);
        let mut shown = json!({
            "id": self.id,
            "name": self.name,
            "links": [
                {"rel": "self", "href": format!("{}/compute/v2.1/{of_flavor}", call.base)},
                {"rel": "bookmark", "href": format!("{}/compute/{of_flavor}", call.base)},
            ],
        });
        if speaks(call, WITH_DESCRIPTION) {
            shown["description"] = json!(self.description);
        }
        shown
    }

    pub(super) fn shown(&self, call: &Call<'_>) -> Value {
        let mut shown = self.brief(call);
        let no_swap = self.swap == 0 && !speaks(call, WITH_NUMBER_FOR_NO_SWAP);
        shown["vcpus"] = json!(self.vcpus);
        shown["ram"] = json!(self.ram);
        shown["disk"] = json!(self.disk);
        shown["swap"] = if no_swap { json!("") } else { json!(self.swap) };
        shown["OS-FLV-EXT-DATA:ephemeral"] = json!(self.ephemeral);
        shown["OS-FLV-DISABLED:disabled"] = json!(false);
        shown["os-flavor-access:is_public"] = json!(self.is_public);
        shown["rxtx_factor"] = json!(1.0);
        if speaks(call, WITH_EXTRA_SPECS) {
            shown["extra_specs"] = json!(self.extra_specs);
        }
        shown
    }
}

pub(super) fn invalid(field: &str, value: &Value, problem: &str) -> Refusal {
    Refusal::bad_request(format!("Invalid input for field/attribute {field}. Value: {value}. {value} {problem}"))
}

/// A request's part without a key that it has to have. Nova writes such a part as Python does, which is simulated for texts only.
pub(super) fn lacks(field: &str, part: &Value, key: &str) -> Refusal {
    let part = part.to_string().replace('"', "'").replace("':'", "': '").replace("','", "', '");
    let words = "Invalid input for field/attribute";
    Refusal::bad_request(format!("{words} {field}. Value: {part}. '{key}' is a required property"))
}

fn is_id(id: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || ". _-".contains(c);
    (1..=255).contains(&id.len()) && id.trim() == id && id.chars().all(allowed)
}

fn name(value: &Value) -> Result<String, Refusal> {
    match value.as_str() {
        Some(name) if (1..=255).contains(&name.len()) && name.trim() == name => Ok(name.to_owned()),
        _ => Err(invalid("name", value, "does not match any of the regexes")),
    }
}

/// A description: one line, or nothing.
pub(super) fn text(value: Option<&Value>) -> Result<Option<String>, Refusal> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.len() <= LONGEST_TEXT && !text.contains(char::is_control) => {
            Ok(Some(text.clone()))
        }
        Some(other) => Err(invalid("description", other, "does not match")),
    }
}

/// A whole number, also as a text.
fn number(asked: &Map<String, Value>, field: &str, least: u64) -> Result<u64, Refusal> {
    let Some(value) = asked.get(field) else { return Ok(0) };
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    match number {
        Some(number) if (least..=LARGEST).contains(&number) => Ok(number),
        Some(number) if number < least => Err(invalid(field, value, &format!("is less than the minimum of {least}"))),
        Some(_) => Err(invalid(field, value, &format!("is greater than the maximum of {LARGEST}"))),
        None => Err(invalid(field, value, "is not of type 'integer', 'string'")),
    }
}
