//! One line of a log: what it says without what is around it, and how much that counts.

use std::{borrow::Cow, sync::LazyLock};

use regex::{Captures, Regex};

use crate::cause::Cause;

/// A line as it is shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) weight: Weight,
}

/// How much a line counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    Plain,
    Warning,
    Error,
}

/// An expression of ours; a test holds that all of them are valid.
macro_rules! expression {
    ($name:ident, $($part:literal),+) => {
        static $name: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(concat!($($part),+)).ok());
    };
}

expression!(ESCAPES, r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|[()][A-Z0-9])");
// Greedy, as a password may hold any of these characters too.
expression!(PASSWORD, r#"(://[^\s:/@"']*:)\S*@"#);
// oslo.log: time, process, level, logger, and the request in brackets.
expression!(
    OSLO,
    r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.,]\d+ (?:\d+ )?(?P<level>[A-Z]+) [\w.]+",
    r"(?: \[(?:-|[^\]]*req-[^\]]*)\])?(?: |$)"
);
// MariaDB: time, thread, level in brackets.
expression!(
    MARIADB,
    r"^\d{4}-\d\d-\d\d +\d{1,2}:\d\d:\d\d(?: \d+|[+-]\d\d:\d\d)? \[(?P<level>\w+)\] (?:\[Entrypoint\]: )?"
);
// klog, as programs of Kubernetes write.
expression!(KLOG, r"^(?P<level>[IWEF])\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w./-]+:\d+\] ");
expression!(ENTRYPOINT, r"^Entrypoint (?P<level>[A-Z]+): (?:\d{4}/\d\d/\d\d \d\d:\d\d:\d\d )?(?:\S+\.go:\d+: )?");
// Any time, and what is left of it.
expression!(
    TIME,
    r"^\[?\d{4}[-/]\d\d[-/]\d\d[T ]+\d{1,2}:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?:? +(?P<level>)"
);
// A level that is left where it is, since it is part of what is said.
expression!(LEVEL, r"^\[?(?P<level>DEBUG|INFO|NOTE|WARN(?:ING)?|ERROR|CRITICAL|FATAL|PANIC)\]?[:\s]");
expression!(EXCEPTION, r"^(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Failure|Timeout|Unauthorized|NotFound|Refused|Exit): ");
expression!(TROUBLE, r"(?i)\b(?:error|failed|failure|fatal|panic|cannot|can't|unable|refused|denied|aborted)\b");
expression!(
    NOISE,
    r"^(?:During handling of the above|The above exception was the direct cause|\(Background on this error at)",
    r"|^\[(?:SQL|parameters): |^[\s~^]*$|^Aborting$|DeprecationWarning|^Deprecated: |is deprecated\b",
    r"|^we strongly recommend against using it|^If you are already using Eventlet|^framework\.\s+For more detail",
    r"|eventlet\.readthedocs\.io|^\s+from eventlet import|running uWSGI as root|^\*\*\* Operational MODE",
    // requests that were answered
    r#"|HTTP/\d[.\d]*" [1-4]\d\d\b|=> generated \d+ bytes in .* \(HTTP/\S+ [1-4]\d\d\)"#
);

const PREFIXES: [&LazyLock<Option<Regex>>; 5] = [&OSLO, &MARIADB, &KLOG, &ENTRYPOINT, &TIME];

/// The lines of a log that are neither empty nor noise, nor frames of a traceback.
pub(super) fn read(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut in_traceback = false;
    for raw in text.lines() {
        let (level, said) = split(&plain(raw));
        if said.starts_with("Traceback (most recent call last)") {
            in_traceback = true;
            continue;
        }
        if said.trim().is_empty() || (in_traceback && said.starts_with([' ', '\t'])) {
            continue;
        }
        let exception = std::mem::take(&mut in_traceback) || matches(&EXCEPTION, &said);
        if matches(&NOISE, &said) {
            continue;
        }
        if let Some(weight) = if exception { Some(Weight::Error) } else { weigh(&level, &said) } {
            lines.push(Line { text: blackened(said.trim()), weight });
        }
    }
    lines
}

/// The text with passwords in URLs blackened.
pub(crate) fn blackened(text: &str) -> String {
    PASSWORD.as_ref().map_or_else(|| text.into(), |r| r.replace_all(text, "${1}***@")).into_owned()
}

/// Without colours, and as a terminal shows it: what a carriage return has overwritten is gone.
fn plain(raw: &str) -> String {
    let text = ESCAPES.as_ref().map_or(Cow::Borrowed(raw), |r| r.replace_all(raw, ""));
    let text = text.trim_end();
    text.rsplit('\r').next().unwrap_or(text).to_owned()
}

/// The level, empty when there is none, and what is said after time, process and level.
fn split(line: &str) -> (String, String) {
    for prefix in PREFIXES.into_iter().filter_map(|p| p.as_ref()) {
        if let Some(captures) = prefix.captures(line) {
            let rest = &line[captures.get(0).map_or(0, |m| m.end())..];
            let level = match level_of(&captures) {
                "" => split(rest),
                level => (level.to_uppercase(), rest.to_owned()),
            };
            return level;
        }
    }
    let level = LEVEL.as_ref().and_then(|r| r.captures(line)).map(|c| level_of(&c).to_owned()).unwrap_or_default();
    (level, line.to_owned())
}

fn level_of<'a>(captures: &Captures<'a>) -> &'a str {
    captures.name("level").map_or("", |m| m.as_str())
}

/// `None` for what only developers of the program read.
fn weigh(level: &str, said: &str) -> Option<Weight> {
    // what init containers wait for is the answer to why nothing goes on
    let waits = Cause::of_line(said) == Some(Cause::DependencyMissing);
    match level {
        "DEBUG" | "TRACE" => None,
        "ERROR" | "CRITICAL" | "FATAL" | "PANIC" | "E" | "F" => Some(Weight::Error),
        "WARN" | "WARNING" | "W" => Some(Weight::Warning),
        "" if waits => Some(Weight::Warning),
        "" if Cause::of_line(said).is_some() => Some(Weight::Error),
        "" if matches(&TROUBLE, said) => Some(Weight::Warning),
        _ => Some(Weight::Plain),
    }
}

fn matches(regex: &LazyLock<Option<Regex>>, text: &str) -> bool {
    regex.as_ref().is_some_and(|r| r.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_expression_is_one() {
        for regex in PREFIXES.into_iter().chain([&ESCAPES, &PASSWORD, &LEVEL, &EXCEPTION, &TROUBLE, &NOISE]) {
            assert!(regex.is_some());
        }
    }
}
