//! What takes time, and what goes wrong.

use kupenstack_openstack::{ErrorKind, NewServer, ServerAction, ServerChanges};
use rstest::rstest;

use super::{BUILD, new_server, resize, shop, slow_shop};

#[tokio::test]
async fn whatever_is_done_takes_a_while() {
    use ServerAction::{ConfirmResize, Reboot, Resume, RevertResize, Start, Stop, Suspend};
    let shop = slow_shop().await;
    let id = shop.make(&new_server("web")).await;
    let building = shop.look(&id).await;
    assert_eq!((building.status.as_str(), building.task_state.as_deref()), ("BUILD", Some("spawning")));
    assert_eq!(building.launched, None);
    shop.sim.clock().advance(BUILD / 2);
    assert_eq!(shop.status(&id).await, "BUILD");
    shop.sim.clock().advance(BUILD / 2);
    assert_eq!(shop.status(&id).await, "ACTIVE");
    for (action, task, during, then) in [
        (Stop, Some("powering-off"), "ACTIVE", "SHUTOFF"),
        (Start, Some("powering-on"), "SHUTOFF", "ACTIVE"),
        (Suspend, Some("suspending"), "ACTIVE", "SUSPENDED"),
        (Resume, Some("resuming"), "SUSPENDED", "ACTIVE"),
        (Reboot { hard: false }, Some("rebooting"), "REBOOT", "ACTIVE"),
        (Reboot { hard: true }, Some("rebooting_hard"), "HARD_REBOOT", "ACTIVE"),
        (resize("large"), Some("resize_prep"), "RESIZE", "VERIFY_RESIZE"),
        (RevertResize, Some("resize_reverting"), "REVERT_RESIZE", "ACTIVE"),
        (Stop, Some("powering-off"), "ACTIVE", "SHUTOFF"),
        (resize("large"), Some("resize_prep"), "RESIZE", "VERIFY_RESIZE"),
        (ConfirmResize, None, "VERIFY_RESIZE", "SHUTOFF"),
    ] {
        let told = format!("{action:?}");
        shop.act(&id, action).await;
        let seen = shop.look(&id).await;
        assert_eq!((seen.status.as_str(), seen.task_state.as_deref()), (during, task), "{told}");
        if task.is_some() {
            let busy = shop.client.compute().act_on_server(&id, &Stop).await.unwrap_err();
            assert_eq!(busy.kind(), ErrorKind::Conflict, "{told}: {busy}");
        }
        if told == "ConfirmResize" {
            for again in [ConfirmResize, RevertResize] {
                let error = shop.client.compute().act_on_server(&id, &again).await.unwrap_err();
                assert!(error.to_string().ends_with("Instance has not been resized."), "{error}");
            }
        }
        shop.sim.clock().advance(BUILD);
        let seen = shop.look(&id).await;
        assert_eq!((seen.status.as_str(), seen.task_state), (then, None), "{told}");
    }
    assert_eq!(shop.look(&id).await.flavor.original_name, "m1.large");
    let sim = &shop.sim;
    assert!(shop.client.compute().delete_server(&id).await.unwrap());
    assert_eq!(shop.look(&id).await.task_state.as_deref(), Some("deleting"));
    assert!(shop.client.compute().delete_server(&id).await.unwrap(), "it is there as long as it can be read");
    sim.clock().advance(BUILD);
    assert_eq!(shop.client.compute().get_server(&id).await.unwrap(), None);
}

#[tokio::test]
async fn a_resize_that_is_reverted_leaves_the_flavor() {
    let shop = shop().await;
    let id = shop.make(&new_server("web")).await;
    shop.act(&id, resize("large")).await;
    let resized = shop.look(&id).await;
    assert_eq!((resized.status.as_str(), resized.flavor.vcpus), ("VERIFY_RESIZE", 2));
    shop.act(&id, ServerAction::RevertResize).await;
    assert_eq!(shop.look(&id).await.flavor.original_name, "m1.small");
    // flavors may go: servers keep what they have
    let now = shop.sim.clock().now();
    assert!(shop.sim.cloud().nova.remove_flavor(now, "small"));
    assert_eq!(shop.look(&id).await.flavor.ram, 512);
}

#[rstest]
#[case::start(ServerAction::Start, "Cannot 'start' instance {id} while it is in vm_state active")]
#[case::resume(ServerAction::Resume, "Cannot 'resume' instance {id} while it is in vm_state active")]
#[case::confirm(ServerAction::ConfirmResize, "Cannot 'confirmResize' instance {id} while it is in vm_state active")]
#[case::revert(ServerAction::RevertResize, "Cannot 'revertResize' instance {id} while it is in vm_state active")]
#[tokio::test]
async fn a_state_does_not_allow_for_everything(#[case] action: ServerAction, #[case] words: &str) {
    let shop = shop().await;
    let id = shop.make(&new_server("web")).await;
    let error = shop.client.compute().act_on_server(&id, &action).await.unwrap_err();
    assert_eq!(error.status(), Some(409), "{error}");
    assert!(error.to_string().ends_with(&words.replace("{id}", &id)), "{error}");
}

#[tokio::test]
async fn what_is_built_is_not_done_with_anything_else() {
    let shop = slow_shop().await;
    let compute = shop.client.compute();
    let id = shop.make(&new_server("web")).await;
    let metadata = [("a".to_owned(), "c".to_owned())].into();
    for (error, words) in [
        (compute.act_on_server(&id, &ServerAction::Stop).await.unwrap_err(), "'stop'"),
        (compute.act_on_server(&id, &ServerAction::Suspend).await.unwrap_err(), "'suspend'"),
        (compute.act_on_server(&id, &resize("large")).await.unwrap_err(), "'resize'"),
        (compute.set_server_metadata(&id, &metadata).await.unwrap_err(), "'update metadata'"),
    ] {
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.to_string().contains(words) && error.to_string().ends_with("vm_state building"), "{error}");
    }
    let changes = ServerChanges { name: Some("shop".to_owned()), ..ServerChanges::default() };
    assert_eq!(compute.update_server(&id, &changes).await.unwrap().name, "shop");
    // its end takes the place of its beginning
    compute.delete_server(&id).await.unwrap();
    shop.sim.clock().advance(BUILD);
    assert_eq!(compute.get_server(&id).await.unwrap(), None);
}

#[tokio::test]
async fn of_more_than_there_is_room_for_each_ends_in_an_error() {
    let shop = shop().await;
    let port = shop.port().await;
    let first = shop.make(&new_server("first")).await;
    shop.sim.cloud().nova.set_room(Some(1));
    let second = shop.make(&NewServer { ports: vec![port.clone()], ..new_server("second") }).await;
    assert_eq!(shop.status(&first).await, "ACTIVE");
    let failed = shop.admin.compute().get_server(&second).await.unwrap().unwrap();
    let fault = failed.fault.unwrap();
    assert_eq!((failed.status.as_str(), failed.host, fault.code), ("ERROR", None, 500));
    assert_eq!(fault.message, "No valid host was found. ");
    shop.act(&first, resize("large")).await;
    let as_before = shop.look(&first).await;
    assert_eq!((as_before.status.as_str(), as_before.flavor.original_name.as_str()), ("ACTIVE", "m1.small"));
    let error = shop.client.compute().act_on_server(&second, &ServerAction::Stop).await.unwrap_err();
    assert!(error.to_string().ends_with("is not ready"), "{error}");
    assert!(shop.client.compute().console_output(&second, None).await.is_err());
    let free = shop.client.network().ports().get(&port).await.unwrap().unwrap();
    assert_eq!(free.device_id, "", "a server without a host takes no port");
    // room is made
    shop.client.compute().delete_server(&first).await.unwrap();
    shop.client.compute().delete_server(&second).await.unwrap();
    let third = shop.make(&new_server("third")).await;
    assert_eq!(shop.status(&third).await, "ACTIVE");
}

#[tokio::test]
async fn what_others_do_is_seen() {
    let shop = slow_shop().await;
    let port = shop.port().await;
    let id = shop.make(&NewServer { ports: vec![port.clone()], ..new_server("web") }).await;
    let now = shop.sim.clock().now();
    assert!(shop.sim.cloud().nova.fail_server(now, &id, "the host is on fire"));
    shop.sim.clock().advance(BUILD);
    let failed = shop.look(&id).await;
    assert_eq!((failed.status.as_str(), failed.fault.unwrap().message.as_str()), ("ERROR", "the host is on fire"));
    assert!(shop.sim.cloud().nova.edit_server(now, &id, |server| server.vm_state = "active"));
    let well = shop.look(&id).await;
    assert_eq!((well.status.as_str(), well.fault), ("ACTIVE", None));
    assert!(shop.sim.cloud().nova.edit_server(now, &id, |server| {
        (server.vm_state, server.launched_at) = ("paused", Some(now));
    }));
    assert_eq!(shop.status(&id).await, "PAUSED");
    shop.act(&id, ServerAction::Unpause).await;
    shop.sim.clock().advance(BUILD);
    assert_eq!(shop.status(&id).await, "ACTIVE");
    assert!(shop.sim.cloud().nova.remove_server(now, &id));
    assert!(!shop.sim.cloud().nova.remove_server(now, &id));
    assert_eq!(shop.client.compute().get_server(&id).await.unwrap(), None);
    let free = shop.client.network().ports().get(&port).await.unwrap().unwrap();
    assert_eq!((free.device_id.as_str(), shop.sim.cloud().nova.servers().count()), ("", 0));
}
