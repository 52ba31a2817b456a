//! What leads to a service from outside of the cluster, and its URLs there.

use std::{collections::BTreeMap, fmt};

use kupenstack_api::cluster::{Expose, ExposeType};
use serde_json::{Value, json};

use crate::{
    service::{Kind, Request, Service},
    services,
};

/// A way into a service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Door {
    /// Its name in URLs and among the ports of nodes.
    pub(crate) name: &'static str,
    /// The component that answers, as in the chart's `network`.
    pub(crate) component: &'static str,
    /// The type of its endpoint, as in the chart's `endpoints`, and the path of that.
    pub(crate) endpoint: (&'static str, &'static str),
    /// The port of its Kubernetes Service.
    pub(crate) port: u16,
    /// The port of nodes, unless the spec says another.
    pub(crate) node_port: u16,
}

impl Door {
    fn node_port(&self, expose: &Expose) -> u16 {
        expose.node_ports.get(self.name).copied().unwrap_or(self.node_port)
    }

    /// Where users find it; `None` for a pattern that the definition would have refused.
    fn address(&self, expose: &Expose) -> Option<Address> {
        let port = match expose.by {
            ExposeType::NodePort => self.node_port(expose),
            ExposeType::LoadBalancer => self.port,
        };
        let url = expose.url.replace("{service}", self.name).replace("{port}", &port.to_string());
        let (scheme, rest) = url.split_once("://")?;
        let (host, port) = match rest.split_once(':') {
            Some((host, port)) => (host, port.parse().ok()?),
            None => (rest, if scheme == "https" { 443 } else { 80 }),
        };
        Some(Address { scheme: scheme.to_owned(), host: host.to_owned(), port })
    }
}

/// The beginning of a URL.
struct Address {
    scheme: String,
    host: String,
    port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.scheme, self.host, self.port)
    }
}

/// Values that make the service's Kubernetes Services reachable from outside, and that name its public URLs and Keystone's.
pub(crate) fn values(service: &dyn Service, request: &Request) -> Value {
    let mut values = json!({});
    let Some(expose) = &request.common.expose else { return values };
    for door in service.doors() {
        values["network"][door.component] = match expose.by {
            ExposeType::NodePort => json!({"node_port": {"enabled": true, "port": door.node_port(expose)}}),
            ExposeType::LoadBalancer => json!({"load_balancer": {"enabled": true}}),
        };
    }
    // a service tells who comes without a token where to get one
    let of_keystone = service.dependencies().iter().filter(|kind| **kind == Kind::Keystone);
    let of_keystone = of_keystone.flat_map(|kind| services::of(*kind).doors());
    for door in service.doors().iter().chain(of_keystone) {
        let Some(Address { scheme, host, port }) = door.address(expose) else { continue };
        values["endpoints"][door.endpoint.0] = json!({
            "scheme": {"public": scheme},
            "host_fqdn_override": {"public": host},
            "port": {"api": {"public": port}},
        });
    }
    values
}

/// The service's URLs for users, by the names of its doors.
pub(crate) fn urls(service: &dyn Service, request: &Request) -> BTreeMap<String, String> {
    let Some(expose) = &request.common.expose else { return BTreeMap::new() };
    let url = |door: &Door| Some((door.name.to_owned(), format!("{}{}", door.address(expose)?, door.endpoint.1)));
    service.doors().iter().filter_map(url).collect()
}

#[cfg(test)]
mod tests {
    use kupenstack_api::cluster::EXPOSED;

    use super::*;

    fn door(name: &str) -> Door {
        let all = Kind::ALL.into_iter().flat_map(|kind| services::of(kind).doors());
        *all.into_iter().find(|door| door.name == name).unwrap()
    }

    fn address(name: &str, expose: Value) -> Option<String> {
        door(name).address(&serde_json::from_value(expose).unwrap()).map(|address| address.to_string())
    }

    #[test]
    fn what_can_be_exposed_is_what_the_definition_names_each_at_a_port_of_its_own() {
        let mut ports = Vec::new();
        for name in EXPOSED {
            ports.push(door(name).node_port);
        }
        let doors = Kind::ALL.into_iter().flat_map(|kind| services::of(kind).doors()).count();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!((doors, ports.len()), (EXPOSED.len(), EXPOSED.len()));
        assert!(ports.iter().all(|port| (30000..32768).contains(port)), "the usual range of node ports");
    }

    #[test]
    fn a_url_follows_the_pattern() {
        let node = json!({"type": "nodePort", "url": "http://192.0.2.10:{port}", "nodePorts": {"nova": 31000}});
        assert_eq!(address("nova", node.clone()).as_deref(), Some("http://192.0.2.10:31000"));
        assert_eq!(address("console", node).as_deref(), Some("http://192.0.2.10:30608"));
        let balanced = json!({"type": "loadBalancer", "url": "http://{service}.cloud.example:{port}"});
        assert_eq!(address("glance", balanced).as_deref(), Some("http://glance.cloud.example:9292"));
        let behind_tls = json!({"type": "nodePort", "url": "https://{service}.cloud.example"});
        assert_eq!(address("keystone", behind_tls).as_deref(), Some("https://keystone.cloud.example:443"));
        assert_eq!(address("keystone", json!({"type": "nodePort", "url": "nonsense"})).as_deref(), None);
    }
}
