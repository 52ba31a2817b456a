//! VMs that fail, stop by themselves or vanish.

use std::time::Duration;

use kupenstack_api::resources::{Port, VirtualMachine};
use kupenstack_testkit::sim::{Effect, Rule};
use serde_json::json;

use crate::{
    common::look::{id, is_ready, shown, until},
    virtual_machine::{create, edit, meddle, only, phase, servers, surroundings, vanish},
    world::{self, World},
};

/// It comes back at the same port, and so with the same MAC and address.
#[tokio::test(flavor = "multi_thread")]
async fn external_deletion_is_made_good_on_the_same_address() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    create(&tenant, "lost", json!({})).await;
    let first = tenant.ready::<VirtualMachine>("lost").await;
    let port = id(&tenant.ready::<Port>("lost.net").await);
    // as with a real Nova, which takes a while: it is seen to go before it is gone
    meddle(tenant.world, &id(&first), |server| server.task_state = Some("deleting"));
    phase(&tenant, "lost", "Restarting").await;
    vanish(tenant.world, &id(&first));
    let again = until(tenant.api(), "lost", |vm: &VirtualMachine| is_ready(vm) && id(vm) != id(&first)).await;
    let (before, after) = (first.status.unwrap(), again.status.unwrap());
    assert_eq!((before.addresses, after.restarts), (after.addresses, 1));
    assert_eq!(id(&tenant.ready::<Port>("lost.net").await), port);
    only(&tenant).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_of_never_leaves_what_is_gone_gone() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    create(&tenant, "once", json!({"restartPolicy": "Never"})).await;
    let first = tenant.ready::<VirtualMachine>("once").await;
    vanish(tenant.world, &id(&first));
    let failed = phase(&tenant, "once", "Failed").await;
    assert!(shown(&failed).1.contains("restartPolicy is Never"), "{:?}", shown(&failed));
    assert!(servers(tenant.world, &tenant.project().await).is_empty());
    edit(&tenant, "once", json!({"restartPolicy": "Always"})).await;
    only(&tenant).await;
}

/// Shut down from within.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_stops_by_itself_is_started_again_at_a_growing_pace() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    create(&tenant, "fragile", json!({})).await;
    let server = id(&tenant.ready::<VirtualMachine>("fragile").await);
    // Nova's times are of whole seconds
    let shut_down = || {
        tenant.world.sim.clock().advance(Duration::from_secs(2));
        let now = tenant.world.sim.clock().now();
        meddle(tenant.world, &server, |server| (server.vm_state, server.updated_at) = ("stopped", now));
    };
    shut_down();
    let restarted =
        until(tenant.api(), "fragile", |vm: &VirtualMachine| is_ready(vm) && vm.status.as_ref().unwrap().restarts == 1)
            .await;
    assert_eq!(id(&restarted), server);
    shut_down();
    let waiting = phase(&tenant, "fragile", "CrashLoopBackOff").await;
    assert!(shown(&waiting).1.contains("it is started again after"), "{:?}", shown(&waiting));
    assert_eq!((waiting.status.unwrap().restarts, only(&tenant).await.status()), (2, "SHUTOFF"));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_shut_down_stays_so_if_only_failures_count() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    create(&tenant, "task", json!({"restartPolicy": "OnFailure"})).await;
    let server = id(&tenant.ready::<VirtualMachine>("task").await);
    meddle(tenant.world, &server, |server| server.vm_state = "stopped");
    let stopped = phase(&tenant, "task", "Stopped").await;
    assert!(shown(&stopped).1.contains("set powerState to Stopped and then to Running"), "{:?}", shown(&stopped));
    edit(&tenant, "task", json!({"powerState": "Stopped"})).await;
    edit(&tenant, "task", json!({"powerState": "Running"})).await;
    assert_eq!(only(&tenant).await.status(), "ACTIVE");
}

/// The fault is told, and goes when the VM runs; nothing has to be touched for that.
#[tokio::test(flavor = "multi_thread")]
async fn capo_2622_one_in_error_comes_back_by_itself() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    create(&tenant, "broken", json!({"restartPolicy": "Never"})).await;
    let server = id(&tenant.ready::<VirtualMachine>("broken").await);
    let now = tenant.world.sim.clock().now();
    assert!(tenant.world.sim.cloud().nova.fail_server(now, &server, "the host burns"));
    let failed = phase(&tenant, "broken", "Failed").await;
    assert!(shown(&failed).1.contains("the host burns"), "{:?}", shown(&failed));
    assert_eq!(failed.status.unwrap().fault.unwrap().message, "the host burns");
    meddle(tenant.world, &server, |server| {
        server.vm_state = "active";
        server.fault = None;
    });
    let well = tenant.ready::<VirtualMachine>("broken").await;
    assert_eq!((id(&well), well.status.unwrap().fault), (server, None));
}

/// As a real Nova does with the words of the host, when no other host is left.
#[tokio::test(flavor = "multi_thread")]
async fn where_nova_forgets_the_cause_it_is_told_where_that_is() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    create(&tenant, "full", json!({"restartPolicy": "Never"})).await;
    let server = id(&tenant.ready::<VirtualMachine>("full").await);
    let now = tenant.world.sim.clock().now();
    let fault =
        "Exceeded maximum number of retries. Exhausted all hosts available for retrying build failures for instance x.";
    assert!(tenant.world.sim.cloud().nova.fail_server(now, &server, fault));
    let failed = phase(&tenant, "full", "Failed").await;
    assert!(shown(&failed).1.contains("is in the log of its nova-compute: restartPolicy"), "{:?}", shown(&failed));
}

/// One that has run is rebooted, since its disk is still there.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_breaks_is_rebooted_with_its_disk() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    create(&tenant, "rebooted", json!({})).await;
    let server = id(&tenant.ready::<VirtualMachine>("rebooted").await);
    let now = tenant.world.sim.clock().now();
    assert!(tenant.world.sim.cloud().nova.fail_server(now, &server, "the host burns"));
    let well = until(tenant.api(), "rebooted", |vm: &VirtualMachine| {
        is_ready(vm) && vm.status.as_ref().unwrap().restarts == 1
    })
    .await;
    assert_eq!((id(&well), well.status.unwrap().fault), (server, None));
}

/// "No valid host" waits, says so, and goes on by itself when there is room; no port is left over however often it is tried.
#[tokio::test(flavor = "multi_thread")]
async fn machine_controller_2040_capo_1404_no_room_is_told_and_waited_for() {
    let world = World::start().await;
    world.declare_cloud().await;
    let operator = world.operator();
    let tenant = world.tenant().await;
    surroundings(&tenant).await;
    world.sim.cloud().nova.set_room(Some(0));
    create(&tenant, "homeless", json!({})).await;
    let waiting = until(tenant.api(), "homeless", |vm: &VirtualMachine| {
        shown(vm).0 == "CrashLoopBackOff" && vm.status.as_ref().unwrap().restarts == 2
    })
    .await;
    assert!(shown(&waiting).1.contains("No valid host was found"), "{:?}", shown(&waiting));
    assert_eq!(waiting.status.unwrap().fault.unwrap().code, 500);
    world.sim.cloud().nova.set_room(None);
    let vm = tenant.ready::<VirtualMachine>("homeless").await;
    assert_eq!(vm.status.unwrap().fault, None);
    only(&tenant).await;
    assert_eq!(world.count("POST", "/v2.0/ports"), 1);
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn garm_79_a_server_that_was_made_while_its_answer_failed_is_the_only_one() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    tenant.world.fail_next(Rule::on("compute", "POST", "/v2.1/servers", Effect::lost_answer()));
    create(&tenant, "lied", json!({})).await;
    tenant.ready::<VirtualMachine>("lied").await;
    only(&tenant).await;
}

/// Its conductor died with the database when it was about to choose a host: seen on a real Nova, which shows such a server as being
/// built for ever.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_nova_forgets_to_place_is_made_anew() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    create(&tenant, "forgotten", json!({})).await;
    let first = tenant.ready::<VirtualMachine>("forgotten").await;
    let now = tenant.world.sim.clock().now();
    meddle(tenant.world, &id(&first), |server| {
        (server.vm_state, server.task_state) = ("building", Some("scheduling"));
        (server.host, server.launched_at, server.created_at) = (None, None, now - Duration::from_mins(11));
    });
    let again = until(tenant.api(), "forgotten", |vm: &VirtualMachine| is_ready(vm) && id(vm) != id(&first)).await;
    assert_eq!(again.status.unwrap().restarts, 1);
    only(&tenant).await;
}
