//! VMs: servers in Nova, at ports that are made for them or that others have made.

use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PatchParams, PostParams},
};
use kupenstack_api::resources::{
    Flavor, FloatingIP, Image, KeyPair, Network, Port, SecurityGroup, Subnet, VirtualMachine,
};
use kupenstack_testkit::sim::Server;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    common::look::{self, eventually, gone, id, is_ready, mark, object, shown, until},
    floating_ip,
    world::{self, Tenant, World},
};

/// What a VM is made with: a network with a subnet, an image and a flavor.
pub(crate) async fn surroundings(tenant: &Tenant<'_>) {
    tenant.create::<Network>("net", json!({})).await;
    tenant.create::<Subnet>("sub", json!({"network": "net", "cidr": "10.0.0.0/24"})).await;
    tenant.ready::<Subnet>("sub").await;
    tenant.ready_image("linux").await;
    flavor(tenant, "small", 1).await;
}

/// Flavors are the whole cluster's, so each test has its own.
pub(crate) fn flavor_name(tenant: &Tenant<'_>, size: &str) -> String {
    format!("{}-{size}", tenant.name)
}

pub(crate) async fn flavor(tenant: &Tenant<'_>, size: &str, vcpus: u32) {
    let (api, name) = (Api::<Flavor>::all(tenant.client.clone()), flavor_name(tenant, size));
    let spec = json!({"vcpus": vcpus, "ram": "512Mi", "disk": "1Gi"});
    api.create(&PostParams::default(), &object(&name, &spec)).await.unwrap();
    until(api, &name, is_ready).await;
}

pub(crate) async fn create(tenant: &Tenant<'_>, name: &str, but: Value) -> VirtualMachine {
    let mut spec = json!({"image": "linux", "flavor": flavor_name(tenant, "small"), "networks": [{"network": "net"}]});
    spec.as_object_mut().unwrap().extend(but.as_object().unwrap().clone());
    tenant.create(name, spec).await
}

pub(crate) async fn edit(tenant: &Tenant<'_>, name: &str, spec: Value) -> VirtualMachine {
    tenant.patch::<VirtualMachine>(name, json!({"spec": spec})).await;
    tenant.ready(name).await
}

pub(crate) async fn phase(tenant: &Tenant<'_>, name: &str, phase: &str) -> VirtualMachine {
    until(tenant.api(), name, |vm: &VirtualMachine| {
        vm.status.as_ref().is_some_and(|s| s.phase.as_deref() == Some(phase))
    })
    .await
}

pub(crate) fn servers(world: &World, project: &str) -> Vec<Server> {
    world.sim.cloud().nova.servers().filter(|server| server.project_id == project).cloned().collect()
}

/// The one server of a project.
pub(crate) async fn only(tenant: &Tenant<'_>) -> Server {
    let [one] = servers(tenant.world, &tenant.project().await).try_into().unwrap();
    one
}

pub(crate) fn meddle(world: &World, id: &str, change: impl FnOnce(&mut Server)) {
    let now = world.sim.clock().now();
    assert!(world.sim.cloud().nova.edit_server(now, id, change));
}

pub(crate) fn vanish(world: &World, id: &str) {
    let now = world.sim.clock().now();
    assert!(world.sim.cloud().nova.remove_server(now, id));
}

#[tokio::test(flavor = "multi_thread")]
async fn create_minimal_in_any_order() {
    let tenant = world::shared().await.tenant().await;
    create(&tenant, "minimal", json!({})).await;
    let flavor_name = flavor_name(&tenant, "small");
    eventually("all that is missing by name", async || {
        let vm = tenant.api::<VirtualMachine>().get("minimal").await.unwrap();
        let (word, message) = shown(&vm);
        word == "DependencyNotReady"
            && message
                == format!(
                    "Image linux does not exist, Flavor {flavor_name} does not exist, Port minimal.net is not ready"
                )
    })
    .await;
    phase(&tenant, "minimal", "Pending").await;
    surroundings(&tenant).await;
    let vm = tenant.ready::<VirtualMachine>("minimal").await;
    let (server, status) = (only(&tenant).await, vm.status.clone().unwrap());
    assert_eq!((server.id.clone(), server.name.as_str()), (id(&vm), "minimal"));
    assert_eq!(server.description, Some(mark(&vm)));
    assert_eq!(
        (shown(&vm).0, status.phase.as_deref(), status.state.as_deref()),
        ("Running", Some("Running"), Some("ACTIVE"))
    );
    assert_eq!(status.restarts, 0);
    let port = tenant.ready::<Port>("minimal.net").await;
    assert_eq!(port.owner_references()[0].name, "minimal");
    assert_eq!(port.status.unwrap().addresses, status.addresses);
    until(tenant.api(), "minimal", |vm: &VirtualMachine| vm.status.as_ref().unwrap().node == server.host).await;
    look::delete(tenant.api::<VirtualMachine>(), "minimal").await;
    gone(tenant.api::<Port>(), "minimal.net").await;
    assert!(servers(tenant.world, &tenant.project().await).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn create_full_declares_everything() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    tenant.create::<SecurityGroup>("web", json!({})).await;
    tenant.create::<Network>("back", json!({})).await;
    tenant.create::<Subnet>("back", json!({"network": "back", "cidr": "10.1.0.0/24"})).await;
    tenant.ready::<Subnet>("back").await;
    tenant.create::<Port>("own", json!({"network": "back", "addresses": [{"ip": "10.1.0.7"}]})).await;
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIM5VUfJYhPwFhni7yWYee4vCC3W5DEUA804o6s0VRzzo";
    tenant.create::<KeyPair>("alice", json!({"publicKey": key})).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "boot", "namespace": tenant.name},
        "stringData": {"user-data": "#cloud-config\n"}});
    let secrets: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(tenant.client.clone(), &tenant.name);
    let but = json!({"description": "front", "securityGroups": ["web"], "metadata": {"role": "front"}, "keyPair": "alice",
        "networks": [{"network": "net", "addresses": [{"ip": "10.0.0.9"}]}, {"port": "own"}],
        "userData": {"secretKeyRef": {"name": "boot", "key": "user-data"}}});
    create(&tenant, "full", but).await;
    let lacking = "Secret boot does not exist";
    until(tenant.api(), "full", |vm: &VirtualMachine| shown(vm).1 == lacking).await;
    secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
    tenant.nudge::<VirtualMachine>("full").await;
    let vm = tenant.ready::<VirtualMachine>("full").await;
    let server = only(&tenant).await;
    assert_eq!(server.description, Some(format!("front {}", mark(&vm))));
    assert_eq!(server.metadata, [("role".to_owned(), "front".to_owned())].into());
    assert_eq!(server.key_name.as_deref(), Some("alice"));
    // what cloud-init is given, in base64
    assert_eq!(server.user_data.as_deref(), Some("I2Nsb3VkLWNvbmZpZwo="));
    assert_eq!(vm.status.unwrap().addresses, ["10.0.0.9", "10.1.0.7"]);
    let group = id(&tenant.ready::<SecurityGroup>("web").await);
    let port = id(&tenant.ready::<Port>("full.net").await);
    let groups = tenant.world.sim.cloud().neutron.get("ports", &port).unwrap().body["security_groups"].clone();
    assert_eq!(groups, json!([group]));
    // a port that it was only given stays
    look::delete(tenant.api::<VirtualMachine>(), "full").await;
    gone(tenant.api::<Port>(), "full.net").await;
    tenant.ready::<Port>("own").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn update_changes_each_field_and_back() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    tenant.create::<SecurityGroup>("web", json!({})).await;
    flavor(&tenant, "large", 2).await;
    let vm = create(&tenant, "edited", json!({})).await;
    let first = id(&tenant.ready::<VirtualMachine>("edited").await);
    for (text, expected) in [(json!("new"), format!("new {}", mark(&vm))), (json!(null), mark(&vm))] {
        edit(&tenant, "edited", json!({"description": text})).await;
        assert_eq!(only(&tenant).await.description, Some(expected));
    }
    for metadata in [json!({"a": "1", "b": "2"}), json!({"a": "3", "b": null}), json!({"a": null})] {
        edit(&tenant, "edited", json!({"metadata": metadata})).await;
        let kept = metadata.as_object().unwrap().iter().filter(|(_, value)| !value.is_null());
        let expected: serde_json::Map<_, _> = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
        assert_eq!(json!(only(&tenant).await.metadata), Value::Object(expected));
    }
    for (size, vcpus) in [("large", 2), ("small", 1)] {
        edit(&tenant, "edited", json!({"flavor": flavor_name(&tenant, size)})).await;
        let server = only(&tenant).await;
        assert_eq!((server.status(), server.flavor.vcpus), ("ACTIVE", vcpus), "{size}, and confirmed");
    }
    for (declared, stored) in
        [("Stopped", "SHUTOFF"), ("Suspended", "SUSPENDED"), ("Stopped", "SHUTOFF"), ("Running", "ACTIVE")]
    {
        let vm = edit(&tenant, "edited", json!({"powerState": declared})).await;
        assert_eq!((only(&tenant).await.status(), shown(&vm).0), (stored, declared));
    }
    for (groups, number) in [(json!(["web"]), 1), (json!([]), 0)] {
        edit(&tenant, "edited", json!({"securityGroups": groups})).await;
        let port = id(&tenant.ready::<Port>("edited.net").await);
        let count = || {
            tenant.world.sim.cloud().neutron.get("ports", &port).unwrap().body["security_groups"]
                .as_array()
                .unwrap()
                .len()
        };
        eventually("the port's groups", async || count() == number).await;
    }
    let vm = tenant.ready::<VirtualMachine>("edited").await;
    assert_eq!((id(&vm), vm.status.unwrap().restarts), (first, 0), "always the same server, and nothing has failed");
}

/// The address outside is there at once, stands for the VM as soon as there is a way, and goes when it is not wanted.
#[tokio::test(flavor = "multi_thread")]
async fn a_floating_ip_comes_and_goes_with_its_vm() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    floating_ip::outside(&tenant).await;
    create(&tenant, "reached", json!({"floatingIP": {"externalNetwork": tenant.name}})).await;
    tenant.ready::<VirtualMachine>("reached").await;
    let name = format!("reached.{}", tenant.name);
    tenant.says::<FloatingIP>(&name, "NoRoute").await;
    floating_ip::lead_out(&tenant).await;
    tenant.nudge::<FloatingIP>(&name).await;
    let outside = tenant.ready::<FloatingIP>(&name).await.status.unwrap().address.unwrap();
    let first = |vm: &VirtualMachine| vm.status.as_ref().unwrap().addresses.first().cloned();
    let vm = until(tenant.api(), "reached", |vm: &VirtualMachine| first(vm).as_ref() == Some(&outside)).await;
    assert_eq!(vm.status.unwrap().addresses.len(), 2);
    tenant.patch::<VirtualMachine>("reached", json!({"spec": {"floatingIP": null}})).await;
    gone(tenant.api::<FloatingIP>(), &name).await;
    assert!(floating_ip::all(&tenant).is_empty());
    until(tenant.api(), "reached", |vm: &VirtualMachine| {
        is_ready(vm) && vm.status.as_ref().unwrap().addresses.len() == 1
    })
    .await;
    edit(&tenant, "reached", json!({"floatingIP": {"externalNetwork": tenant.name}})).await;
    tenant.ready::<FloatingIP>(&name).await;
    look::delete(tenant.api::<VirtualMachine>(), "reached").await;
    gone(tenant.api::<FloatingIP>(), &name).await;
    assert!(floating_ip::all(&tenant).is_empty());
}

/// A small VM of a tenant who has a large flavor too, and its server.
async fn resizable<'w>(world: &'w World, name: &str) -> (Tenant<'w>, String) {
    let tenant = world.tenant().await;
    surroundings(&tenant).await;
    flavor(&tenant, "large", 2).await;
    create(&tenant, name, json!({})).await;
    let server = id(&tenant.ready::<VirtualMachine>(name).await);
    (tenant, server)
}

/// Nova takes the request, finds no host, and leaves the server as it was.
#[tokio::test(flavor = "multi_thread")]
async fn a_resize_that_finds_no_room_is_told_and_asked_for_again() {
    let world = World::start().await;
    world.declare_cloud().await;
    let operator = world.operator();
    let (tenant, server) = resizable(&world, "cramped").await;
    world.sim.cloud().nova.set_room(Some(1));
    tenant.patch::<VirtualMachine>("cramped", json!({"spec": {"flavor": flavor_name(&tenant, "large")}})).await;
    let message = tenant.says::<VirtualMachine>("cramped", "ResizeFailed").await;
    assert!(message.contains(&format!("no host has room for {}", flavor_name(&tenant, "large"))), "{message}");
    assert_eq!(only(&tenant).await.flavor.vcpus, 1);
    world.sim.cloud().nova.set_room(None);
    // its former size is not refused
    edit(&tenant, "cramped", json!({"flavor": flavor_name(&tenant, "small")})).await;
    let vm = edit(&tenant, "cramped", json!({"flavor": flavor_name(&tenant, "large")})).await;
    assert_eq!((id(&vm), only(&tenant).await.flavor.vcpus), (server, 2));
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tf_420_347_a_resize_may_be_confirmed_by_the_cloud_and_a_vm_that_is_off_stays_off() {
    let world = World::start().await;
    world.declare_cloud().await;
    let operator = world.operator();
    let (tenant, server) = resizable(&world, "resized").await;
    for (by_itself, power, state) in
        [(true, "Running", "ACTIVE"), (true, "Stopped", "SHUTOFF"), (false, "Stopped", "SHUTOFF")]
    {
        world.sim.cloud().nova.confirm_resizes(by_itself);
        edit(&tenant, "resized", json!({"powerState": power})).await;
        for (size, vcpus) in [("large", 2), ("small", 1)] {
            let vm = edit(&tenant, "resized", json!({"flavor": flavor_name(&tenant, size)})).await;
            let now = only(&tenant).await;
            assert_eq!((now.status(), now.flavor.vcpus, id(&vm)), (state, vcpus, server.clone()), "{size}");
        }
    }
    operator.stop().await;
}

#[rstest]
#[case::no_image(json!({"image": null}), "exactly one of image and clusterImage")]
#[case::two_images(json!({"clusterImage": "x"}), "exactly one of image and clusterImage")]
#[case::no_network(json!({"networks": []}), "spec.networks")]
#[case::neither(json!({"networks": [{}]}), "exactly one of network and port")]
#[case::twice(json!({"networks": [{"network": "a"}, {"network": "a"}]}), "a network can be named once")]
#[case::one_port_twice(json!({"networks": [{"port": "a"}, {"port": "a"}]}), "a port can be named once")]
#[case::addresses_of_a_port(json!({"networks": [{"port": "a", "addresses": [{"ip": "10.0.0.1"}]}]}), "addresses of its own")]
#[case::no_user_data(json!({"userData": {}}), "exactly one of inline and secretKeyRef")]
#[case::too_much_user_data(json!({"userData": {"inline": "x".repeat(49_150)}}), "userData")]
#[case::key(json!({"metadata": {"a/b": "1"}}), "a key has at most 255 letters")]
#[case::label(json!({"nodeSelector": {"a/b/c": "1"}}), "a key is that of a label")]
#[case::prefix(json!({"nodeSelector": {"Example.com/disk": "ssd"}}), "a key is that of a label")]
#[case::long_label(json!({"nodeSelector": {"x".repeat(64): "1"}}), "a key is that of a label")]
#[case::end_of_label(json!({"nodeSelector": {"disk_": "1"}}), "a key is that of a label")]
#[case::value(json!({"nodeSelector": {"disk": "a b"}}), "spec.nodeSelector.disk")]
#[case::long_value(json!({"nodeSelector": {"disk": "x".repeat(64)}}), "spec.nodeSelector.disk")]
#[tokio::test(flavor = "multi_thread")]
async fn what_can_never_be_is_refused_by_the_definition(#[case] but: Value, #[case] words: &str) {
    let tenant = world::shared().await.namespace(&[]).await;
    let mut spec = json!({"image": "linux", "flavor": "small", "networks": [{"network": "net"}]});
    spec.as_object_mut().unwrap().extend(but.as_object().unwrap().clone());
    let error =
        tenant.api::<VirtualMachine>().create(&PostParams::default(), &object("wrong", &spec)).await.unwrap_err();
    assert!(error.to_string().contains(words), "{error}");
}

#[rstest]
#[case::image(json!({"image": "other"}), "image can't be changed")]
#[case::of_the_cluster(json!({"image": null, "clusterImage": "other"}), "image can't be changed")]
#[case::key_pair(json!({"keyPair": "x"}), "read when the VM is first booted")]
#[case::user_data(json!({"userData": {"inline": "x"}}), "read when the VM is first booted")]
#[case::groups(json!({"securityGroups": null}), "securityGroups can be changed but not taken back")]
#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_be_changed_says_so(#[case] change: Value, #[case] words: &str) {
    let tenant = world::shared().await.namespace(&[]).await;
    create(&tenant, "fixed", json!({"securityGroups": ["web"]})).await;
    let patch = kube::api::Patch::Merge(json!({"spec": change}));
    let error = tenant.api::<VirtualMachine>().patch("fixed", &PatchParams::default(), &patch).await.unwrap_err();
    assert!(error.to_string().contains(words), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_repaired_and_told() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    create(&tenant, "drift", json!({"metadata": {"a": "1"}})).await;
    let vm = tenant.ready::<VirtualMachine>("drift").await;
    meddle(tenant.world, &id(&vm), |server| {
        server.name = "theirs".to_owned();
        server.metadata = [("b".to_owned(), "2".to_owned())].into();
    });
    eventually("the repair", async || {
        let server = only(&tenant).await;
        server.name == "drift" && json!(server.metadata) == json!({"a": "1"})
    })
    .await;
    eventually("the event", async || tenant.events("drift").await.contains(&"DriftRepaired".to_owned())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_vms_at_one_port_are_never_both_there() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    tenant.create::<Port>("one", json!({"network": "net"})).await;
    create(&tenant, "first", json!({"networks": [{"port": "one"}]})).await;
    tenant.ready::<VirtualMachine>("first").await;
    create(&tenant, "second", json!({"networks": [{"port": "one"}]})).await;
    let told = until(tenant.api(), "second", |vm: &VirtualMachine| shown(vm).1.contains("in use")).await;
    assert!(!is_ready(&told));
    only(&tenant).await;
    look::delete(tenant.api::<VirtualMachine>(), "first").await;
    tenant.nudge::<VirtualMachine>("second").await;
    tenant.ready::<VirtualMachine>("second").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_in_the_way_is_told() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    tenant.create::<Port>("taken.net", json!({"network": "net"})).await;
    tenant.ready::<Port>("taken.net").await;
    create(&tenant, "taken", json!({})).await;
    let message = tenant.says::<VirtualMachine>("taken", "NameClash").await;
    assert!(message.starts_with("Port taken.net is in the way"), "{message}");
    look::delete(tenant.api::<Port>(), "taken.net").await;
    tenant.nudge::<VirtualMachine>("taken").await;
    tenant.ready::<VirtualMachine>("taken").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_needs_is_kept_and_says_so() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    create(&tenant, "needing", json!({})).await;
    tenant.ready::<VirtualMachine>("needing").await;
    tenant.api::<Image>().delete("linux", &DeleteParams::default()).await.unwrap();
    assert_eq!(tenant.says::<Image>("linux", "InUse").await, "used by VirtualMachine needing");
    tenant.api::<Port>().delete("needing.net", &DeleteParams::default()).await.unwrap();
    assert_eq!(tenant.says::<Port>("needing.net", "InUse").await, "used by VirtualMachine needing");
    let flavors = Api::<Flavor>::all(tenant.client.clone());
    flavors.delete(&flavor_name(&tenant, "small"), &DeleteParams::default()).await.unwrap();
    let kept = until(flavors.clone(), &flavor_name(&tenant, "small"), |flavor| shown(flavor).0 == "InUse").await;
    assert_eq!(shown(&kept).1, format!("used by VirtualMachine needing in namespace {}", tenant.name));
    look::delete(tenant.api::<VirtualMachine>(), "needing").await;
    gone(tenant.api::<Port>(), "needing.net").await;
    gone(tenant.api::<Image>(), "linux").await;
    gone(flavors, &flavor_name(&tenant, "small")).await;
}

/// As `kubectl delete --cascade=foreground` does: the object stays until what it owns is gone, which it must not hold up.
#[tokio::test(flavor = "multi_thread")]
async fn deletion_in_the_foreground_comes_to_its_end() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    create(&tenant, "slowly", json!({})).await;
    tenant.ready::<VirtualMachine>("slowly").await;
    tenant.api::<VirtualMachine>().delete("slowly", &DeleteParams::foreground()).await.unwrap();
    gone(tenant.api::<Port>(), "slowly.net").await;
    assert!(servers(tenant.world, &tenant.project().await).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_goes_with_its_vms() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    for number in 0..3 {
        create(&tenant, &format!("leaving-{number}"), json!({})).await;
    }
    for number in 0..3 {
        tenant.ready::<VirtualMachine>(&format!("leaving-{number}")).await;
    }
    let project = tenant.project().await;
    tenant.end().await;
    assert!(servers(tenant.world, &project).is_empty());
    let cloud = tenant.world.sim.cloud();
    assert_eq!(cloud.neutron.all("ports").filter(|port| port.project_id == project).count(), 0);
}

/// What a settled VM costs: nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_settled_vm_is_asked_for_nothing() {
    let world = World::start().await;
    world.declare_cloud().await;
    let operator = world.operator();
    let tenant = world.tenant().await;
    surroundings(&tenant).await;
    create(&tenant, "settled", json!({"metadata": {"a": "1"}})).await;
    let server = id(&tenant.ready::<VirtualMachine>("settled").await);
    let node = |vm: &VirtualMachine| vm.status.as_ref().unwrap().node.is_some();
    until(tenant.api(), "settled", node).await;
    let path = format!("/servers/{server}");
    let before = world.asked(&path);
    for _ in 0..3 {
        let (passes, lists) = (operator.passes("virtualmachine"), world.count("GET", "/servers/detail"));
        tenant.nudge::<VirtualMachine>("settled").await;
        eventually("a pass", async || operator.passes("virtualmachine") > passes).await;
        eventually("a list", async || world.count("GET", "/servers/detail") > lists).await;
    }
    assert_eq!((world.asked(&path), world.count("POST", "/v2.1/servers")), (before, 1));
    operator.stop().await;
}
