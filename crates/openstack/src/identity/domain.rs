//! Domains.

use serde::Deserialize;

use super::Identity;
use crate::Error;

/// A domain: the space in which the names of projects and users are unique.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Domain {
    /// The domain's id; `default` for the first one.
    pub id: String,
    /// The domain's name.
    pub name: String,
    /// Whether its users may log in.
    pub enabled: bool,
}

impl Identity {
    /// A domain by its id.
    pub async fn get_domain(&self, id: &str) -> Result<Option<Domain>, Error> {
        self.service.get_member(&["domains", id], "domain").await
    }

    /// A domain by its name.
    pub async fn find_domain(&self, name: &str) -> Result<Option<Domain>, Error> {
        self.find("domains", vec![("name", name.to_owned())], |domain: &Domain| domain.name == name).await
    }
}
