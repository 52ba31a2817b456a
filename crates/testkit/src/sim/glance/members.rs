//! The projects that an image is shared with.

use http::StatusCode;
use serde_json::{Value, json};

use super::{
    Glance, Image,
    image::{Member, stamp},
};
use crate::sim::{
    http::{Answer, Outcome, Refusal},
    service::Call,
};

impl Glance {
    pub(super) fn list_members(&mut self, call: &mut Call<'_>) -> Outcome {
        let image = self.seen(call)?;
        let caller = &call.caller;
        let all = image.is_changeable_by(caller);
        let members = image.members.iter().filter(|(project, _)| all || caller.project() == project.as_str());
        let members: Vec<Value> = members.map(|(project, member)| shown(image, project, member)).collect();
        Ok(Answer::ok(&json!({"members": members, "schema": "/v2/schemas/members"})))
    }

    pub(super) fn add_member(&mut self, call: &mut Call<'_>) -> Outcome {
        let image = self.own(call, "add_member")?;
        if image.visibility != "shared" {
            return Err(Refusal::forbidden(format!("Not allowed to create members for image {}.", image.id)));
        }
        let project = call.request.json()["member"].as_str().map(str::to_owned);
        let Some(project) = project.filter(|project| !project.is_empty()) else {
            return Err(Refusal::bad_request("Member to be added not specified"));
        };
        if image.members.contains_key(&project) {
            let words = format!("Image member {project} is already associated with image {}", image.id);
            return Err(Refusal::conflict(words));
        }
        let mut image = image.clone();
        let member = Member { status: "pending".to_owned(), created_at: call.now, updated_at: call.now };
        let body = shown(&image, &project, &member);
        image.members.insert(project, member);
        self.put(call.now, image);
        Ok(Answer::ok(&body))
    }

    pub(super) fn show_member(&mut self, call: &mut Call<'_>) -> Outcome {
        let image = self.seen(call)?;
        let member = image.members.get(call.param(1)).ok_or_else(|| no_member(call))?;
        Ok(Answer::ok(&shown(image, call.param(1), member)))
    }

    /// Accepting or not is for the project itself, or an administrator.
    pub(super) fn update_member(&mut self, call: &mut Call<'_>) -> Outcome {
        let mut image = self.seen(call)?.clone();
        let status = call.request.json()["status"].as_str().unwrap_or_default().to_owned();
        if !matches!(status.as_str(), "pending" | "accepted" | "rejected") {
            let words = "Provided object does not match schema 'member'";
            return Err(Refusal::bad_request(format!("{words}: '{status}' is not a status")));
        }
        let project = call.param(1);
        let Some(member) = image.members.get_mut(project) else { return Err(no_member(call)) };
        if call.caller.project() != project && !call.caller.is_admin() {
            return Err(Refusal::forbidden("You are not authorized to complete modify_member action."));
        }
        member.status = status;
        member.updated_at = call.now;
        let body = shown(&image, project, &image.members[project]);
        self.put(call.now, image);
        Ok(Answer::ok(&body))
    }

    pub(super) fn remove_member(&mut self, call: &mut Call<'_>) -> Outcome {
        let mut image = self.own(call, "delete_member")?.clone();
        if image.members.remove(call.param(1)).is_none() {
            return Err(no_member(call));
        }
        self.put(call.now, image);
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }
}

fn no_member(call: &Call<'_>) -> Refusal {
    Refusal::not_found(format!("{} not found in the member list of the image {}.", call.param(1), call.param(0)))
}

fn shown(image: &Image, project: &str, member: &Member) -> Value {
    json!({
        "image_id": image.id,
        "member_id": project,
        "status": member.status,
        "created_at": stamp(member.created_at),
        "updated_at": stamp(member.updated_at),
        "schema": "/v2/schemas/member",
    })
}
