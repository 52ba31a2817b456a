//! Which projects may use a flavor that is not public.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};

use super::Compute;
use crate::{Error, transport::Answer};

/// That a project may use a flavor.
#[derive(Deserialize)]
struct Access {
    tenant_id: String,
}

fn projects(answer: &Answer) -> Result<BTreeSet<String>, Error> {
    let all: Vec<Access> = answer.member("flavor_access")?;
    Ok(all.into_iter().map(|access| access.tenant_id).collect())
}

impl Compute {
    /// The projects that may use a flavor which is not public; none if there is no such flavor, or everybody may use it.
    pub async fn flavor_access(&self, id: &str) -> Result<Option<BTreeSet<String>>, Error> {
        self.service.get(&["flavors", id, "os-flavor-access"]).await?.map(|answer| projects(&answer)).transpose()
    }

    /// Lets a project use a flavor that is not public. Once it may, it is a conflict to let it again.
    pub async fn add_flavor_access(&self, id: &str, project_id: &str) -> Result<(), Error> {
        self.change_access(id, &json!({"addTenantAccess": {"tenant": project_id}})).await.map(drop)
    }

    /// Lets a project use a flavor no more; false if it might not, or there is no such flavor.
    pub async fn remove_flavor_access(&self, id: &str, project_id: &str) -> Result<bool, Error> {
        let changed = self.change_access(id, &json!({"removeTenantAccess": {"tenant": project_id}})).await;
        Ok(Error::absent_is_none(changed)?.is_some())
    }

    async fn change_access(&self, id: &str, change: &Value) -> Result<Answer, Error> {
        self.service.post(&["flavors", id, "action"], change).await
    }
}
