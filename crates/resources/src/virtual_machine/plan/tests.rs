use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kupenstack_api::resources::{Adoption, DRIFT};
use rstest::rstest;
use serde_json::{Value, json};

use super::*;

const NOW: &str = "2026-01-01T00:01:00Z";

/// A VM of generation 2 whose status says `reason` of it.
fn vm(spec: &Value, reason: &str) -> VirtualMachine {
    let ready = if ["Running", "Stopped", "Suspended"].contains(&reason) { "True" } else { "False" };
    let mut all = json!({"flavor": "small", "clusterImage": "linux", "networks": [{"network": "net"}]});
    all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let condition = |generation: i64| {
        json!([{"type": "Ready", "status": ready, "reason": reason.trim_start_matches("former "), "message": "",
            "lastTransitionTime": NOW, "observedGeneration": generation}])
    };
    let generation = if reason.starts_with("former ") { 1 } else { 2 };
    serde_json::from_value(json!({"apiVersion": "kupenstack.io/v1", "kind": "VirtualMachine",
        "metadata": {"name": "web", "namespace": "shop", "generation": 2}, "spec": all,
        "status": {"id": "s1", "conditions": condition(generation), "failedAt": NOTED,
            "retryAt": "2026-01-01T00:00:30Z"}}))
    .unwrap()
}

/// When the server failed that the status tells of.
const NOTED: &str = "2026-01-01T00:00:00Z";

fn server(state: &str, but: &Value) -> Server {
    let mut all = json!({"id": "s1", "name": "web", "tenant_id": "p1", "status": state, "image": "", "created": NOW,
        "OS-SRV-USG:launched_at": NOW,
        "flavor": {"original_name": "small", "vcpus": 1, "ram": 512, "disk": 1}});
    all.as_object_mut().unwrap().extend(but.as_object().unwrap().clone());
    serde_json::from_value(all).unwrap()
}

fn case(vm: &VirtualMachine, flavor: Size, now: &str) -> Case {
    Case { flavor, flavor_name: vm.spec.flavor.clone(), dead_host: None, now: now.parse().unwrap() }
}

fn plan(vm: &VirtualMachine, server: &Server) -> Plan {
    of(vm, server, &case(vm, Ok("f2".to_owned()), NOW))
}

#[rstest]
#[case::runs("Running", "ACTIVE", Plan::Keep("Running"))]
#[case::is_stopped("Stopped", "SHUTOFF", Plan::Keep("Stopped"))]
#[case::is_suspended("Suspended", "SUSPENDED", Plan::Keep("Suspended"))]
#[case::start("Running", "SHUTOFF", Plan::Act(ServerAction::Start, "Starting"))]
#[case::resume("Running", "SUSPENDED", Plan::Act(ServerAction::Resume, "Starting"))]
#[case::unpause("Running", "PAUSED", Plan::Act(ServerAction::Unpause, "Starting"))]
#[case::stop("Stopped", "ACTIVE", Plan::Act(ServerAction::Stop, "Stopping"))]
#[case::stop_what_sleeps("Stopped", "SUSPENDED", Plan::Act(ServerAction::Resume, "Stopping"))]
#[case::suspend("Suspended", "ACTIVE", Plan::Act(ServerAction::Suspend, "Suspending"))]
#[case::suspend_what_is_off("Suspended", "SHUTOFF", Plan::Act(ServerAction::Start, "Starting"))]
#[case::is_made("Running", "BUILD", Plan::Wait("Building"))]
#[case::moves("Running", "MIGRATING", Plan::Wait("Migrating"))]
#[case::asks("Running", "VERIFY_RESIZE", Plan::Act(ServerAction::ConfirmResize, "Resizing"))]
#[case::shelved("Running", "SHELVED_OFFLOADED", Plan::Strange)]
fn what_was_just_declared_is_asked_for(#[case] wanted: &str, #[case] state: &str, #[case] expected: Plan) {
    let vm = vm(&json!({"powerState": wanted}), "former Running");
    assert_eq!(plan(&vm, &server(state, &json!({}))), expected);
}

/// As a real Nova shows what its conductor was about to place when the database died.
#[rstest]
#[case::just_asked_for("2025-12-31T23:59:00Z", "Building", Plan::Wait("Building"))]
#[case::forgotten("2025-12-31T23:50:00Z", "Building", Plan::Note)]
#[case::is_to_be_made_anew("2025-12-31T23:50:00Z", "CrashLoopBackOff", Plan::Replace)]
fn what_nova_has_forgotten_to_place_is_made_anew(#[case] asked: &str, #[case] reason: &str, #[case] expected: Plan) {
    let mut vm = vm(&json!({}), reason);
    let status = vm.status.as_mut().unwrap();
    status.failed_at = (reason == BACK_OFF).then(|| Time(asked.parse().unwrap()));
    let but = json!({"OS-EXT-STS:task_state": "scheduling", "OS-SRV-USG:launched_at": null, "created": asked, "updated": NOW});
    assert_eq!(plan(&vm, &server("BUILD", &but)), expected);
    let placed =
        json!({"OS-EXT-STS:task_state": "spawning", "OS-SRV-USG:launched_at": null, "created": asked, "updated": NOW});
    assert_eq!(plan(&vm, &server("BUILD", &placed)), Plan::Wait("Building"), "a large image takes its time");
}

#[rstest]
#[case::shut_down("Always", "SHUTOFF", true, "Running", Plan::Note)]
#[case::is_to_be_started("Always", "SHUTOFF", true, "noted", Plan::Act(ServerAction::Start, "Starting"))]
#[case::shut_down_and_left("OnFailure", "SHUTOFF", true, "Running", Plan::Leave)]
#[case::broken("OnFailure", "ERROR", true, "Running", Plan::Note)]
#[case::is_to_be_rebooted(
    "OnFailure", "ERROR", true, "noted", Plan::Act(ServerAction::Reboot { hard: true }, "Starting")
)]
#[case::never_came_up("Always", "ERROR", false, "Building", Plan::Note)]
#[case::is_to_be_made_anew("Always", "ERROR", false, "noted", Plan::Replace)]
#[case::broken_and_left("Never", "ERROR", true, "Running", Plan::Leave)]
#[case::shut_down_and_left_whatever("Never", "SHUTOFF", true, "Running", Plan::Leave)]
#[case::started_and_off_again("Always", "SHUTOFF", true, "Starting", Plan::Note)]
#[case::off_again_as_a_stale_object_does_not_tell("Always", "SHUTOFF", true, "CrashLoopBackOff", Plan::Note)]
fn what_failed_is_treated_by_its_policy(
    #[case] policy: &str,
    #[case] state: &str,
    #[case] came_up: bool,
    #[case] reason: &str,
    #[case] expected: Plan,
) {
    // an object of before the last failure may be what is known
    let failed = if reason == "noted" { NOTED } else { NOW };
    let launched = json!({"OS-SRV-USG:launched_at": came_up.then_some(NOW), "updated": failed,
        "fault": {"code": 500, "message": "", "created": failed}});
    assert_eq!(plan(&vm(&json!({"restartPolicy": policy}), reason), &server(state, &launched)), expected);
}

#[test]
fn before_its_time_nothing_is_done() {
    let vm = vm(&json!({}), "CrashLoopBackOff");
    let server = server("SHUTOFF", &json!({"updated": NOTED}));
    assert_eq!(of(&vm, &server, &case(&vm, Err(None), "2026-01-01T00:00:29Z")), Plan::Pause);
}

#[rstest]
#[case::running("ACTIVE", json!({}), Plan::Act(ServerAction::Resize { flavor_id: "f2".to_owned() }, "Resizing"))]
#[case::on_its_way("ACTIVE", json!({"OS-EXT-STS:task_state": "resize_prep"}), Plan::Wait("Resizing"))]
#[case::suspended("SUSPENDED", json!({}), Plan::Act(ServerAction::Resume, "Starting"))]
fn another_flavor_resizes(#[case] state: &str, #[case] but: Value, #[case] expected: Plan) {
    let vm = vm(&json!({"flavor": "large"}), "former Running");
    assert_eq!(plan(&vm, &server(state, &but)), expected);
    // before the flavor is there, nothing can be asked for
    assert_eq!(of(&vm, &server("ACTIVE", &json!({})), &case(&vm, Err(None), NOW)), Plan::Keep("Running"));
}

#[test]
fn what_nova_did_not_resize_is_asked_for_again_later() {
    let (flavor, active) = (json!({"flavor": "large"}), server("ACTIVE", &json!({})));
    assert_eq!(plan(&vm(&flavor, "Resizing"), &active), Plan::Refused);
    let vm = vm(&flavor, NOT_RESIZED);
    assert_eq!(of(&vm, &active, &case(&vm, Ok("f2".to_owned()), "2026-01-01T00:00:29Z")), Plan::Refused);
    assert!(matches!(plan(&vm, &active), Plan::Act(ServerAction::Resize { .. }, _)));
}

#[test]
fn what_others_do_is_left_where_it_is_to_be() {
    let mut vm = vm(&json!({}), "Running");
    vm.annotations_mut().insert(DRIFT.to_owned(), "ignore".to_owned());
    assert_eq!(plan(&vm, &server("SHUTOFF", &json!({}))), Plan::Keep("Stopped"));
    assert_eq!(plan(&vm, &server("SUSPENDED", &json!({}))), Plan::Keep("Suspended"));
}

#[rstest]
#[case::by_others("Running", "Vanishing")]
#[case::by_us("CrashLoopBackOff", "Restarting")]
#[case::by_us_still("Restarting", "Restarting")]
fn a_server_that_others_delete_is_told_from_one_that_failed(#[case] reason: &str, #[case] word: &'static str) {
    let server = server("ACTIVE", &json!({"OS-EXT-STS:task_state": "deleting"}));
    assert_eq!(plan(&vm(&json!({}), reason), &server), Plan::Wait(word));
}

#[test]
fn a_server_in_place_of_a_lost_one_is_told_from_one_that_failed() {
    let other = server("ACTIVE", &json!({"id": "s2"}));
    // what went wrong meanwhile may have taken the reason's place
    for (failed, expected) in [(None, true), (Some("s1"), false), (Some("s0"), true)] {
        let mut vm = vm(&json!({}), "CloudUnavailable");
        vm.status.as_mut().unwrap().failed_id = failed.map(ToOwned::to_owned);
        assert_eq!(Prior::of(&vm).had_lost(&other), expected, "{failed:?}");
    }
    assert!(!Prior::of(&vm(&json!({}), "Running")).had_lost(&server("ACTIVE", &json!({}))));
}

/// One that runs on the wrong nodes goes on as it is until there are others, and does what it is told meanwhile.
#[test]
fn what_no_node_has_is_waited_for() {
    let why = Outcome::waiting("NoNode", "no node");
    let mut selecting = vm(&json!({"nodeSelector": {"disk": "ssd"}}), "former Running");
    let case = Case { flavor_name: Some("small.ssd".to_owned()), ..case(&selecting, Err(Some(why.clone())), NOW) };
    let plan = |state: &str, vm: &VirtualMachine| of(vm, &server(state, &json!({})), &case);
    assert_eq!(plan("ACTIVE", &selecting), Plan::Lack(why.clone()));
    selecting.spec.power_state = Some(PowerState::Stopped);
    assert_eq!(plan("ACTIVE", &selecting), Plan::Act(ServerAction::Stop, "Stopping"));
    assert_eq!(plan("SHUTOFF", &selecting), Plan::Lack(why.clone()));
    let resized = json!({"flavor": {"original_name": "small.ssd", "vcpus": 1, "ram": 512, "disk": 1}});
    let there = of(&selecting, &server("SHUTOFF", &resized), &case);
    assert_eq!(there, Plan::Keep("Stopped"), "it is of that flavor");
}

#[rstest]
#[case::runs("Always", "Running", "ACTIVE", json!({}), "Running", Plan::Note)]
#[case::noted("OnFailure", "Running", "ACTIVE", json!({"updated": NOTED}), BACK_OFF, Plan::Replace)]
#[case::is_left("Never", "Running", "ACTIVE", json!({}), "Running", Plan::Leave)]
#[case::was_being_stopped("Always", "Running", "ACTIVE", json!({"OS-EXT-STS:task_state": "powering-off"}), "Running", Plan::Note)]
#[case::was_being_deleted("Never", "Running", "ACTIVE", json!({"OS-EXT-STS:task_state": "deleting"}), "Running", Plan::Replace)]
#[case::does_not_run("Always", "Stopped", "SHUTOFF", json!({}), "Stopped", Plan::Keep("Stopped"))]
#[case::was_to_stop("Always", "Stopped", "ACTIVE", json!({}), "Running", Plan::Keep("Stopped"))]
#[case::is_suspended("Always", "Suspended", "SUSPENDED", json!({}), "Suspended", Plan::Keep("Suspended"))]
fn what_is_to_run_and_is_on_a_dead_host_is_made_anew(
    #[case] policy: &str,
    #[case] power: &str,
    #[case] state: &str,
    #[case] but: Value,
    #[case] reason: &str,
    #[case] expected: Plan,
) {
    let vm = vm(&json!({"restartPolicy": policy, "powerState": power}), reason);
    let mut all = json!({"updated": NOW});
    all.as_object_mut().unwrap().extend(but.as_object().unwrap().clone());
    let case = Case { dead_host: Some("node2".into()), ..case(&vm, Ok("f2".to_owned()), NOW) };
    assert_eq!(of(&vm, &server(state, &all), &case), expected);
}

/// An adopted VM that declares nothing but this.
fn adopting(spec: &Value, reason: &str) -> VirtualMachine {
    let mut vm = vm(spec, reason);
    vm.spec.adopt = Some(Adoption { id: Some("s1".to_owned()), name: None });
    (vm.spec.flavor, vm.spec.cluster_image, vm.spec.networks) = (None, None, Vec::new());
    vm
}

#[rstest]
#[case::runs("ACTIVE", json!({}), Plan::Keep("Running"))]
#[case::is_stopped("SHUTOFF", json!({}), Plan::Keep("Stopped"))]
#[case::is_suspended("SUSPENDED", json!({}), Plan::Keep("Suspended"))]
#[case::is_shelved("SHELVED_OFFLOADED", json!({}), Plan::Strange)]
#[case::has_failed("ERROR", json!({}), Plan::Leave)]
#[case::is_resized_by_others("VERIFY_RESIZE", json!({}), Plan::Wait("Resizing"))]
#[case::is_being_deleted("ACTIVE", json!({"OS-EXT-STS:task_state": "deleting"}), Plan::Wait("Vanishing"))]
fn an_adopted_server_does_what_it_does(#[case] state: &str, #[case] but: Value, #[case] expected: Plan) {
    for reason in ["former Running", "Running", BACK_OFF] {
        let expected = match expected {
            Plan::Wait("Vanishing") if reason == BACK_OFF => &Plan::Wait("Restarting"),
            ref expected => expected,
        };
        assert_eq!(&plan(&adopting(&json!({}), reason), &server(state, &but)), expected, "{reason}");
    }
}

/// Nobody could make it anew.
#[rstest]
#[case::was_stopped("SHUTOFF", json!({"updated": NOTED}), Plan::Act(ServerAction::Start, "Starting"))]
#[case::has_failed("ERROR", json!({"updated": NOTED}), Plan::Act(ServerAction::Reboot { hard: true }, "Starting"))]
#[case::has_never_run("ERROR", json!({"updated": NOTED, "OS-SRV-USG:launched_at": null}), Plan::Leave)]
#[case::is_lost("BUILD", json!({"OS-EXT-STS:task_state": "scheduling", "created": "2025-12-31T23:00:00Z"}), Plan::Leave)]
fn an_adopted_server_that_is_to_run_is_started_and_never_made_anew(
    #[case] state: &str,
    #[case] but: Value,
    #[case] expected: Plan,
) {
    assert_eq!(plan(&adopting(&json!({"powerState": "Running"}), BACK_OFF), &server(state, &but)), expected);
}

#[rstest]
#[case::is_to_run(json!({"powerState": "Running"}), json!({}), Plan::Leave)]
#[case::is_to_be_stopped(json!({"powerState": "Stopped"}), json!({}), Plan::Keep("Stopped"))]
#[case::may_do_what_it_does(json!({}), json!({}), Plan::Strange)]
#[case::is_being_deleted(json!({}), json!({"OS-EXT-STS:task_state": "deleting"}), Plan::Wait("Vanishing"))]
fn an_adopted_server_on_a_dead_host_is_not_made_anew(#[case] spec: Value, #[case] but: Value, #[case] expected: Plan) {
    let vm = adopting(&spec, "Running");
    let case = Case { dead_host: Some("node2".into()), ..case(&vm, Err(None), NOW) };
    assert_eq!(of(&vm, &server("ACTIVE", &but), &case), expected);
}
