//! Application credentials: a login of its own for a program, with at most the rights of its maker.

use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Keystone,
    entities::{Entity, collection},
    forbidden,
    kinds::{CREDENTIALS, ROLES},
    missing, no_content, wrapped,
};
use crate::sim::{
    http::{Answer, Outcome, Refusal},
    service::Call,
    table::Table,
};

impl Keystone {
    fn credentials(&self) -> Option<&Table<Entity>> {
        self.table(&CREDENTIALS)
    }

    pub(super) fn credential(&self, id: &str) -> Option<&Entity> {
        self.entity(&CREDENTIALS, id)
    }

    pub(super) fn credential_named(&self, user: &str, name: &str) -> Option<&Entity> {
        let mut own = self.credentials()?.by("owner", user);
        own.find(|credential| credential.text("name") == name).map(|credential| &**credential)
    }

    pub(super) fn list_credentials(&mut self, call: &mut Call<'_>) -> Outcome {
        let user = own_or_admin(call, "list_application_credentials")?;
        let table = self.credentials().map(|table| table.view(call.as_of));
        let own = table.iter().flat_map(|table| table.by("owner", user));
        let name = call.request.query("name");
        let own = own.filter(|credential| name.is_none_or(|name| credential.text("name") == name));
        let shown: Vec<Value> = own.map(|credential| shown(credential, call)).collect();
        Ok(collection(call, "application_credentials", &shown))
    }

    pub(super) fn create_credential(&mut self, call: &mut Call<'_>) -> Outcome {
        if call.caller.user_id != call.param(0) {
            return forbidden("create_application_credential");
        }
        let mut asked = wrapped(call, CREDENTIALS.member)?;
        let Some(name) = asked.get("name").and_then(Value::as_str).map(str::to_owned) else {
            return Err(Refusal::bad_request("'name' is a required property"));
        };
        if self.credential_named(call.param(0), &name).is_some() {
            return Err(Refusal::conflict(format!(
                "Conflict occurred attempting to store application_credential - Duplicate entry found with name {name}."
            )));
        }
        let roles = self.roles_for(call, asked.get("roles"))?;
        let secret = match asked.get("secret").and_then(Value::as_str) {
            Some(secret) => secret.to_owned(),
            None => format!("{}{}", call.ids.hex(), call.ids.hex()),
        };
        asked.insert("secret".to_owned(), json!(secret));
        asked.insert("roles".to_owned(), roles);
        asked.insert("project_id".to_owned(), json!(call.caller.project_id));
        asked.insert("user_id".to_owned(), json!(call.caller.user_id));
        let entity = Entity::new(&CREDENTIALS, call.ids.hex(), asked);
        let entity = self.table_mut(&CREDENTIALS).put(call.now, entity);
        let mut body = shown(&entity, call);
        // the one time that it is told
        body["secret"] = json!(secret);
        Ok(Answer::json(StatusCode::CREATED, &json!({"application_credential": body})))
    }

    /// The roles that are asked for, which the caller must have, or all of the caller's.
    fn roles_for(&self, call: &Call<'_>, asked: Option<&Value>) -> Result<Value, Refusal> {
        let own = self.roles(call.caller.project(), &call.caller.user_id);
        let Some(asked) = asked.and_then(Value::as_array) else {
            return Ok(own.iter().map(|(id, _)| self.role_of(id)).collect());
        };
        asked
            .iter()
            .map(|role| {
                let wanted = |(id, name): &&(String, String)| role["id"] == json!(id) || role["name"] == json!(name);
                match own.iter().find(wanted) {
                    Some((id, _)) => Ok(self.role_of(id)),
                    None => Err(Refusal::bad_request(
                        "Invalid application credential: Cannot create an application credential with unassigned role",
                    )),
                }
            })
            .collect()
    }

    fn role_of(&self, id: &str) -> Value {
        self.entity(&ROLES, id).map_or(Value::Null, |role| Value::Object(role.body.clone()))
    }

    pub(super) fn show_credential(&mut self, call: &mut Call<'_>) -> Outcome {
        let user = own_or_admin(call, "get_application_credential")?;
        let credential = self.credential(call.param(1)).filter(|credential| credential.text("user_id") == user);
        let credential = credential.ok_or_else(|| missing("Application Credential", call.param(1)))?;
        Ok(Answer::ok(&json!({"application_credential": shown(credential, call)})))
    }

    pub(super) fn delete_credential(&mut self, call: &mut Call<'_>) -> Outcome {
        let user = own_or_admin(call, "delete_application_credential")?;
        let id = call.param(1);
        if self.credential(id).is_none_or(|credential| credential.text("user_id") != user) {
            return Err(missing("Application Credential", id));
        }
        self.table_mut(&CREDENTIALS).remove(call.now, id);
        Ok(no_content())
    }

    /// Credentials end with their user and with their project.
    pub(super) fn forget_credentials(&mut self, now: Timestamp, id: &str) {
        let is_its = |credential: &&std::sync::Arc<Entity>| {
            credential.text("user_id") == id || credential.text("project_id") == id
        };
        let gone = self.credentials().into_iter().flat_map(Table::all).filter(is_its);
        let gone: Vec<String> = gone.map(|credential| credential.id.clone()).collect();
        for id in gone {
            self.table_mut(&CREDENTIALS).remove(now, &id);
        }
    }

    /// The ids of a credential's roles.
    pub(super) fn credential_roles<'a>(&self, credential: &'a Entity) -> impl Iterator<Item = &'a str> + use<'a> {
        let roles = credential.body.get("roles").and_then(Value::as_array);
        let ids = roles.into_iter().flatten().filter_map(|role| role["id"].as_str());
        let known: Vec<&str> = ids.filter(|id| self.entity(&ROLES, id).is_some()).collect();
        known.into_iter()
    }
}

fn own_or_admin<'a>(call: &'a Call<'_>, action: &str) -> Result<&'a str, Refusal> {
    let user = call.param(0);
    if call.caller.user_id == user || call.caller.is_admin() { Ok(user) } else { forbidden(action) }
}

fn shown(credential: &Entity, call: &Call<'_>) -> Value {
    credential.shown(call.base, &format!("users/{}/application_credentials", credential.text("user_id")))
}
