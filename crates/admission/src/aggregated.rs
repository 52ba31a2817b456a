//! An aggregated API: a text of objects, as a subresource that the API server passes requests for on to.
//!
//! Whoever asks is named by the API server, which proves by its certificate that it is one, and is let by the cluster's
//! own rules about that very object. Nothing of what is read is kept, cached or logged.

mod answers;
mod route;

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, Method, Uri};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::{Api, Client, api::PostParams};
use kupenstack_core::text::{NotRead, TextSource};
use kupenstack_runtime::Context;
use rustls::pki_types::CertificateDer;
use tokio::{sync::Semaphore, time::timeout};

use self::{
    answers::{Refusal, document, text},
    route::{Route, Wanted},
};
use crate::{
    front_proxy::{FrontProxy, User},
    server::Answer,
};

/// The one version.
pub(crate) const VERSION: &str = "v1";
/// Texts that are read at the same time, which bounds the memory that they take.
const MOST_READINGS: usize = 8;
/// A request that takes longer says so, while whoever asks still waits: an API server gives it a minute.
const PATIENCE: Duration = Duration::from_secs(30);
/// Largest text that is passed on, in bytes; the end of a longer one is.
const LARGEST: usize = 1 << 20;

/// Which text is served, and from where.
#[derive(Clone)]
pub struct TextApi {
    /// API group, which is nobody else's: all requests for it come here.
    pub group: String,
    /// Plural of the objects' resource, in whichever group they are themselves.
    pub resource: String,
    /// The objects' kind.
    pub kind: String,
    /// Name of the text below an object.
    pub subresource: String,
    /// Reads it.
    pub source: Arc<dyn TextSource>,
}

/// What a request tells of itself.
pub(crate) struct Question<'a> {
    pub(crate) method: &'a Method,
    pub(crate) uri: &'a Uri,
    pub(crate) headers: &'a HeaderMap,
    /// The certificates that the client has shown.
    pub(crate) chain: &'a [CertificateDer<'a>],
}

/// Answers requests.
pub(crate) struct Aggregated {
    api: TextApi,
    client: Client,
    front_proxy: FrontProxy,
    readings: Semaphore,
}

impl Aggregated {
    pub(crate) fn start(api: TextApi, context: &Context) -> Self {
        let (client, front_proxy) = (context.client.clone(), FrontProxy::start(context));
        Self { api, client, front_proxy, readings: Semaphore::new(MOST_READINGS) }
    }

    /// Whether a path is one of those that API servers ask for here.
    pub(crate) fn covers(path: &str) -> bool {
        path == "/apis" || path.starts_with("/apis/") || path.starts_with("/openapi/")
    }

    pub(crate) async fn answer(&self, question: &Question<'_>) -> Answer {
        self.answered(question).await.unwrap_or_else(|refusal| refusal.answer(&self.api))
    }

    async fn answered(&self, question: &Question<'_>) -> Result<Answer, Refusal> {
        self.front_proxy.check(question.chain).map_err(|stranger| Refusal::unauthorized(&stranger))?;
        if question.method != Method::GET {
            return Err(Refusal::method());
        }
        match Route::of(&self.api, question.uri)? {
            Route::Group => Ok(document(&answers::group(&self.api))),
            Route::Resources => Ok(document(&answers::resources(&self.api))),
            Route::Text(wanted) => {
                let user = User::of(question.headers).map_err(|stranger| Refusal::unauthorized(&stranger))?;
                let reading = timeout(PATIENCE, self.read(&user, &wanted)).await;
                reading.unwrap_or_else(|_| Err(Refusal::late(PATIENCE)))
            }
        }
    }

    async fn read(&self, user: &User, wanted: &Wanted) -> Result<Answer, Refusal> {
        let _turn = self.readings.try_acquire().map_err(|_| Refusal::busy())?;
        self.authorize(user, wanted).await?;
        let read = self.api.source.read(&wanted.namespace, &wanted.name, wanted.lines).await;
        read.map(|read| text(end(read, LARGEST))).map_err(|why| match why {
            NotRead::NoObject => Refusal::not_found(&self.api, wanted),
            other => Refusal::not_read(&other).about(wanted),
        })
    }

    /// The API server has done so already; but it is not the only one that may hold such a certificate.
    async fn authorize(&self, user: &User, wanted: &Wanted) -> Result<(), Refusal> {
        let some = |text: &str| Some(text.to_owned());
        let attributes = ResourceAttributes {
            verb: some("get"),
            group: some(&self.api.group),
            version: some(VERSION),
            resource: some(&self.api.resource),
            subresource: some(&self.api.subresource),
            namespace: some(&wanted.namespace),
            name: some(&wanted.name),
            ..ResourceAttributes::default()
        };
        let spec = SubjectAccessReviewSpec {
            user: some(&user.name),
            groups: Some(user.groups.clone()),
            extra: Some(user.extra.clone()),
            resource_attributes: Some(attributes),
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let reviewed = Api::all(self.client.clone()).create(&PostParams::default(), &review).await;
        let status = reviewed.map_err(|error| Refusal::undecided(&error))?.status.unwrap_or_default();
        if status.allowed && status.denied != Some(true) {
            Ok(())
        } else {
            Err(Refusal::forbidden(&self.api, user, wanted))
        }
    }
}

/// The end of a text, from the beginning of a line where there is one.
fn end(mut text: String, most: usize) -> String {
    if text.len() > most {
        let cut = text.ceil_char_boundary(text.len() - most);
        let line = text[cut..].find('\n').map_or(cut, |newline| cut + newline + 1);
        text.drain(..if line < text.len() { line } else { cut });
    }
    text
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::short("a\nb\n", 4, "a\nb\n")]
    #[case::whole_lines("one\ntwo\nthree\n", 10, "three\n")]
    #[case::one_long_line("abcdef", 3, "def")]
    #[case::one_long_line_that_ends("abcdef\n", 3, "ef\n")]
    #[case::inside_of_a_character("aäö", 3, "ö")]
    fn of_a_text_that_is_too_long_the_end_is_passed_on(#[case] text: &str, #[case] most: usize, #[case] rest: &str) {
        assert_eq!(end(text.to_owned(), most), rest);
    }
}
