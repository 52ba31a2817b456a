//! Requests for one file, with the redirects they meet.

use reqwest::header::{ACCEPT_ENCODING, IF_NONE_MATCH, IF_RANGE, RANGE};
use reqwest::{RequestBuilder, Response, StatusCode};
use tracing::info;
use url::Url;

use super::answer::{self, plain};
use super::clients::Pair;
use super::verdicts::Known;
use super::{Limits, failure};
use crate::source::shown;
use crate::{Error, Source};

/// Asks for a file.
pub(super) struct Asking<'a> {
    pub(super) clients: Pair,
    pub(super) source: &'a Source,
    pub(super) limits: &'a Limits,
}

impl Asking<'_> {
    /// Asks for the whole file; when one is known, whether it is still that one (304).
    ///
    /// Not by its time: many servers answer 304 for a file that is older than the known one, and so for one that was
    /// put in its place with the time it had elsewhere.
    pub(super) async fn first(&self, known: Option<&Known>) -> Result<Response, Error> {
        match known.and_then(|known| known.identity.etag.as_deref()) {
            Some(etag) => {
                let accepted = [StatusCode::OK, StatusCode::NOT_MODIFIED];
                self.ask(&accepted, |request| request.header(IF_NONE_MATCH, etag)).await
            }
            None => self.ask(&[StatusCode::OK], |request| request).await,
        }
    }

    /// Asks for what follows the first `done` bytes, as long as the file is the one that `validator` stands for.
    pub(super) async fn rest(&self, done: u64, validator: Option<&str>) -> Result<Response, Error> {
        let accepted = [StatusCode::OK, StatusCode::PARTIAL_CONTENT, StatusCode::RANGE_NOT_SATISFIABLE];
        self.ask(&accepted, |request| {
            let request = request.header(RANGE, format!("bytes={done}-"));
            match validator {
                Some(validator) => request.header(IF_RANGE, validator),
                None => request,
            }
        })
        .await
    }

    /// Asks, and follows redirects.
    async fn ask(
        &self,
        accepted: &[StatusCode],
        with: impl Fn(RequestBuilder) -> RequestBuilder,
    ) -> Result<Response, Error> {
        let mut url = self.source.url().clone();
        for _ in 0..=self.limits.max_redirects {
            let client = self.clients.of(&url).await.map_err(|denied| failure::of_denial(&url, denied))?;
            let request = with(client.get(url.clone()).header(ACCEPT_ENCODING, "identity"));
            let response = request.send().await.map_err(|error| self.failed(&url, &error))?;
            match response.status() {
                status if accepted.contains(&status) => return plain(response, &url),
                StatusCode::NO_CONTENT => return Err(Error::Empty { url: shown(&url) }),
                status if status.is_redirection() => {
                    url = answer::next(&url, &response, self.source.checksum().is_some())?;
                }
                status => return Err(failure::of_status(&url, status)),
            }
        }
        Err(Error::TooManyRedirects { url: self.source.location(), limit: self.limits.max_redirects })
    }

    /// Names the failure. Of an internal host, users are not told more than that it gave no answer: they could scan
    /// the operator's network by what they are told.
    fn failed(&self, url: &Url, error: &reqwest::Error) -> Error {
        let error = failure::of_request(url, error);
        if !self.clients.is_internal(url) || !error.tells_of_the_network() {
            return error;
        }
        info!(%error, "an internal host gave no answer");
        Error::Unreachable {
            url: shown(url),
            message: "no answer; it is not a public address, so only the operator's log says more".to_owned(),
        }
    }
}
