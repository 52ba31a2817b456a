//! Taking over a release that was made by hand.
//!
//! Its own values say which passwords run; they become the service's credentials. What else was set by hand and is not in
//! the spec is lost with the next revision, so it is listed before anybody consents.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use kube::Client;
use kupenstack_core::Outcome;
use kupenstack_helm::ReleaseRef;
use serde_json::Value;

use crate::{
    Error,
    applied::Applied,
    credentials::{self, Generated},
    record::Revision,
    service::{Request, Service},
    values,
};

/// Settings that a message names at most; a release may have hundreds.
const NAMED: usize = 20;

/// A release made by hand that an object finds in its place.
pub(crate) struct ByHand<'a> {
    pub(crate) client: &'a Client,
    pub(crate) service: &'a dyn Service,
    pub(crate) request: &'a Request,
    pub(crate) release: &'a ReleaseRef,
    pub(crate) revision: &'a Revision,
}

impl ByHand<'_> {
    /// What is said as long as nobody consents; nothing is touched. `values` are what we would set.
    pub(crate) async fn refusal(&self, values: &Value) -> Result<Outcome, Error> {
        let lost = said(&self.made().await?.lost(values));
        let message = format!(
            "release {} was made by hand (revision {}); set spec.adopt: true to take it over; {lost}",
            self.release.name, self.revision.number
        );
        Ok(Outcome::blocked("ReleaseExists", message))
    }

    /// Makes the release's passwords the service's credentials. What it did, in words, if that was not done before.
    pub(crate) async fn take_over(&self, values: &Value) -> Result<Option<String>, Error> {
        let (kind, revision) = (self.service.kind(), self.revision.number);
        if credentials::taken_over(self.client, &self.request.namespace, kind).await? == Some(revision) {
            return Ok(None);
        }
        let made = self.made().await?;
        let found = made.passwords(self.service, &self.release.name)?;
        credentials::take_over(self.client, &self.request.namespace, kind, &found, revision).await?;
        let lost = said(&made.lost(values));
        Ok(Some(format!("release {} (revision {revision}) is taken over; {lost}", self.release.name)))
    }

    /// What is said while somebody's Helm works on the release: it is not ours to be cleared away.
    pub(crate) fn busy(&self) -> Option<Outcome> {
        let message = format!(
            "release {} is {}: somebody's helm works on it, or was killed; then roll it back or delete its newest record",
            self.release.name, self.revision.state
        );
        self.revision.is_pending().then(|| Outcome::waiting("ReleasePending", message))
    }

    async fn made(&self) -> Result<Applied, Error> {
        let made = Applied::read(self.client, self.release, self.revision.number).await?;
        // without it no password would be found, and new ones would lock everybody out
        made.ok_or_else(|| Error::Record {
            name: self.release.record_name(self.revision.number),
            reason: "it has just gone".to_owned(),
        })
    }
}

impl Applied {
    /// The service's passwords by key. One that the chart does not even know is not in use, and left out.
    fn passwords(&self, service: &dyn Service, release: &str) -> Result<BTreeMap<&'static str, ByteString>, Error> {
        let mut found = BTreeMap::new();
        for generated in service.credentials() {
            let Generated::Password(key) = generated else { continue };
            let Some(path) = values::path_of(service.kind(), key) else { continue };
            let given = [&self.values, &self.defaults].map(|values| at(values, path));
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
        for (key, given) in self.values.as_object().into_iter().flatten() {
            compare(given, values.get(key), self.defaults.get(key), &[key], &mut lost);
        }
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
    let kept = same(ours.or(default).unwrap_or(&Value::Null), given);
    if !kept && !values::is_credential(path) {
        lost.push(path.join("."));
    }
}

/// Whether two values come to the same text in a file: a number may be written as such or as text.
fn same(a: &Value, b: &Value) -> bool {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text(a) == text(b)
}

fn said(lost: &[String]) -> String {
    if lost.is_empty() {
        return "the spec says all that was set by hand".to_owned();
    }
    let more = if lost.len() > NAMED { format!(" and {} more", lost.len() - NAMED) } else { String::new() };
    let named: Vec<_> = lost.iter().take(NAMED).map(String::as_str).collect();
    format!("what was set by hand and the spec does not say goes then: {}{more}", named.join(", "))
}

fn at<'a>(values: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(values, |value, key| value.get(*key))
}

#[cfg(test)]
mod tests;
