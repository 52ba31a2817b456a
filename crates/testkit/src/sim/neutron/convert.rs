//! What Neutron makes of a value before it looks at it more closely.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Value, json};

use super::{invalid, protocols};
use crate::sim::http::Refusal;

/// A value, or why it can't be one.
pub(super) type Converted = Result<Value, Refusal>;

pub(super) fn flag(value: &Value) -> Converted {
    match plain(value).to_ascii_lowercase().as_str() {
        "true" | "1" => Ok(json!(true)),
        "false" | "0" => Ok(json!(false)),
        _ => Err(invalid(&format!("'{}' cannot be converted to boolean", plain(value)))),
    }
}

pub(super) fn number(value: &Value) -> Converted {
    match plain(value).parse::<i64>() {
        Ok(number) => Ok(json!(number)),
        Err(_) => Err(invalid(&format!("'{}' is not an integer", plain(value)))),
    }
}

pub(super) fn port(value: &Value) -> Converted {
    match plain(value).parse::<u16>() {
        Ok(port) => Ok(json!(port)),
        Err(_) if value.is_null() => Ok(Value::Null),
        Err(_) => {
            let words = format!("Invalid value for port {}", plain(value));
            Err(Refusal::bad_request(words).of_type("SecurityGroupInvalidPortValue"))
        }
    }
}

pub(super) fn protocol(value: &Value) -> Converted {
    match plain(value).to_ascii_lowercase() {
        _ if value.is_null() => Ok(Value::Null),
        any if any == "any" => Ok(Value::Null),
        known if protocols::number(&known).is_some() => Ok(json!(known)),
        _ => Err(protocols::unknown(&plain(value))),
    }
}

pub(super) fn ethertype(value: &Value) -> Converted {
    let known = ["IPv4", "IPv6"].into_iter().find(|known| known.eq_ignore_ascii_case(&plain(value)));
    known.map(|known| json!(known)).ok_or_else(|| {
        let words = "not supported. Allowed values are ['IPv4', 'IPv6'].";
        Refusal::bad_request(format!("Security group rule for ethertype '{}' {words}", plain(value)))
            .of_type("SecurityGroupRuleInvalidEtherType")
    })
}

pub(super) fn prefix(value: &Value) -> Converted {
    let text = plain(value);
    if value.is_null() || text.is_empty() {
        return Ok(Value::Null);
    }
    net(&text)
        .ok_or_else(|| Refusal::bad_request(format!("Invalid CIDR {text} given as IP prefix.")).of_type("InvalidCIDR"))
}

pub(super) fn range(value: &Value) -> Converted {
    match net(&plain(value)) {
        None if value.is_null() => Ok(Value::Null),
        found => found.ok_or_else(|| invalid(&format!("{} is not in a CIDR format", plain(value)))),
    }
}

/// A single address becomes a range of one.
fn net(text: &str) -> Option<Value> {
    let net = text.parse::<IpNet>().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))?;
    Some(json!(net.to_string()))
}

/// A value as Python writes it into a sentence: texts without quotes.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        other => other.to_string(),
    }
}

/// A value as Python writes it by itself.
pub(super) fn python(value: &Value) -> String {
    match value {
        Value::String(text) => format!("'{text}'"),
        Value::Array(list) => format!("[{}]", list.iter().map(python).collect::<Vec<_>>().join(", ")),
        Value::Object(object) => {
            let members = object.iter().map(|(key, value)| format!("'{key}': {}", python(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        other => plain(other),
    }
}
