//! Users.

use futures::Stream;
use http::Method;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Identity;
use crate::Error;

/// A user.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct User {
    /// The user's id.
    pub id: String,
    /// The user's name, unique in its domain.
    pub name: String,
    /// The domain it belongs to.
    pub domain_id: String,
    /// A text for people.
    #[serde(default)]
    pub description: Option<String>,
    /// Whether it may log in.
    pub enabled: bool,
    /// The project it acts in when it names none.
    #[serde(default)]
    pub default_project_id: Option<String>,
    /// Every other attribute, those of our own making among them.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A user to be made.
#[derive(Debug, Clone)]
pub struct NewUser {
    /// Unique in the domain; at most 255 characters.
    pub name: String,
    /// The domain it is to belong to.
    pub domain_id: String,
    /// Its password.
    pub password: SecretString,
    /// A text for people.
    pub description: String,
    /// The project it acts in when it names none.
    pub default_project_id: Option<String>,
    /// Attributes of our own making. Keystone turns `-` and `:` in their names into `_`.
    pub extra: Map<String, Value>,
}

impl Identity {
    /// A user by its id.
    pub async fn get_user(&self, id: &str) -> Result<Option<User>, Error> {
        self.service.get_member(&["users", id], "user").await
    }

    /// A user by its name.
    pub async fn find_user(&self, name: &str, domain_id: &str) -> Result<Option<User>, Error> {
        let query = vec![("name", name.to_owned()), ("domain_id", domain_id.to_owned())];
        self.find("users", query, |user: &User| user.name == name).await
    }

    /// Every user of a domain. One who can't be read is left out, and told in the log.
    pub fn survey_users(&self, domain_id: &str) -> impl Stream<Item = Result<User, Error>> + Send + use<> {
        self.survey("users", vec![("domain_id", domain_id.to_owned())])
    }

    /// Makes a user. A name that is taken is a conflict.
    pub async fn create_user(&self, user: &NewUser) -> Result<User, Error> {
        let call = self.service.call(Method::POST, &["users"]).await?;
        let call = call.json(&json!({"user": user.body()})).secret(&user.password);
        self.service.send(&call).await?.member("user")
    }

    /// Sets a user's password, as an administrator. Its tokens end with the old password.
    pub async fn set_password(&self, user_id: &str, password: &SecretString) -> Result<(), Error> {
        let call = self.service.call(Method::PATCH, &["users", user_id]).await?;
        let call = call.json(&json!({"user": {"password": password.expose_secret()}})).secret(password);
        self.service.send(&call).await.map(drop)
    }

    /// Sets the project that a user acts in when it names none, as an administrator.
    pub async fn set_default_project(&self, user_id: &str, project_id: &str) -> Result<(), Error> {
        let body = json!({"user": {"default_project_id": project_id}});
        self.service.patch(&["users", user_id], &body).await.map(drop)
    }

    /// Deletes a user; false if there is none of that id.
    pub async fn delete_user(&self, id: &str) -> Result<bool, Error> {
        self.service.delete(&["users", id]).await
    }
}

impl NewUser {
    fn body(&self) -> Map<String, Value> {
        let mut body = self.extra.clone();
        body.insert("name".to_owned(), json!(self.name));
        body.insert("domain_id".to_owned(), json!(self.domain_id));
        body.insert("description".to_owned(), json!(self.description));
        body.insert("password".to_owned(), json!(self.password.expose_secret()));
        if let Some(project) = &self.default_project_id {
            body.insert("default_project_id".to_owned(), json!(project));
        }
        body
    }
}
