//! Rotation of the keys that Keystone makes tokens with.
//!
//! A repository is a Secret that pods mount as a folder: key `0` is staged, the highest is the primary that tokens are
//! made with, the others only read. Keystone lists and reads the folder for every token (`FernetUtils.load_keys`, behind
//! the property `crypto` of its formatter), and the kubelet swaps the whole folder at once, so that nothing restarts.
//! The staged key becomes the primary: every pod has had it for an interval by then, whichever pod makes the token.

use std::{collections::BTreeMap, time::Duration};

use base64::{Engine, engine::general_purpose::URL_SAFE};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use kupenstack_api::cluster::Fernet;
use serde_json::{Map, Value, json};

use crate::Error;

/// Annotation with the time of the last rotation; the Secret's creation counts when it is absent.
const ROTATED: &str = "kupenstack.io/rotated-at";
/// Annotation that says until when each former primary may be needed, as JSON.
const NEEDED: &str = "kupenstack.io/keys-needed-until";

/// Time between rotations when the spec says nothing.
const INTERVAL: SignedDuration = SignedDuration::from_hours(24);
/// Seconds that a token can be asked about after its end when Keystone's configuration says nothing: Keystone's default.
const EXPIRED_WINDOW: i64 = 48 * 60 * 60;
/// Seconds that a token lives when Keystone's configuration says nothing: our chart's default.
const EXPIRATION: i64 = 12 * 60 * 60;
/// Longest that a pod may go on with the former primary: the kubelet's refresh of mounted Secrets, generously.
const REFRESH: SignedDuration = SignedDuration::from_mins(10);
/// More keys than this make every request slow, as Keystone reads them all each time.
const MOST_KEYS: i64 = 256;

/// How often keys are replaced, and how many are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Schedule {
    /// From one rotation to the next.
    interval: SignedDuration,
    /// Keys in the repository once it has been rotated often enough.
    active: usize,
    /// Longest that a token made now can be of use.
    life: SignedDuration,
}

impl Schedule {
    /// What the spec asks for, under the configuration in `values`; says which field is wrong and what would be right.
    pub(crate) fn of(spec: Option<&Fernet>, values: &Value) -> Result<Self, String> {
        let interval = match spec.and_then(|s| s.rotation_interval.as_deref()) {
            None => INTERVAL,
            Some(text) => text.parse().ok().filter(|d: &SignedDuration| d.is_positive()).ok_or_else(|| {
                format!("spec.fernet.rotationInterval: {text:?} is no duration; write hours and minutes, such as 24h")
            })?,
        };
        let seconds = seconds(values, "expiration").unwrap_or(EXPIRATION)
            + seconds(values, "allow_expired_window").unwrap_or(EXPIRED_WINDOW);
        let least = least_keys(seconds, interval);
        if least > MOST_KEYS {
            return Err(format!(
                "spec.fernet.rotationInterval: tokens are of use for {seconds} s, which takes {least} keys at this interval \
                 and at most {MOST_KEYS} are good; choose a longer one"
            ));
        }
        let active = match spec.and_then(|s| s.active_keys).map(i64::from) {
            Some(given) if given < least => {
                return Err(format!(
                    "spec.fernet.activeKeys: with {given} keys tokens would die early, as they are of use for {seconds} s \
                     and a key is replaced every {interval:#}; set at least {least}, or leave it out"
                ));
            }
            Some(given) => given,
            None => least,
        };
        let active = usize::try_from(active).unwrap_or(usize::MAX);
        Ok(Self { interval, active, life: SignedDuration::from_secs(seconds) })
    }

    /// How long until keys that were rotated then are rotated again; zero when that is due.
    pub(crate) fn next_rotation(&self, rotated: Timestamp, now: Timestamp) -> Duration {
        (self.interval - now.duration_since(rotated)).try_into().unwrap_or_default()
    }
}

/// Keys that tokens alive at any time were made with, the primary and the staged one: with fewer a token dies early.
fn least_keys(life: i64, interval: SignedDuration) -> i64 {
    let interval = interval.as_secs().max(1);
    life.max(0) / interval + i64::from(life.max(0) % interval != 0) + 2
}

/// An option of Keystone's section `token`, if it is a number that is set.
fn seconds(values: &Value, option: &str) -> Option<i64> {
    match &values["conf"]["keystone"]["token"][option] {
        Value::Number(n) => n.as_i64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// A key repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Repository {
    /// Keys by number.
    keys: BTreeMap<u32, Vec<u8>>,
    /// Until when a token made with a former primary may be of use.
    needed: BTreeMap<u32, Timestamp>,
}

impl Repository {
    /// The keys after a rotation: the staged one is the primary, `fresh` is staged. The oldest beyond the schedule's number
    /// go, but none that could have made a token that is still of use: the schedule may have been another one.
    /// `None` when nothing is staged.
    pub(crate) fn rotated(&self, schedule: &Schedule, now: Timestamp, fresh: Vec<u8>) -> Option<Self> {
        let mut next = self.clone();
        let staged = next.keys.insert(0, fresh)?;
        let former: Vec<u32> = next.keys.keys().copied().filter(|n| *n != 0).collect();
        let until = now.checked_add(schedule.life + REFRESH).unwrap_or(Timestamp::MAX);
        for number in &former {
            // of keys that others put there it is not known when they stopped to be the primary
            next.needed.entry(*number).or_insert(until);
        }
        next.keys.insert(former.last().map_or(1, |n| n + 1), staged);
        for number in former {
            let free = next.needed.get(&number).is_none_or(|until| *until <= now);
            if next.keys.len() <= schedule.active || !free {
                break;
            }
            next.keys.remove(&number);
        }
        next.needed.retain(|number, _| next.keys.contains_key(number));
        Some(next)
    }

    fn read(secret: &Secret) -> Self {
        let data = secret.data.iter().flatten();
        let keys = data.filter_map(|(name, key)| Some((name.parse().ok()?, key.0.clone()))).collect();
        let needed = annotation(secret, NEEDED).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        Self { keys, needed }
    }

    /// What turns `before` into this, and into nothing else: a merge patch for the version that was read.
    fn patch(&self, before: &Self, version: Option<&str>, now: Timestamp) -> Value {
        let gone = before.keys.keys().filter(|n| !self.keys.contains_key(n)).map(|n| (n.to_string(), Value::Null));
        let set = self.keys.iter().filter(|(n, key)| before.keys.get(n) != Some(key));
        let data: Map<String, Value> =
            set.map(|(n, key)| (n.to_string(), json!(ByteString(key.clone())))).chain(gone).collect();
        let needed = json!(self.needed).to_string();
        let annotations = json!({ROTATED: whole_second(now).to_string(), NEEDED: needed});
        json!({"metadata": {"resourceVersion": version, "annotations": annotations}, "data": data})
    }
}

/// Rotates the repository in the Secret if that is due. What it did, in words, if it did.
pub(crate) async fn rotate_when_due(
    client: &Client,
    namespace: &str,
    name: &str,
    schedule: &Schedule,
    now: Timestamp,
) -> Result<Option<String>, Error> {
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let secret = api.get(name).await?;
    if !schedule.next_rotation(rotated_at(&secret, now), now).is_zero() {
        return Ok(None);
    }
    let before = Repository::read(&secret);
    let after = before
        .rotated(schedule, whole_second(now), key())
        .ok_or_else(|| Error::Credential { secret: name.to_owned(), key: "0".to_owned() })?;
    let patch = after.patch(&before, secret.metadata.resource_version.as_deref(), now);
    api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
    let primary = after.keys.keys().last().copied().unwrap_or_default();
    let removed = (before.keys.len() + 1).saturating_sub(after.keys.len());
    Ok(Some(format!("Secret {name}: tokens are made with key {primary} now; old keys removed: {removed}")))
}

/// A new key, as `keystone-manage` makes them: 32 random bytes in URL-safe base64.
pub(crate) fn key() -> Vec<u8> {
    URL_SAFE.encode(rand::random::<[u8; 32]>()).into_bytes()
}

fn rotated_at(secret: &Secret, now: Timestamp) -> Timestamp {
    let noted = annotation(secret, ROTATED).and_then(|text| text.parse().ok());
    noted.or_else(|| secret.metadata.creation_timestamp.as_ref().map(|t| t.0)).unwrap_or(now)
}

fn annotation<'a>(secret: &'a Secret, key: &str) -> Option<&'a str> {
    secret.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

fn whole_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests;
