//! Servers that were in Nova before their objects.

use futures::TryStreamExt;
use kupenstack_api::resources::{Adoption, VirtualMachine};
use kupenstack_core::Outcome;
use kupenstack_openstack::{Server, ServerFilter};

use crate::{actuator::Target, adoption, observe::Listed, stop::Stop};

/// What fits, of what the object's project has.
pub(super) async fn candidates(target: &Target<VirtualMachine>, adoption: &Adoption) -> Result<Vec<Server>, Stop> {
    let Some(project) = &target.owner else { return Ok(Vec::new()) };
    let compute = target.client.compute();
    let found: Vec<Server> = match &adoption.id {
        Some(id) => compute.get_server(id).await?.into_iter().collect(),
        None => compute.list_servers(&ServerFilter { name: adoption.name.clone() }).try_collect().await?,
    };
    Ok(found.into_iter().filter(|found| found.is_in(project)).collect())
}

/// Why there is nothing to adopt.
pub(super) async fn missing(target: &Target<VirtualMachine>, adoption: &Adoption) -> Result<Outcome, Stop> {
    let fitting = candidates(target, adoption).await?;
    Ok(adoption::missing(&fitting, &format!("project's {}s", Server::NOUN)))
}
