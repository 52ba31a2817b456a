//! How users reach the cloud from outside of the Kubernetes cluster.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What can be reached from outside, by the names that URLs and ports have for it.
pub const EXPOSED: [&str; 6] = ["keystone", "glance", "placement", "neutron", "nova", "console"];

/// The networks that users come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Networking {
    /// How users reach the services from outside of the Kubernetes cluster; not at all when absent. Then the public
    /// endpoints in the catalogue are the ones inside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expose: Option<Expose>,
}

/// What leads to the services from outside, and what their URLs are there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules()))]
pub struct Expose {
    /// What leads to each of the services.
    #[serde(rename = "type")]
    pub by: ExposeType,

    /// Pattern of the URLs that the catalogue tells users, without a path: `http://192.0.2.10:{port}`,
    /// `http://{service}.cloud.example:{port}`, or `https://{service}.cloud.example` where something in front of the
    /// services terminates TLS. `{service}` is keystone, glance, placement, neutron, nova or, for consoles of VMs, console;
    /// `{port}` the port at which that is reached.
    #[schemars(length(min = 1, max = 253))]
    pub url: String,

    /// Ports of the nodes by service, in place of these: `{keystone: 30500, glance: 30292, placement: 30778, neutron: 30696,
    /// nova: 30774, console: 30608}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "ports_schema")]
    pub node_ports: BTreeMap<String, u16>,
}

/// What leads to a service from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ExposeType {
    /// A port of every node.
    NodePort,
    /// An address of its own, which the cluster's load balancer has to give.
    LoadBalancer,
}

fn rules() -> Vec<Value> {
    let rule = |rule: &str, message: &str| json!({"rule": rule, "message": message});
    vec![
        rule(
            "self.url.replace('{service}', 's').replace('{port}', '1').matches('^https?://[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?$')",
            "url: it is http:// or https://, a host name or an IPv4 address in small letters, and perhaps a colon and a port; \
             {service} and {port} are the only names in braces",
        ),
        rule(
            "self.url.contains('{service}') || (self.url.contains('{port}') && self.type == 'nodePort')",
            "url: {service} has to be in it, as each service has an address of its own; with type nodePort {port} is enough",
        ),
        rule(
            "self.type == 'nodePort' || !has(self.nodePorts)",
            "nodePorts: only with type nodePort; leave them out, or change the type",
        ),
    ]
}

fn ports_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let names = EXPOSED.map(|name| format!("'{name}'")).join(", ");
    schemars::json_schema!({
        "type": "object",
        "maxProperties": EXPOSED.len(),
        "additionalProperties": {"type": "integer", "minimum": 1, "maximum": 65535},
        "x-kubernetes-validations": [
            {"rule": format!("self.all(service, service in [{names}])"), "message": format!("what can be exposed is {}", EXPOSED.join(", "))}
        ]
    })
}
