//! Requests by name: the same in every run, whatever is generated in it.

use std::fmt;

use http::{Method, Uri};

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Who {
    /// The operator itself.
    Operator,
    /// Helm, while it runs this command.
    Helm(&'static str),
}

/// Before a request reaches the API server, or after it was carried out and before its sender knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Nobody but the sender knows of it.
    Before,
    /// Everybody but the sender knows what came of it.
    After,
}

/// A place in the operator's work: a request, with generated parts of names left out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Point {
    /// Who asks.
    pub who: Who,
    /// The method; `WATCH` for a watch, `TRY …` for a dry run.
    pub verb: String,
    /// The object, by its path without the namespace.
    pub what: String,
    /// On which side of the API server.
    pub phase: Phase,
}

impl Point {
    /// Whether it changes anything.
    pub fn writes(&self) -> bool {
        !matches!(self.verb.as_str(), "GET" | "WATCH") && !self.verb.starts_with("TRY")
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phase = if self.phase == Phase::Before { "before" } else { "after" };
        match self.who {
            Who::Operator => write!(f, "{phase} {} {}", self.verb, self.what),
            Who::Helm(command) => write!(f, "{phase} {} {} (helm {command})", self.verb, self.what),
        }
    }
}

/// Verb and object of a request. Namespaces, generated parts of names and values of selectors are left out.
pub(super) fn name(method: &Method, uri: &Uri) -> (String, String) {
    let query = uri.query().unwrap_or_default();
    let mut segments: Vec<&str> = uri.path().split('/').filter(|s| !s.is_empty()).collect();
    if let Some(i) = segments.iter().position(|s| *s == "namespaces")
        && segments.len() > i + 2
    {
        segments.drain(i..i + 2);
    }
    let one_of_many = segments.iter().any(|s| matches!(*s, "events" | "pods"));
    let names: Vec<_> = segments.iter().map(|s| without_generated(s)).collect();
    let mut what = if one_of_many && names.len() > 4 { names[..4].join("/") + "/*" } else { names.join("/") };
    if let Some(selector) = query.split('&').find_map(|q| q.strip_prefix("labelSelector=")) {
        let decoded = selector.replace("%3D", "=").replace("%2C", ",").replace("%2F", "/");
        let keys: Vec<_> = decoded.split(',').map(|t| t.split('=').next().unwrap_or_default().to_owned()).collect();
        what = format!("{what}?{}", keys.join(","));
    }
    let asks = |flag: &str| query.split('&').any(|q| q.strip_prefix(flag).is_some_and(|q| q.starts_with('=')));
    let verb = match (asks("watch"), asks("dryRun")) {
        (true, _) => "WATCH".to_owned(),
        (_, true) => format!("TRY {method}"),
        _ => method.to_string(),
    };
    (verb, what)
}

/// Name of the object that is made, if it is said in JSON. Events have generated ones.
pub(super) fn made(body: &[u8]) -> String {
    let object: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    if object["kind"] == "Event" {
        return "*".to_owned();
    }
    without_generated(object["metadata"]["name"].as_str().unwrap_or("?"))
}

/// A name without hashes and revisions.
pub fn without_generated(name: &str) -> String {
    let is_hash = |s: &str| s.len() >= 8 && s.bytes().all(|b| b.is_ascii_hexdigit());
    if let Some((start, revision)) = name.rsplit_once(".v")
        && revision.bytes().all(|b| b.is_ascii_digit())
    {
        return format!("{start}.v#");
    }
    match name.rsplit_once('-') {
        Some((start, end)) if is_hash(end) => format!("{}-#", without_generated(start)),
        _ => name.to_owned(),
    }
}
