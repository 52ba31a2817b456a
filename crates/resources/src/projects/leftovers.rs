//! What other services keep of a project, which nobody else removes when the project goes.

use futures::TryStreamExt;
use kupenstack_core::ownership;
use kupenstack_openstack::{NetworkFilter, SecurityGroup};

use super::admin::Admin;
use crate::{cloud::Cloud, stop::Stop};

/// Neutron makes it when a project first needs it, and keeps it.
const DEFAULT_GROUP: &str = "default";

/// Deletes what services of the cloud have made for the project by themselves, and what carries the namespace's `mark`.
pub(super) async fn remove(cloud: &Cloud, admin: &Admin, project: &str, mark: &str) -> Result<(), Stop> {
    if cloud.has("Neutron") {
        remove_security_group(admin, project).await?;
    }
    if cloud.has("Nova") {
        remove_server_groups(admin, mark).await?;
    }
    Ok(())
}

/// Those of VMs that went without removing them, in whichever project of the namespace. Nova would keep them for good.
async fn remove_server_groups(admin: &Admin, mark: &str) -> Result<(), Stop> {
    let compute = admin.elsewhere().compute();
    for group in compute.survey_server_groups().await? {
        if ownership::mark_in(&group.name) == Some(mark) {
            compute.delete_server_group(&group.id).await?;
        }
    }
    Ok(())
}

/// Groups that people made are not ours to delete.
async fn remove_security_group(admin: &Admin, project: &str) -> Result<(), Stop> {
    let groups = admin.elsewhere().network().security_groups();
    let filter = NetworkFilter {
        name: Some(DEFAULT_GROUP.to_owned()),
        project_id: Some(project.to_owned()),
        ..NetworkFilter::default()
    };
    let found: Vec<SecurityGroup> = groups.list(&filter).try_collect().await?;
    // a filter that a service does not know is one that it ignores
    for group in found.iter().filter(|group| group.name == DEFAULT_GROUP && group.project_id == project) {
        groups.delete(&group.id).await?;
    }
    Ok(())
}
