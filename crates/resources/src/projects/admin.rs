//! The administrator at work for one namespace.

use std::sync::{Arc, OnceLock};

use kupenstack_openstack::{Client, Identity};

use super::home::Home;
use crate::observe::{Census, Writing};

/// The administrator, for one namespace. What lists say about the namespace does not count any more once
/// something is written for it in Keystone.
pub(super) struct Admin {
    client: Client,
    identity: Identity,
    census: Arc<Census<Home>>,
    uid: String,
    writing: OnceLock<Writing<Home>>,
}

impl Admin {
    /// For the namespace with this UID.
    pub(super) fn new(client: Client, census: &Arc<Census<Home>>, uid: &str) -> Self {
        let (identity, census) = (client.identity(), Arc::clone(census));
        Self { client, identity, census, uid: uid.to_owned(), writing: OnceLock::new() }
    }

    /// What is not in Keystone.
    pub(super) fn elsewhere(&self) -> &Client {
        &self.client
    }

    /// To look at what there is.
    pub(super) fn look(&self) -> &Identity {
        &self.identity
    }

    /// To change something.
    pub(super) fn write(&self) -> &Identity {
        self.writing.get_or_init(|| self.census.writing(self.uid.clone()));
        &self.identity
    }

    /// Identifiers of the projects that the last list showed to be the namespace's; some may be gone by now.
    pub(super) fn listed(&self) -> Vec<String> {
        self.census.all_of(&self.uid)
    }
}
