//! What an answer's head says.

use reqwest::header::{CONTENT_ENCODING, CONTENT_RANGE, DATE, ETAG, HeaderName, LAST_MODIFIED, LOCATION};
use reqwest::{Response, StatusCode};
use url::Url;

use super::failure;
use crate::Error;
use crate::source::{require_http, shown};

/// How a file is known again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
    pub(super) length: Option<u64>,
    /// When the server said this.
    date: Option<String>,
}

impl Identity {
    pub(super) fn of(response: &Response) -> Self {
        let header = |name| header(response, name);
        Self {
            etag: header(&ETAG),
            last_modified: header(&LAST_MODIFIED),
            length: response.content_length(),
            date: header(&DATE),
        }
    }

    /// Whether more than the length vouches for the file.
    pub(super) fn is_strong(&self) -> bool {
        self.etag.is_some() || self.last_modified.is_some()
    }

    /// Whether an answer is about the same file as far as can be told: it was not changed since, or is offered whole
    /// with the same marks.
    pub(super) fn is_of(&self, response: &Response) -> bool {
        response.status() == StatusCode::NOT_MODIFIED || self.is_same(&Self::of(response))
    }

    /// Whether two answers are about the same file as far as can be told.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.etag == other.etag && self.last_modified == other.last_modified && self.length == other.length
    }

    /// What a server can tell a changed file by, to the byte. A file that was written in the second of the answer may
    /// have been written again in the same second.
    pub(super) fn validator(&self) -> Option<&str> {
        let strong = self.etag.as_deref().filter(|etag| !etag.starts_with("W/"));
        strong.or_else(|| self.last_modified.as_deref().filter(|time| self.date.as_deref() != Some(*time)))
    }
}

#[cfg(test)]
impl Identity {
    pub(super) fn for_tests(etag: Option<&str>) -> Self {
        Self { etag: etag.map(str::to_owned), last_modified: None, length: Some(1), date: None }
    }
}

/// A part of a file, as in `bytes 100-199/200`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) start: u64,
    /// The last byte that is sent.
    pub(super) end: u64,
    /// The length of the whole.
    pub(super) total: Option<u64>,
}

impl Part {
    pub(super) fn of(response: &Response) -> Option<Self> {
        Self::parse(&header(response, &CONTENT_RANGE)?)
    }

    fn parse(text: &str) -> Option<Self> {
        let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
        let (start, end) = range.split_once('-')?;
        let total = if total == "*" { None } else { Some(total.parse().ok()?) };
        let part = Self { start: start.parse().ok()?, end: end.parse().ok()?, total };
        let possible = part.start <= part.end && part.total.is_none_or(|total| part.end < total);
        possible.then_some(part)
    }
}

/// Refuses a body in a content encoding, which we did not ask for and would store as if it were the image.
pub(super) fn plain(response: Response, url: &Url) -> Result<Response, Error> {
    match header(&response, &CONTENT_ENCODING).as_deref() {
        None | Some("identity") => Ok(response),
        Some(encoding) => Err(Error::UnsupportedFormat { message: format!("{} is sent as {encoding}", shown(url)) }),
    }
}

/// Where a redirect leads. Leaving TLS is safe only for a file whose checksum is known.
pub(super) fn next(url: &Url, response: &Response, checksum_known: bool) -> Result<Url, Error> {
    let refuse = |message: String| Error::ForbiddenRedirect { url: shown(url), message };
    let Some(location) = header(response, &LOCATION) else {
        return Err(failure::of_status(url, response.status()));
    };
    let next = url.join(&location).map_err(|error| refuse(error.to_string()))?;
    require_http(&next).map_err(|scheme| refuse(format!("scheme `{scheme}` is not http or https")))?;
    if url.scheme() == "https" && next.scheme() == "http" && !checksum_known {
        return Err(refuse("from https to http without a checksum".to_owned()));
    }
    Ok(next)
}

fn header(response: &Response, name: &HeaderName) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("bytes 5-9/10", Some((5, 9, Some(10))))]
    #[case("bytes 5-9/*", Some((5, 9, None)))]
    #[case("bytes 5-10/10", None)]
    #[case("bytes 9-5/10", None)]
    #[case("bytes */10", None)]
    #[case("bytes 5-9", None)]
    #[case("lines 5-9/10", None)]
    #[case("bytes -5-9/10", None)]
    #[case("bytes 5-99999999999999999999/*", None)]
    fn a_part_is_read_or_refused(#[case] text: &str, #[case] expected: Option<(u64, u64, Option<u64>)>) {
        assert_eq!(Part::parse(text).map(|part| (part.start, part.end, part.total)), expected);
    }

    #[rstest]
    #[case(Some("\"a\""), None, Some("\"a\""))]
    #[case(Some("W/\"a\""), None, None)]
    #[case(Some("W/\"a\""), Some("earlier"), Some("earlier"))]
    #[case(None, Some("now"), None)]
    fn only_what_changes_with_every_byte_vouches(
        #[case] etag: Option<&str>,
        #[case] last_modified: Option<&str>,
        #[case] expected: Option<&str>,
    ) {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let identity =
            Identity { etag: owned(etag), last_modified: owned(last_modified), length: None, date: owned(Some("now")) };
        assert_eq!(identity.validator(), expected);
    }
}
