//! What is found out about projects by lists for the whole cloud.

use kube::ResourceExt;
use kupenstack_api::resources::{PROJECT_ID, PROJECT_NAME};
use kupenstack_testkit::sim::{Effect, Entry, Rule};
use serde_json::{Value, json};

use crate::{
    common::{look::eventually, operator::Operator},
    world::{Tenant, World},
};

/// What a complete list asks for, in this order, and the queries.
const LISTS: [(&str, &str); 4] = [
    ("/v3/roles", ""),
    ("/v3/users", "domain_id=default&limit=1000*"),
    ("/v3/role_assignments", ""),
    ("/v3/projects", "domain_id=default&limit=1000*"),
];

/// Whether a request is part of a list for the whole cloud.
fn is_of_a_list(entry: &Entry) -> bool {
    let is_whole = !["name=", "tags="].iter().any(|filter| entry.query.contains(filter));
    entry.method == "GET" && LISTS.iter().any(|(path, _)| *path == entry.template) && is_whole
}

/// How many lists have come to their last request.
fn lists_so_far(world: &World) -> usize {
    let cloud = world.sim.cloud();
    cloud.journal.entries().filter(|entry| entry.template == LISTS[3].0 && is_of_a_list(entry)).count()
}

async fn lists(world: &World, number: usize) {
    let before = lists_so_far(world);
    // one may be under way, and the last answer is taken in when another one has come so far
    eventually("lists", async || lists_so_far(world) >= before + number + 2).await;
}

/// Requests about projects, users and roles that are no part of a list, and logins.
fn asked(world: &World) -> usize {
    let of_ours = ["/v3/projects", "/v3/users", "/v3/roles", "/v3/auth/tokens"];
    let cloud = world.sim.cloud();
    let is_of_ours = |entry: &&Entry| of_ours.iter().any(|path| entry.template.starts_with(path));
    cloud.journal.entries().filter(is_of_ours).filter(|entry| !is_of_a_list(entry)).count()
}

/// A world with an operator at work, and namespaces that are settled. The administrator's login is behind it.
async fn settled(world: &World, number: usize) -> (Operator, Vec<Tenant<'_>>) {
    world.declare_cloud().await;
    let operator = world.operator();
    let mut tenants = Vec::new();
    for _ in 0..number {
        tenants.push(world.tenant().await);
    }
    lists(world, 2).await;
    (operator, tenants)
}

/// Has a namespace looked at, and waits until it was.
async fn look(operator: &Operator, tenant: &Tenant<'_>) {
    let before = operator.passes("projects");
    tenant.annotate(json!({"test/look": crate::common::cluster::number().to_string()})).await;
    eventually("a pass", async || operator.passes("projects") > before).await;
}

fn edit(world: &World, collection: &str, id: &str, attributes: Value) {
    let (now, Value::Object(attributes)) = (world.sim.clock().now(), attributes) else { panic!("no attributes") };
    assert!(world.sim.cloud().keystone.edit(now, collection, id, attributes), "no {id}");
}

fn remove(world: &World, collection: &str, id: &str) {
    let now = world.sim.clock().now();
    assert!(world.sim.cloud().keystone.remove(now, collection, id), "no {id}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_settled_namespace_costs_no_request_however_often_it_is_looked_at() {
    let world = World::start().await;
    let (operator, tenants) = settled(&world, 3).await;
    let mut versions = Vec::new();
    let before = asked(&world);
    for tenant in tenants.iter().cycle().take(9) {
        look(&operator, tenant).await;
        let secret = tenant.secrets().get(&tenant.secret_name()).await.unwrap();
        versions.push((tenant.name.clone(), secret.resource_version()));
    }
    lists(&world, 1).await;
    assert_eq!(asked(&world), before, "requests for 9 looks");
    versions.sort();
    versions.dedup();
    assert_eq!(versions.len(), 3, "no Secret is written again");
    operator.stop().await;

    // nor does a restart ask for more than whether the passwords work
    let (before, logins) = (asked(&world), world.count("POST", "/v3/auth/tokens"));
    let operator = world.operator();
    // the administrator's, those of three namespaces, and of `default`
    eventually("logins", async || world.count("POST", "/v3/auth/tokens") >= logins + 5).await;
    lists(&world, 1).await;
    operator.stop().await;
    assert_eq!((asked(&world), world.count("POST", "/v3/auth/tokens")), (before + 5, logins + 5));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_or_user_that_others_delete_is_made_anew_after_the_next_list() {
    let world = World::start().await;
    let (operator, tenants) = settled(&world, 3).await;
    let [first, second, other] = &tenants[..] else { unreachable!() };
    let (project, user) = (first.project().await, second.user().unwrap().id);
    let home = second.project().await;
    let others = (other.project().await, other.user().unwrap().id);
    let looks = || world.asked(&others.0) + world.asked(&others.1);
    let before = looks();
    remove(&world, "projects", &project);
    remove(&world, "users", &user);
    let anew = first.until_namespace(|namespace| namespace.annotations()[PROJECT_ID] != project).await;
    let anew = &anew.annotations()[PROJECT_ID];
    let is_whole = |project: &str, tenant: &Tenant<'_>| {
        let user = tenant.user()?;
        let cloud = world.sim.cloud();
        let has = |role| cloud.keystone.has_role(project, &user.id, role);
        (user.text("default_project_id") == project && has("member") && has("reader")).then_some(user.id)
    };
    eventually("the user's new home", async || is_whole(anew, first).is_some()).await;
    eventually("the new user", async || is_whole(&home, second).is_some_and(|id| id != user)).await;
    second.ready_image("after").await;
    assert_eq!(looks(), before, "who is not concerned is not looked at");
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_change_in_keystone_is_seen_by_the_next_list() {
    let world = World::start().await;
    let (operator, tenants) = settled(&world, 2).await;
    let [tenant, other] = &tenants[..] else { unreachable!() };
    let (project, user) = (tenant.project().await, tenant.user().unwrap().id);
    assert!(world.sim.cloud().keystone.revoke(&project, &user, "member"));
    eventually("the grant", async || world.sim.cloud().keystone.has_role(&project, &user, "member")).await;

    lists(&world, 1).await;
    edit(&world, "users", &user, json!({"default_project_id": other.project().await}));
    eventually("the default", async || tenant.user().unwrap().text("default_project_id") == project).await;

    lists(&world, 1).await;
    edit(&world, "projects", &project, json!({"name": "renamed"}));
    tenant.until_namespace(|namespace| namespace.annotations()[PROJECT_NAME] == "renamed").await;
    assert_eq!(tenant.project().await, project);

    // whoever disables something means it
    lists(&world, 1).await;
    edit(&world, "users", &user, json!({"enabled": false}));
    tenant.told("UserDisabled").await;
    edit(&world, "users", &user, json!({"enabled": true}));
    lists(&world, 1).await;
    edit(&world, "projects", &project, json!({"enabled": false}));
    tenant.told("ProjectDisabled").await;
    assert_eq!(world.sim.cloud().keystone.get("projects", &project).unwrap().body["enabled"], false);
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_is_cut_off_or_old_makes_no_project_anew() {
    let world = World::start().await;
    let (operator, tenants) = settled(&world, 1).await;
    let before = tenants[0].project().await;
    let mut made = 1;
    for (part, query) in LISTS {
        for effect in [Effect::Malformed, Effect::Stale { seconds: 30.0 }, Effect::refusal(500)] {
            let fault = effect.name();
            let met = || {
                let cloud = world.sim.cloud();
                let is_met = |entry: &&Entry| entry.template == part && entry.fault == Some(fault);
                cloud.journal.entries().filter(is_met).count()
            };
            world.sim.cloud().faults.add(Rule::on("identity", "GET", part, effect).with_query(query));
            // made while lists do not show it
            world.tenant().await;
            made += 1;
            let before = met();
            eventually("a list that goes wrong", async || met() > before).await;
            look(&operator, &tenants[0]).await;
            world.sim.cloud().faults.clear();
        }
    }
    lists(&world, 2).await;
    assert_eq!(tenants[0].project().await, before);
    let count = |collection| world.sim.cloud().keystone.all(collection).count();
    // the administrator's, and that of the namespace `default`
    assert_eq!((count("projects"), count("users")), (made + 2, made + 2));
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_no_grants_can_be_listed_each_namespace_is_looked_at() {
    let world = World::start().await;
    world.sim.cloud().faults.add(Rule::on("identity", "GET", LISTS[2].0, Effect::refusal(403)));
    world.declare_cloud().await;
    let operator = world.operator();
    let tenant = world.tenant().await;
    let before = asked(&world);
    look(&operator, &tenant).await;
    // project, user, and for each of two roles which it is and whether it is granted
    eventually("a look", async || asked(&world) >= before + 6).await;
    let user = tenant.user().unwrap().id;
    remove(&world, "users", &user);
    eventually("the new user", async || tenant.user().is_some_and(|now| now.id != user)).await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_annotation_that_tells_of_anothers_project_is_set_right_and_believed_in_nothing() {
    let world = World::start().await;
    let (operator, tenants) = settled(&world, 2).await;
    let [tenant, other] = &tenants[..] else { unreachable!() };
    let (own, others) = (tenant.project().await, other.project().await);
    let user = tenant.user().unwrap().id;
    tenant.annotate(json!({PROJECT_ID: others, PROJECT_NAME: other.name})).await;
    tenant.until_namespace(|namespace| namespace.annotations()[PROJECT_ID] == own).await;
    assert!(!world.sim.cloud().keystone.has_role(&others, &user, "member"));
    operator.stop().await;
}

/// Keystone looks for tags among the first thousand projects only, and says nothing of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_project_is_found_and_removed_among_more_than_a_thousand() {
    let world = World::start().await;
    let now = world.sim.clock().now();
    for number in 0..1001 {
        world.sim.cloud().keystone.add_project(now, &format!("0000{number:028}"), &format!("other-{number}"));
    }
    let (operator, tenants) = settled(&world, 2).await;
    let [named, renamed] = &tenants[..] else { unreachable!() };
    let projects = (named.project().await, renamed.project().await);
    edit(&world, "projects", &projects.1, json!({"name": "renamed"}));
    renamed.until_namespace(|namespace| namespace.annotations()[PROJECT_NAME] == "renamed").await;
    let user = named.user().unwrap().id;
    assert!(world.sim.cloud().keystone.revoke(&projects.0, &user, "member"));
    eventually("the grant", async || world.sim.cloud().keystone.has_role(&projects.0, &user, "member")).await;
    assert_eq!((named.project().await, renamed.project().await), projects);
    named.end().await;
    renamed.end().await;
    for id in [&projects.0, &projects.1] {
        assert!(world.sim.cloud().keystone.get("projects", id).is_none());
    }
    operator.stop().await;
}
