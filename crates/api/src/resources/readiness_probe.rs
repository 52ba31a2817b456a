//! How it is found out that what a VM is for works.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A question to a VM, again and again, at its floating IP. Of the fields' names and meanings as in a Pod's container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {"rule": "has(self.tcpSocket) != has(self.httpGet)", "message": "exactly one of tcpSocket and httpGet has to be given"},
    {"rule": "(has(self.timeoutSeconds) ? self.timeoutSeconds : 1) <= (has(self.periodSeconds) ? self.periodSeconds : 10)", "fieldPath": ".timeoutSeconds", "message": "timeoutSeconds can't be longer than periodSeconds"},
]))]
pub struct ReadinessProbe {
    /// It is ready when it takes a connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_socket: Option<TcpSocketProbe>,
    /// It is ready when it answers a request with a status from 200 to 399.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_get: Option<HttpGetProbe>,
    /// Seconds between two questions. When absent, 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 3600))]
    pub period_seconds: Option<u32>,
    /// Seconds that an answer may take. When absent, 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 60))]
    pub timeout_seconds: Option<u32>,
    /// Answers in a row after which it is ready. When absent, 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub success_threshold: Option<u32>,
    /// Questions in a row without the right answer after which it is not ready. When absent, 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub failure_threshold: Option<u32>,
}

/// A port that has to take a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TcpSocketProbe {
    /// The port.
    #[schemars(range(min = 1, max = 65535))]
    pub port: u16,
}

/// A request that has to be answered. Redirects are not followed, and certificates are not verified.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HttpGetProbe {
    /// The port.
    #[schemars(range(min = 1, max = 65535))]
    pub port: u16,
    /// What is asked for, from its `/` on. When absent, `/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024), regex(pattern = r"^/[!-~]*$"))]
    pub path: Option<String>,
    /// When absent, `HTTP`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<ProbeScheme>,
}

/// How a request is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ProbeScheme {
    /// As it is.
    #[default]
    #[serde(rename = "HTTP")]
    Http,
    /// Over TLS.
    #[serde(rename = "HTTPS")]
    Https,
}
