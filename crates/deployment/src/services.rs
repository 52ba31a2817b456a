//! The services, one module each.

mod glance;
mod keystone;
mod libvirt;
mod mariadb;
mod memcached;
mod neutron;
mod nova;
mod ovn;
mod placement;
mod rabbitmq;

use std::sync::Arc;

use futures::future::BoxFuture;
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
        Kind::Ovn => &ovn::Ovn,
        Kind::Neutron => &neutron::Neutron,
        Kind::Libvirt => &libvirt::Libvirt,
        Kind::Nova => &nova::Nova,
    }
}

/// Calls a function that is generic over the type of a service's object, with the type of this kind's.
macro_rules! typed {
    ($kind:expr, $function:ident($($argument:expr),* $(,)?)) => {
        match $kind {
            $crate::service::Kind::MariaDB => $function::<::kupenstack_api::cluster::MariaDB>($($argument),*),
            $crate::service::Kind::Memcached => $function::<::kupenstack_api::cluster::Memcached>($($argument),*),
            $crate::service::Kind::Keystone => $function::<::kupenstack_api::cluster::Keystone>($($argument),*),
            $crate::service::Kind::Glance => $function::<::kupenstack_api::cluster::Glance>($($argument),*),
            $crate::service::Kind::RabbitMQ => $function::<::kupenstack_api::cluster::RabbitMQ>($($argument),*),
            $crate::service::Kind::Placement => $function::<::kupenstack_api::cluster::Placement>($($argument),*),
            $crate::service::Kind::Ovn => $function::<::kupenstack_api::cluster::OVN>($($argument),*),
            $crate::service::Kind::Neutron => $function::<::kupenstack_api::cluster::Neutron>($($argument),*),
            $crate::service::Kind::Libvirt => $function::<::kupenstack_api::cluster::Libvirt>($($argument),*),
            $crate::service::Kind::Nova => $function::<::kupenstack_api::cluster::Nova>($($argument),*),
        }
    };
}
pub(crate) use typed;

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
    Kind::ALL.map(|kind| typed!(kind, controller(of(kind), context, engine, board, references, namespace))).into()
}

#[cfg(test)]
mod tests;
