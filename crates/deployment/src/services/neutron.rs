//! Neutron: the networks of VMs.

use futures::{FutureExt, future::BoxFuture};
use kupenstack_api::cluster::{OpenStackSpec, Own};
use serde_json::{Value, json};

use super::keystone::Keystone;
use crate::{
    catalogue::Part,
    credentials::Generated,
    exposure::Door,
    probe::{self, Heartbeats, NotProven},
    service::{File, Format, Kind, Request, Scene, Secrets, Service},
    values::{DB_PASSWORD, METADATA_SECRET, SERVICE_PASSWORD},
};

/// What runs on each node with VMs.
const AGENTS: [&str; 2] = ["ovn-controller", "neutron-ovn-metadata-agent"];

pub(crate) struct Neutron;

impl Service for Neutron {
    fn kind(&self) -> Kind {
        Kind::Neutron
    }

    fn by_default(&self) -> bool {
        false
    }

    fn dependencies(&self) -> &'static [Kind] {
        &[Kind::MariaDB, Kind::Memcached, Kind::Keystone, Kind::RabbitMQ, Kind::Ovn]
    }

    fn credentials(&self) -> &'static [Generated] {
        &[Generated::Password(DB_PASSWORD), Generated::Password(SERVICE_PASSWORD), Generated::Password(METADATA_SECRET)]
    }

    fn images(&self) -> &'static [(&'static str, Part)] {
        &[
            ("neutron_api", Part::OpenStack),
            ("neutron_rpc_server", Part::OpenStack),
            ("neutron_periodic_worker", Part::OpenStack),
            ("neutron_ovn_maintenance_worker", Part::OpenStack),
            ("neutron_ovn_metadata", Part::Compute),
            ("neutron_db_sync", Part::OpenStack),
            ("db_init", Part::OpenStack),
            ("ks_register", Part::OpenStack),
            ("dep_check", Part::Infra),
        ]
    }

    fn components(&self) -> &'static [&'static str] {
        // the workers are where the API is
        &["api"]
    }

    fn values(&self, request: &Request, _secrets: &Secrets) -> Value {
        let Own::Neutron(networks) = &request.own else { return json!({}) };
        json!({"conf": {"plugins": {"ml2_conf": {"ml2_type_flat": {"flat_networks": networks.flat_networks}}}}})
    }

    fn format(&self) -> Format {
        Format::Oslo
    }

    fn files(&self) -> &'static [File] {
        &[File::Policy, File::Paste, File::Logging]
    }

    fn declared_by(&self, cloud: &OpenStackSpec) -> Value {
        json!(cloud.services.neutron)
    }

    fn is_on_compute_nodes(&self) -> bool {
        true
    }

    fn doors(&self) -> &'static [Door] {
        &[Door { name: "neutron", component: "api", endpoint: ("network", ""), port: 9696, node_port: 30696 }]
    }

    fn cleans_nodes_like(&self) -> Option<&'static str> {
        Some("neutron-ovn-metadata-agent")
    }

    fn endpoint(&self, namespace: &str) -> String {
        format!("http://neutron.{namespace}.svc:9696")
    }

    fn prove<'a>(&'a self, scene: Scene<'a>) -> BoxFuture<'a, Result<(), NotProven>> {
        async move {
            probe::http(&format!("neutron.{}.svc:9696", scene.request.namespace)).await?;
            let agents = probe::client(Keystone.admin_access(scene.request, scene.secrets))?.network().agents().await?;
            let beats = |binary: &'static str| {
                let its = agents.iter().filter(move |agent| agent.binary == binary);
                Heartbeats::of(binary, its.map(|agent| (agent.host.as_str(), agent.alive)))
            };
            probe::up_on(scene.nodes, AGENTS.map(beats))
        }
        .boxed()
    }
}
