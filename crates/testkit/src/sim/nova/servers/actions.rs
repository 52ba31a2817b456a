//! What is done with a server: its power, its size, its console.

use http::StatusCode;
use serde_json::{Value, json};

use super::{
    ACTIVE, ERROR, Nova, RESIZED, STOPPED, Server, Step,
    create::fits_image,
    peers,
    server::{PAUSED, REBOOTING, REBOOTING_HARD, RESIZING, REVERTING, SUSPENDED},
    wrong_state,
};
use crate::sim::{
    glance::Glance,
    http::{Answer, Outcome, Refusal},
    nova::flavor::{invalid, lacks},
    service::Call,
};

/// How something is done with a server.
struct Action {
    /// What Nova calls it when it refuses it.
    name: &'static str,
    /// The states that it is possible in.
    from: &'static [&'static str],
    /// Whether the host is asked for before the state.
    on_host: bool,
    task: Option<&'static str>,
    then: Then,
}

/// What it comes to.
enum Then {
    Do(Step),
    Resize,
    Confirm,
    Revert,
}

impl Nova {
    pub(in crate::sim::nova) fn act_on_server(&mut self, call: &mut Call<'_>) -> Outcome {
        let glance = peers(call)?.glance;
        let body = call.request.json();
        let (asked, how) = body.as_object().and_then(|body| body.iter().next()).unzip();
        let (asked, how) = (asked.map(String::as_str).unwrap_or_default(), how.cloned().unwrap_or_default());
        let mut server = self.own_server(call)?;
        if asked == "os-getConsoleOutput" {
            return console(&server, &how);
        }
        let action = action(asked, &how)?;
        check_state(&action, &server)?;
        let step = match action.then {
            Then::Do(step) => step,
            Then::Resize => self.resize(call, glance, &server, how["flavorRef"].as_str().unwrap_or_default())?,
            Then::Confirm => Step::Confirm(server.former.take().ok_or_else(not_resized)?.1),
            Then::Revert if server.former.is_some() => Step::Revert,
            Then::Revert => return Err(not_resized()),
        };
        self.servers.begin(call.now, server, action.task, step);
        Ok(Answer::empty(if asked == "confirmResize" { StatusCode::NO_CONTENT } else { StatusCode::ACCEPTED }))
    }

    fn resize(&self, call: &Call<'_>, glance: &Glance, server: &Server, flavor: &str) -> Result<Step, Refusal> {
        let (flavor, had) = (self.flavor_for_server(call, flavor)?, &server.flavor);
        if flavor.disk == 0 && had.disk != 0 {
            let reason = "Resize to zero disk flavor is not allowed.";
            return Err(Refusal::bad_request(format!("Server disk was unable to be resized because: {reason}")));
        }
        if flavor.id == had.id {
            return Err(Refusal::bad_request("When resizing, instances must change flavor!"));
        }
        let more = [0, flavor.vcpus.saturating_sub(had.vcpus), flavor.ram.saturating_sub(had.ram)];
        self.check_quota(call, &server.project_id, more)?;
        if let Some(image) = glance.image(&server.image_id) {
            fits_image(image, &flavor)?;
        }
        Ok(Step::Resize(Box::new(flavor)))
    }
}

/// What a request's only key asks for.
fn action(asked: &str, how: &Value) -> Result<Action, Refusal> {
    let act =
        |name, from, task, step| Ok(Action { name, from, on_host: false, task: Some(task), then: Then::Do(step) });
    let on_host =
        |name, from, task, step| Ok(Action { name, from, on_host: true, task: Some(task), then: Then::Do(step) });
    let resized = |name, task, then| Ok(Action { name, from: &[RESIZED], on_host: false, task, then });
    match asked {
        "os-start" => on_host("start", &[STOPPED], "powering-on", Step::Become(ACTIVE)),
        "os-stop" => on_host("stop", &[ACTIVE, ERROR], "powering-off", Step::Become(STOPPED)),
        "suspend" => act("suspend", &[ACTIVE], "suspending", Step::Become(SUSPENDED)),
        "resume" => act("resume", &[SUSPENDED], "resuming", Step::Become(ACTIVE)),
        "pause" => act("pause", &[ACTIVE], "pausing", Step::Become(PAUSED)),
        "unpause" => act("unpause", &[PAUSED], "unpausing", Step::Become(ACTIVE)),
        "reboot" if how.get("type").is_none() => Err(lacks("reboot", how, "type")),
        "reboot" => match how["type"].as_str().map(str::to_uppercase).as_deref() {
            Some("SOFT") => act("reboot", &[ACTIVE], REBOOTING, Step::Become(ACTIVE)),
            Some("HARD") => {
                let from = &[ACTIVE, STOPPED, PAUSED, SUSPENDED, ERROR];
                act("reboot", from, REBOOTING_HARD, Step::Become(ACTIVE))
            }
            _ => Err(invalid("type", &how["type"], "is not one of ['HARD', 'Hard', 'hard', 'SOFT', 'Soft', 'soft']")),
        },
        "resize" => {
            let (from, task) = (&[ACTIVE, STOPPED], Some(RESIZING));
            Ok(Action { name: "resize", from, on_host: false, task, then: Then::Resize })
        }
        "confirmResize" => resized("confirmResize", None, Then::Confirm),
        "revertResize" => resized("revertResize", Some(REVERTING), Then::Revert),
        other => Err(Refusal::bad_request(format!("There is no such action: {other}"))),
    }
}

fn check_state(action: &Action, server: &Server) -> Result<(), Refusal> {
    if action.on_host && server.host.is_none() {
        return Err(not_ready(server));
    }
    if !action.from.contains(&server.vm_state) {
        return Err(wrong_state(action.name, server, "vm_state", server.vm_state));
    }
    if let Some(task) = server.task_state {
        return Err(wrong_state(action.name, server, "task_state", task));
    }
    if server.launched_at.is_none() {
        let words = format!("Instance {} is in an invalid state for '{}'", server.id, action.name);
        return Err(Refusal::conflict(words));
    }
    Ok(())
}

/// Or the resize has been confirmed already.
fn not_resized() -> Refusal {
    Refusal::bad_request("Instance has not been resized.")
}

fn not_ready(server: &Server) -> Refusal {
    Refusal::conflict(format!("Instance {} is not ready", server.id))
}

/// The last lines that a server has written, or all.
fn console(server: &Server, how: &Value) -> Outcome {
    if server.host.is_none() {
        return Err(not_ready(server));
    }
    let lines: Vec<&str> = server.console.split_inclusive('\n').collect();
    let wanted = how["length"].as_u64().and_then(|length| usize::try_from(length).ok());
    let skipped = lines.len().saturating_sub(wanted.unwrap_or(usize::MAX));
    Ok(Answer::ok(&json!({"output": lines[skipped..].concat()})))
}
