//! What a router is connected to, and the routes that lead over it.

use futures::FutureExt;
use kupenstack_openstack::{Client, ErrorKind, InterfaceBy, Route, RouterAttributes};

use super::{
    wanted::{Interfaces, Wanted, routes_to_set},
    whole::WholeRouter,
};
use crate::{actuator::Step, neutron::Whole, stop::Stop};

/// What connects a router as wanted. Routes come after the interfaces that they lead over, and needless interfaces go
/// after the routes that led over them.
pub(super) fn steps<'a>(client: &'a Client, router: &'a WholeRouter, wanted: Wanted) -> Vec<Step<'a, ()>> {
    let ways = routes_to_set(wanted.routes, &router.router);
    let Changes { missing, needless } = changes(wanted.interfaces, router);
    let connections = missing.into_iter().map(|subnet| connect(client, router, subnet).boxed());
    let ways = ways.map(|ways| lead(client, router, ways).boxed());
    let disconnections = needless.into_iter().map(|subnet| disconnect(client, router, subnet).boxed());
    connections.chain(ways).chain(disconnections).collect()
}

/// Identifiers of subnets.
struct Changes<'a> {
    missing: Vec<String>,
    needless: Vec<&'a str>,
}

fn changes(wanted: Option<Interfaces>, router: &WholeRouter) -> Changes<'_> {
    let Some(Interfaces { subnets, is_all }) = wanted else {
        return Changes { missing: Vec::new(), needless: Vec::new() };
    };
    let mut needless: Vec<&str> = router.addresses().map(|ip| ip.subnet_id.as_str()).collect();
    needless.retain(|subnet| is_all && !subnets.iter().any(|wanted| wanted == subnet));
    needless.sort_unstable();
    needless.dedup();
    Changes { missing: subnets.into_iter().filter(|subnet| !router.is_on(subnet)).collect(), needless }
}

/// An interface that is there already is refused, in one way or another.
async fn connect(client: &Client, router: &WholeRouter, subnet: String) -> Result<(), Stop> {
    let routers = client.network().routers();
    let added = routers.add_interface(&router.router.id, InterfaceBy::Subnet(&subnet)).await;
    let Err(refusal) = added else { return Ok(()) };
    if matches!(refusal.kind(), ErrorKind::BadRequest | ErrorKind::Conflict)
        && let Some(now) = routers.get(&router.router.id).await?
        && WholeRouter::of(client, now).await?.is_on(&subnet)
    {
        return Ok(());
    }
    Err(refusal.into())
}

/// Sets all routes of a router. Its interfaces have just made other revisions of it.
async fn lead(client: &Client, router: &WholeRouter, ways: Vec<Route>) -> Result<(), Stop> {
    let routers = client.network().routers();
    let Some(now) = routers.get(&router.router.id).await? else { return Ok(()) };
    let changes = RouterAttributes { routes: Some(ways), ..RouterAttributes::default() };
    Ok(routers.update(&now, &changes).await.map(drop)?)
}

async fn disconnect(client: &Client, router: &WholeRouter, subnet: &str) -> Result<(), Stop> {
    let routers = client.network().routers();
    Ok(routers.remove_interface(&router.router.id, InterfaceBy::Subnet(subnet)).await.map(drop)?)
}
