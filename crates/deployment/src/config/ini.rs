//! Text in oslo.config's INI syntax, read as oslo.config reads it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Options;

/// What is wrong with a text, and where. Says nothing of the text itself, which may be a secret.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub(super) struct SyntaxError {
    line: usize,
    what: &'static str,
}

/// What an option that is there twice means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeated {
    /// Several values, as oslo.config takes them.
    Values,
    /// A mistake, as in files that Python's own parser reads.
    Mistake,
}

/// The options of a text. A value is what stands in the file: quotes are kept; lines that go on are joined by line breaks.
pub(super) fn parse(text: &str, repeated: Repeated) -> Result<Options, SyntaxError> {
    let mut reader = Reader::default();
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        reader.line(line.trim_end(), repeated).map_err(|what| SyntaxError { line: index + 1, what })?;
    }
    Ok(reader.finish())
}

#[derive(Default)]
struct Reader {
    sections: BTreeMap<String, BTreeMap<String, Vec<String>>>,
    section: Option<String>,
    /// The option that an indented line would go on.
    open: Option<String>,
}

impl Reader {
    fn line(&mut self, line: &str, repeated: Repeated) -> Result<(), &'static str> {
        if line.is_empty() {
            self.open = None;
            return Ok(());
        }
        if line.starts_with([' ', '\t']) {
            return self.continuation(line.trim_start());
        }
        self.open = None;
        if line.starts_with(['#', ';']) {
            return Ok(());
        }
        if let Some(rest) = line.strip_prefix('[') {
            return self.header(rest);
        }
        let (name, value) =
            line.split_once(['=', ':']).ok_or("there is neither a section, nor an option with `=`, nor a comment")?;
        self.assignment(name.trim(), value.trim(), repeated)
    }

    fn header(&mut self, rest: &str) -> Result<(), &'static str> {
        let name = rest.strip_suffix(']').ok_or("the section's name has no `]` at the end of the line")?;
        if name.trim().is_empty() {
            return Err("the section has no name");
        }
        self.sections.entry(name.to_owned()).or_default();
        self.section = Some(name.to_owned());
        Ok(())
    }

    fn assignment(&mut self, name: &str, value: &str, repeated: Repeated) -> Result<(), &'static str> {
        if name.is_empty() {
            return Err("the option has no name");
        }
        let section = self.section.as_ref().ok_or("the option is in no section; the first line must be a [section]")?;
        let values = self.sections.entry(section.clone()).or_default().entry(name.to_owned()).or_default();
        if repeated == Repeated::Mistake && !values.is_empty() {
            return Err("the option is there twice");
        }
        values.push(value.to_owned());
        self.open = Some(name.to_owned());
        Ok(())
    }

    fn continuation(&mut self, line: &str) -> Result<(), &'static str> {
        let open = self.section.as_ref().zip(self.open.as_ref());
        let last = open.and_then(|(section, name)| self.sections.get_mut(section)?.get_mut(name)?.last_mut());
        let value = last.ok_or("the line is indented, but there is no option that it could go on")?;
        value.push('\n');
        value.push_str(line);
        Ok(())
    }

    fn finish(self) -> Options {
        let value = |mut values: Vec<String>| match values.len() {
            1 => Value::from(values.remove(0)),
            _ => json!({"type": "multistring", "values": values}),
        };
        self.sections
            .into_iter()
            .map(|(section, options)| (section, options.into_iter().map(|(k, v)| (k, value(v))).collect()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn a_text_is_read_as_oslo_config_reads_it() {
        let text = "\u{feff}# comment\n[DEFAULT]\ndebug = true\r\n; comment\ncolon: a = b\n\n[ldap]\n\
                    url=ldap://a?x=1\npassword = \"p$$ #;% ü\"\nempty =\nlist = a,\n   b,\n\tc\nx = 1\nx = 2\n";
        let expected = json!({
            "DEFAULT": {"debug": "true", "colon": "a = b"},
            "ldap": {
                "url": "ldap://a?x=1", "password": "\"p$$ #;% ü\"", "empty": "", "list": "a,\nb,\nc",
                "x": {"type": "multistring", "values": ["1", "2"]},
            },
        });
        assert_eq!(json!(parse(text, Repeated::Values).unwrap()), expected);
    }

    #[rstest]
    #[case::no_section("debug = true", 1, "no section")]
    #[case::no_equals("[a]\n\nsecret-text\n", 3, "neither")]
    #[case::no_bracket("[a\n", 1, "`]`")]
    #[case::no_name("[a]\n= 1\n", 2, "no name")]
    #[case::no_section_name("[]\n", 1, "no name")]
    #[case::nothing_to_go_on("[a]\n  b\n", 2, "indented")]
    #[case::a_comment_ends_a_value("[a]\nb = 1\n# c\n  d\n", 4, "indented")]
    fn what_is_wrong_is_said_with_its_line_and_without_the_text(
        #[case] text: &str,
        #[case] line: usize,
        #[case] what: &str,
    ) {
        let error = parse(text, Repeated::Values).unwrap_err();
        assert_eq!(error.line, line);
        assert!(error.what.contains(what) && !error.to_string().contains("secret-text"), "{error}");
    }

    #[test]
    fn a_repeated_option_is_a_mistake_where_pythons_parser_reads() {
        let error = parse("[a]\nx = 1\nx = 2\n", Repeated::Mistake).unwrap_err();
        assert_eq!(error.to_string(), "line 3: the option is there twice");
    }
}
