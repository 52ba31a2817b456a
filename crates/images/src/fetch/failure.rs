//! Names for what can go wrong between us and a server.

use std::error::Error as StdError;
use std::io;

use reqwest::StatusCode;
use url::Url;

use crate::Error;
use crate::guard::Denied;
use crate::source::shown;

/// An answer that is no file.
pub(super) fn of_status(url: &Url, status: StatusCode) -> Error {
    let (url, code) = (shown(url), status.as_u16());
    match code {
        404 | 410 => Error::NotFound { url, status: code },
        401 | 403 => Error::Forbidden { url, status: code },
        407 => Error::Unreachable { url, message: "the operator's proxy wants a login".to_owned() },
        408 | 429 | 500..=599 => Error::Unavailable { url, status: code },
        _ => Error::UnexpectedAnswer { url, status: code },
    }
}

/// An address that must not be asked.
pub(super) fn of_denial(url: &Url, denied: Denied) -> Error {
    Error::ForbiddenAddress { url: shown(url), class: denied.0 }
}

/// No answer.
pub(super) fn of_request(url: &Url, error: &reqwest::Error) -> Error {
    if let Some(denied) = find::<Denied>(error) {
        return of_denial(url, *denied);
    }
    let url = shown(url);
    if error.is_timeout() {
        Error::Timeout { url }
    } else if error.is_dns() {
        Error::HostNotFound { url }
    } else if let Some(tls) = find::<rustls::Error>(error) {
        let is_certificate = matches!(tls, rustls::Error::InvalidCertificate(_));
        Error::Tls { url, message: tls.to_string(), is_certificate }
    } else {
        Error::Unreachable { url, message: innermost(error) }
    }
}

/// An answer that broke off.
pub(super) fn of_body(url: &str, received: u64, error: &reqwest::Error) -> Error {
    let url = url.to_owned();
    if error.is_timeout() {
        Error::Timeout { url }
    } else {
        Error::Truncated { url, received, message: innermost(error) }
    }
}

/// Looks for a cause of a given type. An I/O error does not name the error it wraps as its cause, so it is opened.
fn find<'a, T: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        cause = match wrapped {
            Some(wrapped) => Some(wrapped as &(dyn StdError + 'static)),
            None => error.source(),
        };
    }
    None
}

/// The cause of all causes: the outer ones only repeat the address, credentials included.
fn innermost(error: &(dyn StdError + 'static)) -> String {
    let mut error = error;
    while let Some(cause) = error.source() {
        error = cause;
    }
    error.to_string()
}
