use std::io;
use std::time::Duration;

use crate::{AddressClass, Format};

/// Who can put an error right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Actor {
    /// The person who declared the image: another address, checksum or file.
    User,
    /// The place the image comes from, perhaps by itself after a while.
    Source,
    /// The people who run this cloud: space, programs, limits.
    Operator,
}

/// Why an image cannot be had. Addresses in the messages carry no credentials.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address is not a usable one.
    #[error("invalid address: {message}")]
    InvalidUrl {
        /// What is wrong with it.
        message: String,
    },
    /// There is nothing at the address (404, 410).
    #[error("{url} does not exist (HTTP {status})")]
    NotFound {
        /// The address asked last.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// We may not read the address (401, 403).
    #[error("access to {url} is refused (HTTP {status})")]
    Forbidden {
        /// The address asked last.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// The server cannot answer now (429, 5xx).
    #[error("{url} cannot be served now (HTTP {status})")]
    Unavailable {
        /// The address asked last.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// The server gave an answer that is neither a file nor one of the known refusals.
    #[error("unexpected answer from {url} (HTTP {status})")]
    UnexpectedAnswer {
        /// The address asked last.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// The name of the host cannot be resolved.
    #[error("the host of {url} cannot be found")]
    HostNotFound {
        /// The address asked last.
        url: String,
    },
    /// No connection to the server, or it broke before the answer.
    #[error("cannot reach {url}: {message}")]
    Unreachable {
        /// The address asked last.
        url: String,
        /// What the system said.
        message: String,
    },
    /// The server's certificate is not one to trust, or TLS failed otherwise.
    #[error("TLS with {url} failed: {message}")]
    Tls {
        /// The address asked last.
        url: String,
        /// What is wrong with it.
        message: String,
        /// Whether it is the certificate, not the protocol.
        is_certificate: bool,
    },
    /// The server did not answer or send anything for too long.
    #[error("{url} did not answer in time")]
    Timeout {
        /// The address asked last.
        url: String,
    },
    /// The whole file did not arrive in time.
    #[error("{url} took longer than {limit:?}")]
    TooSlow {
        /// The address asked last.
        url: String,
        /// The time it was given.
        limit: Duration,
    },
    /// The chain of redirects is too long, or turns in circles.
    #[error("{url} was redirected more than {limit} times")]
    TooManyRedirects {
        /// The first address.
        url: String,
        /// How many redirects are followed.
        limit: usize,
    },
    /// A redirect leads to something other than an acceptable `http(s)` address.
    #[error("{url} redirects to where we do not follow: {message}")]
    ForbiddenRedirect {
        /// The address that redirects.
        url: String,
        /// Why it is not followed.
        message: String,
    },
    /// The address, or where a redirect leads, is one that images are not fetched from.
    #[error("{url} leads to {class}, from where images are not fetched")]
    ForbiddenAddress {
        /// The address that was not asked.
        url: String,
        /// What is wrong with it.
        class: AddressClass,
    },
    /// The file became another one while it was read, more than once.
    #[error("{url} was changed while it was read, again and again")]
    Changed {
        /// The address asked last.
        url: String,
    },
    /// The file has no content.
    #[error("{url} is empty")]
    Empty {
        /// The address asked last.
        url: String,
    },
    /// The file, or the disk in it, is larger than allowed.
    #[error("the image has {bytes} bytes or more; {limit} are allowed")]
    TooLarge {
        /// The size as far as it is known.
        bytes: u64,
        /// The limit it exceeds.
        limit: u64,
    },
    /// The connection ended before the end of the file.
    #[error("{url} ended after {received} bytes: {message}")]
    Truncated {
        /// The address asked last.
        url: String,
        /// What arrived.
        received: u64,
        /// How we know that something is missing.
        message: String,
    },
    /// The file is not the one the checksum was made from.
    #[error("checksum mismatch: expected {expected}, got {actual}")]
    ChecksumMismatch {
        /// As declared.
        expected: String,
        /// As computed.
        actual: String,
    },
    /// The file is no disk image, or one of a kind we do not handle.
    #[error("not a supported disk image: {message}")]
    UnsupportedFormat {
        /// What it is instead, as far as known.
        message: String,
    },
    /// The image refers to files outside itself, or needs a key.
    #[error("the image is not self-contained: {message}")]
    UnsafeImage {
        /// What it refers to.
        message: String,
    },
    /// `qemu-img` could not make sense of the image, though its header looked right.
    #[error("the image is damaged: {message}")]
    Damaged {
        /// What `qemu-img` said, bounded.
        message: String,
    },
    /// There is no way from the source's format to the wanted one.
    #[error("the source is {from}, which can't be converted to {to}")]
    NoConversion {
        /// The format of the source.
        from: Format,
        /// The wanted format.
        to: Format,
    },
    /// `qemu-img` could not convert the image.
    #[error("cannot convert from {from} to {to}: {message}")]
    ConversionFailed {
        /// The format of the source.
        from: Format,
        /// The wanted format.
        to: Format,
        /// What `qemu-img` said, bounded.
        message: String,
    },
    /// The folder for images is full.
    #[error("no space in the folder for images{}", .needed.map_or_else(String::new, |bytes| format!(": {bytes} more bytes are needed")))]
    NoSpace {
        /// How many bytes were to be written, when known.
        needed: Option<u64>,
    },
    /// The folder for images is large enough, but other images are in it.
    #[error("the folder for images is full of other images on their way: {needed} more bytes are needed")]
    Crowded {
        /// How many bytes were to be written.
        needed: u64,
    },
    /// The folder for images cannot be used.
    #[error("cannot {action}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// `qemu-img` is not there, or cannot be run.
    #[error("cannot run qemu-img: {message}")]
    ToolUnavailable {
        /// What the system said.
        message: String,
    },
    /// The HTTP client could not be made: a bad CA certificate or proxy address.
    #[error("invalid HTTP client settings")]
    Client(#[source] reqwest::Error),
}

impl Error {
    /// A stable word for conditions, events and metric labels.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::InvalidUrl { .. } => "InvalidURL",
            Self::NotFound { .. } => "SourceNotFound",
            Self::Forbidden { .. } => "SourceForbidden",
            Self::Unavailable { .. } | Self::Unreachable { .. } => "SourceUnavailable",
            Self::UnexpectedAnswer { .. } => "SourceUnexpectedAnswer",
            Self::HostNotFound { .. } => "SourceHostNotFound",
            Self::Tls { .. } => "TLSVerificationFailed",
            Self::Timeout { .. } | Self::TooSlow { .. } => "SourceTimeout",
            Self::TooManyRedirects { .. } => "TooManyRedirects",
            Self::ForbiddenRedirect { .. } => "ForbiddenRedirect",
            Self::ForbiddenAddress { .. } => "ForbiddenAddress",
            Self::Changed { .. } => "SourceChanged",
            Self::Empty { .. } => "SourceEmpty",
            Self::TooLarge { .. } => "SourceTooLarge",
            Self::Truncated { .. } => "SourceTruncated",
            Self::ChecksumMismatch { .. } => "ChecksumMismatch",
            Self::UnsupportedFormat { .. } | Self::NoConversion { .. } => "UnsupportedFormat",
            Self::UnsafeImage { .. } => "UnsafeImage",
            Self::Damaged { .. } => "DamagedImage",
            Self::ConversionFailed { .. } => "ConversionFailed",
            Self::NoSpace { .. } => "NoSpace",
            Self::Crowded { .. } => "Queued",
            Self::Io { .. } => "StorageFailed",
            Self::ToolUnavailable { .. } => "ToolUnavailable",
            Self::Client(_) => "InvalidClientSettings",
        }
    }

    /// Who can put it right. Every error is worth another try later, for all of them may change something.
    pub fn actor(&self) -> Actor {
        match self {
            Self::InvalidUrl { .. }
            | Self::NotFound { .. }
            | Self::Forbidden { .. }
            | Self::HostNotFound { .. }
            | Self::TooManyRedirects { .. }
            | Self::ForbiddenRedirect { .. }
            | Self::ForbiddenAddress { .. }
            | Self::Empty { .. }
            | Self::TooLarge { .. }
            | Self::ChecksumMismatch { .. }
            | Self::UnsupportedFormat { .. }
            | Self::NoConversion { .. }
            | Self::UnsafeImage { .. }
            | Self::Damaged { .. } => Actor::User,
            Self::Unavailable { .. }
            | Self::UnexpectedAnswer { .. }
            | Self::Unreachable { .. }
            | Self::Tls { .. }
            | Self::Timeout { .. }
            | Self::TooSlow { .. }
            | Self::Changed { .. }
            | Self::Truncated { .. } => Actor::Source,
            Self::ConversionFailed { .. }
            | Self::NoSpace { .. }
            | Self::Crowded { .. }
            | Self::Io { .. }
            | Self::ToolUnavailable { .. }
            | Self::Client(_) => Actor::Operator,
        }
    }

    /// A copy, when the error is about the content of a file: the same file would bring the same error.
    pub(crate) fn about_the_file(&self) -> Option<Self> {
        Some(match self {
            &Self::TooLarge { bytes, limit } => Self::TooLarge { bytes, limit },
            Self::ChecksumMismatch { expected, actual } => {
                Self::ChecksumMismatch { expected: expected.clone(), actual: actual.clone() }
            }
            Self::UnsupportedFormat { message } => Self::UnsupportedFormat { message: message.clone() },
            Self::UnsafeImage { message } => Self::UnsafeImage { message: message.clone() },
            Self::Damaged { message } => Self::Damaged { message: message.clone() },
            &Self::NoConversion { from, to } => Self::NoConversion { from, to },
            &Self::ConversionFailed { from, to, ref message } => {
                Self::ConversionFailed { from, to, message: message.clone() }
            }
            _ => return None,
        })
    }

    /// Whether the same request may succeed a moment later.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Unavailable { .. } | Self::Unreachable { .. } | Self::HostNotFound { .. } | Self::Timeout { .. }
        )
    }

    /// Whether it tells what there is at an address beside web servers: open and closed ports, other protocols.
    /// A certificate that is not trusted tells of a web server only.
    pub(crate) fn tells_of_the_network(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Timeout { .. } => true,
            Self::Tls { is_certificate, .. } => !is_certificate,
            _ => false,
        }
    }

    /// For an error of writing `needed` bytes: a full disk is told apart from a broken one.
    pub(crate) fn writing(needed: Option<u64>) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Self::NoSpace { needed }
            }
            _ => Self::Io { action: "write the image", source },
        }
    }

    pub(crate) fn io(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, source }
    }
}
