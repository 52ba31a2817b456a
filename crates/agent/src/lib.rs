//! What is wrong in a cluster, and why: the validation agent.
//!
//! Its first part is *evidence*: [`examine`] looks at some pods, picks the one that tells most, and says what
//! Kubernetes has against it, what its log says last and what that probably means. It knows Kubernetes, and the
//! messages of the programs that are usually found in pods; whose pods they are it does not know.

mod cause;
mod events;
mod evidence;
mod examine;
mod log;
mod pod;

pub use cause::{Cause, Placement};
pub use evidence::{Evidence, Severity};
pub use examine::{examine, fails, look_again};

use std::time::Duration;

/// What has not got going after this time hangs: there is something to tell about it.
pub const SLOW: Duration = Duration::from_mins(1);
