//! A router in Neutron with its interfaces, which Neutron keeps as ports.

use std::collections::HashMap;

use futures::{
    FutureExt, StreamExt, TryFutureExt, TryStreamExt,
    future::{BoxFuture, ready},
    stream::BoxStream,
};
use kupenstack_openstack::{Client, Error, FixedIp, Port, Router};
use serde::{Deserialize, Serialize};

use crate::neutron::{Whole, listed_in_neutron};

/// A router, and where it is connected.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WholeRouter {
    pub(super) router: Router,
    /// The addresses of each of its interfaces.
    interfaces: Vec<Vec<FixedIp>>,
}

impl WholeRouter {
    fn new(router: Router, mut interfaces: Vec<Vec<FixedIp>>) -> Self {
        interfaces.sort_unstable();
        Self { router, interfaces }
    }

    /// All addresses that it has on subnets inside.
    pub(super) fn addresses(&self) -> impl Iterator<Item = &FixedIp> {
        self.interfaces.iter().flatten()
    }

    /// Whether it is connected to a subnet.
    pub(super) fn is_on(&self, subnet: &str) -> bool {
        self.addresses().any(|ip| ip.subnet_id == subnet)
    }
}

/// What is kept of an interface: how its port is otherwise changes by itself.
fn addresses(port: Port) -> Vec<FixedIp> {
    let mut addresses = port.fixed_ips;
    addresses.sort_unstable();
    addresses
}

impl Whole for WholeRouter {
    type Main = Router;

    fn main(&self) -> &Router {
        &self.router
    }

    fn of(client: &Client, router: Router) -> BoxFuture<'static, Result<Self, Error>> {
        let ports = client.network().ports().of_device(&router.id);
        let interfaces = ports.try_filter(|port| ready(port.is_router_interface())).map_ok(addresses).try_collect();
        interfaces.map_ok(|interfaces| Self::new(router, interfaces)).boxed()
    }

    /// The interfaces of all routers first: one that is connected meanwhile seems to be not yet.
    fn survey(admin: &Client) -> BoxStream<'static, Result<Self, Error>> {
        let routers = admin.network().routers().survey();
        let interfaces = admin.network().ports().router_interfaces();
        let by_router = interfaces.try_fold(HashMap::<String, Vec<_>>::new(), |mut all, mut port| {
            all.entry(std::mem::take(&mut port.device_id)).or_default().push(addresses(port));
            ready(Ok(all))
        });
        by_router
            .map_ok(move |mut all| {
                routers.map_ok(move |router| {
                    let interfaces = all.remove(&router.id).unwrap_or_default();
                    Self::new(router, interfaces)
                })
            })
            .try_flatten_stream()
            .boxed()
    }
}

listed_in_neutron!(WholeRouter, "Neutron router");
