//! Tokens: what they say, and when they end.

use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{
    Keystone,
    kinds::{DOMAINS, PROJECTS, USERS},
    missing, no_content,
};
use crate::sim::{
    http::{Answer, Outcome, Refusal},
    service::{Call, Caller},
};

/// A token. Like a Fernet token it says who and where; what that allows is looked up each time.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) user: String,
    pub(super) scope: Scope,
    pub(super) methods: Vec<&'static str>,
    pub(super) credential: Option<String>,
    pub(super) issued_at: Timestamp,
    pub(super) expires_at: Timestamp,
    pub(super) audit_id: String,
    /// The user's epoch when it was issued.
    pub(super) epoch: u64,
}

/// What a token is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Scope {
    None,
    Project(String),
    Domain(String),
}

impl Keystone {
    /// Who holds a token, if it is worth anything.
    pub(in crate::sim) fn authenticate(&self, token: &str, now: Timestamp) -> Result<Caller, Refusal> {
        let held = self.tokens.get(token).filter(|held| held.expires_at > now).ok_or_else(unauthorized)?;
        let roles = self.rights(held)?;
        let (project_id, domain_id) = match &held.scope {
            Scope::None => (None, None),
            Scope::Domain(id) => (None, Some(id.clone())),
            Scope::Project(id) => {
                let domain = self.entity(&PROJECTS, id).map(|project| project.text("domain_id").to_owned());
                (Some(id.clone()), domain)
            }
        };
        let roles = roles.into_iter().map(|(_, name)| name).collect();
        Ok(Caller { token: token.to_owned(), user_id: held.user.clone(), project_id, domain_id, roles })
    }

    /// The roles that a token stands for now. A scope without any is worth nothing.
    pub(super) fn rights(&self, token: &Token) -> Result<Vec<(String, String)>, Refusal> {
        let user = self.entity(&USERS, &token.user).ok_or_else(|| missing("user", &token.user))?;
        if !user.is_enabled() || user.epoch != token.epoch {
            return Err(unauthorized());
        }
        let target = match &token.scope {
            Scope::None => return Ok(Vec::new()),
            Scope::Project(id) => {
                let project = self.entity(&PROJECTS, id).ok_or_else(|| missing("project", id))?;
                if !project.is_enabled() {
                    return Err(unauthorized());
                }
                id
            }
            Scope::Domain(id) => {
                self.entity(&DOMAINS, id).filter(|domain| domain.is_enabled()).ok_or_else(unauthorized)?;
                id
            }
        };
        let mut roles = self.roles(target, &token.user);
        if let Some(id) = &token.credential {
            let credential = self.credential(id).ok_or_else(unauthorized)?;
            let granted = self.implied(self.credential_roles(credential));
            roles.retain(|role| granted.contains(role));
        }
        if roles.is_empty() { Err(unauthorized()) } else { Ok(roles) }
    }

    /// A token as Keystone shows it.
    pub(super) fn shown_token(&self, token: &Token, with_catalog: bool) -> Result<Value, Refusal> {
        let roles = self.rights(token)?;
        let user = self.entity(&USERS, &token.user).ok_or_else(unauthorized)?;
        let mut shown = json!({
            "methods": token.methods,
            "user": {
                "domain": self.reference(user.text("domain_id")),
                "id": user.id,
                "name": user.text("name"),
                "password_expires_at": null,
            },
            "audit_ids": [token.audit_id],
            "expires_at": stamp(token.expires_at),
            "issued_at": stamp(token.issued_at),
        });
        match &token.scope {
            Scope::None => return Ok(json!({"token": shown})),
            Scope::Domain(id) => shown["domain"] = self.reference(id),
            Scope::Project(id) => {
                let project = self.entity(&PROJECTS, id).ok_or_else(unauthorized)?;
                let domain = self.reference(project.text("domain_id"));
                shown["project"] = json!({"domain": domain, "id": project.id, "name": project.text("name")});
                shown["is_domain"] = json!(false);
            }
        }
        shown["roles"] = roles.iter().map(|(id, name)| json!({"id": id, "name": name})).collect();
        if let Some(credential) = token.credential.as_deref().and_then(|id| self.credential(id)) {
            let restricted = credential.body.get("unrestricted") != Some(&json!(true));
            shown["application_credential"] =
                json!({"id": credential.id, "name": credential.text("name"), "restricted": restricted});
        }
        if with_catalog {
            let project = if let Scope::Project(id) = &token.scope { id } else { "" };
            shown["catalog"] = self.catalog(project);
        }
        Ok(json!({"token": shown}))
    }

    /// A domain's id and name.
    fn reference(&self, domain: &str) -> Value {
        json!({"id": domain, "name": self.entity(&DOMAINS, domain).map(|domain| domain.text("name"))})
    }

    /// The token that is asked about. Its own user may ask, and administrators.
    fn subject(&self, call: &Call<'_>, action: &str) -> Result<(String, &Token), Refusal> {
        let id = call.request.header("x-subject-token").unwrap_or_default();
        let held = self.tokens.get(id).filter(|held| held.expires_at > call.now);
        let held = held.ok_or_else(|| Refusal::not_found("Could not find token."))?;
        if held.user != call.caller.user_id && !call.caller.is_admin() {
            return super::forbidden(action);
        }
        Ok((id.to_owned(), held))
    }

    pub(super) fn show_token(&mut self, call: &mut Call<'_>) -> Outcome {
        let (id, held) = self.subject(call, "validate_token")?;
        let body = self.shown_token(held, call.request.query("nocatalog").is_none());
        let body = body.map_err(|_| Refusal::not_found("Could not find token."))?;
        Ok(Answer::ok(&body).with_header("x-subject-token", &id))
    }

    pub(super) fn revoke_token(&mut self, call: &mut Call<'_>) -> Outcome {
        let (id, _) = self.subject(call, "revoke_token")?;
        self.tokens.remove(&id);
        Ok(no_content())
    }
}

pub(in crate::sim) fn unauthorized() -> Refusal {
    Refusal::new(StatusCode::UNAUTHORIZED, "The request you have made requires authentication.")
}

/// Fernet tokens know whole seconds only; Keystone shows a fraction all the same.
fn stamp(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.000000Z").to_string()
}

/// The answer to a login with its times moved by so many seconds.
pub(in crate::sim) fn skewed(answer: Answer, issued: i64, expires: i64) -> Answer {
    let Ok(mut body) = serde_json::from_slice::<Value>(&answer.body) else { return answer };
    for (key, by) in [("issued_at", issued), ("expires_at", expires)] {
        let time = body["token"][key].as_str().and_then(|time| time.parse::<Timestamp>().ok());
        if let Some(moved) = time.and_then(|time| time.checked_add(SignedDuration::from_secs(by)).ok()) {
            body["token"][key] = json!(stamp(moved));
        }
    }
    Answer { body: body.to_string().into(), ..answer }
}
