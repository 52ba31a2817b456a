//! The ports of servers. Which a server has, is what Neutron says.

use http::StatusCode;
use serde_json::{Value, json};

use super::{ACTIVE, Nova, STOPPED, Server, create::usable_port, peers, server::PAUSED, wrong_state};
use crate::sim::{
    http::{Answer, Outcome, Refusal},
    neutron::Neutron,
    service::Call,
};

impl Nova {
    pub(in crate::sim::nova) fn list_attachments(&mut self, call: &mut Call<'_>) -> Outcome {
        let (neutron, server) = (peers(call)?.neutron, self.own_server(call)?);
        let attached: Vec<Value> = neutron.ports_of_server(&server.id).map(Neutron::attachment).collect();
        Ok(Answer::ok(&json!({"interfaceAttachments": attached})))
    }

    pub(in crate::sim::nova) fn attach(&mut self, call: &mut Call<'_>) -> Outcome {
        let (neutron, server) = (peers(call)?.neutron, self.own_server(call)?);
        let body = call.request.json();
        let asked = body["interfaceAttachment"]["port_id"].as_str();
        let asked = asked.ok_or_else(|| Refusal::bad_request("an attachment without port_id is not simulated"))?;
        let host = takes_ports("attach_interface", &server)?;
        usable_port(neutron, &server.project_id, asked)?;
        neutron.connect(call.now, asked, &server.id, host);
        let attached = neutron.port(asked).map(Neutron::attachment);
        Ok(Answer::ok(&json!({"interfaceAttachment": attached})))
    }

    /// Nova does not look whether the server has the port before it answers.
    pub(in crate::sim::nova) fn detach(&mut self, call: &mut Call<'_>) -> Outcome {
        let server = self.own_server(call)?;
        takes_ports("detach_interface", &server)?;
        self.servers.begin_to_detach(call.now, &server.id, call.param(1));
        Ok(Answer::empty(StatusCode::ACCEPTED))
    }
}

/// The host of a server that ports can be attached to.
fn takes_ports<'a>(action: &str, server: &'a Server) -> Result<&'a str, Refusal> {
    if ![ACTIVE, PAUSED, STOPPED].contains(&server.vm_state) {
        return Err(wrong_state(action, server, "vm_state", server.vm_state));
    }
    match (server.task_state, &server.host) {
        (Some(task), _) => Err(wrong_state(action, server, "task_state", task)),
        (None, None) => Err(Refusal::conflict(format!("Instance {} is not ready", server.id))),
        (None, Some(host)) => Ok(host),
    }
}
