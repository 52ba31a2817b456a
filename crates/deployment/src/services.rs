//! The services, one module each.

mod glance;
mod keystone;
mod mariadb;
mod memcached;
mod placement;
mod rabbitmq;

use std::sync::Arc;

use futures::future::BoxFuture;
use kupenstack_api::cluster;
use kupenstack_runtime::Context;

use crate::{
    board::Board,
    controller::controller,
    engine::Engine,
    references::References,
    service::{Kind, Service},
};

/// The module of a service.
pub(crate) fn of(kind: Kind) -> &'static dyn Service {
    match kind {
        Kind::MariaDB => &mariadb::MariaDB,
        Kind::Memcached => &memcached::Memcached,
        Kind::Keystone => &keystone::Keystone,
        Kind::Glance => &glance::Glance,
        Kind::RabbitMQ => &rabbitmq::RabbitMQ,
        Kind::Placement => &placement::Placement,
    }
}

/// Whether `dependent` needs `kind`.
pub(crate) fn depends_on(dependent: Kind, kind: Kind) -> bool {
    of(dependent).dependencies().contains(&kind)
}

/// One controller per service kind.
pub(crate) fn controllers(
    context: &Context,
    engine: &Arc<Engine>,
    board: &Arc<Board>,
    references: &References,
    namespace: &str,
) -> Vec<(&'static str, BoxFuture<'static, ()>)> {
    vec![
        controller::<cluster::MariaDB>(mariadb::MariaDB, context, engine, board, references, namespace),
        controller::<cluster::Memcached>(memcached::Memcached, context, engine, board, references, namespace),
        controller::<cluster::Keystone>(keystone::Keystone, context, engine, board, references, namespace),
        controller::<cluster::Glance>(glance::Glance, context, engine, board, references, namespace),
        controller::<cluster::RabbitMQ>(rabbitmq::RabbitMQ, context, engine, board, references, namespace),
        controller::<cluster::Placement>(placement::Placement, context, engine, board, references, namespace),
    ]
}
