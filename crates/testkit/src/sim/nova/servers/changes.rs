//! What is changed of a server, and its end.

use http::StatusCode;
use serde_json::{Value, json};

use super::{
    ACTIVE, DELETING, Detail, Nova, STOPPED, Server, Step,
    create::{check_description, check_name, check_number, metadata},
    peers,
    server::{PAUSED, SUSPENDED},
    wrong_state,
};
use crate::sim::{
    http::{Answer, Outcome, Refusal},
    nova::speaks,
    service::{Call, Version},
};

/// From here on, a change is answered with all of the server.
const ANSWERED_WHOLE: Version = (2, 75);

impl Nova {
    pub(in crate::sim::nova) fn update_server(&mut self, call: &mut Call<'_>) -> Outcome {
        let peers = peers(call)?;
        let mut server = self.own_server(call)?;
        let body = call.request.json();
        let asked =
            body["server"].as_object().ok_or_else(|| Refusal::bad_request("'server' is a required property"))?;
        if let Some(odd) = asked.keys().find(|key| !["name", "description"].contains(&key.as_str())) {
            let words = "Additional properties are not allowed";
            return Err(Refusal::bad_request(format!("{words} ('{odd}' was unexpected)")));
        }
        if let Some(name) = asked.get("name") {
            check_name(name)?;
            name.as_str().unwrap_or_default().clone_into(&mut server.name);
        }
        if let Some(description) = asked.get("description") {
            check_description(Some(description))?;
            server.description = description.as_str().map(str::to_owned);
        }
        self.servers.put(call.now, server.clone());
        server.updated_at = call.now;
        let detail = if speaks(call, ANSWERED_WHOLE) { Detail::Whole } else { Detail::Changed };
        Ok(Answer::ok(&json!({"server": server.shown(call, peers.neutron, detail)})))
    }

    pub(in crate::sim::nova) fn delete_server(&mut self, call: &mut Call<'_>) -> Outcome {
        let peers = peers(call)?;
        let server = self.own_server(call)?;
        match (&server.host, server.task_state) {
            // nobody has to be asked
            (None, _) => self.servers.remove(call.now, &server.id, peers.neutron),
            // nobody there would do anything
            (Some(host), _) if !self.hosts.is_up(host) => {
                self.servers.remove(call.now, &server.id, peers.neutron);
            }
            (Some(_), Some(DELETING)) => {}
            (Some(_), _) => self.servers.begin(call.now, server, Some(DELETING), Step::Delete),
        }
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }

    pub(in crate::sim::nova) fn show_metadata(&mut self, call: &mut Call<'_>) -> Outcome {
        Ok(Answer::ok(&json!({"metadata": self.own_server(call)?.metadata})))
    }

    pub(in crate::sim::nova) fn add_metadata(&mut self, call: &mut Call<'_>) -> Outcome {
        let mut server = self.own_server(call)?;
        let body: Value = call.request.json();
        let asked = body.get("metadata").ok_or_else(|| Refusal::bad_request("'metadata' is a required property"))?;
        let more = metadata(Some(asked))?;
        takes_metadata("update metadata", &server)?;
        server.metadata.extend(more);
        server.metadata = check_number(server.metadata)?;
        let answer = json!({"metadata": server.metadata});
        self.servers.put(call.now, server);
        Ok(Answer::ok(&answer))
    }

    pub(in crate::sim::nova) fn remove_metadata(&mut self, call: &mut Call<'_>) -> Outcome {
        let mut server = self.own_server(call)?;
        if server.metadata.remove(call.param(1)).is_none() {
            return Err(Refusal::not_found("Metadata item was not found"));
        }
        takes_metadata("delete metadata", &server)?;
        self.servers.put(call.now, server);
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }
}

fn takes_metadata(action: &str, server: &Server) -> Result<(), Refusal> {
    if [ACTIVE, PAUSED, SUSPENDED, STOPPED].contains(&server.vm_state) {
        return Ok(());
    }
    Err(wrong_state(action, server, "vm_state", server.vm_state))
}
