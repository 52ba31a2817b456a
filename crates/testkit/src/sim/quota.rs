//! How much a project may have.

use std::collections::HashMap;

use super::keystone::{Entity, Keystone};

/// Limits by resource, for all projects and for single ones. What has no limit is unlimited, and so is what has one
/// below 0.
#[derive(Debug, Clone, Default)]
pub struct Quotas {
    defaults: HashMap<String, i64>,
    of_projects: HashMap<(String, String), i64>,
}

impl Quotas {
    /// Sets what every project may have of a resource.
    pub fn set_default(&mut self, resource: &str, limit: i64) {
        self.defaults.insert(resource.to_owned(), limit);
    }

    /// Sets what one project may have of a resource.
    pub fn set(&mut self, project_id: &str, resource: &str, limit: i64) {
        self.of_projects.insert((project_id.to_owned(), resource.to_owned()), limit);
    }

    /// The same, but for what Keystone's limits say.
    pub(super) fn under(&self, keystone: &Keystone) -> Self {
        let amount = |limit: &Entity, key: &str| limit.body.get(key).and_then(serde_json::Value::as_i64).unwrap_or(-1);
        let mut all = self.clone();
        for limit in keystone.all("registered_limits") {
            all.set_default(limit.text("resource_name"), amount(limit, "default_limit"));
        }
        for limit in keystone.all("limits") {
            all.set(limit.text("project_id"), limit.text("resource_name"), amount(limit, "resource_limit"));
        }
        all
    }

    /// What a project may have of a resource.
    pub fn limit(&self, project_id: &str, resource: &str) -> Option<u64> {
        let own = self.of_projects.get(&(project_id.to_owned(), resource.to_owned()));
        let limit = own.or_else(|| self.defaults.get(resource))?;
        u64::try_from(*limit).ok()
    }

    /// The limit, if it does not allow for this many more than are used.
    pub fn exceeded(&self, project_id: &str, resource: &str, used: u64, more: u64) -> Option<u64> {
        self.limit(project_id, resource).filter(|limit| used.saturating_add(more) > *limit)
    }
}
