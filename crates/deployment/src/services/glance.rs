//! Glance: the image service.

use std::pin::pin;

use futures::{FutureExt, TryStreamExt, future::BoxFuture};
use kupenstack_api::cluster::OpenStackSpec;
use kupenstack_openstack::{CloudConfig, ImageFilter};
use serde_json::{Value, json};

use super::keystone::Keystone;
use crate::{
    catalogue::Part,
    credentials::Generated,
    exposure::Door,
    probe::{self, NotProven},
    service::{File, Format, Kind, Scene, Service},
    values::{DB_PASSWORD, SERVICE_PASSWORD},
};

pub(crate) struct Glance;

impl Service for Glance {
    fn kind(&self) -> Kind {
        Kind::Glance
    }

    fn dependencies(&self) -> &'static [Kind] {
        &[Kind::MariaDB, Kind::Memcached, Kind::Keystone]
    }

    fn credentials(&self) -> &'static [Generated] {
        &[Generated::Password(DB_PASSWORD), Generated::Password(SERVICE_PASSWORD)]
    }

    fn images(&self) -> &'static [(&'static str, Part)] {
        &[
            ("glance_api", Part::OpenStack),
            ("glance_db_sync", Part::OpenStack),
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
        &[File::Policy, File::Paste, File::Logging]
    }

    fn declared_by(&self, cloud: &OpenStackSpec) -> Value {
        json!(cloud.services.glance)
    }

    fn has_volume(&self) -> bool {
        true
    }

    fn doors(&self) -> &'static [Door] {
        &[Door { name: "glance", component: "api", endpoint: ("image", ""), port: 9292, node_port: 30292 }]
    }

    fn endpoint(&self, namespace: &str) -> String {
        format!("http://glance.{namespace}.svc:9292")
    }

    fn prove<'a>(&'a self, scene: Scene<'a>) -> BoxFuture<'a, Result<(), NotProven>> {
        async move {
            let access: Option<CloudConfig> = Keystone.admin_access(scene.request, scene.secrets);
            // the list goes through the catalogue, Glance, its check of the token at Keystone, and its database
            let images = probe::client(access)?.image();
            pin!(images.list(&ImageFilter::default())).try_next().await?;
            Ok(())
        }
        .boxed()
    }
}
