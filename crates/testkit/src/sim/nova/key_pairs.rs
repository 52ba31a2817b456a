//! Key pairs, of which every user has his own.

use base64::{Engine, prelude::BASE64_STANDARD};
use http::StatusCode;
use jiff::Timestamp;
use md5::{Digest, Md5};
use serde_json::{Value, json};

use super::{Nova, only_admin, page, speaks};
use crate::sim::{
    http::{Answer, Outcome, Refusal},
    service::{Call, Version},
    table::Row,
};

/// A key pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPair {
    /// The user it belongs to.
    pub user_id: String,
    /// Its name, unique among the user's.
    pub name: String,
    /// The public key.
    pub public_key: String,
    /// When it was made, if a request made it.
    pub created_at: Option<Timestamp>,
    key: String,
}

/// The oldest microversions that change something.
const WITH_TYPE: Version = (2, 2);
const OF_OTHERS: Version = (2, 10);
const IN_PAGES: Version = (2, 35);
/// The limit that Nova asks for.
const COUNT: &str = "key_pairs";

impl KeyPair {
    /// A user's key pair.
    pub fn new(user_id: &str, name: &str, public_key: &str) -> Self {
        let key = key(user_id, name);
        Self {
            user_id: user_id.to_owned(),
            name: name.to_owned(),
            public_key: public_key.to_owned(),
            created_at: None,
            key,
        }
    }

    fn shown(&self, call: &Call<'_>) -> Value {
        let mut shown = json!({
            "name": self.name,
            "public_key": self.public_key,
            "fingerprint": fingerprint(&self.public_key).unwrap_or_default(),
        });
        if speaks(call, WITH_TYPE) {
            shown["type"] = json!("ssh");
        }
        shown
    }

    /// What is told of one by its name, and not in a list.
    fn whole(&self, call: &Call<'_>) -> Value {
        let mut shown = self.shown(call);
        shown["user_id"] = json!(self.user_id);
        shown
    }
}

impl Row for KeyPair {
    fn id(&self) -> &str {
        &self.key
    }

    fn keys(&self) -> Vec<(&'static str, String)> {
        vec![("user", self.user_id.clone())]
    }
}

fn key(user_id: &str, name: &str) -> String {
    format!("{user_id}/{name}")
}

impl Nova {
    pub(super) fn list_key_pairs(&mut self, call: &mut Call<'_>) -> Outcome {
        let user = owner(call, call.request.query("user_id"), "index")?;
        let key_pairs = self.key_pairs.view(call.as_of);
        let mut found: Vec<_> = key_pairs.by("user", &user).collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        let mut body = json!({});
        if speaks(call, IN_PAGES)
            && let Some(next) = page(call, &mut found, |key_pair| &key_pair.name)?
        {
            body["keypairs_links"] = next;
        }
        body["keypairs"] = found.iter().map(|key_pair| json!({"keypair": key_pair.shown(call)})).collect();
        Ok(Answer::ok(&body))
    }

    pub(super) fn create_key_pair(&mut self, call: &mut Call<'_>) -> Outcome {
        let body = call.request.json();
        let asked = &body["keypair"];
        let user = owner(call, asked["user_id"].as_str(), "create")?;
        let name = asked["name"].as_str().unwrap_or_default();
        let allowed = |c: char| c.is_ascii_alphanumeric() || "_- ".contains(c);
        if !(1..=255).contains(&name.len()) || !name.chars().all(allowed) {
            return Err(Refusal::bad_request(format!(
                "Invalid input for field/attribute name. Value: {name}. '{name}' does not match '^[_\\\\- a-zA-Z0-9]+$'"
            )));
        }
        let public_key = asked["public_key"].as_str();
        let public_key = public_key.ok_or_else(|| Refusal::bad_request("key pairs are not generated here"))?;
        fingerprint(public_key).ok_or_else(|| invalid("failed to generate fingerprint"))?;
        let count = self.key_pairs.by("user", &user).count() as u64;
        if call.quotas.exceeded(call.caller.project(), COUNT, count, 1).is_some() {
            return Err(Refusal::forbidden("Quota exceeded, too many key pairs."));
        }
        if self.key_pair(&user, name).is_some() {
            return Err(Refusal::conflict(format!("Key pair '{name}' already exists.")));
        }
        let key_pair = KeyPair { created_at: Some(call.now), ..KeyPair::new(&user, name, public_key) };
        let status = if speaks(call, WITH_TYPE) { StatusCode::CREATED } else { StatusCode::OK };
        let answer = Answer::json(status, &json!({"keypair": key_pair.whole(call)}));
        self.put_key_pair(call.now, key_pair);
        Ok(answer)
    }

    pub(super) fn show_key_pair(&mut self, call: &mut Call<'_>) -> Outcome {
        let user = owner(call, call.request.query("user_id"), "show")?;
        let key_pairs = self.key_pairs.view(call.as_of);
        let key_pair = key_pairs.get(&key(&user, call.param(0))).ok_or_else(|| no_key_pair(call, &user))?;
        let mut shown = key_pair.whole(call);
        // what the database has, and no other answer shows
        let created_at = key_pair.created_at.map(|time| time.strftime("%Y-%m-%dT%H:%M:%S.000000").to_string());
        shown["created_at"] = json!(created_at);
        shown["updated_at"] = Value::Null;
        shown["deleted_at"] = Value::Null;
        shown["deleted"] = json!(false);
        shown["id"] = json!(1);
        Ok(Answer::ok(&json!({"keypair": shown})))
    }

    pub(super) fn delete_key_pair(&mut self, call: &mut Call<'_>) -> Outcome {
        let user = owner(call, call.request.query("user_id"), "delete")?;
        if !self.remove_key_pair(call.now, &user, call.param(0)) {
            return Err(no_key_pair(call, &user));
        }
        let status = if speaks(call, WITH_TYPE) { StatusCode::NO_CONTENT } else { StatusCode::ACCEPTED };
        Ok(Answer::empty(status))
    }

    /// A key pair of a user.
    pub fn key_pair(&self, user_id: &str, name: &str) -> Option<&KeyPair> {
        self.key_pairs.get(&key(user_id, name)).map(|key_pair| &**key_pair)
    }

    /// All key pairs, the oldest first.
    pub fn key_pairs(&self) -> impl Iterator<Item = &KeyPair> {
        self.key_pairs.all().map(|key_pair| &**key_pair)
    }

    /// Puts a key pair there as if its user had made it.
    pub fn put_key_pair(&mut self, now: Timestamp, key_pair: KeyPair) {
        self.key_pairs.put(now, key_pair);
    }

    /// Deletes a key pair as if its user had done so. False if there is none.
    pub fn remove_key_pair(&mut self, now: Timestamp, user_id: &str, name: &str) -> bool {
        self.key_pairs.remove(now, &key(user_id, name)).is_some()
    }
}

/// Whose key pairs a call is about. Only an administrator may ask for those of others.
fn owner(call: &Call<'_>, asked: Option<&str>, action: &str) -> Result<String, Refusal> {
    match asked.filter(|_| speaks(call, OF_OTHERS)) {
        Some(user) if user != call.caller.user_id => {
            only_admin(call, &format!("os-keypairs:{action}"))?;
            Ok(user.to_owned())
        }
        _ => Ok(call.caller.user_id.clone()),
    }
}

fn no_key_pair(call: &Call<'_>, user: &str) -> Refusal {
    Refusal::not_found(format!("Keypair {} not found for user {user}", call.param(0)))
}

fn invalid(reason: &str) -> Refusal {
    Refusal::bad_request(format!("Keypair data is invalid: {reason}"))
}

/// The MD5 of the key in a line of `authorized_keys`; none if it is no key.
fn fingerprint(public_key: &str) -> Option<String> {
    let mut words = public_key.split_whitespace();
    let kind = words.next()?;
    let key = BASE64_STANDARD.decode(words.next()?).ok()?;
    // the key says of itself what it is
    let length = u32::from_be_bytes(key.get(..4)?.try_into().ok()?);
    if key.get(4..)?.get(..usize::try_from(length).ok()?)? != kind.as_bytes() {
        return None;
    }
    let digest: Vec<String> = Md5::digest(&key).iter().map(|byte| format!("{byte:02x}")).collect();
    Some(digest.join(":"))
}
