//! The one way a request leaves: budget, time limit, retries, observation.

use std::{sync::Arc, time::Duration};

use backon::Retryable;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use jiff::{Timestamp, fmt::rfc2822};
use reqwest::{Certificate, Response, redirect};
use secrecy::SecretString;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};
use tracing::{Instrument, debug, debug_span};

use crate::{
    CallName, ConfigError, Error, Observation, Options, StatusClass,
    budget::{Place, User},
    call::Call,
    fault::Fault,
};

/// More than any answer we ask for: lists come in pages.
const LONGEST_ANSWER: usize = 32 << 20;

/// More than any error text; the rest is dropped.
const LONGEST_FAULT: usize = 64 << 10;

/// Shorter than the five seconds after which Apache, in front of Keystone, closes an idle connection: a request sent
/// into a closing connection is lost, and a POST must not be repeated then.
const POOL_IDLE: Duration = Duration::from_secs(4);

/// The HTTP side of a cloud, shared by all its users.
pub(crate) struct Transport {
    pub(crate) http: reqwest::Client,
    pub(crate) options: Options,
}

/// A successful answer.
pub(crate) struct Answer {
    call: Arc<CallName>,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Bytes,
}

impl Transport {
    pub(crate) fn new(ca_certificate: Option<&[u8]>, options: Options) -> Result<Self, ConfigError> {
        // reqwest panics without a provider.
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            return Err(ConfigError::NoCryptoProvider);
        }
        let certificates = match ca_certificate {
            Some(pem) => Certificate::from_pem_bundle(pem).map_err(|_| ConfigError::Certificate)?,
            None => Vec::new(),
        };
        let http = reqwest::Client::builder()
            .user_agent(&options.user_agent)
            .connect_timeout(options.connect_timeout)
            .pool_idle_timeout(POOL_IDLE)
            // A redirect would carry the token and the body to wherever it points.
            .redirect(redirect::Policy::none())
            .tls_certs_merge(certificates)
            .build()
            .map_err(ConfigError::Http)?;
        Ok(Self { http, options })
    }

    /// Sends a call, and again where that can do no harm.
    pub(crate) async fn send(&self, call: &Call, user: User, token: Option<&HeaderValue>) -> Result<Answer, Error> {
        let span = debug_span!("openstack", call = %call.name);
        (|| self.attempt(call, user, token))
            .retry(self.options.retry.backoff())
            .sleep(sleep)
            .when(|error| is_worth_repeating(call, error))
            .adjust(|error, delay| self.options.retry.delay(delay?, error.retry_after()))
            .notify(|error, delay| debug!(%error, ?delay, "trying again"))
            .instrument(span)
            .await
    }

    /// Sends a call once.
    pub(crate) async fn attempt(&self, call: &Call, user: User, token: Option<&HeaderValue>) -> Result<Answer, Error> {
        let _place = self.enter(call, user).await?;
        let started = Instant::now();
        let limit = self.options.timeout;
        let result = match timeout(limit, self.exchange(call, token)).await {
            Ok(result) => result,
            Err(_) => Err(Error::Timeout { call: Arc::clone(&call.name), limit }),
        };
        self.observe(&call.name, started, result.as_ref().err());
        result
    }

    /// Waits until the service may be asked and there is room for one more request.
    async fn enter(&self, call: &Call, user: User) -> Result<Place, Error> {
        loop {
            self.admit(call).await?;
            let place = self.options.budget.enter(user).await;
            // while it waited for its turn, the service may have asked to be left alone
            if self.options.budget.held(&call.name.service).is_none() {
                return Ok(place);
            }
        }
    }

    /// Waits until the service may be asked. One that asked for more patience than a single call has is not asked.
    pub(crate) async fn admit(&self, call: &Call) -> Result<(), Error> {
        while let Some(left) = self.options.budget.held(&call.name.service) {
            if left > self.options.retry.longest_retry_after {
                return Err(Error::Held { call: Arc::clone(&call.name), left });
            }
            sleep(left).await;
        }
        Ok(())
    }

    pub(crate) fn observe(&self, call: &CallName, started: Instant, error: Option<&Error>) {
        if let Some(span) = error.and_then(Error::retry_after) {
            self.options.budget.hold(&call.service, span);
        }
        let (elapsed, status) = (started.elapsed(), error.map_or(StatusClass::Success, Error::status_class));
        debug!(service = call.service, %status, ?elapsed, "attempt ended");
        if let Some(observer) = &self.options.observer {
            let method = call.method.as_str();
            observer.request(&Observation { service: &call.service, method, status, elapsed });
        }
    }

    async fn exchange(&self, call: &Call, token: Option<&HeaderValue>) -> Result<Answer, Error> {
        let mut request = self.http.request(call.name.method.clone(), call.url.clone()).headers(call.headers.clone());
        if let Some(token) = token {
            request = request.header("x-auth-token", token);
        }
        if let Some(body) = &call.body {
            request = request.body(body.clone());
        }
        let response = request.send().await.map_err(|error| Error::transport(&call.name, error))?;
        read(&call.name, &call.secrets, response).await
    }
}

impl Answer {
    /// The whole body as JSON.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| self.malformed(error.to_string()))
    }

    /// The value of one key of the body: identity wraps every object in its name.
    pub(crate) fn member<T: DeserializeOwned>(&self, key: &str) -> Result<T, Error> {
        let mut body: Value = self.json()?;
        let Some(member) = body.get_mut(key) else {
            return Err(self.malformed(format!("no `{key}`")));
        };
        serde_json::from_value(member.take()).map_err(|error| self.malformed(format!("`{key}`: {error}")))
    }

    pub(crate) fn malformed(&self, problem: impl Into<String>) -> Error {
        Error::malformed(&self.call, problem)
    }
}

/// Reads an answer to its end; anything but success is an error.
pub(crate) async fn read(
    call: &Arc<CallName>,
    secrets: &[SecretString],
    mut response: Response,
) -> Result<Answer, Error> {
    let status = response.status();
    let headers = std::mem::take(response.headers_mut());
    if !status.is_success() {
        let (body, _) = read_body(call, response, LONGEST_FAULT).await?;
        return Err(refusal(call, secrets, status, &headers, &body));
    }
    match read_body(call, response, LONGEST_ANSWER).await? {
        (body, true) => Ok(Answer { call: Arc::clone(call), status, headers, body }),
        (_, false) => Err(Error::malformed(call, format!("longer than {LONGEST_ANSWER} bytes"))),
    }
}

/// The body's first bytes, and whether they are all.
async fn read_body(call: &Arc<CallName>, mut response: Response, limit: usize) -> Result<(Bytes, bool), Error> {
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| Error::transport(call, error))? {
        body.extend_from_slice(&chunk);
        if body.len() > limit {
            return Ok((body.freeze(), false));
        }
    }
    Ok((body.freeze(), true))
}

fn refusal(
    call: &Arc<CallName>,
    secrets: &[SecretString],
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
) -> Error {
    let Fault { kind, message } = Fault::read(status, body, secrets);
    let request_id = headers.get("x-openstack-request-id").and_then(|id| id.to_str().ok());
    debug!(%call, %status, request_id, message, "refused");
    Error::Answer { call: Arc::clone(call), status, kind, message, retry_after: retry_after(headers) }
}

/// `Retry-After`: seconds, or a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = rfc2822::parse(value).ok()?.timestamp();
    Some(Duration::try_from(date.duration_since(Timestamp::now())).unwrap_or_default())
}

/// Whether a repeat may help and can do no harm.
///
/// 429 and 503 say that the request was not accepted. Should a service say so wrongly, a repeated POST meets what
/// makes a second create impossible in all our calls, a chosen id or a unique name, and ends as a conflict.
fn is_worth_repeating(call: &Call, error: &Error) -> bool {
    match error {
        Error::Connect { .. } => true,
        Error::Broken { .. } => call.is_idempotent(),
        Error::Answer { status, .. } => match status.as_u16() {
            429 | 503 => true,
            502 | 504 => call.is_idempotent(),
            _ => false,
        },
        _ => false,
    }
}
