//! Reads the services' error bodies. Each has its own shape, and the same fact its own status.

use http::StatusCode;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use crate::ErrorKind;

/// The longest message that is kept, in characters: it has to fit a condition and an event.
const LONGEST_MESSAGE: usize = 512;

/// How many characters tell a part of a secret from other text.
const RECOGNIZED: usize = 16;

/// What an error answer says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: ErrorKind,
    pub(crate) message: String,
}

impl Fault {
    /// Reads an error answer. `secrets` are the request's own: a validation error may quote what it was given.
    pub(crate) fn read(status: StatusCode, body: &[u8], secrets: &[SecretString]) -> Self {
        let text = String::from_utf8_lossy(body);
        let said = match serde_json::from_str::<Value>(&text) {
            Ok(json) => Said::from_json(&json),
            Err(_) => Said { message: without_markup(&text), ..Said::default() },
        };
        let message = tidy(&without_markup(&said.message), status);
        Self { kind: kind(status, &said.error_type, &message), message: bounded(redacted(message, secrets)) }
    }
}

/// The two things worth reading in an error body.
#[derive(Debug, Default)]
struct Said {
    message: String,
    /// Neutron's exception name.
    error_type: String,
}

impl Said {
    /// - Keystone: `{"error": {"message": …}}`
    /// - Nova, Cinder: `{"badRequest": {"message": …}}`, the key varies with the fault
    /// - Neutron: `{"NeutronError": {"type": …, "message": …}}`, or a bare string
    /// - Placement: `{"errors": [{"detail": …}]}`
    /// - Octavia: `{"faultstring": …}`
    /// - Glance and other `webob` services: `{"message": …}`
    fn from_json(json: &Value) -> Self {
        let Some(body) = json.as_object() else {
            return Self { message: json.as_str().unwrap_or_default().to_owned(), ..Self::default() };
        };
        let inner = body.values().find_map(|value| match value {
            Value::Object(_) => Some(value),
            Value::Array(list) => list.first().filter(|first| first.is_object()),
            _ => None,
        });
        [Some(json), inner].into_iter().flatten().find_map(Self::from_fields).unwrap_or_else(|| Self {
            message: body.values().find_map(Value::as_str).unwrap_or_default().to_owned(),
            ..Self::default()
        })
    }

    fn from_fields(fields: &Value) -> Option<Self> {
        let text = |key: &str| fields.get(key).and_then(Value::as_str);
        let message = ["message", "detail", "faultstring", "title"].into_iter().find_map(text)?;
        Some(Self { message: message.to_owned(), error_type: text("type").unwrap_or_default().to_owned() })
    }
}

fn kind(status: StatusCode, error_type: &str, message: &str) -> ErrorKind {
    match status.as_u16() {
        401 => ErrorKind::Unauthorized,
        403 if tells_of_a_limit(message) => ErrorKind::Quota,
        403 => ErrorKind::Forbidden,
        // what is asked about is there, and something between is not
        404 if error_type == "ExternalGatewayForFloatingIPNotFound" => ErrorKind::NoRoute,
        404 | 410 => ErrorKind::NotFound,
        // it does not speak the microversion that was asked for
        406 => ErrorKind::Protocol,
        // Neutron answers 409 for a quota.
        409 if error_type == "OverQuota" => ErrorKind::Quota,
        409 => ErrorKind::Conflict,
        412 => ErrorKind::Outdated,
        // Nova, Cinder and Glance.
        413 => ErrorKind::Quota,
        429 => ErrorKind::RateLimited,
        408 | 500.. => ErrorKind::Unavailable,
        400..500 => ErrorKind::BadRequest,
        _ => ErrorKind::Protocol,
    }
}

/// Nova, Keystone and Octavia answer 403 both for a quota and for a policy; only the words differ. A policy's name
/// may itself hold the word quota, so whole phrases are looked for.
fn tells_of_a_limit(message: &str) -> bool {
    const PHRASES: [&str; 5] =
        ["quota exceeded", "exceeded quota", "exceeds quota", "quota has been met", "has already been exceeded"];
    let message = message.to_lowercase();
    PHRASES.iter().any(|phrase| message.contains(phrase))
}

/// Turns a `webob` or proxy page into words. Text without markup stays as it is.
fn without_markup(text: &str) -> String {
    if !text.contains('<') {
        return text.to_owned();
    }
    // The title repeats the status.
    let text = match text.find("</title>") {
        Some(end) => &text[end..],
        None => text,
    };
    let mut words = String::with_capacity(text.len());
    let mut in_tag = false;
    for character in text.chars() {
        match character {
            '<' => in_tag = true,
            '>' => {
                in_tag = false;
                words.push(' ');
            }
            _ if in_tag => {}
            _ => words.push(character),
        }
    }
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#x27;", "'"), ("&#39;", "'"), ("&amp;", "&")]
        .iter()
        .fold(words, |words, (entity, character)| words.replace(entity, character))
}

/// One line, without the status that plain text answers begin with.
fn tidy(message: &str, status: StatusCode) -> String {
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.replace(char::is_control, "");
    match line.strip_prefix(&status.to_string()) {
        Some(rest) => rest.trim_start_matches([':', ' ']).to_owned(),
        None => line,
    }
}

fn redacted(message: String, secrets: &[SecretString]) -> String {
    secrets
        .iter()
        .map(ExposeSecret::expose_secret)
        .filter(|secret| !secret.is_empty())
        .fold(message, |message, secret| without_cut(message.replace(secret, "***"), secret))
}

/// A long secret may be told in part, where it or the answer was cut: nothing of the rest is kept then.
fn without_cut(mut message: String, secret: &str) -> String {
    let begun = secret.get(..RECOGNIZED).and_then(|beginning| message.find(beginning));
    if let Some(place) = begun {
        message.truncate(place);
        message.push_str("***");
    }
    message
}

fn bounded(message: String) -> String {
    match message.char_indices().nth(LONGEST_MESSAGE) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message,
    }
}

#[cfg(test)]
mod tests;
