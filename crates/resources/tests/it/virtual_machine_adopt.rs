//! Servers that were in Nova before their objects.

use std::time::Duration;

use kube::{
    ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use kupenstack_api::resources::{Port, VirtualMachine};
use kupenstack_testkit::sim::Server;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    common::look::{self, eventually, gone, id, is_ready, shown, until},
    virtual_machine::{create, edit, flavor, flavor_name, meddle, only, phase, servers, surroundings, vanish},
    world::{self, Tenant},
};

/// Leaves a server there of which no object tells, and nothing that it carries.
async fn leave(tenant: &Tenant<'_>, name: &str) -> Server {
    create(
        tenant,
        name,
        json!({"deletionPolicy": "Retain", "networks": [{"port": "theirs"}], "metadata": {"by": "hand"}}),
    )
    .await;
    let server = id(&tenant.ready::<VirtualMachine>(name).await);
    look::delete(tenant.api::<VirtualMachine>(), name).await;
    meddle(tenant.world, &server, |server| server.description = Some("theirs".to_owned()));
    server_of(tenant, &server).await
}

async fn server_of(tenant: &Tenant<'_>, id: &str) -> Server {
    let all = servers(tenant.world, &tenant.project().await);
    all.into_iter().find(|server| server.id == id).expect("the server is there")
}

async fn with_server<'a>(name: &str) -> (Tenant<'a>, Server) {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    tenant.create::<Port>("theirs", json!({"network": "net"})).await;
    let server = leave(&tenant, name).await;
    (tenant, server)
}

async fn adopt(tenant: &Tenant<'_>, object: &str, spec: Value) {
    tenant.create::<VirtualMachine>(object, spec).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn adopt_takes_over_by_id_and_by_name_and_leaves_what_is_not_declared() {
    let (tenant, server) = with_server("by-hand").await;
    for (object, adoption) in [("by-id", json!({"id": server.id})), ("by-name", json!({"name": "by-hand"}))] {
        adopt(&tenant, object, json!({"adopt": adoption})).await;
        let vm = tenant.ready::<VirtualMachine>(object).await;
        let status = vm.status.clone().unwrap();
        assert_eq!((id(&vm), shown(&vm).0, status.phase.as_deref()), (server.id.clone(), "Running", Some("Running")));
        let port = tenant.ready::<Port>("theirs").await;
        assert_eq!((status.addresses, status.restarts), (port.status.unwrap().addresses, 0));
        assert_eq!(only(&tenant).await, server, "nothing of it was changed");
        look::delete(tenant.api::<VirtualMachine>(), object).await;
        assert_eq!(only(&tenant).await, server, "what was adopted is retained");
    }
}

/// What was made for a server that stays is left as objects of their own, which go when nobody has a use for them.
#[tokio::test(flavor = "multi_thread")]
async fn what_stays_stays_connected() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    create(&tenant, "stays", json!({"deletionPolicy": "Retain"})).await;
    let server = id(&tenant.ready::<VirtualMachine>("stays").await);
    look::delete(tenant.api::<VirtualMachine>(), "stays").await;
    let port = tenant.ready::<Port>("stays.net").await;
    assert!(port.owner_references().is_empty(), "it is nobody's part");
    let device = || {
        let cloud = tenant.world.sim.cloud();
        cloud.neutron.get("ports", &id(&port)).map(|port| port.text("device_id").to_owned())
    };
    assert_eq!(device().as_ref(), Some(&server));
    let spec = json!({"adopt": {"name": "stays"}, "networks": [{"port": "stays.net"}], "deletionPolicy": "Delete"});
    adopt(&tenant, "again", spec).await;
    assert_eq!(id(&tenant.ready::<VirtualMachine>("again").await), server);
    look::delete(tenant.api::<VirtualMachine>(), "again").await;
    look::delete(tenant.api::<Port>(), "stays.net").await;
    assert_eq!(device(), None);
}

/// The same manifest as before, but for what says that a server is there.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_object_left_there_one_of_its_name_takes_back() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    create(&tenant, "again", json!({"deletionPolicy": "Retain"})).await;
    let server = id(&tenant.ready::<VirtualMachine>("again").await);
    let port = id(&tenant.ready::<Port>("again.net").await);
    look::delete(tenant.api::<VirtualMachine>(), "again").await;
    let spec = json!({"adopt": {"id": server}, "networks": [{"network": "net"}], "deletionPolicy": "Delete"});
    adopt(&tenant, "again", spec).await;
    let vm = tenant.ready::<VirtualMachine>("again").await;
    let taken = tenant.ready::<Port>("again.net").await;
    assert_eq!((id(&vm), id(&taken)), (server, port));
    assert_eq!(taken.owner_references()[0].uid, vm.uid().unwrap());
    look::delete(tenant.api::<VirtualMachine>(), "again").await;
    gone(tenant.api::<Port>(), "again.net").await;
}

/// There is no server whose ports they could be.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_made_for_an_adopter_of_nothing_goes_with_it() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    adopt(&tenant, "typo", json!({"adopt": {"name": "typo"}, "networks": [{"network": "net"}]})).await;
    tenant.says::<VirtualMachine>("typo", "NothingToAdopt").await;
    tenant.ready::<Port>("typo.net").await;
    look::delete(tenant.api::<VirtualMachine>(), "typo").await;
    gone(tenant.api::<Port>(), "typo.net").await;
}

/// It has not failed: it was never seen to run.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_off_when_it_comes_is_started() {
    let (tenant, server) = with_server("off").await;
    meddle(tenant.world, &server.id, |server| {
        server.vm_state = "stopped";
        server.name = "not-yet".to_owned();
    });
    adopt(&tenant, "patient", json!({"adopt": {"name": "off"}, "powerState": "Running", "restartPolicy": "OnFailure"}))
        .await;
    tenant.says::<VirtualMachine>("patient", "NothingToAdopt").await;
    meddle(tenant.world, &server.id, |server| server.name = "off".to_owned());
    tenant.nudge::<VirtualMachine>("patient").await;
    let vm = tenant.ready::<VirtualMachine>("patient").await;
    assert_eq!((vm.status.unwrap().restarts, only(&tenant).await.status()), (0, "ACTIVE"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_adopted_server_becomes_what_is_declared_and_no_more() {
    let (tenant, server) = with_server("to-change").await;
    flavor(&tenant, "large", 2).await;
    adopt(&tenant, "ours", json!({"adopt": {"id": server.id}, "powerState": "Stopped"})).await;
    phase(&tenant, "ours", "Stopped").await;
    edit(&tenant, "ours", json!({"description": "ours", "metadata": {"tier": "front"}})).await;
    let now = only(&tenant).await;
    assert_eq!((now.name.as_str(), now.description.as_deref()), ("to-change", Some("ours")));
    let all = [("by".to_owned(), "hand".to_owned()), ("tier".to_owned(), "front".to_owned())];
    assert_eq!(now.metadata, all.into());
    let large = flavor_name(&tenant, "large");
    edit(&tenant, "ours", json!({"flavor": large, "powerState": "Running"})).await;
    eventually("it has that flavor and runs", async || {
        let now = only(&tenant).await;
        now.flavor.name == large && now.status() == "ACTIVE"
    })
    .await;
    edit(&tenant, "ours", json!({"networks": [{"port": "theirs"}, {"network": "net"}]})).await;
    tenant.ready::<Port>("ours.net").await;
    let vm = tenant.ready::<VirtualMachine>("ours").await;
    assert_eq!((id(&vm), vm.status.unwrap().addresses.len()), (server.id.clone(), 2));
}

/// It is seen by the list of the whole cloud, as with what was made.
#[tokio::test(flavor = "multi_thread")]
async fn drift_of_an_adopted_server_is_set_right_where_it_is_declared() {
    let (tenant, server) = with_server("drifts").await;
    adopt(&tenant, "kept", json!({"adopt": {"id": server.id}, "powerState": "Running", "description": "kept"})).await;
    tenant.ready::<VirtualMachine>("kept").await;
    tenant.world.lists("/v2.1/servers/detail").await;
    meddle(tenant.world, &server.id, |server| {
        server.description = Some("meddled".to_owned());
        server.name = "renamed".to_owned();
    });
    eventually("the description is as declared", async || only(&tenant).await.description.as_deref() == Some("kept"))
        .await;
    assert_eq!(only(&tenant).await.name, "renamed", "nothing is declared of it");
    tenant.world.sim.clock().advance(Duration::from_secs(2));
    let now = tenant.world.sim.clock().now();
    meddle(tenant.world, &server.id, |server| (server.vm_state, server.updated_at) = ("stopped", now));
    let again = until(tenant.api(), "kept", |vm: &VirtualMachine| {
        is_ready(vm) && vm.status.as_ref().is_some_and(|status| status.restarts == 1)
    })
    .await;
    assert_eq!((id(&again), only(&tenant).await.status()), (server.id, "ACTIVE"));
}

/// Nobody could make it anew, and nobody else's failure is ours to cure unless it is to run.
#[tokio::test(flavor = "multi_thread")]
async fn an_adopted_server_that_has_failed_is_never_made_anew() {
    let (tenant, server) = with_server("fails").await;
    adopt(&tenant, "watched", json!({"adopt": {"id": server.id}})).await;
    tenant.ready::<VirtualMachine>("watched").await;
    let now = tenant.world.sim.clock().now();
    assert!(tenant.world.sim.cloud().nova.fail_server(now, &server.id, "the host burns"));
    let failed = phase(&tenant, "watched", "Failed").await;
    let told = "Nova says: the host burns (code 500): it was adopted and has no powerState, so that it is left so";
    assert_eq!(shown(&failed).1, told);
    edit(&tenant, "watched", json!({"powerState": "Running"})).await;
    assert_eq!((only(&tenant).await.id, only(&tenant).await.status()), (server.id.clone(), "ACTIVE"));
    vanish(tenant.world, &server.id);
    let message = tenant.says::<VirtualMachine>("watched", "NothingToAdopt").await;
    assert_eq!(message, "spec.adopt: none of the project's Nova servers fits");
    assert!(servers(tenant.world, &tenant.project().await).is_empty(), "nothing was made");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_adopted_is_deleted_where_that_is_asked_for() {
    let (tenant, server) = with_server("to-go").await;
    adopt(&tenant, "going", json!({"adopt": {"id": server.id}, "deletionPolicy": "Delete"})).await;
    tenant.ready::<VirtualMachine>("going").await;
    look::delete(tenant.api::<VirtualMachine>(), "going").await;
    assert!(servers(tenant.world, &tenant.project().await).is_empty(), "its object went after it");
}

/// What another project has is not this one's to take over; of several none is; and a name is no pattern.
#[tokio::test(flavor = "multi_thread")]
async fn k_orc_adoption_by_name_adopt_waits_until_one_of_the_projects_own_fits() {
    let (tenant, server) = with_server("webx1").await;
    let elsewhere = world::shared().await.tenant().await;
    adopt(&elsewhere, "theirs", json!({"adopt": {"id": server.id}})).await;
    elsewhere.says::<VirtualMachine>("theirs", "NothingToAdopt").await;
    look::delete(elsewhere.api::<VirtualMachine>(), "theirs").await;
    adopt(&tenant, "pattern", json!({"adopt": {"name": "web.1"}})).await;
    tenant.says::<VirtualMachine>("pattern", "NothingToAdopt").await;
    meddle(tenant.world, &server.id, |server| server.name = "twin".to_owned());
    tenant.create::<Port>("second", json!({"network": "net"})).await;
    create(&tenant, "twin", json!({"networks": [{"port": "second"}]})).await;
    tenant.ready::<VirtualMachine>("twin").await;
    adopt(&tenant, "either", json!({"adopt": {"name": "twin"}})).await;
    let message = tenant.says::<VirtualMachine>("either", "AmbiguousAdoption").await;
    assert!(message.starts_with("spec.adopt: 2 of the project's Nova servers fit, "), "{message}");
    assert_eq!(server_of(&tenant, &server.id).await.description.as_deref(), Some("theirs"), "it was left alone");
}

#[rstest]
#[case::image(json!({"image": "linux"}), "image, clusterImage, keyPair, userData and antiAffinity count when a server is made")]
#[case::user_data(json!({"userData": {"inline": "x"}}), "an adopted one has them already, leave them out")]
#[case::both(json!({"adopt": {"id": "x", "name": "y"}}), "exactly one of id and name")]
#[case::floating_ip_of_none(json!({"floatingIP": {"externalNetwork": "public"}}), "a floatingIP needs networks")]
#[case::groups_of_none(json!({"securityGroups": ["web"]}), "securityGroups guard the ports that are made for networks")]
#[case::selector_of_none(json!({"nodeSelector": {"disk": "ssd"}}), "a nodeSelector needs a flavor")]
#[tokio::test(flavor = "multi_thread")]
async fn what_can_never_be_of_an_adopted_one_is_refused(#[case] but: Value, #[case] words: &str) {
    let tenant = world::shared().await.tenant().await;
    let mut spec = json!({"adopt": {"id": "x"}});
    spec.as_object_mut().unwrap().extend(but.as_object().unwrap().clone());
    let vm: VirtualMachine = look::object("wrong", &spec);
    let refusal = tenant.api().create(&PostParams::default(), &vm).await.unwrap_err().to_string();
    assert!(refusal.contains(words), "{refusal}");
}

#[rstest]
#[case::made(json!({"image": "linux", "flavor": "small", "networks": [{"network": "net"}]}), json!({"adopt": {"id": "x"}}),
    "an adopted server can't become a made one")]
#[case::another(json!({"adopt": {"id": "x"}}), json!({"adopt": {"id": "y"}}), "adopt can't be changed")]
#[case::no_flavor(json!({"adopt": {"id": "x"}, "flavor": "small"}), json!({"flavor": null}), "flavor can be changed but not taken back")]
#[case::no_networks(json!({"adopt": {"id": "x"}, "networks": [{"network": "net"}]}), json!({"networks": null}),
    "networks can be changed but not taken back")]
#[tokio::test(flavor = "multi_thread")]
async fn what_was_said_of_adoption_stays(#[case] spec: Value, #[case] edit: Value, #[case] words: &str) {
    let tenant = world::shared().await.tenant().await;
    adopt(&tenant, "said", spec).await;
    let patch = Patch::Merge(json!({"spec": edit}));
    let refusal = tenant.api::<VirtualMachine>().patch("said", &PatchParams::default(), &patch).await;
    let refusal = refusal.unwrap_err().to_string();
    assert!(refusal.contains(words), "{refusal}");
    look::delete(tenant.api::<VirtualMachine>(), "said").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_belongs_to_one_object() {
    let (tenant, server) = with_server("one").await;
    let declared = |text| json!({"adopt": {"id": server.id}, "description": text, "deletionPolicy": "Delete"});
    adopt(&tenant, "second", declared("second")).await;
    tenant.ready::<VirtualMachine>("second").await;
    adopt(&tenant, "first", declared("first")).await;
    let why = tenant.says::<VirtualMachine>("first", "AlreadyAdopted").await;
    assert!(why.ends_with("belongs to VirtualMachine second"), "{why}");
    look::delete(tenant.api::<VirtualMachine>(), "first").await;
    assert_eq!(only(&tenant).await.description.as_deref(), Some("second"), "it was never its own");
}
