//! Whether a release's objects still are what was applied.
//!
//! An object is compared when its mark has moved since it was last found right, or when it was not compared yet. The
//! API server does the comparing: what applying the recorded manifest would make of the object must be the object.
//! That knows every default and every notation of a quantity. Fields that the manifest does not set are not ours.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::{
    ResourceExt,
    api::{DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    Error,
    applied::Applied,
    inventory::{Inventory, Mark, Shelf},
    service::Kind,
};

/// Manager of the comparison, which is never stored. One of its own: as Helm's it would take fields away that Helm
/// set and the manifest does not name.
pub(crate) const COMPARISON: &str = "kupenstack-drift";

/// Marks of objects that were found to be right, by service, for one revision (by the UID of its record).
#[derive(Default)]
pub(crate) struct Verified(Mutex<HashMap<Kind, (String, Marks)>>);

type Marks = HashMap<(String, String), Mark>;

impl Verified {
    fn knows(&self, service: Kind, revision: &str, key: &(String, String), mark: &Mark) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&service).is_some_and(|(of, marks)| of == revision && marks.get(key) == Some(mark))
    }

    fn learn(&self, service: Kind, revision: &str, key: (String, String), mark: Mark) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (of, marks) = all.entry(service).or_default();
        if of != revision {
            (*of, *marks) = (revision.to_owned(), Marks::new());
        }
        marks.insert(key, mark);
    }
}

/// When releases were put back. Who fights with us is answered at a growing pace.
#[derive(Default)]
pub(crate) struct Repairs(Mutex<HashMap<Kind, (u32, Instant)>>);

/// Pause after the first repair; each further one doubles it.
const PAUSE: Duration = Duration::from_secs(5);
/// Longest pause. After twice this time without a repair everything is forgotten.
const LONGEST_PAUSE: Duration = Duration::from_mins(10);

impl Repairs {
    /// Counts a repair, or says how long it has to wait.
    pub(crate) fn next(&self, service: Kind) -> Result<(), Duration> {
        self.next_at(service, Instant::now())
    }

    fn next_at(&self, service: Kind, now: Instant) -> Result<(), Duration> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, last) = all.get(&service).copied().unwrap_or((0, now));
        let since = now.saturating_duration_since(last);
        let count = if since > 2 * LONGEST_PAUSE { 0 } else { count };
        let pause = PAUSE.saturating_mul(2_u32.saturating_pow(count.saturating_sub(1).min(16))).min(LONGEST_PAUSE);
        if count > 0 && since < pause {
            return Err(pause.saturating_sub(since));
        }
        all.insert(service, (count.saturating_add(1), now));
        Ok(())
    }
}

/// What is no longer as it was applied, in words.
pub(crate) async fn find(
    inventory: &Inventory,
    verified: &Verified,
    service: Kind,
    revision: &str,
    applied: &Applied,
) -> Result<Vec<String>, Error> {
    let mut found = Vec::new();
    for object in &applied.objects {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let key = (text("/kind"), text("/metadata/name"));
        let Some(shelf) = inventory.of_kind(&key.0) else { continue };
        if shelf.mark(&key.1).is_some_and(|mark| verified.knows(service, revision, &key, &mark)) {
            continue;
        }
        match compare(&shelf, &key.1, object).await? {
            Ok(mark) => verified.learn(service, revision, key, mark),
            Err(what) => found.push(format!("{} {} {what}", key.0, key.1)),
        }
    }
    Ok(found)
}

/// How often an object is read anew because somebody wrote to it before it was compared. Kubernetes does in a rollout.
const LOOKS: usize = 10;

/// The mark of the object when it is right, else what is wrong with it.
async fn compare(shelf: &Shelf<'_>, name: &str, manifest: &Value) -> Result<Result<Mark, String>, Error> {
    let params = PatchParams { dry_run: true, force: true, ..PatchParams::apply(COMPARISON) };
    let mut looks = 1;
    loop {
        let Some(live) = shelf.api.get_opt(name).await? else {
            return Ok(Err("was deleted".to_owned()));
        };
        if live.metadata.deletion_timestamp.is_some() {
            return Ok(Err("is being deleted".to_owned()));
        }
        let mut wanted = manifest.clone();
        // what is compared has to be of one version
        wanted["metadata"]["resourceVersion"] = json!(live.resource_version());
        return match shelf.api.patch(name, &params, &Patch::Apply(&wanted)).await {
            Ok(would_be) if content(&would_be) == content(&live) => Ok(Ok(Mark::of(&live))),
            Ok(_) => Ok(Err(changed_by(&live))),
            // a field that can't be changed any more is not what was applied
            Err(kube::Error::Api(refusal)) if refusal.code == 422 => Ok(Err(changed_by(&live))),
            Err(kube::Error::Api(refusal)) if refusal.code == 409 && looks < LOOKS => {
                looks += 1;
                continue;
            }
            Err(error) => Err(error.into()),
        };
    }
}

/// The object without what every write moves.
fn content(object: &DynamicObject) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Some(meta) = value["metadata"].as_object_mut() {
        for key in ["managedFields", "resourceVersion", "generation"] {
            meta.remove(key);
        }
    }
    value
}

/// Who wrote last, beside Helm and Kubernetes' own controllers, which write the status.
fn changed_by(object: &DynamicObject) -> String {
    let foreign = |entry: &&ManagedFieldsEntry| {
        entry.subresource.as_deref() != Some("status") && entry.manager.as_deref() != Some("helm")
    };
    let last = object.managed_fields().iter().filter(foreign).max_by_key(|entry| entry.time.as_ref().map(|t| t.0));
    match last.and_then(|entry| entry.manager.as_deref()) {
        Some(manager) => format!("was changed by {manager}"),
        None => "was changed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_foreign_writer_is_named() {
        let entry =
            |manager: &str, time: &str, sub: &str| json!({"manager": manager, "time": time, "subresource": sub});
        let object: DynamicObject = serde_json::from_value(json!({"metadata": {"name": "d", "managedFields": [
            entry("helm", "2026-01-01T00:00:00Z", ""),
            entry("kubectl-edit", "2026-01-02T00:00:00Z", ""),
            entry("kube-controller-manager", "2026-01-03T00:00:00Z", "status"),
        ]}}))
        .unwrap();
        assert_eq!(changed_by(&object), "was changed by kubectl-edit");
    }

    #[test]
    fn only_content_counts() {
        let object = |version: &str, data: &str| -> DynamicObject {
            serde_json::from_value(json!({"metadata": {"name": "d", "resourceVersion": version}, "data": data}))
                .unwrap()
        };
        assert_eq!(content(&object("1", "a")), content(&object("2", "a")));
        assert_ne!(content(&object("1", "a")), content(&object("1", "b")));
    }

    #[test]
    fn a_mark_counts_for_its_revision_only() {
        let verified = Verified::default();
        let object = |version: &str| -> DynamicObject {
            serde_json::from_value(json!({"metadata": {"name": "d", "uid": "u", "resourceVersion": version}})).unwrap()
        };
        let (key, mark) = (("Secret".to_owned(), "d".to_owned()), Mark::of(&object("7")));
        verified.learn(Kind::Keystone, "3", key.clone(), mark.clone());
        assert!(verified.knows(Kind::Keystone, "3", &key, &mark));
        assert!(!verified.knows(Kind::Keystone, "3", &key, &Mark::of(&object("8"))));
        verified.learn(Kind::Keystone, "4", ("Secret".to_owned(), "e".to_owned()), mark.clone());
        assert!(!verified.knows(Kind::Keystone, "4", &key, &mark));
    }

    #[test]
    fn who_changes_it_again_and_again_is_answered_ever_later() {
        let (repairs, start) = (Repairs::default(), Instant::now());
        let at = |seconds| repairs.next_at(Kind::Keystone, start + Duration::from_secs(seconds));
        assert_eq!(at(0), Ok(()));
        assert_eq!(at(1), Err(Duration::from_secs(4)));
        assert_eq!(at(5), Ok(()));
        assert_eq!(at(10), Err(Duration::from_secs(5)));
        assert_eq!(at(15), Ok(()));
        assert_eq!(at(15 + 3600), Ok(()), "all is forgotten");
        assert_eq!(repairs.next_at(Kind::Glance, start), Ok(()), "others have a pace of their own");
    }
}
