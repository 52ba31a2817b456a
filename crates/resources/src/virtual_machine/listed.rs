//! Servers as the whole cloud's list shows them.

use futures::{StreamExt, stream::BoxStream};
use jiff::Timestamp;
use kupenstack_core::ownership;
use kupenstack_openstack::{Client, Error, Server};

use super::plan::is_resting;
use crate::observe::Listed;

impl Listed for Server {
    const NOUN: &'static str = "Nova server";
    const SERVICES: &'static [&'static str] = &["Keystone", "Nova"];
    /// Somebody waits for a VM that boots or is being deleted.
    const QUICK: u32 = 60;

    fn list(admin: &Client) -> BoxStream<'static, Result<Self, Error>> {
        admin.compute().survey_servers().boxed()
    }

    fn list_changed(admin: &Client, since: Timestamp) -> Option<BoxStream<'static, Result<Self, Error>>> {
        Some(admin.compute().survey_changed_servers(since).boxed())
    }

    fn changed(&self) -> Option<Timestamp> {
        self.updated.parse().ok()
    }

    fn is_gone(&self) -> bool {
        ["DELETED", "SOFT_DELETED"].contains(&self.status.as_str())
    }

    fn id(&self) -> &str {
        &self.id
    }

    fn mark(&self) -> Option<&str> {
        ownership::mark_in(self.description.as_deref()?)
    }

    /// Users are not told on which host their servers are. A list may be older: what it shows wrong the next one sets right.
    fn complete(&mut self, listed: &Self) {
        if self.host.is_none() {
            self.host.clone_from(&listed.host);
        }
    }

    /// One that others have resized may wait for days for them to confirm that.
    fn is_moving(&self) -> bool {
        let is_asked = self.status == "VERIFY_RESIZE" && self.task_state.is_none();
        !is_resting(self) && !is_asked
    }

    fn is_in(&self, project: &str) -> bool {
        self.project_id == project
    }
}
