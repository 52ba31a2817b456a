//! Logging in: by a password, with another token, with an application credential.

use http::StatusCode;
use jiff::Timestamp;
use serde_json::Value;

use super::{
    Entity, Keystone,
    kinds::{DOMAINS, Kind, PROJECTS, USERS},
    missing,
    tokens::{Scope, Token, unauthorized},
};
use crate::sim::{
    clock::later,
    http::{Answer, Outcome, Refusal},
    service::Call,
};

/// Who logs in, and what the way of doing so fixes.
struct Login {
    user: String,
    methods: Vec<&'static str>,
    credential: Option<String>,
    scope: Option<Scope>,
    expires_at: Option<Timestamp>,
}

impl Keystone {
    pub(super) fn log_in(&mut self, call: &mut Call<'_>) -> Outcome {
        let body = call.request.json();
        let Some(auth) = body.get("auth") else { return Err(Refusal::bad_request("'auth' is a required property")) };
        let Some(identity) = auth.get("identity") else {
            return Err(Refusal::bad_request("'identity' is a required property"));
        };
        let login = self.identify(identity, call.now)?;
        let user = self.entity(&USERS, &login.user).filter(|user| user.is_enabled()).ok_or_else(unauthorized)?;
        let scope = match (login.scope, auth.get("scope")) {
            (Some(scope), _) => scope,
            (None, Some(scope)) => self.scope(scope)?,
            (None, None) => self.default_scope(user),
        };
        let token = Token {
            user: user.id.clone(),
            scope,
            methods: login.methods,
            credential: login.credential,
            issued_at: call.now,
            expires_at: login.expires_at.unwrap_or_else(|| later(call.now, self.token_life)),
            audit_id: call.ids.hex()[..22].to_owned(),
            epoch: user.epoch,
        };
        // whatever is wrong with the scope, a login tells nothing about it
        let body = self.shown_token(&token, call.request.query("nocatalog").is_none()).map_err(|_| unauthorized())?;
        let id = format!("gAAAAA{}{}{}", call.ids.hex(), call.ids.hex(), call.ids.hex());
        let answer = Answer::json(StatusCode::CREATED, &body).with_header("x-subject-token", &id);
        self.tokens.insert(id, token);
        Ok(answer.with_header("vary", "X-Auth-Token"))
    }

    fn identify(&self, identity: &Value, now: Timestamp) -> Result<Login, Refusal> {
        let methods = identity["methods"].as_array();
        match methods.and_then(|methods| methods.first()).and_then(Value::as_str) {
            Some("password") => self.by_password(&identity["password"]["user"]),
            Some("token") => self.by_token(&identity["token"], now),
            Some("application_credential") => self.by_credential(&identity["application_credential"], now),
            Some(_) => {
                let words = "Attempted to authenticate with an unsupported method.";
                Err(Refusal::new(StatusCode::UNAUTHORIZED, words))
            }
            None => Err(Refusal::bad_request("'methods' is a required property")),
        }
    }

    fn by_password(&self, asked: &Value) -> Result<Login, Refusal> {
        let user = self.referred(&USERS, asked).ok_or_else(unauthorized)?;
        if user.secret.is_none() || user.secret.as_deref() != asked["password"].as_str() {
            return Err(unauthorized());
        }
        let user = user.id.clone();
        Ok(Login { user, methods: vec!["password"], credential: None, scope: None, expires_at: None })
    }

    fn by_token(&self, asked: &Value, now: Timestamp) -> Result<Login, Refusal> {
        let held = asked["id"].as_str().and_then(|id| self.tokens.get(id));
        let held = held.filter(|held| held.expires_at > now).ok_or_else(unauthorized)?;
        self.rights(held).map_err(|_| unauthorized())?;
        if held.credential.is_some() {
            return Err(Refusal::forbidden(
                "Using method 'application_credential' is not allowed for managing trusts.",
            ));
        }
        let mut methods = vec!["token"];
        methods.extend(held.methods.iter().filter(|method| **method != "token"));
        // a token got with a token ends with it
        let (user, expires_at) = (held.user.clone(), Some(held.expires_at));
        Ok(Login { user, methods, credential: None, scope: None, expires_at })
    }

    fn by_credential(&self, asked: &Value, now: Timestamp) -> Result<Login, Refusal> {
        let credential = if let Some(id) = asked["id"].as_str() {
            self.credential(id)
        } else {
            let user = self.referred(&USERS, &asked["user"]).ok_or_else(unauthorized)?;
            self.credential_named(&user.id, asked["name"].as_str().unwrap_or_default())
        };
        let credential = credential.ok_or_else(|| {
            let named = asked["id"].as_str().or(asked["name"].as_str());
            missing("Application Credential", named.unwrap_or_default())
        })?;
        let ended = credential
            .text("expires_at")
            .parse::<jiff::civil::DateTime>()
            .is_ok_and(|end| end.to_zoned(jiff::tz::TimeZone::UTC).is_ok_and(|end| end.timestamp() <= now));
        if ended || credential.secret.as_deref() != asked["secret"].as_str() {
            return Err(unauthorized());
        }
        Ok(Login {
            user: credential.text("user_id").to_owned(),
            methods: vec!["application_credential"],
            credential: Some(credential.id.clone()),
            scope: Some(Scope::Project(credential.text("project_id").to_owned())),
            expires_at: None,
        })
    }

    fn scope(&self, scope: &Value) -> Result<Scope, Refusal> {
        if scope.as_str() == Some("unscoped") || scope.get("unscoped").is_some() {
            return Ok(Scope::None);
        }
        if let Some(project) = scope.get("project") {
            let project = self.referred(&PROJECTS, project).ok_or_else(unauthorized)?;
            return Ok(Scope::Project(project.id.clone()));
        }
        match scope.get("domain").and_then(|domain| self.referred(&DOMAINS, domain)) {
            Some(domain) => Ok(Scope::Domain(domain.id.clone())),
            // system scope among them: nobody is given a role on the system here
            None => Err(unauthorized()),
        }
    }

    /// A user's default project, if he may act there.
    fn default_scope(&self, user: &Entity) -> Scope {
        let project = user.text("default_project_id");
        if project.is_empty() || self.roles(project, &user.id).is_empty() {
            Scope::None
        } else {
            Scope::Project(project.to_owned())
        }
    }

    /// What is meant by an id, or by a name and a domain.
    fn referred(&self, kind: &Kind, asked: &Value) -> Option<&Entity> {
        if let Some(id) = asked["id"].as_str() {
            return self.entity(kind, id);
        }
        let name = asked["name"].as_str()?;
        if kind.collection == DOMAINS.collection {
            return self.named(kind, name, None);
        }
        let domain = self.referred(&DOMAINS, &asked["domain"])?;
        self.named(kind, name, Some(&domain.id))
    }
}
