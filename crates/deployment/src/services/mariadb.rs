//! MariaDB: the database of the cloud.

use futures::{FutureExt, future::BoxFuture};
use kupenstack_api::cluster::OpenStackSpec;
use serde_json::{Value, json};

use crate::{
    catalogue::Part,
    credentials::Generated,
    probe::{self, NotProven},
    service::{Format, Kind, Scene, Service},
    values::ROOT_PASSWORD,
};

pub(crate) struct MariaDB;

impl Service for MariaDB {
    fn kind(&self) -> Kind {
        Kind::MariaDB
    }

    fn dependencies(&self) -> &'static [Kind] {
        &[]
    }

    fn credentials(&self) -> &'static [Generated] {
        &[Generated::Password(ROOT_PASSWORD)]
    }

    fn images(&self) -> &'static [(&'static str, Part)] {
        &[("mariadb", Part::Infra)]
    }

    fn components(&self) -> &'static [&'static str] {
        &["server"]
    }

    fn format(&self) -> Format {
        Format::Sections
    }

    fn declared_by(&self, cloud: &OpenStackSpec) -> Value {
        json!(cloud.services.mariadb)
    }

    fn has_volume(&self) -> bool {
        true
    }

    fn endpoint(&self, namespace: &str) -> String {
        format!("mysql://mariadb.{namespace}.svc:3306")
    }

    fn prove<'a>(&'a self, scene: Scene<'a>) -> BoxFuture<'a, Result<(), NotProven>> {
        async move {
            let address = format!("mariadb.{}.svc:3306", scene.request.namespace);
            // the server speaks first: a packet header of four bytes, then protocol version 10
            probe::tcp(&address, b"", |answer| answer.get(4) == Some(&10)).await
        }
        .boxed()
    }
}
