//! RabbitMQ: the message broker of the cloud.

use futures::{FutureExt, future::BoxFuture};
use kupenstack_api::cluster::OpenStackSpec;
use serde_json::{Value, json};

use crate::{
    catalogue::Part,
    credentials::Generated,
    probe::{self, NotProven},
    service::{Format, Kind, Scene, Service},
    values::{BROKER_NEUTRON, BROKER_NOVA, ERLANG_COOKIE},
};

/// What a client of AMQP 0-9-1 says first.
const GREETING: &[u8] = b"AMQP\x00\x00\x09\x01";
/// How the server's first frame begins: a method, on channel 0.
const METHOD_FRAME: &[u8] = &[1, 0, 0];

pub(crate) struct RabbitMQ;

impl Service for RabbitMQ {
    fn kind(&self) -> Kind {
        Kind::RabbitMQ
    }

    fn by_default(&self) -> bool {
        false
    }

    fn dependencies(&self) -> &'static [Kind] {
        &[]
    }

    fn credentials(&self) -> &'static [Generated] {
        // each client has a user and a virtual host of its own; the server makes them when it starts
        &[Generated::Password(ERLANG_COOKIE), Generated::Password(BROKER_NEUTRON), Generated::Password(BROKER_NOVA)]
    }

    fn images(&self) -> &'static [(&'static str, Part)] {
        &[("rabbitmq", Part::Infra)]
    }

    fn components(&self) -> &'static [&'static str] {
        &["server"]
    }

    fn format(&self) -> Format {
        Format::Flat(&["rabbitmq"])
    }

    fn declared_by(&self, cloud: &OpenStackSpec) -> Value {
        json!(cloud.services.rabbitmq)
    }

    fn has_volume(&self) -> bool {
        true
    }

    fn endpoint(&self, namespace: &str) -> String {
        format!("amqp://rabbitmq.{namespace}.svc:5672")
    }

    fn prove<'a>(&'a self, scene: Scene<'a>) -> BoxFuture<'a, Result<(), NotProven>> {
        async move {
            let address = format!("rabbitmq.{}.svc:5672", scene.request.namespace);
            probe::tcp(&address, GREETING, |answer| answer.starts_with(METHOD_FRAME)).await
        }
        .boxed()
    }
}
