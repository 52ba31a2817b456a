//! Whole files: policy, paste, logging.

use std::collections::BTreeMap;

use kupenstack_api::cluster::FileSource;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

use super::{
    Refused, check, ini,
    sources::{Holder, Sources, of_file},
};
use crate::service::{File, Request, Service};

/// A file as the chart takes it.
pub(super) struct Resolved {
    pub(super) file: File,
    pub(super) content: Value,
    pub(super) from: String,
    pub(super) secret: bool,
}

/// The files that the spec sets. What can't be used is left out and refused.
pub(super) fn resolve(
    service: &dyn Service,
    request: &Request,
    sources: &Sources,
    refused: &mut Vec<Refused>,
) -> Vec<Resolved> {
    let files = &request.common.settings.files;
    let given = [(File::Policy, &files.policy), (File::Paste, &files.paste), (File::Logging, &files.logging)];
    let mut resolved = Vec::new();
    for (file, source) in given {
        match source.as_ref().map(|source| one(service, file, source, sources)) {
            None => {}
            Some(Ok(file)) => resolved.push(file),
            Some(Err(why)) => refused.push(why),
        }
    }
    resolved
}

fn one(service: &dyn Service, file: File, source: &FileSource, sources: &Sources) -> Result<Resolved, Refused> {
    let at = format!("spec.files.{}", file.name());
    if !service.files().contains(&file) {
        return Err(Refused::Invalid(format!("{at}: {}", has_instead(service))));
    }
    let (text, at, from, secret) = text(source, &at, sources)?;
    let content = match file {
        File::Policy => policy(text.expose_secret(), &at)?,
        File::Paste | File::Logging => sections(text.expose_secret(), &at)?,
    };
    Ok(Resolved { file, content, from, secret })
}

fn has_instead(service: &dyn Service) -> String {
    let names: Vec<_> = service.files().iter().map(|f| f.name()).collect();
    let who = service.kind().name();
    if names.is_empty() {
        return format!("{who} has no such file, nor any other that can be given");
    }
    format!("{who} has no such file; those it has are {}", names.join(" and "))
}

/// The text, where it is, where it comes from, and whether it is a secret.
fn text(source: &FileSource, at: &str, sources: &Sources) -> Result<(SecretString, String, String, bool), Refused> {
    match (&source.inline, of_file(source)) {
        (Some(inline), None) if source.secret_ref.is_none() && source.config_map_ref.is_none() => {
            Ok((SecretString::from(inline.clone()), format!("{at}.inline"), at.to_owned(), false))
        }
        (None, Some((reference, key))) => {
            let texts = sources.texts(&reference, Some(key), at)?;
            let text = texts.into_iter().next().map(|t| t.text.clone()).unwrap_or_default();
            let place = format!("{at}: {reference}/key {key}");
            Ok((text, place, reference.to_string(), reference.holder == Holder::Secret))
        }
        _ => Err(Refused::Invalid(format!("{at}: exactly one of inline, secretRef and configMapRef must be set"))),
    }
}

/// Rules as a map. An error says nothing of the text, which may be a secret.
fn policy(text: &str, at: &str) -> Result<Value, Refused> {
    let rules: Option<BTreeMap<String, Value>> = serde_saphyr::from_str(text).map_err(|e| {
        let line = e.location().map(|l| format!(", line {}", l.line())).unwrap_or_default();
        Refused::Invalid(format!("{at}{line}: this is not YAML, or not a map of rule to expression"))
    })?;
    let mut policy = Map::new();
    for (rule, expression) in rules.unwrap_or_default() {
        if !expression.is_string() {
            let rule = kupenstack_core::conditions::truncate(&rule, 100);
            return Err(Refused::Invalid(format!("{at}: rule {rule:?}: the expression must be a text")));
        }
        policy.insert(rule, expression);
    }
    Ok(policy.into())
}

fn sections(text: &str, at: &str) -> Result<Value, Refused> {
    let parsed = ini::parse(text, ini::Repeated::Mistake).map_err(|e| Refused::Invalid(format!("{at}, {e}")))?;
    let mut sections = Map::new();
    for (section, options) in parsed {
        let refuse = |why: check::Fault| Refused::Invalid(format!("{at}: [{section}]: {why}"));
        check::section(&section).map_err(refuse)?;
        let mut content = Map::new();
        for (option, value) in options {
            check::option(&option).map_err(refuse)?;
            content.insert(option, check::value(value).map_err(refuse)?);
        }
        sections.insert(section, content.into());
    }
    Ok(sections.into())
}
