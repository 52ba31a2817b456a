//! What makes networks on the hosts.

use http::StatusCode;
use serde_json::{Value, json};

use super::Neutron;
use crate::sim::{
    http::{Answer, Outcome, Refusal},
    service::Call,
};

/// Two for each host, as with OVN.
const AGENTS: [(&str, &str); 2] =
    [("OVN Controller agent", "ovn-controller"), ("OVN Metadata agent", "neutron-ovn-metadata-agent")];

/// An agent at a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Its identifier.
    pub id: String,
    /// What it is called.
    pub agent_type: &'static str,
    /// The program.
    pub binary: &'static str,
    /// Where it runs.
    pub host: String,
    /// Whether its heartbeats come.
    pub alive: bool,
}

impl Agent {
    fn shown(&self) -> Value {
        let Self { id, agent_type, binary, host, alive } = self;
        json!({
            "id": id, "agent_type": agent_type, "binary": binary, "host": host, "alive": alive, "admin_state_up": true,
            "availability_zone": "", "topic": "n/a", "configurations": {}, "description": "",
        })
    }
}

impl Neutron {
    /// Sets at which hosts there are agents; all of them are alive.
    pub fn set_agents(&mut self, hosts: &[&str]) {
        let of = |host: &&str| {
            let host = (*host).to_owned();
            AGENTS.map(|(agent_type, binary)| Agent {
                id: format!("{host}-{binary}"),
                agent_type,
                binary,
                host: host.clone(),
                alive: true,
            })
        };
        self.agents = hosts.iter().flat_map(of).collect();
    }

    /// All agents.
    pub fn agents(&self) -> &[Agent] {
        &self.agents
    }

    /// Has the heartbeats of a host's agents cease.
    pub fn end_agents(&mut self, host: &str) {
        self.agents.iter_mut().filter(|agent| agent.host == host).for_each(|agent| agent.alive = false);
    }

    /// Others than administrators see none.
    pub(super) fn list_agents(&self, call: &Call<'_>) -> Answer {
        let is_asked_for = |key, value: &str| call.request.query(key).is_none_or(|wanted| wanted == value);
        let fits = |agent: &&Agent| is_asked_for("host", &agent.host) && is_asked_for("binary", agent.binary);
        let all = self.agents.iter().filter(|_| call.caller.is_admin());
        let shown: Vec<Value> = all.filter(fits).map(Agent::shown).collect();
        Answer::ok(&json!({"agents": shown}))
    }

    /// What others don't see is not there for them.
    pub(super) fn delete_agent(&mut self, call: &mut Call<'_>) -> Outcome {
        let (id, before) = (call.param(0), self.agents.len());
        self.agents.retain(|agent| agent.id != id || !call.caller.is_admin());
        if self.agents.len() == before {
            return Err(Refusal::not_found(format!("Agent {id} could not be found.")).of_type("AgentNotFound"));
        }
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }
}
