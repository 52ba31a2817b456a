//! How a client behaves: time limits, retries, concurrency, and who watches.

use std::{fmt, sync::Arc, time::Duration};

use backon::ExponentialBuilder;
use http::StatusCode;
use strum::{Display, IntoStaticStr};

use crate::Budget;

/// Settings of a [`Client`](crate::Client). A clone shares the [`Budget`].
#[derive(Clone)]
pub struct Options {
    /// Limit for one attempt, from the first byte sent to the last byte of the answer.
    pub timeout: Duration,
    /// Limit for opening a connection, name look-up and TLS included.
    pub connect_timeout: Duration,
    /// How long an upload may stand still, be it the source or the service that stalls.
    pub upload_idle_timeout: Duration,
    /// How long the service may think after the last byte of an upload: it hashes and commits the data then.
    pub upload_answer_timeout: Duration,
    /// Concurrent requests. Uploads are not counted: a few long ones would keep everything else waiting.
    pub budget: Budget,
    /// The `User-Agent` header.
    pub user_agent: String,
    /// When a failed attempt is repeated.
    pub retry: RetryPolicy,
    /// Told about every attempt.
    pub observer: Option<Arc<dyn Observer>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(5),
            upload_idle_timeout: Duration::from_mins(1),
            upload_answer_timeout: Duration::from_mins(5),
            budget: Budget::default(),
            user_agent: concat!("kupenstack/", env!("CARGO_PKG_VERSION")).to_owned(),
            retry: RetryPolicy::default(),
            observer: None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("timeout", &self.timeout)
            .field("connect_timeout", &self.connect_timeout)
            .field("upload_idle_timeout", &self.upload_idle_timeout)
            .field("upload_answer_timeout", &self.upload_answer_timeout)
            .field("budget", &self.budget)
            .field("user_agent", &self.user_agent)
            .field("retry", &self.retry)
            .field("observed", &self.observer.is_some())
            .finish()
    }
}

/// When and how often an attempt is repeated within one call.
///
/// Short on purpose: what needs longer is the caller's business, who can also say why it waits.
#[derive(Debug, Clone)]
pub struct RetryPolicy {
    /// Repeats after the first attempt; 0 switches retries off.
    pub repeats: usize,
    /// Delay before the first repeat; it doubles each time and is jittered.
    pub first_delay: Duration,
    /// The longest delay the doubling may reach.
    pub longest_delay: Duration,
    /// The longest `Retry-After` that is waited for. A longer one ends the call: see
    /// [`Error::retry_after`](crate::Error::retry_after).
    pub longest_retry_after: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            repeats: 3,
            first_delay: Duration::from_millis(200),
            longest_delay: Duration::from_secs(5),
            longest_retry_after: Duration::from_secs(20),
        }
    }
}

impl RetryPolicy {
    pub(crate) fn backoff(&self) -> ExponentialBuilder {
        ExponentialBuilder::default()
            .with_min_delay(self.first_delay)
            .with_max_delay(self.longest_delay)
            .with_factor(2.0)
            .with_max_times(self.repeats)
            .with_jitter()
    }

    /// The delay before a repeat, given what the backoff wants and what the service asked for.
    pub(crate) fn delay(&self, backoff: Duration, retry_after: Option<Duration>) -> Option<Duration> {
        match retry_after {
            Some(asked) if asked > self.longest_retry_after => None,
            Some(asked) => Some(asked.max(backoff)),
            None => Some(backoff),
        }
    }
}

/// Sees every attempt, for metrics. It runs on the request's task and must not block.
pub trait Observer: Send + Sync + 'static {
    /// One attempt has ended.
    fn request(&self, observation: &Observation<'_>);
}

/// One attempt, in words that are fit for metric labels.
#[derive(Debug, Clone)]
pub struct Observation<'a> {
    /// The catalogue's service type, such as `image`.
    pub service: &'a str,
    /// The HTTP verb.
    pub method: &'a str,
    /// How it ended.
    pub status: StatusClass,
    /// From the first byte sent to the last byte of the answer.
    pub elapsed: Duration,
}

/// How an attempt ended, few enough for a metric label (`2xx`, … or `none`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, IntoStaticStr)]
pub enum StatusClass {
    /// 1xx and 2xx.
    #[strum(serialize = "2xx")]
    Success,
    /// 3xx.
    #[strum(serialize = "3xx")]
    Redirect,
    /// 4xx.
    #[strum(serialize = "4xx")]
    ClientError,
    /// 5xx.
    #[strum(serialize = "5xx")]
    ServerError,
    /// No answer: refused, timed out, connection lost.
    #[strum(serialize = "none")]
    NoAnswer,
}

impl From<StatusCode> for StatusClass {
    fn from(status: StatusCode) -> Self {
        match status.as_u16() {
            ..300 => Self::Success,
            300..400 => Self::Redirect,
            400..500 => Self::ClientError,
            500.. => Self::ServerError,
        }
    }
}
