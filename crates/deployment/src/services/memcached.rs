//! Memcached: the cache of the cloud.

use futures::{FutureExt, future::BoxFuture};
use kupenstack_api::cluster::OpenStackSpec;
use serde_json::{Value, json};

use crate::{
    catalogue::Part,
    credentials::Generated,
    probe::{self, NotProven},
    service::{Format, Kind, Scene, Service},
    values::CACHE_KEY,
};

pub(crate) struct Memcached;

impl Service for Memcached {
    fn kind(&self) -> Kind {
        Kind::Memcached
    }

    fn dependencies(&self) -> &'static [Kind] {
        &[]
    }

    fn credentials(&self) -> &'static [Generated] {
        // not the server's own: what its clients encrypt with before they store a token there
        &[Generated::Password(CACHE_KEY)]
    }

    fn images(&self) -> &'static [(&'static str, Part)] {
        &[("memcached", Part::Infra)]
    }

    fn components(&self) -> &'static [&'static str] {
        &["server"]
    }

    fn format(&self) -> Format {
        Format::Flat(&["memcached"])
    }

    fn declared_by(&self, cloud: &OpenStackSpec) -> Value {
        json!(cloud.services.memcached)
    }

    fn endpoint(&self, namespace: &str) -> String {
        format!("memcached.{namespace}.svc:11211")
    }

    fn prove<'a>(&'a self, scene: Scene<'a>) -> BoxFuture<'a, Result<(), NotProven>> {
        async move {
            let address = format!("memcached.{}.svc:11211", scene.request.namespace);
            probe::tcp(&address, b"version\r\n", |answer| answer.starts_with(b"VERSION ")).await
        }
        .boxed()
    }
}
