//! Images of virtual machines: fetched from where users keep them, inspected, and converted to what the cloud wants.
//!
//! This crate must not know Kubernetes or OpenStack: it takes addresses and folders and gives files and streams.
//!
//! Rules that hold throughout:
//! * an image is never held in memory, and what it takes on disk is bounded and gone when it is dropped;
//! * the format is what the file's own bytes say, never what somebody claims;
//! * a file that could make `qemu-img` open another file is refused before `qemu-img` sees it.

mod error;
mod fetch;
mod format;
mod guard;
mod header;
mod progress;
mod proxy;
mod qemu;
mod source;
mod upload;
mod workspace;

pub use error::{Actor, Error};
pub use fetch::{Download, FetchSettings, Fetcher, Limits};
pub use format::{Format, UnknownFormat};
pub use guard::{AddressClass, Guard};
pub use progress::Progress;
pub use proxy::Proxies;
pub use qemu::{Inspection, QemuImg, QemuLimits};
pub use source::{Algorithm, Checksum, InvalidChecksum, Source};
pub use upload::ImageFile;
pub use workspace::{Scratch, Workspace};
