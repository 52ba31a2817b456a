//! Text that belongs to an object and is no part of it, such as a log: read when somebody asks for it, kept nowhere.

use std::{fmt, pin::Pin};

/// Why there is no text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotRead {
    /// There is no object of that name.
    NoObject,
    /// The object is there, and has none yet, or none any more. Says why.
    None(String),
    /// Whoever has it does not let it be read. Says who.
    Forbidden(String),
    /// Whoever has it is out of reach. Says who, and why.
    Unavailable(String),
    /// Anything else. Says what.
    Failed(String),
}

impl fmt::Display for NotRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoObject => f.write_str("there is no such object"),
            Self::None(why) | Self::Forbidden(why) | Self::Unavailable(why) | Self::Failed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for NotRead {}

/// A text that is on its way.
pub type Reading<'a> = Pin<Box<dyn Future<Output = Result<String, NotRead>> + Send + 'a>>;

/// Where the text of objects in namespaces comes from.
pub trait TextSource: Send + Sync {
    /// The last lines of an object's text. Whoever calls has made sure that it may be read.
    fn read<'a>(&'a self, namespace: &'a str, name: &'a str, lines: u32) -> Reading<'a>;
}
