//! One request, before it is sent.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use secrecy::SecretString;
use serde_json::Value;
use url::Url;

/// What was asked of which service, as shown in errors and traces: never with a query, which may hold user data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallName {
    /// The catalogue's service type, such as `image`.
    pub service: String,
    /// The HTTP verb.
    pub method: Method,
    /// The path of the URL.
    pub path: String,
}

impl fmt::Display for CallName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.service, self.method, self.path)
    }
}

/// A request with everything but the token. It can be sent again.
pub(crate) struct Call {
    pub(crate) name: Arc<CallName>,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Bytes>,
    /// What an answer must not echo into an error.
    pub(crate) secrets: Vec<SecretString>,
}

impl Call {
    pub(crate) fn new(service: &str, method: Method, url: Url) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        let name = CallName { service: service.to_owned(), method, path: url.path().to_owned() };
        Self { name: Arc::new(name), url, headers, body: None, secrets: Vec::new() }
    }

    /// Adds query parameters, if there are any.
    pub(crate) fn query(mut self, parameters: &[(&'static str, impl AsRef<str>)]) -> Self {
        if !parameters.is_empty() {
            self.url.query_pairs_mut().extend_pairs(parameters);
        }
        self
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.json_as("application/json", body)
    }

    /// A JSON body of a more special media type.
    pub(crate) fn json_as(mut self, media_type: &'static str, body: &Value) -> Self {
        self.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        self.body = Some(body.to_string().into());
        self
    }

    /// Neutron carries it out only on what has this revision.
    pub(crate) fn if_revision(mut self, revision: u64) -> Self {
        if let Ok(value) = HeaderValue::from_str(&format!("revision_number={revision}")) {
            self.headers.insert(header::IF_MATCH, value);
        }
        self
    }

    pub(crate) fn secret(mut self, secret: &SecretString) -> Self {
        self.secrets.push(secret.clone());
        self
    }

    /// Whether sending it twice does no more than sending it once.
    pub(crate) fn is_idempotent(&self) -> bool {
        matches!(self.name.method, Method::GET | Method::HEAD | Method::PUT | Method::DELETE)
    }
}
