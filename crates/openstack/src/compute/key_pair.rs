//! Key pairs: public keys that servers are made to let in.

use futures::{Stream, TryStreamExt};
use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Compute, LARGEST_PAGE};
use crate::{
    Error,
    service::{Collection, Query, given},
};

/// A key pair, of which Nova has the public half. It belongs to a user, whatever the project, and can't be changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyPair {
    /// Its name, unique among the user's.
    pub name: String,
    /// The public key, as a line of `authorized_keys`.
    pub public_key: String,
    /// MD5 of the key, in pairs of hexadecimal digits with colons between them.
    pub fingerprint: String,
}

/// As each item of a list is wrapped.
#[derive(Deserialize)]
struct Wrapped {
    keypair: KeyPair,
}

const KEY_PAIRS: Collection = Collection { path: "os-keypairs", key: "keypairs" };

/// Whose key pairs are meant.
fn of_user(user_id: Option<&str>) -> Query {
    given([("user_id", user_id.map(str::to_owned))])
}

impl Compute {
    /// A user's key pair by its name: of the user that asks, or, for an administrator, of another.
    pub async fn get_key_pair(&self, name: &str, user_id: Option<&str>) -> Result<Option<KeyPair>, Error> {
        let call = self.service.call(Method::GET, &["os-keypairs", name]).await?.query(&of_user(user_id));
        Error::absent_is_none(self.service.send(&call).await)?.map(|answer| answer.member("keypair")).transpose()
    }

    /// All key pairs of a user: of the one that asks, or, for an administrator, of another.
    pub fn list_key_pairs(&self, user_id: Option<&str>) -> impl Stream<Item = Result<KeyPair, Error>> + Send + use<> {
        let mut query = of_user(user_id);
        query.push(("limit", LARGEST_PAGE.to_string()));
        self.service.clone().list(KEY_PAIRS, query).map_ok(|Wrapped { keypair }| keypair)
    }

    /// Gives the user that asks a key pair, of which only the public key is told. A name that is taken is a conflict.
    pub async fn create_key_pair(&self, name: &str, public_key: &str) -> Result<KeyPair, Error> {
        let body = json!({"keypair": {"name": name, "type": "ssh", "public_key": public_key}});
        self.service.post(&["os-keypairs"], &body).await?.member("keypair")
    }

    /// Deletes a user's key pair, as [`get_key_pair`](Self::get_key_pair) finds it; false if there is none of that name.
    /// Servers that let it in go on doing so.
    pub async fn delete_key_pair(&self, name: &str, user_id: Option<&str>) -> Result<bool, Error> {
        let call = self.service.call(Method::DELETE, &["os-keypairs", name]).await?.query(&of_user(user_id));
        Ok(Error::absent_is_none(self.service.send(&call).await)?.is_some())
    }
}
