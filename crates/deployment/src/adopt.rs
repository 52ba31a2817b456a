//! Taking over a release that was made by hand.
//!
//! Its own values say which passwords run; they become the service's credentials. What else was set by hand and is not in
//! the spec is lost with the next revision, so it is listed before anybody consents.

use std::{collections::BTreeMap, io::Read};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use flate2::read::GzDecoder;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{Api, Client};
use kupenstack_core::Outcome;
use kupenstack_helm::ReleaseRef;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    Error,
    catalogue::Release,
    credentials::{self, Generated},
    record::Record,
    service::{Request, Secrets, Service},
    values,
};

/// Settings that a message names at most; a release may have hundreds.
const NAMED: usize = 20;
/// A record may not pass 1 MiB compressed; text compresses some ten times.
const MAX_RECORD: u64 = 64 << 20;

/// What a release was made from.
#[derive(Default, Deserialize)]
pub(crate) struct Made {
    /// Values that were given.
    #[serde(default)]
    config: Option<Map<String, Value>>,
    #[serde(default)]
    chart: Chart,
}

#[derive(Default, Deserialize)]
struct Chart {
    /// The chart's defaults.
    #[serde(default)]
    values: Option<Map<String, Value>>,
}

/// A release made by hand that an object finds in its place.
pub(crate) struct ByHand<'a> {
    pub(crate) client: &'a Client,
    pub(crate) service: &'a dyn Service,
    pub(crate) request: &'a Request,
    pub(crate) release: &'a ReleaseRef,
    pub(crate) record: &'a Record,
}

impl ByHand<'_> {
    /// What is said as long as nobody consents; nothing is touched.
    pub(crate) async fn refusal(&self, release: &Release) -> Result<Outcome, Error> {
        let values = values::compute(self.service, self.request, release, &Secrets::default());
        let lost = said(&self.made().await?.lost(&values));
        let message = format!(
            "release {} was made by hand (revision {}); set spec.adopt: true to take it over; {lost}",
            self.release.name, self.record.revision
        );
        Ok(Outcome::blocked("ReleaseExists", message))
    }

    /// Makes the release's passwords the service's credentials. What it did, in words, if that was not done before.
    pub(crate) async fn take_over(&self, release: &Release) -> Result<Option<String>, Error> {
        let kind = self.service.kind();
        if credentials::taken_over(self.client, &self.request.namespace, kind).await? == Some(self.record.revision) {
            return Ok(None);
        }
        let made = self.made().await?;
        let found = made.passwords(self.service, &self.release.name)?;
        credentials::take_over(self.client, &self.request.namespace, kind, &found, self.record.revision).await?;
        let mut secrets = Secrets::default();
        for (key, password) in found {
            if let Ok(text) = String::from_utf8(password.0) {
                secrets.insert(kind, key, SecretString::from(text));
            }
        }
        let values = values::compute(self.service, self.request, release, &secrets);
        let lost = said(&made.lost(&values));
        Ok(Some(format!("release {} (revision {}) is taken over; {lost}", self.release.name, self.record.revision)))
    }

    async fn made(&self) -> Result<Made, Error> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.release.namespace);
        let name = self.release.record_name(self.record.revision);
        let data = api.get(&name).await?.data.and_then(|mut d| d.remove("release")).unwrap_or_default();
        decode(&data.0).map_err(|source| Error::Record { name, source })
    }
}

impl Made {
    /// The service's passwords by key. One that the chart does not even know is not in use, and left out.
    fn passwords(&self, service: &dyn Service, release: &str) -> Result<BTreeMap<&'static str, ByteString>, Error> {
        let mut found = BTreeMap::new();
        for generated in service.credentials() {
            let Generated::Password(key) = generated else { continue };
            let Some(path) = values::path_of(service.kind(), key) else { continue };
            let given = [self.config.as_ref(), self.chart.values.as_ref()].map(|values| at(values, path));
            match given.iter().flatten().find_map(|v| v.as_str()).filter(|text| !text.is_empty()) {
                Some(text) => drop(found.insert(*key, ByteString(text.as_bytes().to_vec()))),
                None if given.iter().all(Option::is_none) => {}
                None => return Err(Error::NoPassword { release: release.to_owned(), path: path.join(".") }),
            }
        }
        Ok(found)
    }

    /// Paths of the settings made by hand that `values` does not repeat. Passwords, ours or another service's, are none.
    fn lost(&self, values: &Value) -> Vec<String> {
        let mut lost = Vec::new();
        let config = self.config.iter().flatten();
        config.for_each(|(key, given)| {
            compare(given, values.get(key), self.chart.values.as_ref().and_then(|v| v.get(key)), &[key], &mut lost);
        });
        lost
    }
}

/// Collects where `given` differs both from what we would set and from what the chart has anyway.
fn compare(given: &Value, ours: Option<&Value>, default: Option<&Value>, path: &[&str], lost: &mut Vec<String>) {
    if let Value::Object(map) = given {
        for (key, value) in map {
            let path: Vec<&str> = path.iter().copied().chain([key.as_str()]).collect();
            compare(value, ours.and_then(|o| o.get(key)), default.and_then(|d| d.get(key)), &path, lost);
        }
        return;
    }
    let kept = ours.or(default).unwrap_or(&Value::Null) == given;
    if !kept && !values::is_credential(path) {
        lost.push(path.join("."));
    }
}

fn said(lost: &[String]) -> String {
    if lost.is_empty() {
        return "the spec says all that was set by hand".to_owned();
    }
    let more = if lost.len() > NAMED { format!(" and {} more", lost.len() - NAMED) } else { String::new() };
    let named: Vec<_> = lost.iter().take(NAMED).map(String::as_str).collect();
    format!("what was set by hand and the spec does not say goes then: {}{more}", named.join(", "))
}

fn at<'a>(values: Option<&'a Map<String, Value>>, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(values?.get(*first)?, |value, key| value.get(*key))
}

/// Reads Helm's record: base64 around gzip around JSON.
fn decode(record: &[u8]) -> Result<Made, serde_json::Error> {
    let unreadable = |e: &dyn std::fmt::Display| serde::de::Error::custom(e);
    let zipped = STANDARD.decode(record).map_err(|e| unreadable(&e))?;
    let mut json = Vec::new();
    GzDecoder::new(zipped.as_slice()).take(MAX_RECORD).read_to_end(&mut json).map_err(|e| unreadable(&e))?;
    serde_json::from_slice(&json)
}

#[cfg(test)]
mod tests;
