//! Lists of servers.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use kupenstack_openstack::{Client, Server, ServerFilter};
use kupenstack_testkit::sim::{self, Sim, SimOptions};
use rstest::rstest;

use super::{new_server, shop};
use crate::{
    scale::{ALONE, processor_millis},
    support::{admin, member},
};

async fn named(client: &Client, name: &str) -> Vec<String> {
    let filter = ServerFilter { name: Some(name.to_owned()) };
    let found: Vec<Server> = client.compute().list_servers(&filter).try_collect().await.unwrap();
    found.into_iter().map(|server| server.name).collect()
}

fn fill(sim: &Sim, project: impl Fn(usize) -> String, number: usize) {
    let now = sim.clock().now();
    let mut cloud = sim.cloud();
    for number in (0..number).rev() {
        let (id, flavor) = (format!("4f1ab1a4-0000-5000-8000-{number:012}"), sim::Flavor::new("1", "m1.tiny"));
        let server = sim::Server::new(&id, &format!("web-{number}"), &project(number), flavor, now);
        cloud.nova.put_server(now, sim::Server { vm_state: "active", host: Some("node1".to_owned()), ..server });
    }
}

#[rstest]
#[case("web.1")]
#[case("a|b")]
#[case("(web)+")]
#[case("^$")]
#[case("Web")]
#[case("süß")]
#[tokio::test]
async fn a_name_is_found_whatever_is_in_it(#[case] name: &str) {
    let shop = shop().await;
    for other in ["webx1", "a", "b", "web", "web.10"] {
        shop.make(&new_server(other)).await;
    }
    assert!(named(&shop.client, name).await.is_empty(), "{name}");
    shop.make(&new_server(name)).await;
    shop.make(&new_server(name)).await;
    assert_eq!(named(&shop.client, name).await, [name, name]);
}

#[tokio::test]
async fn servers_come_in_pages_by_their_ids() {
    let shop = shop().await;
    fill(&shop.sim, |number| format!("project-{}", if number % 2 == 0 { "shop" } else { "other" }), 2_002);
    let own: Vec<Server> = shop.client.compute().list_servers(&ServerFilter::default()).try_collect().await.unwrap();
    assert_eq!((own.len(), own[0].name.as_str(), own[1000].name.as_str()), (1001, "web-0", "web-2000"));
    assert_eq!(shop.sim.cloud().journal.count("GET", "/v2.1/servers/detail"), 2);
    let all: Vec<Server> = shop.admin.compute().survey_servers().try_collect().await.unwrap();
    assert_eq!(all.len(), 2002);
    assert!(all.is_sorted_by(|a, b| a.id < b.id), "no server is missed or told twice");
}

#[tokio::test]
async fn a_list_of_changes_shows_what_has_changed_and_what_has_gone() {
    let shop = shop().await;
    fill(&shop.sim, |_| "project-shop".to_owned(), 4);
    let id = |number: usize| format!("4f1ab1a4-0000-5000-8000-{number:012}");
    shop.sim.clock().advance(Duration::from_mins(1));
    let now = shop.sim.clock().now();
    assert!(shop.sim.cloud().nova.edit_server(now, &id(1), |server| "renamed".clone_into(&mut server.name)));
    assert!(shop.sim.cloud().nova.remove_server(now, &id(2)));
    let changed = async |since| {
        let listed = shop.admin.compute().survey_changed_servers(since);
        let servers: Vec<Server> = listed.try_collect().await.unwrap();
        servers.into_iter().map(|server| (server.id, server.status)).collect::<Vec<_>>()
    };
    let (active, deleted) = ("ACTIVE".to_owned(), "DELETED".to_owned());
    assert_eq!(changed(now).await, [(id(1), active), (id(2), deleted)]);
    assert_eq!(changed(now - Duration::from_secs(61)).await.len(), 4);
    assert!(changed(now + Duration::from_secs(1)).await.is_empty());
    assert_eq!(shop.admin.compute().survey_servers().count().await, 3, "what has gone is in no other list");
}

/// What comes and goes between two pages shifts nothing; what the next page is asked from is gone only if it was deleted.
#[tokio::test]
async fn a_list_that_changes_while_it_is_read_loses_nothing() {
    let shop = shop().await;
    fill(&shop.sim, |_| "project-shop".to_owned(), 1_500);
    let mut listed = Box::pin(shop.admin.compute().survey_servers());
    let first = listed.next().await.unwrap().unwrap();
    let now = shop.sim.clock().now();
    assert!(shop.sim.cloud().nova.remove_server(now, &first.id));
    let early = sim::Server::new("0", "early", "project-shop", sim::Flavor::new("1", "m1.tiny"), now);
    shop.sim.cloud().nova.put_server(now, early);
    let rest: Vec<Server> = listed.try_collect().await.unwrap();
    assert_eq!((rest.len(), rest[1498].name.as_str()), (1499, "web-1499"));

    let mut listed = Box::pin(shop.admin.compute().survey_servers());
    listed.next().await.unwrap().unwrap();
    assert!(shop.sim.cloud().nova.remove_server(now, "4f1ab1a4-0000-5000-8000-000000000999"));
    let error = listed.try_collect::<Vec<Server>>().await.unwrap_err();
    assert!(error.to_string().contains("marker [4f1ab1a4-0000-5000-8000-000000000999] not found"), "{error}");
}

#[tokio::test]
async fn a_hundred_thousand_servers_are_no_burden() {
    const SERVERS: usize = 100_000;
    let _alone = ALONE.lock().await;
    let sim = Sim::start(SimOptions { history: Duration::ZERO, ..SimOptions::default() });
    let admin = admin(&sim);
    let shop = member(&sim, &admin, "shop");
    fill(
        &sim,
        |number| if number % 1000 == 7 { "project-shop".to_owned() } else { format!("p{}", number % 1000) },
        SERVERS,
    );
    let before = processor_millis();
    for _ in 0..20 {
        assert_eq!(named(&shop, "web-2007").await, ["web-2007"]);
        let id = "4f1ab1a4-0000-5000-8000-000000002007";
        assert!(shop.compute().get_server(id).await.unwrap().is_some());
    }
    let small = processor_millis();
    let read = admin.compute().survey_servers().take(10_000).try_fold(0, async |count, _| Ok(count + 1)).await.unwrap();
    assert_eq!(read, 10_000);
    let pages = processor_millis();
    println!("ms: 40 small reads {}, ten pages {}", small - before, pages - small);
    // of all tests that run meanwhile
    assert!(small - before < 3_000, "{} ms for 40 small reads", small - before);
    assert!(pages - small < 60_000, "{} ms for ten pages", pages - small);
}
