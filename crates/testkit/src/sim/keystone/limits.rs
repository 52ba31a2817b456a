//! Unified limits: what every project may have of a service's resource, and what single ones may.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::{
    Entity, Keystone, admin_only,
    entities::{fits, lacks, page},
    kinds::{Kind, LIMITS, PROJECTS, REGISTERED_LIMITS},
    no_content, wrapped,
};
use crate::sim::{
    http::{Answer, Outcome, Refusal},
    service::Call,
};

/// What the database can hold.
const MOST: i64 = 0x7FFF_FFFF;

impl Keystone {
    /// Everyone sees what is registered; of limits, whoever is no administrator sees those of the own project.
    pub(super) fn list_limits(&self, kind: &'static Kind, call: &Call<'_>) -> Outcome {
        let seen = |entity: &Entity| {
            kind.collection != LIMITS.collection
                || call.caller.is_admin()
                || entity.text("project_id") == call.caller.project()
        };
        let table = self.table(kind).map(|table| table.view(call.as_of));
        let all = table.iter().flat_map(|table| table.all());
        let found = all.filter(|entity| seen(entity) && fits(kind, entity, call));
        page(kind, call, found.map(|entity| entity.shown(call.base, kind.collection)).collect())
    }

    pub(super) fn show_limit(&self, kind: &'static Kind, call: &Call<'_>) -> Outcome {
        let limit = self.limit(kind, call)?;
        if kind.collection == LIMITS.collection && limit.text("project_id") != call.caller.project() {
            admin_only(call, "get_limit")?;
        }
        Ok(Answer::ok(&json!({kind.member: limit.shown(call.base, kind.collection)})))
    }

    /// All of a list, or none.
    pub(super) fn create_limits(&mut self, kind: &'static Kind, call: &mut Call<'_>) -> Outcome {
        admin_only(call, &format!("create_{}", kind.collection))?;
        let body = call.request.json();
        let Some(asked) = body[kind.collection].as_array().filter(|asked| !asked.is_empty()) else {
            return Err(lacks(kind.collection, &body, kind.collection));
        };
        let mut made: Vec<Entity> = Vec::new();
        for (index, one) in asked.iter().enumerate() {
            let Value::Object(one) = one.clone() else { return Err(lacks(&index.to_string(), one, "service_id")) };
            if let Some(required) = kind.required.iter().find(|required| !one.contains_key(**required)) {
                return Err(lacks(&index.to_string(), &Value::Object(one), required));
            }
            check_amounts(&one)?;
            let limit = Entity::new(kind, call.ids.hex(), one);
            self.check_limit(kind, &limit)?;
            if made.iter().chain(self.all(kind.collection)).any(|other| is_same(&limit, other)) {
                let words = format!("Conflict occurred attempting to store {} - Duplicate entry.", kind.member);
                return Err(Refusal::conflict(words));
            }
            made.push(limit);
        }
        let shown: Vec<Value> = made.iter().map(|limit| limit.shown(call.base, kind.collection)).collect();
        for limit in made {
            self.table_mut(kind).put(call.now, limit);
        }
        Ok(Answer::json(StatusCode::CREATED, &json!({kind.collection: shown})))
    }

    pub(super) fn update_limit(&mut self, kind: &'static Kind, call: &mut Call<'_>) -> Outcome {
        admin_only(call, &format!("update_{}", kind.member))?;
        let mut asked = wrapped(call, kind.member)?;
        check_amounts(&asked)?;
        let mut limit = self.limit(kind, call)?.clone();
        self.check_unused(kind, &limit)?;
        // as Keystone does (at least up to 30): what is false in Python is taken for what was not said
        asked.retain(|key, value| key != "resource_limit" || *value != json!(0));
        limit.change(asked);
        let limit = self.table_mut(kind).put(call.now, limit);
        Ok(Answer::ok(&json!({kind.member: limit.shown(call.base, kind.collection)})))
    }

    pub(super) fn delete_limit(&mut self, kind: &'static Kind, call: &mut Call<'_>) -> Outcome {
        admin_only(call, &format!("delete_{}", kind.member))?;
        let limit = self.limit(kind, call)?;
        self.check_unused(kind, limit)?;
        self.remove(call.now, kind.collection, call.param(0));
        Ok(no_content())
    }

    fn limit(&self, kind: &Kind, call: &Call<'_>) -> Result<&Entity, Refusal> {
        let id = call.param(0);
        let what = kind.member.replace('_', " ");
        self.entity(kind, id).ok_or_else(|| Refusal::not_found(format!("Could not find {what} for {id}.")))
    }

    fn check_limit(&self, kind: &Kind, limit: &Entity) -> Result<(), Refusal> {
        if kind.collection != LIMITS.collection {
            return Ok(());
        }
        if self.entity(&PROJECTS, limit.text("project_id")).is_none() {
            return Err(Refusal::bad_request(
                "Expecting to find project_id in limit. The server could not comply with the request since it is \
                 either malformed or otherwise incorrect. The client is assumed to be in error.",
            ));
        }
        if self.all(REGISTERED_LIMITS.collection).any(|registered| is_of(limit, registered)) {
            return Ok(());
        }
        Err(Refusal::forbidden("Unable to create a limit that has no corresponding registered limit."))
    }

    /// What limits stand on can't be changed.
    fn check_unused(&self, kind: &Kind, registered: &Entity) -> Result<(), Refusal> {
        let used = kind.collection == REGISTERED_LIMITS.collection
            && self.all(LIMITS.collection).any(|limit| is_of(limit, registered));
        if !used {
            return Ok(());
        }
        Err(Refusal::forbidden(format!(
            "Unable to update or delete registered limit {} because there are project limits associated with it.",
            registered.id
        )))
    }
}

/// Whether a limit is of what is registered.
fn is_of(limit: &Entity, registered: &Entity) -> bool {
    ["service_id", "region_id", "resource_name"].iter().all(|key| limit.text(key) == registered.text(key))
}

fn is_same(one: &Entity, other: &Entity) -> bool {
    is_of(one, other) && one.text("project_id") == other.text("project_id")
}

fn check_amounts(asked: &Map<String, Value>) -> Result<(), Refusal> {
    let amounts = ["default_limit", "resource_limit"].into_iter().filter_map(|key| Some((key, asked.get(key)?)));
    for (key, value) in amounts {
        let problem = match value.as_i64() {
            Some(amount) if amount > MOST => format!("{value} is greater than the maximum of {MOST}"),
            Some(amount) if amount < -1 => format!("{value} is less than the minimum of -1"),
            Some(_) => continue,
            None => format!("{value} is not of type 'integer'"),
        };
        let words = format!("Invalid input for field/attribute {key}. Value: {value}. {problem}");
        return Err(Refusal::bad_request(words));
    }
    Ok(())
}
