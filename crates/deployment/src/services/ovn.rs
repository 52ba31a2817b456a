//! OVN: the virtual networks of VMs.

use futures::{FutureExt, future::BoxFuture};
use kupenstack_api::cluster::{Datapath, OVNNetworking, OpenStackSpec, Own};
use serde_json::{Value, json};

use crate::{
    catalogue::Part,
    credentials::Generated,
    probe::{self, NotProven},
    service::{Format, Kind, Request, Scene, Secrets, Service},
};

/// A request of OVSDB's protocol that asks for nothing but an answer, and how the answer to it ends or begins.
const ECHO: &[u8] = br#"{"method":"echo","params":[],"id":"proof"}"#;
const ANSWER: &[u8] = br#""id":"proof""#;
/// Ports of the northbound and the southbound database.
const DATABASES: [(&str, u16); 2] = [("ovn-ovsdb-nb", 6641), ("ovn-ovsdb-sb", 6642)];

pub(crate) struct Ovn;

impl Service for Ovn {
    fn kind(&self) -> Kind {
        Kind::Ovn
    }

    fn by_default(&self) -> bool {
        false
    }

    fn dependencies(&self) -> &'static [Kind] {
        &[]
    }

    fn credentials(&self) -> &'static [Generated] {
        &[]
    }

    fn images(&self) -> &'static [(&'static str, Part)] {
        &[
            ("ovn_ovsdb_nb", Part::Compute),
            ("ovn_ovsdb_sb", Part::Compute),
            ("ovn_northd", Part::Compute),
            ("ovn_controller", Part::Compute),
            ("openvswitch_db_server", Part::Compute),
            ("openvswitch_vswitchd", Part::Compute),
        ]
    }

    fn components(&self) -> &'static [&'static str] {
        &["ovsdb_nb", "ovsdb_sb", "northd"]
    }

    fn values(&self, request: &Request, _secrets: &Secrets) -> Value {
        let Own::Ovn(OVNNetworking { datapath, tunnel_interface, bridge_mappings, external_interfaces, .. }) =
            &request.own
        else {
            return json!({});
        };
        let datapath = datapath.map(|datapath| match datapath {
            Datapath::Kernel => "system",
            Datapath::Userspace => "netdev",
        });
        let mappings = bridge_mappings.as_ref().map(|mappings| {
            let pairs: Vec<_> = mappings.iter().map(|(network, bridge)| format!("{network}:{bridge}")).collect();
            pairs.join(",")
        });
        json!({
            "conf": {
                "ovn_bridge_datapath_type": datapath,
                "ovn_bridge_mappings": mappings,
                "auto_bridge_add": external_interfaces,
            },
            "network": {"interface": {"tunnel": tunnel_interface}},
        })
    }

    fn format(&self) -> Format {
        Format::Flat(&[])
    }

    fn declared_by(&self, cloud: &OpenStackSpec) -> Value {
        json!(cloud.services.ovn)
    }

    fn has_volume(&self) -> bool {
        true
    }

    fn is_on_compute_nodes(&self) -> bool {
        true
    }

    fn cleans_nodes_like(&self) -> Option<&'static str> {
        Some("ovn-openvswitch-vswitchd")
    }

    fn endpoint(&self, namespace: &str) -> String {
        let [(host, port), _] = DATABASES;
        format!("tcp:{host}.{namespace}.svc:{port}")
    }

    fn prove<'a>(&'a self, scene: Scene<'a>) -> BoxFuture<'a, Result<(), NotProven>> {
        async move {
            for (host, port) in DATABASES {
                let address = format!("{host}.{}.svc:{port}", scene.request.namespace);
                let fits = |answer: &[u8]| answer.windows(ANSWER.len()).any(|part| part == ANSWER);
                probe::tcp(&address, ECHO, fits).await?;
            }
            Ok(())
        }
        .boxed()
    }
}
