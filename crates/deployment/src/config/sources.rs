//! Secrets and `ConfigMaps` that a configuration names.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, Client};
use kupenstack_api::cluster::{CommonSpec, ConfSource, FileSource, Files, ObjectKey, ObjectKeys};
use secrecy::SecretString;

use super::Refused;
use crate::Error;

/// What holds text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Holder {
    Secret,
    ConfigMap,
}

/// An object that a configuration names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reference {
    pub(crate) holder: Holder,
    pub(crate) name: String,
}

impl std::fmt::Display for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let holder = match self.holder {
            Holder::Secret => "Secret",
            Holder::ConfigMap => "ConfigMap",
        };
        write!(f, "{holder} {}", self.name)
    }
}

/// The keys of an object; `None` for one that is no text.
pub(super) type Keys = BTreeMap<String, Option<SecretString>>;

/// What the objects that a configuration names hold; `None` for one that does not exist.
#[derive(Debug, Default)]
pub(crate) struct Sources(pub(super) BTreeMap<Reference, Option<Keys>>);

/// The text of one key.
#[derive(Debug)]
pub(super) struct Text<'a> {
    pub(super) key: &'a str,
    pub(super) text: &'a SecretString,
}

/// Every object that the configuration names.
pub(crate) fn references(common: &CommonSpec) -> BTreeSet<Reference> {
    let settings = &common.settings;
    let snippets = common.common_conf_from.iter().chain(&settings.conf_from).filter_map(of_snippet).map(|(r, _)| r);
    let Files { policy, paste, logging } = &settings.files;
    let files = [policy, paste, logging].into_iter().flatten().filter_map(of_file).map(|(r, _)| r);
    snippets.chain(files).collect()
}

/// The object and the key, if only one is wanted; `None` when not exactly one object is named.
pub(super) fn of_snippet(source: &ConfSource) -> Option<(Reference, Option<&str>)> {
    let (holder, ObjectKeys { name, key }) = one(source.secret_ref.as_ref(), source.config_map_ref.as_ref())?;
    Some((Reference { holder, name: name.clone() }, key.as_deref()))
}

/// The object and its key; `None` when not exactly one object is named.
pub(super) fn of_file(source: &FileSource) -> Option<(Reference, &str)> {
    let (holder, ObjectKey { name, key }) = one(source.secret_ref.as_ref(), source.config_map_ref.as_ref())?;
    Some((Reference { holder, name: name.clone() }, key))
}

fn one<'a, T>(secret: Option<&'a T>, config_map: Option<&'a T>) -> Option<(Holder, &'a T)> {
    match (secret, config_map) {
        (Some(secret), None) => Some((Holder::Secret, secret)),
        (None, Some(config_map)) => Some((Holder::ConfigMap, config_map)),
        _ => None,
    }
}

/// Reads the objects that the configuration names.
pub(crate) async fn dereference(client: &Client, namespace: &str, common: &CommonSpec) -> Result<Sources, Error> {
    let mut sources = Sources::default();
    for reference in references(common) {
        let keys = match reference.holder {
            Holder::Secret => {
                let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
                api.get_opt(&reference.name).await?.map(|secret| {
                    let data = secret.data.unwrap_or_default().into_iter();
                    data.map(|(key, value)| (key, String::from_utf8(value.0).ok().map(SecretString::from))).collect()
                })
            }
            Holder::ConfigMap => {
                let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
                api.get_opt(&reference.name).await?.map(|map| {
                    let binary = map.binary_data.unwrap_or_default().into_keys().map(|key| (key, None));
                    let data = map.data.unwrap_or_default().into_iter();
                    data.map(|(key, text)| (key, Some(SecretString::from(text)))).chain(binary).collect()
                })
            }
        };
        sources.0.insert(reference, keys);
    }
    Ok(sources)
}

impl Sources {
    /// The texts under a key, or under all keys. `at` is the field that names them.
    pub(super) fn texts<'a>(
        &'a self,
        reference: &Reference,
        key: Option<&str>,
        at: &str,
    ) -> Result<Vec<Text<'a>>, Refused> {
        let Some(keys) = self.0.get(reference).and_then(Option::as_ref) else {
            return Err(Refused::Missing(format!("{at}: {reference} does not exist")));
        };
        let found: Vec<_> = keys.iter().filter(|(k, _)| key.is_none_or(|wanted| wanted == *k)).collect();
        if let (Some(key), true) = (key, found.is_empty()) {
            return Err(Refused::Missing(format!("{at}: {reference}/key {key} does not exist")));
        }
        found
            .into_iter()
            .map(|(key, text)| match text {
                Some(text) => Ok(Text { key, text }),
                None => Err(Refused::Invalid(format!("{at}: {reference}/key {key} is not UTF-8 text"))),
            })
            .collect()
    }
}
