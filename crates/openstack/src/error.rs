//! What can go wrong, sorted by what a caller can do about it.

use std::{fmt, io, sync::Arc, time::Duration};

use http::StatusCode;

use crate::{CallName, Interface, StatusClass};

/// Why a call failed. Cheap to clone: callers that waited for one token share its failure.
///
/// The text is stable from one try to the next (no request ids, no times), so that it can be shown in a status
/// without making news of nothing.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The service answered, but not with success.
    #[error("{call}: {status}{}", Said(message))]
    Answer {
        /// What was asked.
        call: Arc<CallName>,
        /// The HTTP status.
        status: StatusCode,
        /// What it means, which the status alone does not tell for quotas.
        kind: ErrorKind,
        /// The service's own words, bounded; may be empty.
        message: String,
        /// How long the service asks to be left alone.
        retry_after: Option<Duration>,
    },
    /// No connection, so the service has not seen the request.
    #[error("{call}: no connection")]
    Connect {
        /// What was asked.
        call: Arc<CallName>,
        /// The innermost cause.
        source: Cause,
    },
    /// The connection broke before the answer was complete; the request may have been carried out.
    #[error("{call}: connection lost")]
    Broken {
        /// What was asked.
        call: Arc<CallName>,
        /// The innermost cause.
        source: Cause,
    },
    /// The service did not answer, or did not take our data, in time; the request may have been carried out.
    #[error("{call}: no answer within {limit:?}")]
    Timeout {
        /// What was asked.
        call: Arc<CallName>,
        /// The limit that was exceeded.
        limit: Duration,
    },
    /// The service has asked to be left alone, and was not asked: see
    /// [`RetryPolicy::longest_retry_after`](crate::RetryPolicy::longest_retry_after).
    #[error("{call}: not sent, the service has asked to be left alone for a while")]
    Held {
        /// What was to be asked.
        call: Arc<CallName>,
        /// For how long.
        left: Duration,
    },
    /// The answer is not what the API promises.
    #[error("{call}: malformed answer: {problem}")]
    Malformed {
        /// What was asked.
        call: Arc<CallName>,
        /// What is wrong with it.
        problem: String,
    },
    /// The catalogue has no such endpoint (yet).
    #[error(
        "no endpoint for service type {service_type}, interface {interface}, {} in the catalogue",
        InRegion(region.as_deref())
    )]
    NoEndpoint {
        /// The wanted service type.
        service_type: String,
        /// The wanted region; none means any.
        region: Option<String>,
        /// The wanted interface.
        interface: Interface,
    },
    /// The data to upload ended with an error of its own; the service is not to blame.
    #[error("the data to upload failed")]
    Source(#[source] Arc<io::Error>),
}

/// What a failure means to a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// It does not exist, or no longer.
    NotFound,
    /// No router leads to it from where it is to be reached.
    NoRoute,
    /// It exists already, or is in use.
    Conflict,
    /// It has changed since it was looked at.
    Outdated,
    /// A quota or limit is used up.
    Quota,
    /// Keystone refuses the credentials, or a service a fresh token.
    Unauthorized,
    /// The policy does not allow it.
    Forbidden,
    /// Too many requests.
    RateLimited,
    /// The request can never work as it is.
    BadRequest,
    /// The service is down, out of reach, out of order, or not in the catalogue.
    Unavailable,
    /// The answer makes no sense.
    Protocol,
    /// The caller's own data failed.
    Source,
}

impl Error {
    /// What the failure means.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Answer { kind, .. } => *kind,
            Self::Connect { .. } | Self::Broken { .. } | Self::Timeout { .. } | Self::NoEndpoint { .. } => {
                ErrorKind::Unavailable
            }
            Self::Held { .. } => ErrorKind::RateLimited,
            Self::Malformed { .. } => ErrorKind::Protocol,
            Self::Source(_) => ErrorKind::Source,
        }
    }

    /// One `CamelCase` word for a condition, an event or a metric label.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Connect { .. } => "Unreachable",
            Self::Broken { .. } => "ConnectionLost",
            Self::Timeout { .. } => "TimedOut",
            Self::NoEndpoint { .. } => "EndpointMissing",
            Self::Answer { .. } | Self::Held { .. } | Self::Malformed { .. } | Self::Source(_) => self.kind().reason(),
        }
    }

    /// How long the service asked to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Answer { retry_after, .. } => *retry_after,
            Self::Held { left, .. } => Some(*left),
            _ => None,
        }
    }

    /// The HTTP status, if there was an answer.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Answer { status, .. } => Some(status.as_u16()),
            _ => None,
        }
    }

    pub(crate) fn malformed(call: &Arc<CallName>, problem: impl Into<String>) -> Self {
        Self::Malformed { call: Arc::clone(call), problem: problem.into() }
    }

    /// Sorts a failure of the HTTP library.
    pub(crate) fn transport(call: &Arc<CallName>, error: reqwest::Error) -> Self {
        let error = error.without_url();
        let (call, source) = (Arc::clone(call), Cause::innermost(&error));
        if error.is_connect() { Self::Connect { call, source } } else { Self::Broken { call, source } }
    }

    pub(crate) fn status_class(&self) -> StatusClass {
        match self {
            Self::Answer { status, .. } => (*status).into(),
            Self::Malformed { .. } => StatusClass::Success,
            _ => StatusClass::NoAnswer,
        }
    }

    /// `None` for what is not there, any other failure as it is.
    pub(crate) fn absent_is_none<T>(result: Result<T, Self>) -> Result<Option<T>, Self> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl ErrorKind {
    /// One `CamelCase` word for a condition, an event or a metric label.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "NotFound",
            Self::NoRoute => "NoRoute",
            Self::Conflict => "Conflict",
            Self::Outdated => "ChangedMeanwhile",
            Self::Quota => "QuotaExceeded",
            Self::Unauthorized => "Unauthorized",
            Self::Forbidden => "Forbidden",
            Self::RateLimited => "RateLimited",
            Self::BadRequest => "BadRequest",
            Self::Unavailable => "ServiceUnavailable",
            Self::Protocol => "MalformedAnswer",
            Self::Source => "SourceFailed",
        }
    }
}

/// The innermost cause of a transport failure. The layers around it ("error sending request", "client error") say
/// nothing that the [`Error`] does not say already.
#[derive(Debug, Clone)]
pub struct Cause(String);

impl Cause {
    fn innermost(error: &reqwest::Error) -> Self {
        let mut cause: &dyn std::error::Error = error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        Self(cause.to_string())
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Cause {}

struct Said<'a>(&'a str);

impl fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ": {}", self.0) }
    }
}

struct InRegion<'a>(Option<&'a str>);

impl fmt::Display for InRegion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(region) => write!(f, "region {region}"),
            None => f.write_str("any region"),
        }
    }
}
