//! From the YAML that `helm template` prints to JSON objects, with the meaning Helm and Kubernetes give to it.

use serde_json::Value;
use serde_saphyr::options::DuplicateKeyPolicy;

/// The rendered text is not a stream of Kubernetes objects.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// It is not YAML.
    #[error("not YAML: {0}")]
    Yaml(String),
    /// A document is something other than a mapping.
    #[error("document {0} is not an object")]
    NotAnObject(usize),
}

/// Reads a stream of YAML documents; documents without content are skipped.
pub fn parse_manifests(text: &str) -> Result<Vec<Value>, ManifestError> {
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(text, as_helm_reads())
        .map_err(|error| ManifestError::Yaml(error.to_string()))?;
    let mut objects = Vec::with_capacity(documents.len());
    for (index, document) in documents.into_iter().enumerate() {
        match document {
            Value::Null => {}
            Value::Object(_) => objects.push(document),
            _ => return Err(ManifestError::NotAnObject(index + 1)),
        }
    }
    Ok(objects)
}

/// Charts are written for Helm's reader: `defaultMode: 0555` is octal and the last of two equal keys counts.
fn as_helm_reads() -> serde_saphyr::Options {
    serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        legacy_octal_numbers: true,
        // An error must not quote the manifest: it may be a Secret's.
        with_snippet: false,
        // The text is our own chart's, of a size that was bounded when it was read.
        budget: None,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::{ManifestError, parse_manifests};

    #[test]
    fn reads_documents_and_skips_the_empty_ones() {
        let text = "---\n# Source: a\na: 1\n---\n# only a comment\n---\n\n---\nb: two\n...\n";
        assert_eq!(parse_manifests(text).unwrap(), [json!({"a": 1}), json!({"b": "two"})]);
        assert_eq!(parse_manifests("").unwrap(), [] as [Value; 0]);
        assert_eq!(parse_manifests("---\n# nothing\n").unwrap(), [] as [Value; 0]);
    }

    #[rstest]
    #[case::octal("0555", json!(365))]
    #[case::modern_octal("0o555", json!(365))]
    #[case::hex("0x10", json!(16))]
    #[case::integer("-7", json!(-7))]
    #[case::large("18446744073709551615", json!(18_446_744_073_709_551_615_u64))]
    #[case::float("1.5", json!(1.5))]
    #[case::yes("yes", json!(true))]
    #[case::off("off", json!(false))]
    #[case::null("~", Value::Null)]
    #[case::empty("", Value::Null)]
    #[case::quoted_number("\"012\"", json!("012"))]
    #[case::quoted_bool("'yes'", json!("yes"))]
    #[case::version("1.2.3", json!("1.2.3"))]
    #[case::quantity("100Mi", json!("100Mi"))]
    #[case::date("2026-01-02", json!("2026-01-02"))]
    #[case::separator_inside("\"a --- b\"", json!("a --- b"))]
    fn gives_scalars_the_meaning_helm_gives_them(#[case] written: &str, #[case] meant: Value) {
        assert_eq!(parse_manifests(&format!("v: {written}\n")).unwrap(), [json!({"v": meant})]);
    }

    #[test]
    fn keeps_block_text_with_document_marks_in_it() {
        let text = "data:\n  script: |\n    #!/bin/sh\n    ---\n    echo 'x: y'\n";
        let expected = json!({"data": {"script": "#!/bin/sh\n---\necho 'x: y'\n"}});
        assert_eq!(parse_manifests(text).unwrap(), [expected]);
    }

    #[test]
    fn the_last_of_two_equal_keys_counts() {
        assert_eq!(parse_manifests("a: 1\nb: 2\na: 3\n").unwrap(), [json!({"a": 3, "b": 2})]);
    }

    #[test]
    fn numbers_as_keys_become_text() {
        assert_eq!(parse_manifests("80: a\n").unwrap(), [json!({"80": "a"})]);
    }

    #[test]
    fn refuses_what_is_not_an_object() {
        assert!(matches!(parse_manifests("a: 1\n---\n- b\n"), Err(ManifestError::NotAnObject(2))));
    }

    #[test]
    fn an_error_tells_the_place_but_quotes_nothing() {
        let error = parse_manifests("stringData:\n  password: hunter2\n bad").unwrap_err().to_string();
        assert!(error.contains("line 3"), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}
