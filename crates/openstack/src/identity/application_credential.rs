//! Application credentials: logins of their own for programs, in one project and with no more rights than asked for.

use http::Method;
use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::json;

use super::Identity;
use crate::Error;

/// An application credential. What it logs in with is known only to who made it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ApplicationCredential {
    /// The credential's id.
    pub id: String,
    /// Its name, unique among its user's.
    pub name: String,
    /// The project that it acts in.
    #[serde(default)]
    pub project_id: Option<String>,
    /// When it ends, if ever.
    #[serde(default, deserialize_with = "time")]
    pub expires_at: Option<Timestamp>,
}

/// Keystone leaves the zone out where it shows this time; it is UTC.
fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(Some(time));
    }
    let local: DateTime = text.parse().map_err(D::Error::custom)?;
    TimeZone::UTC.to_timestamp(local).map(Some).map_err(D::Error::custom)
}

/// An application credential to be made, in the project that the maker acts in. It can make no others.
#[derive(Debug, Clone)]
pub struct NewApplicationCredential {
    /// Unique among the user's.
    pub name: String,
    /// A text for people.
    pub description: String,
    /// What it logs in with. Chosen by us, so that a lost answer loses nothing.
    pub secret: SecretString,
    /// Names of its roles, all of which the user has.
    pub roles: Vec<String>,
    /// When it ends.
    pub expires_at: Timestamp,
}

impl Identity {
    /// A user's application credentials; none too if there is no such user.
    pub async fn list_application_credentials(&self, user_id: &str) -> Result<Vec<ApplicationCredential>, Error> {
        let segments = ["users", user_id, "application_credentials"];
        Ok(self.service.get_member(&segments, "application_credentials").await?.unwrap_or_default())
    }

    /// A user's application credential; none if there is no such.
    pub async fn get_application_credential(
        &self,
        user_id: &str,
        id: &str,
    ) -> Result<Option<ApplicationCredential>, Error> {
        self.service.get_member(&["users", user_id, "application_credentials", id], "application_credential").await
    }

    /// Makes an application credential. Only the user itself may; a name that it has used is a conflict.
    pub async fn create_application_credential(
        &self,
        user_id: &str,
        credential: &NewApplicationCredential,
    ) -> Result<ApplicationCredential, Error> {
        let segments = ["users", user_id, "application_credentials"];
        let call = self.service.call(Method::POST, &segments).await?;
        let roles: Vec<_> = credential.roles.iter().map(|name| json!({"name": name})).collect();
        let body = json!({"application_credential": {
            "name": credential.name,
            "description": credential.description,
            "secret": credential.secret.expose_secret(),
            "roles": roles,
            "expires_at": credential.expires_at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string(),
            "unrestricted": false,
        }});
        let call = call.json(&body).secret(&credential.secret);
        self.service.send(&call).await?.member("application_credential")
    }

    /// Deletes an application credential; false if there is none of that id.
    pub async fn delete_application_credential(&self, user_id: &str, id: &str) -> Result<bool, Error> {
        self.service.delete(&["users", user_id, "application_credentials", id]).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_read_with_and_without_a_zone() {
        let read = |expires_at| {
            let shown = json!({"id": "1", "name": "n", "expires_at": expires_at});
            serde_json::from_value::<ApplicationCredential>(shown).unwrap().expires_at
        };
        let expected: Timestamp = "2027-01-02T03:04:05Z".parse().unwrap();
        assert_eq!(read(json!("2027-01-02T03:04:05.000000")), Some(expected));
        assert_eq!(read(json!("2027-01-02T03:04:05Z")), Some(expected));
        assert_eq!(read(json!(null)), None);
    }
}
