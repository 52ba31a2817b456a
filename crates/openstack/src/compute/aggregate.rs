//! Host aggregates: hosts with properties in common, which flavors can ask for.

use std::collections::BTreeMap;

use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Compute;
use crate::{Error, service::ServiceClient};

/// A host aggregate. Only administrators see any.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Aggregate {
    /// Its number.
    pub id: u64,
    /// Its name: unique, and mostly without regard to case.
    pub name: String,
    /// The hosts in it. The answer to a creation has none.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Its properties.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
}

/// Asks for something to be done with an aggregate.
async fn act(service: &ServiceClient, id: u64, body: &Value) -> Result<Aggregate, Error> {
    service.post(&["os-aggregates", &id.to_string(), "action"], body).await?.member("aggregate")
}

impl Compute {
    /// All aggregates; Nova has no pages of them.
    pub async fn aggregates(&self) -> Result<Vec<Aggregate>, Error> {
        let call = self.service.call(Method::GET, &["os-aggregates"]).await?;
        self.service.send(&call).await?.member("aggregates")
    }

    /// Makes an aggregate without hosts and properties. A name that is taken is a conflict.
    pub async fn create_aggregate(&self, name: &str) -> Result<Aggregate, Error> {
        self.service.post(&["os-aggregates"], &json!({"aggregate": {"name": name}})).await?.member("aggregate")
    }

    /// Gives an aggregate properties, and takes them away that have no value; others stay.
    pub async fn set_aggregate_metadata(
        &self,
        id: u64,
        metadata: &BTreeMap<String, Option<String>>,
    ) -> Result<Aggregate, Error> {
        act(&self.service, id, &json!({"set_metadata": {"metadata": metadata}})).await
    }

    /// Puts a host into an aggregate; false if Nova does not know it, or has no such aggregate.
    pub async fn add_aggregate_host(&self, id: u64, host: &str) -> Result<bool, Error> {
        let added = act(&self.service, id, &json!({"add_host": {"host": host}})).await;
        // one that it has is a conflict, as several other things are
        Ok(Error::absent_is_none(added)?.is_some())
    }

    /// Takes a host out of an aggregate; false if it is not in it, or Nova does not know it any more.
    pub async fn remove_aggregate_host(&self, id: u64, host: &str) -> Result<bool, Error> {
        let removed = act(&self.service, id, &json!({"remove_host": {"host": host}})).await;
        Ok(Error::absent_is_none(removed)?.is_some())
    }

    /// Deletes an aggregate; false if there is none. One that has hosts is a
    /// [`ErrorKind::BadRequest`](crate::ErrorKind::BadRequest).
    pub async fn delete_aggregate(&self, id: u64) -> Result<bool, Error> {
        self.service.delete(&["os-aggregates", &id.to_string()]).await
    }
}
