//! What projects may have, as Neutron is told by an administrator.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::{
    Neutron,
    convert::{self, plain},
};
use crate::sim::{
    http::{Answer, Outcome, Refusal},
    service::Call,
};

/// What is counted, and how many every project may have. The simulation counts what it has, and holds nobody to these.
const DEFAULTS: [(&str, i64); 10] = [
    ("network", 100),
    ("subnet", 100),
    ("subnetpool", -1),
    ("port", 500),
    ("router", 10),
    ("router_route", 30),
    ("floatingip", 50),
    ("rbac_policy", 10),
    ("security_group", 10),
    ("security_group_rule", 100),
];

impl Neutron {
    /// How many a project may have, if that was said.
    pub(super) fn quota(&self, project: &str, resource: &'static str) -> Option<u64> {
        let limit = self.quotas.get(&(project.to_owned(), resource))?;
        u64::try_from(*limit).ok()
    }

    pub(super) fn show_quotas(&mut self, call: &mut Call<'_>) -> Outcome {
        if call.param(0) != call.caller.project() {
            only_admin(call, "get")?;
        }
        Ok(self.shown_quotas(call))
    }

    pub(super) fn set_quotas(&mut self, call: &mut Call<'_>) -> Outcome {
        only_admin(call, "update")?;
        let (project, body) = (call.param(0).to_owned(), call.request.json());
        let asked = body["quota"].as_object().cloned().unwrap_or_default();
        for (resource, limit) in limits(&asked)? {
            let used = self.used(&project, resource);
            if u64::try_from(limit).is_ok_and(|limit| limit < used) {
                return Err(Refusal::bad_request(format!(
                    "Quota limit {limit} for {resource} must be greater than or equal to already used {used}"
                )));
            }
            self.quotas.insert((project.clone(), resource), limit);
        }
        Ok(self.shown_quotas(call))
    }

    pub(super) fn forget_quotas(&mut self, call: &mut Call<'_>) -> Outcome {
        only_admin(call, "delete")?;
        let (project, before) = (call.param(0), self.quotas.len());
        self.quotas.retain(|(of, _), _| of != project);
        if self.quotas.len() == before {
            let words = format!("Quota for project {project} could not be found.");
            return Err(Refusal::not_found(words).of_type("TenantQuotaNotFound"));
        }
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }

    fn shown_quotas(&self, call: &Call<'_>) -> Answer {
        let limit = |(resource, default): (&'static str, i64)| {
            let told = self.quotas.get(&(call.param(0).to_owned(), resource));
            (resource.to_owned(), json!(told.copied().unwrap_or(default)))
        };
        let shown: Map<String, Value> = DEFAULTS.into_iter().map(limit).collect();
        Answer::ok(&json!({"quota": shown}))
    }
}

/// What is asked for, of what is counted.
fn limits(asked: &Map<String, Value>) -> Result<Vec<(&'static str, i64)>, Refusal> {
    let limit = |(name, value): (&String, &Value)| {
        let Some((resource, _)) = DEFAULTS.into_iter().find(|(known, _)| known == name) else {
            return Err(Refusal::bad_request(format!("Unrecognized attribute(s) '{name}'")));
        };
        let amount = convert::number(value)?.as_i64().filter(|amount| *amount >= -1);
        amount.map(|amount| (resource, amount)).ok_or_else(|| {
            let problem = format!("'{}' is too small - must be at least '-1'", plain(value));
            Refusal::bad_request(format!("Invalid input for {name}. Reason: {problem}."))
        })
    };
    asked.iter().map(limit).collect()
}

fn only_admin(call: &Call<'_>, action: &str) -> Result<(), Refusal> {
    if call.caller.is_admin() {
        return Ok(());
    }
    Err(Refusal::forbidden(format!("rule:{action}_quota is disallowed by policy")).of_type("PolicyNotAuthorized"))
}
