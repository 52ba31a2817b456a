//! Which projects may use a flavor that is not public.

use serde_json::{Value, json};

use super::{
    Nova,
    flavor::{Flavor, invalid},
    flavors::no_flavor,
    only_admin, speaks,
};
use crate::sim::{
    http::{Answer, Outcome, Refusal},
    service::{Call, Version},
};

/// From here on a public flavor is refused.
const WITH_REFUSAL: Version = (2, 7);

impl Nova {
    pub(super) fn list_flavor_access(&mut self, call: &mut Call<'_>) -> Outcome {
        only_admin(call, "os-flavor-access")?;
        let flavor = self.flavor(call.param(0)).ok_or_else(|| no_flavor(call))?;
        if flavor.is_public {
            return Err(Refusal::not_found("Access list not available for public flavors."));
        }
        Ok(Answer::ok(&shown(flavor)))
    }

    pub(super) fn act_on_flavor(&mut self, call: &mut Call<'_>) -> Outcome {
        let body = call.request.json();
        let (action, how) = body.as_object().and_then(|body| body.iter().next()).unzip();
        let (action, how) = (action.map(String::as_str).unwrap_or_default(), how.cloned().unwrap_or_default());
        let project = match how["tenant"].as_str() {
            Some(project) if (1..=255).contains(&project.len()) => project.to_owned(),
            _ => return Err(invalid("tenant", &how["tenant"], "is too short")),
        };
        let flavor = || self.flavor(call.param(0)).ok_or_else(|| no_flavor(call));
        match action {
            "addTenantAccess" => {
                only_admin(call, "os-flavor-access:add_tenant_access")?;
                let flavor = flavor()?;
                if flavor.is_public && speaks(call, WITH_REFUSAL) {
                    return Err(Refusal::conflict("Can not add access to a public flavor."));
                }
                if flavor.projects.contains(&project) {
                    let id = &flavor.id;
                    let what = format!("flavor {id} and project {project} combination.");
                    return Err(Refusal::conflict(format!("Flavor access already exists for {what}")));
                }
                self.edit_flavor(call.now, call.param(0), |flavor| {
                    flavor.projects.insert(project);
                });
            }
            "removeTenantAccess" => {
                only_admin(call, "os-flavor-access:remove_tenant_access")?;
                let flavor = flavor()?;
                if !flavor.projects.contains(&project) {
                    let what = format!("{} / {project} combination.", flavor.id);
                    return Err(Refusal::not_found(format!("Flavor access not found for {what}")));
                }
                self.edit_flavor(call.now, call.param(0), |flavor| {
                    flavor.projects.remove(&project);
                });
            }
            other => return Err(Refusal::bad_request(format!("There is no such action: {other}"))),
        }
        Ok(Answer::ok(&shown(self.flavor(call.param(0)).ok_or_else(|| no_flavor(call))?)))
    }
}

fn shown(flavor: &Flavor) -> Value {
    let access = |project: &String| json!({"flavor_id": flavor.id, "tenant_id": project});
    json!({"flavor_access": flavor.projects.iter().map(access).collect::<Vec<_>>()})
}
