//! A review: from the API server's question to the answer, without I/O.

use kube::core::{
    DynamicObject,
    admission::{AdmissionRequest, AdmissionResponse, AdmissionReview, META_API_VERSION_V1, Operation},
};
use kupenstack_core::admission::{Findings, Rule};
use serde_json::Value;

/// Most faults that a refusal names.
const MOST_FAULTS: usize = 10;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    /// The text is none of a review.
    #[error("this is no AdmissionReview: {0}")]
    Syntax(#[from] serde_json::Error),
    /// It is one of another version.
    #[error("AdmissionReview of version {0:?}: only {META_API_VERSION_V1} is understood")]
    Version(String),
    /// It is an answer itself.
    #[error("an AdmissionReview without a request")]
    NoRequest,
}

/// What a review came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing to say.
    Allowed,
    /// Allowed with warnings.
    Warned,
    /// Refused.
    Refused,
}

/// Answers a review: the body of the response, what it came to, and the resource if a rule covers it.
pub(crate) fn answer<'a>(rules: &'a [Rule], body: &[u8]) -> Result<(Vec<u8>, Verdict, Option<&'a Rule>), Unreadable> {
    let review: AdmissionReview<DynamicObject> = serde_json::from_slice(body)?;
    if review.types.api_version != META_API_VERSION_V1 {
        return Err(Unreadable::Version(review.types.api_version));
    }
    let request: AdmissionRequest<DynamicObject> = review.try_into().map_err(|_| Unreadable::NoRequest)?;
    let rule = rules.iter().find(|rule| rule.covers(&request.resource.group, &request.resource.resource));
    let findings = rule.and_then(|rule| judge(rule, &request)).unwrap_or_default();
    let verdict = match (findings.faults.as_slice(), findings.warnings.as_slice()) {
        ([], []) => Verdict::Allowed,
        ([], _) => Verdict::Warned,
        _ => Verdict::Refused,
    };
    let response = response(&request, findings);
    Ok((serde_json::to_vec(&response.into_review())?, verdict, rule))
}

/// What this request brings in. `None` when there is nothing to judge: only a spec that is written for an object that is
/// to stay can be wrong.
fn judge(rule: &Rule, request: &AdmissionRequest<DynamicObject>) -> Option<Findings> {
    let is_write = matches!(request.operation, Operation::Create | Operation::Update);
    let object = request.object.as_ref().filter(|_| is_write && request.sub_resource.is_none())?;
    let before = request.old_object.as_ref();
    if object.metadata.deletion_timestamp.is_some() || before.is_some_and(|old| old.data["spec"] == object.data["spec"])
    {
        return None;
    }
    let findings = match judged(rule, object) {
        Ok(findings) => findings,
        // the definitions in the cluster are newer than this program: they know better
        Err(error) => {
            let warning = format!("the operator can't read this object, which it does not judge therefore: {error}");
            return Some(Findings { faults: Vec::new(), warnings: vec![warning] });
        }
    };
    // what an unreadable object was before says nothing about it now
    let before = before.and_then(|old| judged(rule, old).ok()).unwrap_or_default();
    Some(findings.since(&before))
}

fn judged(rule: &Rule, object: &DynamicObject) -> Result<Findings, serde_json::Error> {
    let mut value = object.data.clone();
    if let Value::Object(fields) = &mut value {
        // no part of a rule, and larger than all the rest
        let metadata = kube::core::ObjectMeta { managed_fields: None, ..object.metadata.clone() };
        fields.insert("metadata".to_owned(), serde_json::to_value(metadata)?);
        if let Some(types) = &object.types {
            fields.insert("apiVersion".to_owned(), types.api_version.clone().into());
            fields.insert("kind".to_owned(), types.kind.clone().into());
        }
        // an object that the operator reports on may carry what an older operator wrote
        fields.remove("status");
    }
    rule.judge(value)
}

fn response(request: &AdmissionRequest<DynamicObject>, findings: Findings) -> AdmissionResponse {
    let mut response = AdmissionResponse::from(request);
    response.warnings = (!findings.warnings.is_empty()).then_some(findings.warnings);
    if findings.faults.is_empty() {
        return response;
    }
    let (told, others) = findings.faults.split_at(findings.faults.len().min(MOST_FAULTS));
    let others = (!others.is_empty()).then(|| format!("and {} more", others.len()));
    let message = told.iter().cloned().chain(others).collect::<Vec<_>>().join("; ");
    let mut response = response.deny(message);
    response.result.code = 422;
    "Invalid".clone_into(&mut response.result.reason);
    response
}

#[cfg(test)]
mod tests;
