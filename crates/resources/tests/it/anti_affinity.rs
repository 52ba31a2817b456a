//! VMs that are kept apart from each other, by server groups in Nova.

use std::collections::BTreeSet;

use kube::{
    ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use kupenstack_api::resources::VirtualMachine;
use kupenstack_core::ownership;
use kupenstack_testkit::sim::{Effect, Rule, ServerGroup, SimOptions};
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    common::{
        look::{self, eventually, gone, id, object, shown, until, within},
        operator::Operator,
    },
    virtual_machine::{create, servers, surroundings, vanish},
    world::{self, Tenant, World},
};

const GROUPS: &str = "/v2.1/os-server-groups";

/// One with so many hosts, that no other test uses.
async fn world_with(hosts: &[&str]) -> World {
    let hosts = hosts.iter().map(ToString::to_string).collect();
    let world = World::start_with(SimOptions { hosts, ..SimOptions::default() }).await;
    world.declare_cloud().await;
    world
}

fn web() -> Value {
    json!({"antiAffinity": {"group": "web"}})
}

async fn groups(tenant: &Tenant<'_>) -> Vec<ServerGroup> {
    let project = tenant.project().await;
    let cloud = tenant.world.sim.cloud();
    cloud.nova.server_groups().filter(|group| group.project_id == project).cloned().collect()
}

/// The one group of a project.
async fn only(tenant: &Tenant<'_>) -> ServerGroup {
    let [one] = groups(tenant).await.try_into().unwrap();
    one
}

async fn hosts(tenant: &Tenant<'_>) -> Vec<Option<String>> {
    let mut hosts: Vec<_> =
        servers(tenant.world, &tenant.project().await).into_iter().map(|server| server.host).collect();
    hosts.sort();
    hosts
}

fn on(hosts: &[&str]) -> Vec<Option<String>> {
    hosts.iter().map(|host| Some((*host).to_owned())).collect()
}

async fn all_ready(tenant: &Tenant<'_>, names: &[&str]) {
    for name in names {
        tenant.ready::<VirtualMachine>(name).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn vms_of_a_group_are_apart_and_one_that_no_node_is_left_for_waits() {
    let world = world_with(&["node1", "node2"]).await;
    let operator = world.operator();
    let tenant = world.tenant().await;
    surroundings(&tenant).await;
    create(&tenant, "alone", json!({})).await;
    tenant.ready::<VirtualMachine>("alone").await;
    assert_eq!(world.asked(GROUPS), 0, "of a VM that names no group none is asked for");
    look::delete(tenant.api::<VirtualMachine>(), "alone").await;
    assert_eq!(world.asked(GROUPS), 0);
    for name in ["one", "two"] {
        create(&tenant, name, web()).await;
    }
    all_ready(&tenant, &["one", "two"]).await;
    assert_eq!(hosts(&tenant).await, on(&["node1", "node2"]));
    let group = only(&tenant).await;
    assert_eq!(group.policy, "anti-affinity");
    assert!(group.name.starts_with("web anti-affinity "), "{}", group.name);
    let namespace = tenant.until_namespace(|_| true).await;
    let mark = ownership::mark_in(&group.name).and_then(ownership::uid_in);
    assert_eq!(mark, namespace.uid().as_deref());
    assert_eq!((world.count("GET", GROUPS), world.count("POST", GROUPS)), (2, 1), "a look for each VM");
    create(&tenant, "three", web()).await;
    let waiting = until(tenant.api(), "three", |vm: &VirtualMachine| shown(vm).0 == "CrashLoopBackOff").await;
    let message = shown(&waiting).1;
    let why = "No valid host was found. There are not enough hosts available. (code 500); group web takes a node with room \
               for each of its 3 VMs, and there are fewer; it is made anew";
    assert!(message.contains(why), "{message}");
    world.sim.cloud().nova.set_hosts(&["node1", "node2", "node3"]);
    tenant.ready::<VirtualMachine>("three").await;
    assert_eq!(hosts(&tenant).await, on(&["node1", "node2", "node3"]));
    for name in ["one", "two"] {
        look::delete(tenant.api::<VirtualMachine>(), name).await;
        assert_eq!(only(&tenant).await.id, group.id, "there are others");
    }
    assert_eq!(world.count("DELETE", GROUPS), 0);
    look::delete(tenant.api::<VirtualMachine>(), "three").await;
    assert!(groups(&tenant).await.is_empty(), "the last one takes it with it");
    operator.stop().await;
}

/// An operator that has just begun does not know what another has left; afterwards nothing is asked.
#[tokio::test(flavor = "multi_thread")]
async fn a_group_in_which_nothing_happens_is_looked_at_once_after_a_start() {
    let world = world_with(&["node1", "node2"]).await;
    let first = world.operator();
    let tenant = world.tenant().await;
    surroundings(&tenant).await;
    for name in ["one", "two"] {
        create(&tenant, name, web()).await;
    }
    all_ready(&tenant, &["one", "two"]).await;
    let asked = world.asked(GROUPS);
    let passes = async |operator: &Operator| {
        for name in ["one", "two", "one", "two"] {
            let before = operator.passes("virtualmachine");
            tenant.nudge::<VirtualMachine>(name).await;
            eventually("a pass", async || operator.passes("virtualmachine") > before).await;
        }
    };
    passes(&first).await;
    assert_eq!(world.asked(GROUPS), asked);
    first.stop().await;
    let group = only(&tenant).await;
    let now = world.sim.clock().now();
    let lost = ServerGroup::new("lost", &group.name, &group.policy, &group.project_id);
    world.sim.cloud().nova.put_server_group(now, lost);
    let second = world.operator();
    eventually("the look", async || world.count("GET", GROUPS) > 2).await;
    passes(&second).await;
    assert_eq!(only(&tenant).await.id, group.id, "what a lost request has made is gone");
    assert_eq!(world.asked(GROUPS), asked + 2, "a look, and a deletion");
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn vms_that_only_prefer_to_be_apart_share_a_node_at_last() {
    let world = world_with(&["node1", "node2"]).await;
    let operator = world.operator();
    let tenant = world.tenant().await;
    surroundings(&tenant).await;
    for name in ["one", "two", "three"] {
        create(&tenant, name, json!({"antiAffinity": {"group": "web", "policy": "Preferred"}})).await;
    }
    all_ready(&tenant, &["one", "two", "three"]).await;
    let found: BTreeSet<_> = hosts(&tenant).await.into_iter().collect();
    assert_eq!(found, on(&["node1", "node2"]).into_iter().collect());
    assert_eq!(only(&tenant).await.policy, "soft-anti-affinity");
    // those that insist have nothing to do with them
    create(&tenant, "strict", web()).await;
    tenant.ready::<VirtualMachine>("strict").await;
    assert_eq!(groups(&tenant).await.len(), 2);
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_made_anew_is_in_its_group_again() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    create(&tenant, "one", web()).await;
    let first = id(&tenant.ready::<VirtualMachine>("one").await);
    let group = only(&tenant).await;
    vanish(tenant.world, &first);
    let again = until(tenant.api(), "one", |vm: &VirtualMachine| look::is_ready(vm) && id(vm) != first).await;
    let now = only(&tenant).await;
    assert_eq!((&now.id, now.members.last()), (&group.id, Some(&id(&again))));
    look::delete(tenant.api::<VirtualMachine>(), "one").await;
    assert!(groups(&tenant).await.is_empty());
}

/// A group that a lost request made is not used as long as servers are in another one, and goes; others' are left alone.
#[tokio::test(flavor = "multi_thread")]
async fn of_groups_that_are_there_twice_one_is_kept() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    create(&tenant, "one", json!({"antiAffinity": {"group": "web", "policy": "Preferred"}})).await;
    tenant.ready::<VirtualMachine>("one").await;
    let group = only(&tenant).await;
    let put = |id: &str, name: &str| {
        let now = tenant.world.sim.clock().now();
        let group = ServerGroup::new(&format!("{id}-{}", tenant.name), name, &group.policy, &group.project_id);
        tenant.world.sim.cloud().nova.put_server_group(now, group);
    };
    put("0", &group.name);
    put("zz", &group.name);
    put("foreign", "web soft-anti-affinity");
    create(&tenant, "two", json!({"antiAffinity": {"group": "web", "policy": "Preferred"}})).await;
    tenant.ready::<VirtualMachine>("two").await;
    let left = groups(&tenant).await;
    let foreign = format!("foreign-{}", tenant.name);
    assert_eq!(left.iter().map(|group| &group.id).collect::<Vec<_>>(), [&group.id, &foreign]);
    assert_eq!(left[0].members.len(), 2);
    put("0", &group.name);
    for name in ["one", "two"] {
        look::delete(tenant.api::<VirtualMachine>(), name).await;
    }
    assert_eq!(only(&tenant).await.id, foreign, "all of ours go with the last VM");
}

/// When the group comes that was asked for first, the VM has long been running in another, and nothing happens to it any more.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_lost_request_makes_when_all_is_at_rest_goes_too() {
    let world = world_with(&["node1"]).await;
    let operator = world.operator();
    let tenant = world.tenant().await;
    surroundings(&tenant).await;
    world.fail_next(Rule::on("compute", "POST", GROUPS, Effect::CommitLater { seconds: 12.0 }));
    create(&tenant, "one", web()).await;
    tenant.ready::<VirtualMachine>("one").await;
    let group = only(&tenant).await;
    eventually("the other", async || groups(&tenant).await.len() == 2).await;
    eventually("its end", async || groups(&tenant).await.len() == 1).await;
    assert_eq!(only(&tenant).await.id, group.id);
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_is_a_namespaces_own() {
    let world = world::shared().await;
    let (one, other) = (world.tenant().await, world.tenant().await);
    for tenant in [&one, &other] {
        surroundings(tenant).await;
        create(tenant, "vm", web()).await;
        // there is one node, and room for both
        tenant.ready::<VirtualMachine>("vm").await;
    }
    assert_ne!(only(&one).await.name, only(&other).await.name);
    look::delete(one.api::<VirtualMachine>(), "vm").await;
    assert!(groups(&one).await.is_empty());
    only(&other).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn vms_that_are_deleted_at_once_leave_no_group() {
    let world = world_with(&["node1", "node2", "node3"]).await;
    let operator = world.operator();
    let tenant = world.tenant().await;
    surroundings(&tenant).await;
    let names = ["one", "two", "three"];
    for name in names {
        create(&tenant, name, web()).await;
    }
    all_ready(&tenant, &names).await;
    for name in names {
        tenant.api::<VirtualMachine>().delete(name, &DeleteParams::default()).await.unwrap();
    }
    for name in names {
        gone(tenant.api::<VirtualMachine>(), name).await;
    }
    assert!(groups(&tenant).await.is_empty());
    operator.stop().await;
}

/// It waits for an image, and nothing was made for it: it would go without removing a group.
#[tokio::test(flavor = "multi_thread")]
async fn a_vm_that_has_not_begun_keeps_no_group() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    create(&tenant, "one", web()).await;
    tenant.ready::<VirtualMachine>("one").await;
    create(&tenant, "waiting", json!({"image": "none", "antiAffinity": {"group": "web"}})).await;
    tenant.says::<VirtualMachine>("waiting", "DependencyNotReady").await;
    look::delete(tenant.api::<VirtualMachine>(), "one").await;
    assert!(groups(&tenant).await.is_empty());
    look::delete(tenant.api::<VirtualMachine>(), "waiting").await;
}

/// Its namespace's end removes what it left, whichever project that is in, and nothing of others.
#[tokio::test(flavor = "multi_thread")]
async fn a_vm_that_is_retained_stays_in_its_group_until_the_namespace_goes() {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    create(&tenant, "kept", json!({"antiAffinity": {"group": "web"}, "deletionPolicy": "Retain"})).await;
    let server = id(&tenant.ready::<VirtualMachine>("kept").await);
    look::delete(tenant.api::<VirtualMachine>(), "kept").await;
    let group = only(&tenant).await;
    assert_eq!(group.members, std::slice::from_ref(&server));
    vanish(tenant.world, &server);
    let now = tenant.world.sim.clock().now();
    let put = |id: &str, name: &str| {
        let group = ServerGroup::new(&format!("{id}-{}", tenant.name), name, "anti-affinity", "a-project-that-is-gone");
        tenant.world.sim.cloud().nova.put_server_group(now, group);
    };
    put("lost", &group.name);
    put("foreign", "web anti-affinity");
    tenant.end().await;
    let cloud = tenant.world.sim.cloud();
    let left: Vec<_> = cloud.nova.server_groups().filter(|group| group.id.ends_with(&tenant.name)).collect();
    assert_eq!(left.iter().map(|group| &group.id).collect::<Vec<_>>(), [&format!("foreign-{}", tenant.name)]);
    assert!(cloud.nova.server_group(&group.id).is_none());
}

/// The operator dies while a group is made, before or after Nova has made it, and while it is deleted.
#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_is_killed_leaves_one_group_and_then_none() {
    let world = world_with(&["node1"]).await;
    let mut operator = world.operator();
    let tenant = world.tenant().await;
    surroundings(&tenant).await;
    let one_group = format!("{GROUPS}/{{server_group_id}}");
    for commit in [false, true] {
        let name = if commit { "after" } else { "before" };
        for (method, path) in [("POST", GROUPS), ("DELETE", one_group.as_str())] {
            let mut hung = world.sim.hung();
            world.fail_next(Rule::on("compute", method, path, Effect::Hang { commit }));
            if method == "POST" {
                create(&tenant, name, web()).await;
            } else {
                tenant.api::<VirtualMachine>().delete(name, &DeleteParams::default()).await.unwrap();
            }
            within(hung.changed(), "the request").await.unwrap();
            operator.kill().await;
            operator = world.operator();
            if method == "POST" {
                let server = id(&tenant.ready::<VirtualMachine>(name).await);
                assert_eq!(only(&tenant).await.members, [server], "{name}");
            } else {
                gone(tenant.api::<VirtualMachine>(), name).await;
                assert!(groups(&tenant).await.is_empty(), "{name}");
            }
        }
    }
    operator.stop().await;
}

#[rstest]
#[case("server_groups", 0, "too many server groups")]
#[case("server_group_members", 0, "too many servers in group")]
#[tokio::test(flavor = "multi_thread")]
async fn a_quota_of_groups_is_told_and_waited_for(#[case] resource: &str, #[case] limit: i64, #[case] words: &str) {
    let tenant = world::shared().await.tenant().await;
    surroundings(&tenant).await;
    let project = tenant.project().await;
    tenant.world.sim.cloud().quotas.set(&project, resource, limit);
    create(&tenant, "one", web()).await;
    let message = tenant.says::<VirtualMachine>("one", "QuotaExceeded").await;
    assert!(message.contains(words), "{message}");
    tenant.world.sim.cloud().quotas.set(&project, resource, 1);
    tenant.nudge::<VirtualMachine>("one").await;
    tenant.ready::<VirtualMachine>("one").await;
    assert_eq!(only(&tenant).await.members.len(), 1);
    // one for which a group was made and no server
    tenant.world.sim.cloud().quotas.set(&project, "instances", 1);
    create(&tenant, "two", json!({"antiAffinity": {"group": "db"}})).await;
    tenant.world.sim.cloud().quotas.set(&project, "server_groups", -1);
    tenant.nudge::<VirtualMachine>("two").await;
    until(tenant.api(), "two", |vm: &VirtualMachine| shown(vm).1.contains("Quota exceeded for instances")).await;
    look::delete(tenant.api::<VirtualMachine>(), "two").await;
    only(&tenant).await;
}

#[rstest]
#[case::empty("")]
#[case::odd("web front")]
#[case::end("web-")]
#[case::long("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")]
#[tokio::test(flavor = "multi_thread")]
async fn what_can_never_be_a_group_is_refused_by_the_definition(#[case] group: &str) {
    let tenant = world::shared().await.namespace(&[]).await;
    let spec = json!({"image": "linux", "flavor": "small", "networks": [{"network": "net"}], "antiAffinity": {"group": group}});
    let error =
        tenant.api::<VirtualMachine>().create(&PostParams::default(), &object("wrong", &spec)).await.unwrap_err();
    assert!(error.to_string().contains("spec.antiAffinity.group"), "{error}");
}

#[rstest]
#[case::another(web(), json!({"antiAffinity": {"group": "db"}}))]
#[case::policy(web(), json!({"antiAffinity": {"policy": "Preferred"}}))]
#[case::removed(web(), json!({"antiAffinity": null}))]
#[case::added(json!({}), web())]
#[tokio::test(flavor = "multi_thread")]
async fn a_vm_stays_in_its_group(#[case] first: Value, #[case] change: Value) {
    let tenant = world::shared().await.namespace(&[]).await;
    create(&tenant, "fixed", first).await;
    let patch = Patch::Merge(json!({"spec": change}));
    let error = tenant.api::<VirtualMachine>().patch("fixed", &PatchParams::default(), &patch).await.unwrap_err();
    assert!(error.to_string().contains("antiAffinity counts when the VM is made"), "{error}");
}
