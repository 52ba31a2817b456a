//! Layers of options: each with its origin, the last one winning.

use std::{collections::BTreeMap, fmt};

use kupenstack_api::cluster::{ConfSource, no_section};
use secrecy::ExposeSecret;
use serde_json::Value;

use super::{
    Options, Refused, check, ini,
    sources::{Holder, Reference, Sources, of_snippet},
};
use crate::service::{Format, Request, Service};

/// Options that were set in one place.
pub(super) struct Layer {
    pub(super) origin: Origin,
    pub(super) options: Options,
}

/// Where options were set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// By the operator for this service.
    Operator,
    /// In the cloud's object, for all services.
    Common,
    /// In an object that the cloud's object names, for all services.
    CommonSnippet(Reference, String),
    /// In the service's object.
    Conf,
    /// In an object that the service's object names.
    Snippet(Reference, String),
    /// In the service's raw values, below this path.
    Values(String),
}

impl Origin {
    /// Whether it is for all services, of which each has its own options.
    pub(super) fn is_common(&self) -> bool {
        matches!(self, Self::Common | Self::CommonSnippet(..))
    }

    pub(super) fn is_secret(&self) -> bool {
        matches!(self, Self::Snippet(r, _) | Self::CommonSnippet(r, _) if r.holder == Holder::Secret)
    }

    /// Where a section, or an option of it, was set: what a person has to edit.
    pub(super) fn place(&self, section: &str, option: Option<&str>) -> String {
        let dotted =
            |path: &str| [Some(path), Some(section), option].into_iter().flatten().collect::<Vec<_>>().join(".");
        match self {
            Self::Operator => dotted("operator"),
            Self::Common => dotted("OpenStack spec.common.conf"),
            Self::Conf => dotted("spec.conf"),
            Self::Values(path) => dotted(path),
            Self::Snippet(reference, key) | Self::CommonSnippet(reference, key) => match option {
                Some(option) => format!("{reference}/key {key}: [{section}] {option}"),
                None => format!("{reference}/key {key}: [{section}]"),
            },
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operator => f.write_str("operator"),
            Self::Common => f.write_str("OpenStack spec.common"),
            Self::Conf => f.write_str("spec.conf"),
            Self::Values(_) => f.write_str("spec.values"),
            Self::CommonSnippet(reference, _) => write!(f, "OpenStack spec.common, {reference}"),
            Self::Snippet(reference, _) => reference.fmt(f),
        }
    }
}

/// The layers of a service's options from the lowest to the highest, without the raw values. What can't be used is left
/// out and refused.
pub(super) fn collect(
    service: &dyn Service,
    request: &Request,
    sources: &Sources,
    refused: &mut Vec<Refused>,
) -> Vec<Layer> {
    let common = &request.common;
    let mut layers = vec![
        Layer { origin: Origin::Operator, options: service.options(request) },
        Layer { origin: Origin::Common, options: common.common_conf.clone() },
    ];
    let from_cloud = "OpenStack spec.common.confFrom";
    layers.extend(snippets(&common.common_conf_from, from_cloud, Origin::CommonSnippet, sources, refused));
    layers.push(Layer { origin: Origin::Conf, options: common.settings.conf.clone() });
    layers.extend(snippets(&common.settings.conf_from, "spec.confFrom", Origin::Snippet, sources, refused));
    layers.retain(|layer| !layer.options.is_empty());
    layers.into_iter().map(|layer| checked(layer, service, refused)).collect()
}

fn snippets(
    from: &[ConfSource],
    field: &str,
    origin: impl Fn(Reference, String) -> Origin,
    sources: &Sources,
    refused: &mut Vec<Refused>,
) -> Vec<Layer> {
    let mut layers = Vec::new();
    for (index, source) in from.iter().enumerate() {
        match snippet(source, &format!("{field}[{index}]"), &origin, sources) {
            Ok(read) => layers.extend(read),
            Err(why) => refused.push(why),
        }
    }
    layers
}

fn snippet(
    source: &ConfSource,
    at: &str,
    origin: &impl Fn(Reference, String) -> Origin,
    sources: &Sources,
) -> Result<Vec<Layer>, Refused> {
    let (reference, key) = of_snippet(source)
        .ok_or_else(|| Refused::Invalid(format!("{at}: exactly one of secretRef and configMapRef must be set")))?;
    let mut layers = Vec::new();
    for text in sources.texts(&reference, key, at)? {
        let options = ini::parse(text.text.expose_secret(), ini::Repeated::Values)
            .map_err(|e| Refused::Invalid(format!("{at}: {reference}/key {}, {e}", text.key)))?;
        layers.push(Layer { origin: origin(reference.clone(), text.key.to_owned()), options });
    }
    Ok(layers)
}

/// The layer with values that the chart can take; what it can't is refused with its place.
fn checked(layer: Layer, service: &dyn Service, refused: &mut Vec<Refused>) -> Layer {
    let Layer { origin, options } = layer;
    let mut refuse = |section: &str, option: Option<&str>, why: &str| {
        refused.push(Refused::Invalid(format!("{}: {why}", shortened(&origin.place(section, option)))));
    };
    let mut result = Options::new();
    for (section, given) in options {
        if let Err(why) = is_section(&section, service) {
            refuse(&section, None, &why);
            continue;
        }
        let mut checked = BTreeMap::new();
        for (option, value) in given {
            match check::option(&option).and_then(|()| check::value(value)) {
                Ok(value) => drop(checked.insert(option, value)),
                Err(why) => refuse(&section, Some(&option), &why.to_string()),
            }
        }
        result.insert(section, checked);
    }
    Layer { origin, options: result }
}

fn is_section(name: &str, service: &dyn Service) -> Result<(), String> {
    check::section(name).map_err(|why| why.to_string())?;
    match service.format() {
        Format::Flat(sections) if !sections.contains(&name) => Err(no_section(service.kind().name(), sections)),
        _ => Ok(()),
    }
}

fn shortened(place: &str) -> String {
    let printable: String = place.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    kupenstack_core::conditions::truncate(&printable, 256)
}

/// The options of all layers.
pub(super) fn merged(layers: &[Layer]) -> Options {
    let mut merged = Options::new();
    for layer in layers {
        for (section, options) in &layer.options {
            merged.entry(section.clone()).or_default().extend(options.clone());
        }
    }
    merged
}

/// The value that won, by section and option, and where it was set.
pub(super) type Winners<'a> = BTreeMap<(String, String), (Value, &'a Origin)>;

/// What won. The raw values go to the chart by another way and are merged there; here they are only followed.
pub(super) fn winners<'a>(layers: &'a [Layer], raw: Option<&Value>, raw_origin: &'a Origin) -> Winners<'a> {
    let mut winners = Winners::new();
    for layer in layers {
        for (section, options) in &layer.options {
            for (option, value) in options {
                winners.insert((section.clone(), option.clone()), (value.clone(), &layer.origin));
            }
        }
    }
    match raw {
        None => {}
        Some(Value::Object(sections)) => {
            for (section, options) in sections {
                let Value::Object(options) = options else {
                    winners.retain(|(s, _), _| s != section);
                    continue;
                };
                for (option, value) in options {
                    winners.insert((section.clone(), option.clone()), (value.clone(), raw_origin));
                }
            }
        }
        // whatever it is, it takes the place of all options
        Some(_) => winners.clear(),
    }
    winners
}
