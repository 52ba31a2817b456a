//! Configuration: layers of options, whole files, and the check of options against those that the service has.
//!
//! Precedence, the last one winning: the chart's defaults → the operator's options for the service →
//! `OpenStack.spec.common` → the service's `conf` → Secrets and `ConfigMaps` → the raw `values`, which Helm merges.
//! [`dereference`] reads what the spec names; [`resolve`] is pure.

mod check;
mod files;
mod ini;
mod known;
mod layers;
#[cfg(test)]
mod rendering;
mod sources;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kupenstack_api::cluster::{Conf as Options, EffectiveOption};
use kupenstack_core::{Outcome, conditions, reason};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};

#[cfg(test)]
pub(crate) use self::check::Fault;
use self::{
    known::Unknown,
    layers::{Origin, Winners},
};
use crate::{
    catalogue::Release,
    service::{Format, Request, Secrets, Service},
};

pub(crate) use sources::{Holder, Reference, Sources, dereference, references};

/// Type of the condition that is true while options are set that the service does not have.
pub(crate) const UNKNOWN_OPTIONS: &str = "UnknownOptions";

/// Largest configuration of a service. It ends up in a Secret and, twice and compressed, in Helm's record of the release,
/// of which each must be smaller than 1 MiB.
const MAX_BYTES: usize = 256 * 1024;
/// Most options that a status lists, and most unknown ones that a condition does.
const MAX_LISTED: usize = 200;
const MAX_UNKNOWN: usize = 20;
/// Longest name or value in a status.
const MAX_SHOWN: usize = 256;
/// Shorter values are no secrets worth the name, and blackening them would blacken half of every message.
const MIN_SECRET: usize = 6;

/// A configuration, ready for the chart.
#[derive(Default)]
pub(crate) struct Resolved {
    /// `conf` of the chart's values.
    pub(crate) values: Value,
    /// Every option that somebody set, by name.
    pub(crate) effective: Vec<EffectiveOption>,
    /// One sentence for each option that the service does not have.
    pub(crate) unknown: Vec<String>,
    /// Values that must not be shown.
    secrets: Vec<SecretString>,
}

/// Why there is no configuration.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// An object or a key that the spec names is not there.
    Missing(String),
    /// Something can't be used; the message names the field.
    Invalid(String),
}

impl From<Refused> for Outcome {
    fn from(refused: Refused) -> Self {
        match refused {
            // an event tells when it comes
            Refused::Missing(message) => {
                Self::waiting("ReferenceNotFound", message).within(std::time::Duration::from_mins(5))
            }
            Refused::Invalid(message) => Self::blocked(reason::INVALID_SPEC, message),
        }
    }
}

/// Merges the layers of a service's configuration.
pub(crate) fn resolve(
    service: &dyn Service,
    request: &Request,
    release: &Release,
    sources: &Sources,
) -> Result<Resolved, Refused> {
    let (resolved, refused) = examine(service, request, release, sources);
    refused.into_iter().next().map_or(Ok(resolved), Err)
}

/// The configuration as far as it can be used, and everything that can't.
pub(crate) fn examine(
    service: &dyn Service,
    request: &Request,
    release: &Release,
    sources: &Sources,
) -> (Resolved, Vec<Refused>) {
    if let Err(too_large) = limit(request, sources) {
        return (Resolved::default(), vec![too_large]);
    }
    let mut refused = Vec::new();
    let layers = layers::collect(service, request, sources, &mut refused);
    let files = files::resolve(service, request, sources, &mut refused);
    (merged(service, request, release, &layers, files), refused)
}

fn merged(
    service: &dyn Service,
    request: &Request,
    release: &Release,
    layers: &[layers::Layer],
    files: Vec<files::Resolved>,
) -> Resolved {
    let object = service.kind().object();
    let raw = raw_options(service, request);
    let raw_origin = Origin::Values(match service.format() {
        Format::Flat(_) => "spec.values.conf".to_owned(),
        Format::Oslo | Format::Sections => format!("spec.values.conf.{object}"),
    });
    let winners = layers::winners(layers, raw.as_ref(), &raw_origin);

    let merged = layers::merged(layers);
    let mut conf: Map<_, _> = match service.format() {
        Format::Flat(_) => merged.into_iter().map(|(section, options)| (section, json!(options))).collect(),
        Format::Oslo | Format::Sections => {
            (!merged.is_empty()).then(|| (object.to_owned(), json!(merged))).into_iter().collect()
        }
    };
    let mut effective = effective(service, release, &winners);
    let mut secrets = secrets(service, release, &winners);
    for file in files {
        effective.push(file_entry(&file, request));
        if file.secret {
            texts(&file.content, &mut secrets);
        }
        conf.insert(file.file.name().to_owned(), file.content);
    }
    Resolved {
        values: json!({"conf": conf}),
        effective: bounded(effective),
        unknown: unknown(service, release, &winners),
        secrets,
    }
}

impl Resolved {
    /// Has its secrets masked from now on.
    pub(crate) fn confide(&mut self, secrets: &mut Secrets) {
        for (index, secret) in self.secrets.drain(..).enumerate() {
            secrets.hide(&format!("configuration/{index}"), secret);
        }
    }
}

/// The values as a status shows them: without secrets, and short. A secret that is cut could not be found any more.
pub(crate) fn shown(options: &mut [EffectiveOption], secrets: &Secrets) {
    for option in options {
        option.value = option.value.take().map(|value| conditions::truncate(&secrets.mask(&value), MAX_SHOWN));
    }
}

/// The condition that names unknown options; as it was when they are not known in this pass.
pub(crate) fn warning(
    unknown: Option<&[String]>,
    generation: Option<i64>,
    previous: &[Condition],
    now: Timestamp,
) -> Option<Condition> {
    match unknown {
        None => conditions::find(previous, UNKNOWN_OPTIONS).cloned(),
        Some([]) => None,
        Some(unknown) => {
            let (kind, message) = (UNKNOWN_OPTIONS, unknown.join("; "));
            Some(conditions::one(kind, true, kind, &message, generation, previous, now))
        }
    }
}

/// What to tell when unknown options appear; nothing while they stay.
pub(crate) fn news<'a>(before: &[Condition], after: &'a [Condition]) -> Option<&'a str> {
    let appeared = conditions::find(before, UNKNOWN_OPTIONS).is_none();
    conditions::find(after, UNKNOWN_OPTIONS).filter(|_| appeared).map(|c| c.message.as_str())
}

fn limit(request: &Request, sources: &Sources) -> Result<(), Refused> {
    let common = &request.common;
    let settings = &common.settings;
    let raw = settings.values.as_ref().and_then(|values| values.get("conf"));
    let inline = json!([common.common_conf, settings.conf, settings.files, raw]).to_string().len();
    let texts = sources.0.values().flatten().flat_map(|keys| keys.values().flatten());
    let bytes = inline + texts.map(|text| text.expose_secret().len()).sum::<usize>();
    if bytes <= MAX_BYTES {
        return Ok(());
    }
    let message = format!(
        "spec.conf: with confFrom, files and values.conf it has {} KiB; at most {} KiB",
        bytes.div_ceil(1024),
        MAX_BYTES / 1024
    );
    Err(Refused::Invalid(message))
}

/// What the raw values say of the service's options, by section.
fn raw_options(service: &dyn Service, request: &Request) -> Option<Value> {
    let conf = request.common.settings.values.as_ref()?.get("conf")?;
    let Value::Object(conf) = conf else { return Some(Value::Null) };
    match service.format() {
        Format::Flat(sections) => {
            let given: Map<_, _> =
                sections.iter().filter_map(|s| Some(((*s).to_owned(), conf.get(*s)?.clone()))).collect();
            (!given.is_empty()).then_some(Value::Object(given))
        }
        Format::Oslo | Format::Sections => conf.get(service.kind().object()).cloned(),
    }
}

fn effective(service: &dyn Service, release: &Release, winners: &Winners<'_>) -> Vec<EffectiveOption> {
    let entry = |((section, option), (value, origin)): (&(String, String), &(Value, &Origin))| EffectiveOption {
        option: conditions::truncate(&format!("{section}/{option}"), MAX_SHOWN),
        value: match value {
            Value::Null => None,
            _ if is_secret(service, release, section, option, origin) => Some("***".to_owned()),
            value => Some(check::shown(value)),
        },
        from: origin.to_string(),
    };
    winners.iter().map(entry).collect()
}

fn is_secret(service: &dyn Service, release: &Release, section: &str, option: &str, origin: &Origin) -> bool {
    let known = || known::of(release.name, service.kind()).is_some_and(|k| k.is_secret(section, option));
    origin.is_secret() || known()
}

fn secrets(service: &dyn Service, release: &Release, winners: &Winners<'_>) -> Vec<SecretString> {
    let mut secrets = Vec::new();
    for ((section, option), (value, origin)) in winners {
        if is_secret(service, release, section, option, origin) {
            texts(value, &mut secrets);
        }
    }
    secrets
}

/// Every text in a value, as far as it can be a secret.
fn texts(value: &Value, found: &mut Vec<SecretString>) {
    match value {
        Value::String(text) => {
            // the service drops quotes around a value, and its messages have none
            for text in text.lines().map(|line| line.trim().trim_matches(['"', '\''])) {
                let word = matches!(text.to_ascii_lowercase().as_str(), "true" | "false" | "none");
                if text.len() >= MIN_SECRET && !word {
                    found.push(SecretString::from(text));
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(map) => map.iter().filter(|(key, _)| *key != "type").for_each(|(_, v)| texts(v, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn file_entry(file: &files::Resolved, request: &Request) -> EffectiveOption {
    let name = file.file.name();
    let raw = request.common.settings.values.as_ref().and_then(|v| v.get("conf")?.get(name));
    let entries = file.content.as_object().map_or(0, Map::len);
    EffectiveOption {
        option: format!("files/{name}"),
        value: Some(format!("{entries} {}", file.file.entries())),
        from: if raw.is_some() { format!("{}, spec.values", file.from) } else { file.from.clone() },
    }
}

fn bounded(mut all: Vec<EffectiveOption>) -> Vec<EffectiveOption> {
    all.sort_by(|a, b| a.option.cmp(&b.option));
    if all.len() > MAX_LISTED {
        let more = all.len() + 1 - MAX_LISTED;
        all.truncate(MAX_LISTED - 1);
        all.push(EffectiveOption {
            option: "…".to_owned(), value: Some(format!("{more} more")), from: String::new()
        });
    }
    all
}

/// What the service does not know. Options for all services are known when any of these has them.
fn unknown(service: &dyn Service, release: &Release, winners: &Winners<'_>) -> Vec<String> {
    let Some(known) = known::of(release.name, service.kind()) else { return Vec::new() };
    let who = format!("{} {}", service.kind().name(), release.name);
    let mut found: Vec<String> = Vec::new();
    let mut more = 0;
    for ((section, option), (_, origin)) in winners {
        if known.has(section, option) || origin.is_common() && known::anywhere(release.name, section, option) {
            continue;
        }
        if found.len() == MAX_UNKNOWN {
            more += 1;
            continue;
        }
        let (place, what, near) = match known.check(section, option) {
            None => continue,
            Some(Unknown::Section(near)) => (origin.place(section, None), "a section", near.map(str::to_owned)),
            Some(Unknown::Option(near)) => (origin.place(section, Some(option)), "an option", near),
        };
        let hint = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        let sentence = format!("{} is not {what} of {who}{hint}", conditions::truncate(&place, MAX_SHOWN));
        // all options of an unknown section say the same
        if found.last() != Some(&sentence) {
            found.push(sentence);
        }
    }
    if more > 0 {
        found.push(format!("and {more} more"));
    }
    found
}
