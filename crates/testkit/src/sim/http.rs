//! Requests and answers, without a connection.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::service::Caller;

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Request {
    /// The verb.
    pub method: Method,
    /// The path as it came, with the service's prefix, still encoded.
    pub path: String,
    /// The query, decoded.
    pub query: Vec<(String, String)>,
    /// The headers.
    pub headers: HeaderMap,
    /// The body; empty for data that is streamed.
    pub body: Bytes,
    /// What came as a stream.
    pub upload: Option<Upload>,
    /// Who asks, where that was settled before the request is carried out: a token may end meanwhile.
    pub(super) caller: Option<Caller>,
}

/// Data that came as a stream, kept only as far as the options allow.
#[derive(Debug, Clone)]
pub struct Upload {
    /// How many bytes came.
    pub length: u64,
    /// Their MD5, in hexadecimal.
    pub md5: String,
    /// Their SHA-512, in hexadecimal.
    pub sha512: String,
    /// The bytes, unless there were too many.
    pub data: Option<Bytes>,
}

impl Request {
    /// The first value of a query parameter.
    pub fn query(&self, key: &str) -> Option<&str> {
        self.query.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// A header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body as JSON; `null` if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The path below the service's prefix, in decoded segments.
    pub(super) fn segments(&self) -> Vec<String> {
        let decode = |segment: &str| percent_decode_str(segment).decode_utf8_lossy().into_owned();
        self.path.split('/').filter(|segment| !segment.is_empty()).skip(1).map(decode).collect()
    }

    /// The query with some parameters set anew, as the link to another page has it.
    pub(super) fn query_with(&self, changes: &[(&str, &str)]) -> String {
        let kept = self.query.iter().filter(|(name, _)| changes.iter().all(|(changed, _)| changed != name));
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(kept).extend_pairs(changes);
        query.finish()
    }
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Answer {
    /// An answer without a body.
    pub fn empty(status: StatusCode) -> Self {
        Self { status, headers: HeaderMap::new(), body: Bytes::new() }
    }

    /// A JSON answer.
    pub fn json(status: StatusCode, body: &Value) -> Self {
        Self::empty(status).with_body("application/json", body.to_string())
    }

    /// 200 and a JSON body.
    pub fn ok(body: &Value) -> Self {
        Self::json(StatusCode::OK, body)
    }

    /// With a body of this media type.
    #[must_use]
    pub fn with_body(mut self, media_type: &'static str, body: impl Into<Bytes>) -> Self {
        self.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        self.body = body.into();
        self
    }

    /// With a header. A value that can't be one is left out.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(HeaderName::from_static(name), value);
        }
        self
    }
}

/// A refusal in words. How it looks on the wire is the service's own.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// The status.
    pub status: StatusCode,
    /// The service's words.
    pub message: String,
    /// More of them, where a service says something general first.
    pub detail: Option<String>,
    /// The name of the exception, where a service tells it.
    pub kind: Option<&'static str>,
}

impl Refusal {
    /// A refusal.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), detail: None, kind: None }
    }

    /// With more words.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Of an exception of this name.
    #[must_use]
    pub fn of_type(mut self, kind: &'static str) -> Self {
        self.kind = Some(kind);
        self
    }

    /// 400
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// 403
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, message)
    }

    /// 404
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// 409
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, message)
    }
}

/// What a handler comes to.
pub type Outcome = Result<Answer, Refusal>;
