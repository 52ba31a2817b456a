//! Keystone: domains, projects, users, roles and grants, services and endpoints, limits.

mod application_credential;
mod assignment;
mod catalog;
mod domain;
mod limit;
mod project;
mod role;
mod user;

pub use application_credential::{ApplicationCredential, NewApplicationCredential};
pub use assignment::RoleAssignment;
pub use catalog::{Endpoint, Service};
pub use domain::Domain;
pub use limit::{Limit, NewLimit, RegisteredLimit};
pub use project::{NewProject, Project, ProjectFilter};
pub use role::Role;
pub use user::{NewUser, User};

use futures::{Stream, TryStreamExt};
use serde::de::DeserializeOwned;

use crate::{
    Client, Error,
    service::{Query, ServiceClient},
};

/// How many objects a page of a survey has: the most that Keystone gives. A list that asks for no limit is cut off there,
/// without a word.
const PAGE: &str = "1000";

/// Keystone as one user sees it.
#[derive(Debug, Clone)]
pub struct Identity {
    service: ServiceClient,
}

impl Identity {
    pub(crate) fn new(client: Client) -> Self {
        Self { service: ServiceClient::new(client, "identity", "v3") }
    }

    /// Every object of a filtered list, page by page. One that can't be read is left out, and told in the log.
    fn survey<T>(
        &self,
        collection: &'static str,
        mut query: Query,
    ) -> impl Stream<Item = Result<T, Error>> + Send + use<T>
    where
        T: DeserializeOwned + Send + 'static,
    {
        query.push(("limit", PAGE.to_owned()));
        self.service.clone().survey(collection.into(), query)
    }

    /// The first object of a filtered list that fits. Keystone compares names as its database does, which may ignore
    /// case, so the caller compares again.
    async fn find<T>(
        &self,
        collection: &'static str,
        query: Query,
        fits: impl Fn(&T) -> bool,
    ) -> Result<Option<T>, Error>
    where
        T: DeserializeOwned + Send + 'static,
    {
        let found =
            self.service.clone().list::<T>(collection.into(), query).try_filter(|item| std::future::ready(fits(item)));
        std::pin::pin!(found).try_next().await
    }
}
