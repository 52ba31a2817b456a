//! How much a project may have.

use std::collections::HashMap;

/// Limits by resource, for all projects and for single ones. What has no limit is unlimited.
#[derive(Debug, Clone, Default)]
pub struct Quotas {
    defaults: HashMap<String, u64>,
    of_projects: HashMap<(String, String), u64>,
}

impl Quotas {
    /// Sets what every project may have of a resource.
    pub fn set_default(&mut self, resource: &str, limit: u64) {
        self.defaults.insert(resource.to_owned(), limit);
    }

    /// Sets what one project may have of a resource.
    pub fn set(&mut self, project_id: &str, resource: &str, limit: u64) {
        self.of_projects.insert((project_id.to_owned(), resource.to_owned()), limit);
    }

    /// What a project may have of a resource.
    pub fn limit(&self, project_id: &str, resource: &str) -> Option<u64> {
        let own = self.of_projects.get(&(project_id.to_owned(), resource.to_owned()));
        own.or_else(|| self.defaults.get(resource)).copied()
    }

    /// The limit, if it does not allow for this many more than are used.
    pub fn exceeded(&self, project_id: &str, resource: &str, used: u64, more: u64) -> Option<u64> {
        self.limit(project_id, resource).filter(|limit| used.saturating_add(more) > *limit)
    }
}
