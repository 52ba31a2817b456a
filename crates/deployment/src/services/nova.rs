//! Nova: VMs.

use std::collections::BTreeMap;

use futures::{FutureExt, future::BoxFuture};
use kupenstack_api::cluster::{ComputeDriver, Conf, OpenStackSpec, Own, VirtType};
use serde_json::{Value, json};

use super::keystone::Keystone;
use crate::{
    catalogue::Part,
    credentials::Generated,
    exposure::Door,
    probe::{self, Heartbeats, NotProven},
    service::{File, Format, Kind, Request, Scene, Service},
    values::{DB_PASSWORD, SERVICE_PASSWORD, SSH_SECRET},
};

/// The way out for whoever does not want to keep VMs, or knows that there are none.
const TO_ABANDON: &str = "or set spec.abandonServers to leave VMs running with nobody who knows them";

pub(crate) struct Nova;

async fn has_servers(scene: Scene<'_>) -> Result<bool, NotProven> {
    let nova = probe::client(Keystone.admin_access(scene.request, scene.secrets))?.compute();
    Ok(nova.any_server().await?)
}

impl Service for Nova {
    fn kind(&self) -> Kind {
        Kind::Nova
    }

    fn by_default(&self) -> bool {
        false
    }

    fn dependencies(&self) -> &'static [Kind] {
        &[
            Kind::MariaDB,
            Kind::Memcached,
            Kind::Keystone,
            Kind::Glance,
            Kind::RabbitMQ,
            Kind::Placement,
            Kind::Neutron,
            Kind::Libvirt,
        ]
    }

    fn credentials(&self) -> &'static [Generated] {
        &[Generated::Password(DB_PASSWORD), Generated::Password(SERVICE_PASSWORD), Generated::Password(SSH_SECRET)]
    }

    fn images(&self) -> &'static [(&'static str, Part)] {
        &[
            ("nova_api", Part::OpenStack),
            ("nova_api_metadata", Part::OpenStack),
            ("nova_conductor", Part::OpenStack),
            ("nova_scheduler", Part::OpenStack),
            ("nova_novncproxy", Part::OpenStack),
            ("nova_compute", Part::Compute),
            ("nova_db_sync", Part::OpenStack),
            ("db_init", Part::OpenStack),
            ("ks_register", Part::OpenStack),
            ("dep_check", Part::Infra),
        ]
    }

    fn components(&self) -> &'static [&'static str] {
        &["osapi", "api_metadata", "conductor", "scheduler", "novncproxy"]
    }

    fn format(&self) -> Format {
        Format::Oslo
    }

    fn files(&self) -> &'static [File] {
        &[File::Policy, File::Paste, File::Logging]
    }

    fn options(&self, request: &Request) -> Conf {
        let Own::Nova(hypervisors) = &request.own else { return Conf::new() };
        let virt_type = hypervisors.virt_type.map(|virt_type| match virt_type {
            VirtType::Kvm => "kvm",
            VirtType::Qemu => "qemu",
        });
        let driver = hypervisors.driver.map(|driver| match driver {
            ComputeDriver::Libvirt => "libvirt.LibvirtDriver",
            ComputeDriver::Fake => "fake.FakeDriverWithoutFakeNodes",
        });
        let given = [("libvirt", "virt_type", virt_type), ("DEFAULT", "compute_driver", driver)];
        let option = |(section, option, value): (&str, &str, Option<&str>)| {
            value.map(|value| (section.to_owned(), BTreeMap::from([(option.to_owned(), json!(value))])))
        };
        given.into_iter().filter_map(option).collect()
    }

    fn declared_by(&self, cloud: &OpenStackSpec) -> Value {
        json!(cloud.services.nova)
    }

    fn is_on_compute_nodes(&self) -> bool {
        true
    }

    fn doors(&self) -> &'static [Door] {
        &[
            Door { name: "nova", component: "osapi", endpoint: ("compute", "/v2.1"), port: 8774, node_port: 30774 },
            Door {
                name: "console",
                component: "novncproxy",
                endpoint: ("compute_novnc_proxy", "/vnc_lite.html"),
                port: 6080,
                node_port: 30608,
            },
        ]
    }

    fn endpoint(&self, namespace: &str) -> String {
        format!("http://nova-api.{namespace}.svc:8774/v2.1")
    }

    fn prove<'a>(&'a self, scene: Scene<'a>) -> BoxFuture<'a, Result<(), NotProven>> {
        async move {
            probe::http(&format!("nova-api.{}.svc:8774", scene.request.namespace)).await?;
            let nova = probe::client(Keystone.admin_access(scene.request, scene.secrets))?.compute();
            let services = nova.services().await?;
            let beats = |binary: &'static str| {
                let its = services.iter().filter(move |service| service.binary == binary);
                Heartbeats::of(binary, its.map(|service| (service.host.as_str(), service.is_up())))
            };
            probe::one_up(["nova-conductor", "nova-scheduler"].map(beats))?;
            // one that is up but not in a cell yet gets no VM
            let hypervisors = nova.hypervisors().await?;
            let hypervisors = hypervisors.iter().map(|hypervisor| (hypervisor.host.as_str(), hypervisor.is_up()));
            probe::up_on(scene.nodes, [beats("nova-compute"), Heartbeats::of("hypervisors", hypervisors)])
        }
        .boxed()
    }

    fn prove_unused<'a>(&'a self, scene: Scene<'a>) -> BoxFuture<'a, Result<(), NotProven>> {
        async move {
            if matches!(&scene.request.own, Own::Nova(hypervisors) if hypervisors.abandon_servers) {
                return Ok(());
            }
            match has_servers(scene).await {
                Ok(false) => Ok(()),
                Ok(true) => Err(NotProven::InUse(format!("there are VMs: delete them, {TO_ABANDON}"))),
                Err(why) => Err(NotProven::Unwell(format!("{why}; mend that, {TO_ABANDON}"))),
            }
        }
        .boxed()
    }
}
