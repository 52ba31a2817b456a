//! Placement: what resources hypervisors have.

use futures::{FutureExt, future::BoxFuture};
use kupenstack_api::cluster::OpenStackSpec;
use serde_json::{Value, json};

use crate::{
    catalogue::Part,
    credentials::Generated,
    exposure::Door,
    probe::{self, NotProven},
    service::{File, Format, Kind, Scene, Service},
    values::{DB_PASSWORD, SERVICE_PASSWORD},
};

pub(crate) struct Placement;

impl Service for Placement {
    fn kind(&self) -> Kind {
        Kind::Placement
    }

    fn by_default(&self) -> bool {
        false
    }

    fn dependencies(&self) -> &'static [Kind] {
        &[Kind::MariaDB, Kind::Memcached, Kind::Keystone]
    }

    fn credentials(&self) -> &'static [Generated] {
        &[Generated::Password(DB_PASSWORD), Generated::Password(SERVICE_PASSWORD)]
    }

    fn images(&self) -> &'static [(&'static str, Part)] {
        &[
            ("placement", Part::OpenStack),
            ("placement_db_sync", Part::OpenStack),
            ("db_init", Part::OpenStack),
            ("ks_register", Part::OpenStack),
            ("dep_check", Part::OpenStack),
        ]
    }

    fn components(&self) -> &'static [&'static str] {
        &["api"]
    }

    fn format(&self) -> Format {
        Format::Oslo
    }

    fn files(&self) -> &'static [File] {
        &[File::Policy, File::Logging]
    }

    fn declared_by(&self, cloud: &OpenStackSpec) -> Value {
        json!(cloud.services.placement)
    }

    fn doors(&self) -> &'static [Door] {
        &[Door { name: "placement", component: "api", endpoint: ("placement", ""), port: 8778, node_port: 30778 }]
    }

    fn endpoint(&self, namespace: &str) -> String {
        format!("http://placement.{namespace}.svc:8778")
    }

    fn prove<'a>(&'a self, scene: Scene<'a>) -> BoxFuture<'a, Result<(), NotProven>> {
        // the versions, which everybody may read: the server, its application and its configuration are sound
        async move { probe::http(&format!("placement.{}.svc:8778", scene.request.namespace)).await }.boxed()
    }
}
