//! Libvirt: what starts VMs on their nodes.

use futures::{FutureExt, future::BoxFuture};
use kupenstack_api::cluster::OpenStackSpec;
use serde_json::{Value, json};

use crate::{
    catalogue::Part,
    credentials::Generated,
    probe::NotProven,
    service::{Format, Kind, Scene, Service},
};

pub(crate) struct Libvirt;

impl Service for Libvirt {
    fn kind(&self) -> Kind {
        Kind::Libvirt
    }

    fn by_default(&self) -> bool {
        false
    }

    fn dependencies(&self) -> &'static [Kind] {
        // VMs are plugged into its switch
        &[Kind::Ovn]
    }

    fn credentials(&self) -> &'static [Generated] {
        &[]
    }

    fn images(&self) -> &'static [(&'static str, Part)] {
        &[("libvirt", Part::Compute)]
    }

    fn components(&self) -> &'static [&'static str] {
        &[]
    }

    fn format(&self) -> Format {
        Format::Flat(&["libvirt", "qemu"])
    }

    fn declared_by(&self, cloud: &OpenStackSpec) -> Value {
        json!(cloud.services.libvirt)
    }

    fn is_on_compute_nodes(&self) -> bool {
        true
    }

    fn cleans_nodes_like(&self) -> Option<&'static str> {
        Some("libvirt")
    }

    fn endpoint(&self, _namespace: &str) -> String {
        "qemu:///system".to_owned()
    }

    fn prove<'a>(&'a self, _scene: Scene<'a>) -> BoxFuture<'a, Result<(), NotProven>> {
        // it answers on its own node only, where the probe of its pod asks it
        std::future::ready(Ok(())).boxed()
    }
}
