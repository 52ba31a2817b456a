//! Answers: texts, documents about the API itself, and refusals as Kubernetes words them.

use std::time::Duration;

use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::Full;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    APIGroup, APIResource, APIResourceList, GroupVersionForDiscovery, Status, StatusDetails,
};
use kupenstack_core::text::NotRead;
use serde::Serialize;

use super::{TextApi, VERSION, route::Wanted};
use crate::{
    front_proxy::{Stranger, User},
    server::Answer,
};

/// The text, for whoever asked and nobody on the way.
pub(super) fn text(text: String) -> Answer {
    let mut answer = Response::new(Full::from(text));
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

pub(super) fn document(document: &impl Serialize) -> Answer {
    let Ok(body) = serde_json::to_vec(document) else {
        let mut answer = Response::new(Full::default());
        *answer.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        return answer;
    };
    let mut answer = Response::new(Full::from(body));
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// The group as discovery shows it.
pub(super) fn group(api: &TextApi) -> APIGroup {
    let version =
        GroupVersionForDiscovery { group_version: format!("{}/{VERSION}", api.group), version: VERSION.to_owned() };
    APIGroup {
        name: api.group.clone(),
        preferred_version: Some(version.clone()),
        versions: vec![version],
        ..APIGroup::default()
    }
}

/// The version's resources as discovery shows them.
pub(super) fn resources(api: &TextApi) -> APIResourceList {
    let resource = APIResource {
        name: format!("{}/{}", api.resource, api.subresource),
        kind: api.kind.clone(),
        namespaced: true,
        verbs: vec!["get".to_owned()],
        ..APIResource::default()
    };
    APIResourceList { group_version: format!("{}/{VERSION}", api.group), resources: vec![resource] }
}

/// Why somebody does not get what they asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    code: StatusCode,
    reason: &'static str,
    message: String,
    name: Option<String>,
    again: Option<Duration>,
}

impl Refusal {
    fn new(code: StatusCode, reason: &'static str, message: String) -> Self {
        Self { code, reason, message, name: None, again: None }
    }

    pub(super) fn unauthorized(stranger: &Stranger) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", stranger.to_string())
    }

    pub(super) fn method() -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", "it can only be read (GET)".to_owned())
    }

    pub(super) fn no_path(path: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", format!("nothing is served at {path}"))
    }

    pub(super) fn lines() -> Self {
        let message = "tailLines: has to be a number of lines, such as 500";
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message.to_owned())
    }

    /// Clients of Kubernetes come again by themselves.
    pub(super) fn busy() -> Self {
        let message = "too many are being read at the same time";
        let busy = Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message.to_owned());
        Self { again: Some(Duration::from_secs(1)), ..busy }
    }

    pub(super) fn late(patience: Duration) -> Self {
        let message = format!("it could not be read within {} s", patience.as_secs());
        Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message)
    }

    pub(super) fn undecided(error: &kube::Error) -> Self {
        let message = format!("whether it may be read could not be found out: {error}");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
    }

    pub(super) fn forbidden(api: &TextApi, user: &User, wanted: &Wanted) -> Self {
        let (object, group) = (named(api, wanted), &api.group);
        let resource = format!("{}/{}", api.resource, api.subresource);
        let message = format!(
            "{object} is forbidden: User {:?} cannot get resource {resource:?} in API group {group:?} in the namespace {:?}",
            user.name, wanted.namespace
        );
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).about(wanted)
    }

    pub(super) fn not_found(api: &TextApi, wanted: &Wanted) -> Self {
        let message = format!("{} not found", named(api, wanted));
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).about(wanted)
    }

    pub(super) fn not_read(why: &NotRead) -> Self {
        let (code, reason) = match why {
            NotRead::NoObject => (StatusCode::NOT_FOUND, "NotFound"),
            NotRead::None(_) => (StatusCode::CONFLICT, "Conflict"),
            NotRead::Forbidden(_) => (StatusCode::FORBIDDEN, "Forbidden"),
            NotRead::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable"),
            NotRead::Failed(_) => (StatusCode::INTERNAL_SERVER_ERROR, "InternalError"),
        };
        Self::new(code, reason, why.to_string())
    }

    pub(super) fn about(self, wanted: &Wanted) -> Self {
        Self { name: Some(wanted.name.clone()), ..self }
    }

    #[cfg(test)]
    pub(super) fn code(&self) -> u16 {
        self.code.as_u16()
    }

    pub(super) fn answer(self, api: &TextApi) -> Answer {
        let seconds = self.again.map(|again| again.as_secs());
        let details = StatusDetails {
            group: Some(api.group.clone()),
            kind: self.name.as_ref().map(|_| api.resource.clone()),
            name: self.name,
            retry_after_seconds: seconds.and_then(|seconds| i32::try_from(seconds).ok()),
            ..StatusDetails::default()
        };
        let status = Status {
            status: Some("Failure".to_owned()),
            code: Some(i32::from(self.code.as_u16())),
            reason: Some(self.reason.to_owned()),
            message: Some(self.message),
            details: Some(details),
            ..Status::default()
        };
        let mut answer = document(&status);
        *answer.status_mut() = self.code;
        if let Some(seconds) = seconds {
            answer.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        answer
    }
}

fn named(api: &TextApi, wanted: &Wanted) -> String {
    format!("{}.{} {:?}", api.resource, api.group, wanted.name)
}
