//! Hosts that die, and what an administrator says of them.

use futures::TryStreamExt;
use kupenstack_openstack::{Compute, ComputeService, ErrorKind, ServiceChanges};
use kupenstack_testkit::sim::HostLife;

use super::{Shop, new_server, shop};

const UP: ServiceChanges = ServiceChanges { status: "enabled", disabled_reason: None, forced_down: false };

fn down() -> ServiceChanges {
    ServiceChanges { status: "disabled", disabled_reason: Some("no power".to_owned()), forced_down: true }
}

async fn two_hosts() -> Shop {
    let shop = shop().await;
    shop.sim.cloud().nova.set_hosts(&["node1", "node2"]);
    shop
}

async fn service(compute: &Compute, host: &str) -> ComputeService {
    compute.compute_services().await.unwrap().into_iter().find(|service| service.host == host).unwrap()
}

async fn on(compute: &Compute, host: &str) -> Vec<String> {
    compute.servers_on(host).try_collect().await.unwrap()
}

#[tokio::test]
async fn what_is_said_of_a_host_is_shown() {
    let shop = two_hosts().await;
    let compute = shop.admin.compute();
    let before = service(&compute, "node1").await;
    assert!(before.is_up() && before.status == "enabled");

    compute.update_service(&before.id, &down()).await.unwrap();
    let after = service(&compute, "node1").await;
    assert!(after.forced_down && !after.is_up());
    assert_eq!((after.status.as_str(), after.disabled_reason.as_deref()), ("disabled", Some("no power")));
    assert!(service(&compute, "node2").await.is_up());

    let odd = ServiceChanges { status: "enabled", ..down() };
    let refused = async |id: &str, changes| compute.update_service(id, changes).await.unwrap_err().kind();
    assert_eq!(refused(&before.id, &odd).await, ErrorKind::BadRequest);
    assert_eq!(refused("none", &UP).await, ErrorKind::NotFound);
    let conductor = compute.services().await.unwrap().into_iter().find(|one| one.binary == "nova-conductor").unwrap();
    assert_eq!(refused(&conductor.id, &UP).await, ErrorKind::BadRequest);
    compute.update_service(&before.id, &UP).await.unwrap();
    assert!(service(&compute, "node1").await.is_up());
}

#[tokio::test]
async fn others_may_not() {
    let shop = two_hosts().await;
    let service = service(&shop.admin.compute(), "node1").await;
    let compute = shop.client.compute();
    assert_eq!(compute.update_service(&service.id, &down()).await.unwrap_err().kind(), ErrorKind::Forbidden);
    let refused = compute.servers_on("node1").try_collect::<Vec<_>>().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Forbidden);
}

/// Who was asked to delete a server, and died before, is waited for until Nova is told.
#[tokio::test]
async fn a_server_on_a_dead_host_is_deleted_only_when_nova_knows() {
    let shop = two_hosts().await;
    let compute = shop.admin.compute();
    let id = shop.make(&new_server("web")).await;
    shop.status(&id).await;
    assert_eq!((on(&compute, "node1").await, on(&compute, "node2").await), (vec![id.clone()], Vec::new()));
    shop.sim.cloud().nova.edit_service("node1", |service| service.life = HostLife::Dead);
    shop.client.compute().delete_server(&id).await.unwrap();
    shop.client.compute().delete_server(&id).await.unwrap();
    assert_eq!(shop.look(&id).await.task_state.as_deref(), Some("deleting"));

    let dead = service(&compute, "node1").await;
    assert!(dead.is_up(), "Nova has not noticed");
    compute.update_service(&dead.id, &down()).await.unwrap();
    shop.client.compute().delete_server(&id).await.unwrap();
    assert_eq!(shop.client.compute().get_server(&id).await.unwrap(), None);
    let next = shop.make(&new_server("web")).await;
    assert_eq!(on(&compute, "node2").await, [next]);
}
