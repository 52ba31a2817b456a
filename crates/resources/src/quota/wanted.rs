//! What the `ResourceQuota`s of a namespace come to.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::ResourceQuota;

use super::keys::{KEYS, Key, Meaning, meaning};

/// What is to be limited in a namespace, and what is wrong with how that is declared.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// By the key's name.
    declared: BTreeMap<&'static str, Declared>,
    /// What can't be taken, told to its quota.
    pub(super) faults: Vec<Fault>,
    /// All quotas with a key of ours that counts.
    pub(super) quotas: Vec<Arc<ResourceQuota>>,
}

/// What is declared of a limit.
#[derive(Debug)]
pub(super) enum Declared {
    /// The smallest value, and the quota that has it.
    Limit(u32, Arc<ResourceQuota>),
    /// Nothing that can be understood. The limit stays as it is: a slip of the pen must not lift it.
    Unclear,
}

/// Something that a quota's author has to know.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) quota: Arc<ResourceQuota>,
    pub(super) reason: &'static str,
    pub(super) note: String,
}

impl Wanted {
    pub(super) fn of(quotas: &[Arc<ResourceQuota>]) -> Self {
        let mut wanted = Self::default();
        for quota in quotas {
            wanted.add(quota);
        }
        wanted
    }

    /// Whether nothing is declared, understood or not.
    pub(super) fn is_empty(&self) -> bool {
        self.declared.is_empty()
    }

    pub(super) fn declared(&self, key: &Key) -> Option<&Declared> {
        self.declared.get(key.name)
    }

    fn add(&mut self, quota: &Arc<ResourceQuota>) {
        let hard = quota.spec.iter().flat_map(|spec| spec.hard.iter().flatten());
        let hard: Vec<_> = hard.map(|(key, value)| (key.as_str(), value.0.as_str(), meaning(key))).collect();
        let fault = |reason, note| Fault { quota: Arc::clone(quota), reason, note };
        if is_scoped(quota) {
            let ours = hard.iter().filter(|(_, _, meaning)| matches!(meaning, Meaning::Ours(_)));
            let ours: Vec<_> = ours.map(|(key, ..)| *key).collect();
            if !ours.is_empty() {
                let note = format!(
                    "a quota with scopes counts pods only: {} of spec.hard limit nothing; put them into a ResourceQuota \
                     without spec.scopes and spec.scopeSelector",
                    ours.join(", ")
                );
                self.faults.push(fault("QuotaScoped", note));
            }
            return;
        }
        let mut counts = false;
        for (name, value, meaning) in hard {
            match meaning {
                Meaning::Foreign => {}
                Meaning::Unknown(near) => self.faults.push(fault("QuotaUnknown", unknown(name, near))),
                Meaning::Ours(key) => {
                    counts = true;
                    match key.limit(value) {
                        Ok(limit) => self.declare(key, limit, quota),
                        Err(problem) => {
                            self.declared.entry(key.name).or_insert(Declared::Unclear);
                            let note = format!("spec.hard[{name}]: {value} {problem}");
                            self.faults.push(fault("QuotaInvalid", note));
                        }
                    }
                }
            }
        }
        if counts {
            self.quotas.push(Arc::clone(quota));
        }
    }

    fn declare(&mut self, key: &Key, limit: u32, quota: &Arc<ResourceQuota>) {
        let smaller = match self.declared(key) {
            Some(Declared::Limit(other, _)) => limit < *other,
            Some(Declared::Unclear) | None => true,
        };
        if smaller {
            self.declared.insert(key.name, Declared::Limit(limit, Arc::clone(quota)));
        }
    }
}

/// Whether a quota is about some pods only.
fn is_scoped(quota: &ResourceQuota) -> bool {
    let Some(spec) = &quota.spec else { return false };
    spec.scope_selector.is_some() || spec.scopes.as_ref().is_some_and(|scopes| !scopes.is_empty())
}

fn unknown(name: &str, near: Option<&'static Key>) -> String {
    let hint = near.map_or_else(
        || format!("what can be limited: {}", KEYS.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
        |near| format!("did you mean {near}?"),
    );
    format!("spec.hard[{name}] limits nothing in OpenStack; {hint}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn quota(name: &str, hard: &serde_json::Value, scopes: &[&str]) -> Arc<ResourceQuota> {
        let quota = json!({"metadata": {"name": name, "uid": name}, "spec": {"hard": hard, "scopes": scopes}});
        Arc::new(serde_json::from_value(quota).unwrap())
    }

    /// By the key's name: how much, and who says so.
    fn limits(wanted: &Wanted) -> Vec<(&str, Option<(u32, &str)>)> {
        let shown = |declared| match declared {
            &Declared::Limit(limit, ref quota) => Some((limit, quota.metadata.name.as_deref().unwrap())),
            Declared::Unclear => None,
        };
        wanted.declared.iter().map(|(&name, declared)| (name, shown(declared))).collect()
    }

    #[test]
    fn the_smallest_of_several_counts() {
        let first = quota("first", &json!({"kupenstack.io/images": "5", "kupenstack.io/image-storage": "1Gi"}), &[]);
        let second = quota("second", &json!({"kupenstack.io/images": "3", "kupenstack.io/image-storage": "2Gi"}), &[]);
        let wanted = Wanted::of(&[first, second]);
        let expected = vec![("image-storage", Some((1024, "first"))), ("images", Some((3, "second")))];
        assert_eq!(limits(&wanted), expected);
        assert!(wanted.faults.is_empty());
    }

    #[test]
    fn what_is_not_understood_neither_sets_nor_lifts_a_limit() {
        let unclear = quota("unclear", &json!({"kupenstack.io/images": "10e399"}), &[]);
        let wanted = Wanted::of(std::slice::from_ref(&unclear));
        assert_eq!(limits(&wanted), [("images", None)]);
        assert!(!wanted.is_empty());
        assert_eq!(wanted.faults[0].reason, "QuotaInvalid");
        assert!(wanted.faults[0].note.starts_with("spec.hard[kupenstack.io/images]: 10e399 is more than"));
        let clear = quota("clear", &json!({"kupenstack.io/images": "5"}), &[]);
        for both in [[&unclear, &clear], [&clear, &unclear]] {
            let wanted = Wanted::of(&both.map(Arc::clone));
            assert_eq!(limits(&wanted), [("images", Some((5, "clear")))]);
        }
    }

    #[test]
    fn scopes_are_about_pods() {
        let scoped = quota("scoped", &json!({"kupenstack.io/images": "5", "pods": "1"}), &["BestEffort"]);
        let wanted = Wanted::of(&[scoped, quota("pods", &json!({"pods": "1"}), &["BestEffort"])]);
        assert!(wanted.is_empty());
        assert_eq!(wanted.faults.len(), 1);
        assert_eq!(wanted.faults[0].reason, "QuotaScoped");
    }

    #[test]
    fn a_slip_of_the_pen_is_told_with_what_was_meant() {
        let quotas = [quota("q", &json!({"kupenstack.io/imagse": "5", "kupenstack.io/cpu": "1", "pods": "1"}), &[])];
        let wanted = Wanted::of(&quotas);
        assert!(wanted.is_empty() && wanted.quotas.is_empty());
        let notes: Vec<_> = wanted.faults.iter().map(|fault| fault.note.as_str()).collect();
        assert!(notes[0].contains("kupenstack.io/cpu") && notes[0].contains("can be limited: kupenstack.io/images, "));
        assert!(notes[1].ends_with("did you mean kupenstack.io/images?"));
    }
}
