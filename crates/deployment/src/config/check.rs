//! What may stand in a configuration file: names and values that can't be taken for anything else.

use serde_json::{Number, Value};

/// Beyond this a number loses digits on its way through Helm.
const MAX_EXACT: u64 = 1 << 53;

/// Why a name or a value can't stand in a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(test, derive(strum::EnumIter))]
pub(crate) enum Fault {
    #[error("a section needs a name")]
    SectionUnnamed,
    #[error("a section's name holds neither brackets, nor line breaks, nor spaces around it")]
    SectionName,
    #[error("an option needs a name")]
    OptionUnnamed,
    #[error("an option's name holds no `=`, `:`, brackets or line breaks, no spaces around it, no `#` or `;` in front")]
    OptionName,
    #[error("a map must be {{type: multistring, values: [...]}}")]
    Map,
    #[error("the type of a map must be multistring or csv")]
    MapType,
    #[error("an item of a list must be a text, a number or a boolean")]
    Item,
    #[error("an item of a list holds a comma or a line break; write the option as one text")]
    ItemText,
    #[error("a value holds no empty lines: they would end it")]
    EmptyLine,
    #[error("a value holds no control characters, but there is {0:?}")]
    Control(char),
}

/// Refuses a section's name that would break the file.
pub(super) fn section(name: &str) -> Result<(), Fault> {
    if name.is_empty() {
        return Err(Fault::SectionUnnamed);
    }
    if name.contains(['[', ']']) || is_unprintable(name) {
        return Err(Fault::SectionName);
    }
    Ok(())
}

/// Refuses an option's name that would break the file.
pub(super) fn option(name: &str) -> Result<(), Fault> {
    if name.is_empty() {
        return Err(Fault::OptionUnnamed);
    }
    if name.contains(['=', ':', '[', ']']) || name.starts_with(['#', ';']) || is_unprintable(name) {
        return Err(Fault::OptionName);
    }
    Ok(())
}

fn is_unprintable(name: &str) -> bool {
    name.trim() != name || name.contains(char::is_control)
}

/// A value as the chart takes it: exact, and one that can't start another option.
pub(super) fn value(value: Value) -> Result<Value, Fault> {
    match value {
        Value::Null | Value::Bool(_) => Ok(value),
        Value::Number(number) => Ok(exact(number)),
        Value::String(text) => Ok(text_value(&text)?.into()),
        Value::Array(items) => Ok(Value::Array(list(items)?)),
        Value::Object(mut map) => {
            let kind = map.remove("type");
            let values = match map.remove("values") {
                Some(Value::Array(values)) if map.is_empty() => values,
                _ => return Err(Fault::Map),
            };
            let values = match kind.as_ref().and_then(Value::as_str) {
                Some("multistring") => values.into_iter().map(scalar).collect::<Result<_, _>>()?,
                Some("csv") => list(values)?,
                _ => return Err(Fault::MapType),
            };
            Ok(serde_json::json!({"type": kind, "values": values}))
        }
    }
}

fn scalar(item: Value) -> Result<Value, Fault> {
    match item {
        Value::String(_) | Value::Bool(_) | Value::Number(_) => value(item),
        Value::Null | Value::Array(_) | Value::Object(_) => Err(Fault::Item),
    }
}

fn list(items: Vec<Value>) -> Result<Vec<Value>, Fault> {
    items
        .into_iter()
        .map(|item| match scalar(item)? {
            Value::String(text) if text.contains([',', '\n']) => Err(Fault::ItemText),
            item => Ok(item),
        })
        .collect()
}

/// Go prints large numbers in another notation than they were written in, so those travel as text.
fn exact(number: Number) -> Value {
    if let Some(integer) = number.as_i64() {
        return if integer.unsigned_abs() > MAX_EXACT { integer.to_string().into() } else { number.into() };
    }
    match number.as_f64() {
        #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "whole and small enough")]
        Some(float) if float.fract() == 0.0 && float.abs() <= MAX_EXACT as f64 => (float as i64).into(),
        _ => number.to_string().into(),
    }
}

/// Without spaces around it, which the service would drop; further lines indented, which makes them part of this value.
fn text_value(text: &str) -> Result<String, Fault> {
    let lines: Vec<_> = text.trim().lines().map(str::trim).collect();
    if lines.len() > 1 && lines.contains(&"") {
        return Err(Fault::EmptyLine);
    }
    match lines.iter().flat_map(|l| l.chars()).find(|c| c.is_control() && *c != '\t') {
        Some(c) => Err(Fault::Control(c)),
        None => Ok(lines.join("\n    ")),
    }
}

/// A value in one line, for people.
pub(super) fn shown(value: &Value) -> String {
    let words = |items: &[Value]| items.iter().map(shown).collect::<Vec<_>>().join(",");
    match value {
        Value::String(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        Value::Array(items) => words(items),
        Value::Object(map) => map.get("values").and_then(Value::as_array).map(|v| words(v)).unwrap_or_default(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::empty("")]
    #[case::bracket("a]")]
    #[case::line_break("a\n[b")]
    #[case::space(" a")]
    fn a_section_that_would_break_the_file_is_refused(#[case] name: &str) {
        assert!(section(name).is_err());
    }

    #[rstest]
    #[case::empty("")]
    #[case::equals("a=b")]
    #[case::colon("a:b")]
    #[case::bracket("[a]")]
    #[case::comment("#a")]
    #[case::line_break("a\nb")]
    #[case::nul("a\0")]
    fn an_option_that_would_break_the_file_is_refused(#[case] name: &str) {
        assert!(option(name).is_err());
    }

    #[rstest]
    #[case::text(json!(" a%(b)s $c \"d\" 'e' ü #f "), json!("a%(b)s $c \"d\" 'e' ü #f"))]
    #[case::lines(json!("a\r\nadmin_token = evil\n"), json!("a\n    admin_token = evil"))]
    #[case::whole_float(json!(3600.0), json!(3600))]
    #[case::float(json!(0.5), json!("0.5"))]
    #[case::large(json!(12_345_678_901_234_567_890_u64), json!("12345678901234567890"))]
    #[case::exact(json!(9_007_199_254_740_991_u64), json!(9_007_199_254_740_991_u64))]
    #[case::null(json!(null), json!(null))]
    #[case::list(json!(["a ", 1, true]), json!(["a", 1, true]))]
    #[case::several(json!({"type": "multistring", "values": ["a,b"]}), json!({"type": "multistring", "values": ["a,b"]}))]
    fn values_are_made_safe(#[case] given: Value, #[case] expected: Value) {
        assert_eq!(value(given).unwrap(), expected);
    }

    #[rstest]
    #[case::empty_line(json!("a\n\nb"), "empty lines")]
    #[case::carriage_return(json!("a\rb"), "'\\r'")]
    #[case::nul(json!("a\0b"), "'\\0'")]
    #[case::comma(json!(["a,b"]), "comma")]
    #[case::nested(json!([["a"]]), "item")]
    #[case::map(json!({"a": 1}), "multistring")]
    #[case::map_type(json!({"type": "x", "values": []}), "multistring")]
    fn what_can_not_be_made_safe_is_refused(#[case] given: Value, #[case] why: &str) {
        let error = value(given).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}
