//! What can be said of an object before it is stored, by the functions that its controller judges it by.
//!
//! A fault can never come right by itself. What may (a reference to something that is not there yet, an address that
//! does not answer) is none: such an object is stored, and waits.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// What is wrong with an object, each time with the field and the remedy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// What can't be.
    pub faults: Vec<String>,
    /// What can be, and is probably not meant.
    pub warnings: Vec<String>,
}

impl Findings {
    /// One fault.
    pub fn fault(message: impl Into<String>) -> Self {
        Self { faults: vec![message.into()], warnings: Vec::new() }
    }

    /// What an update brings in: faults that were there before are not its own.
    #[must_use]
    pub fn since(mut self, before: &Self) -> Self {
        self.faults.retain(|fault| !before.faults.contains(fault));
        self
    }
}

type Judge = dyn Fn(Value) -> Result<Findings, serde_json::Error> + Send + Sync;

/// How objects of one kind are judged.
pub struct Rule {
    group: String,
    plural: String,
    judge: Box<Judge>,
}

impl Rule {
    /// Judges objects of the resource `plural` in the API group.
    pub fn new<K: DeserializeOwned>(
        group: &str,
        plural: &str,
        judge: impl Fn(&K) -> Findings + Send + Sync + 'static,
    ) -> Self {
        let judge = move |object| serde_json::from_value(object).map(|object: K| judge(&object));
        Self { group: group.to_owned(), plural: plural.to_owned(), judge: Box::new(judge) }
    }

    /// Whether it is for objects of this resource.
    pub fn covers(&self, group: &str, plural: &str) -> bool {
        self.group == group && self.plural == plural
    }

    /// The resource that it is for.
    pub fn plural(&self) -> &str {
        &self.plural
    }

    /// Judges an object. Fails when it is none of the kind.
    pub fn judge(&self, object: Value) -> Result<Findings, serde_json::Error> {
        (self.judge)(object)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_fault_that_was_there_before_is_not_the_updates() {
        let findings = |faults: &[&str]| Findings {
            faults: faults.iter().map(|&f| f.to_owned()).collect(),
            warnings: vec!["w".to_owned()],
        };
        let introduced = findings(&["old", "new"]).since(&findings(&["old", "gone"]));
        assert_eq!(introduced, findings(&["new"]));
    }

    #[test]
    fn a_rule_is_for_one_resource_and_fails_on_what_it_can_not_read() {
        let rule = Rule::new("example.org", "words", |word: &String| Findings::fault(word.as_str()));
        assert!(rule.covers("example.org", "words") && !rule.covers("example.org", "sentences"));
        assert_eq!(rule.judge(json!("bad")).unwrap(), Findings::fault("bad"));
        assert!(rule.judge(json!(1)).is_err());
    }
}
