//! The simulated Nova's hosts, aggregates and flavors that not everybody may use, by our client.

use std::collections::BTreeMap;

use futures::TryStreamExt;
use kupenstack_openstack::{Compute, ErrorKind, Flavor};
use kupenstack_testkit::sim::{self, Sim, SimOptions};

use crate::support::{admin, member};

fn start() -> Sim {
    kupenstack_testkit::install_tls_provider();
    let hosts = ["node1", "node2"].map(str::to_owned).to_vec();
    Sim::start(SimOptions { hosts, ..SimOptions::default() })
}

fn property(key: &str, value: Option<&str>) -> BTreeMap<String, Option<String>> {
    [(key.to_owned(), value.map(str::to_owned))].into()
}

#[tokio::test]
async fn an_aggregate_lives_and_dies() {
    let sim = start();
    let admin = admin(&sim);
    let compute = admin.compute();
    let hosts = compute.compute_services().await.unwrap();
    assert_eq!(hosts.iter().map(|service| service.host.as_str()).collect::<Vec<_>>(), ["node1", "node2"]);
    assert!(compute.services().await.unwrap().iter().any(|service| service.binary == "nova-scheduler"));
    let made = compute.create_aggregate("fast").await.unwrap();
    assert!(made.hosts.is_empty() && made.metadata.is_empty());
    assert_eq!(compute.create_aggregate("Fast").await.unwrap_err().kind(), ErrorKind::Conflict, "as MySQL compares");
    compute.set_aggregate_metadata(made.id, &property("disk", Some("ssd"))).await.unwrap();
    assert!(compute.add_aggregate_host(made.id, "node1").await.unwrap());
    assert_eq!(compute.add_aggregate_host(made.id, "node1").await.unwrap_err().kind(), ErrorKind::Conflict);
    assert!(!compute.add_aggregate_host(made.id, "node9").await.unwrap(), "Nova does not know it");
    assert!(!compute.add_aggregate_host(made.id + 1, "node1").await.unwrap());
    let [one] = compute.aggregates().await.unwrap().try_into().unwrap();
    assert_eq!((one.name.as_str(), one.hosts.as_slice()), ("fast", ["node1".to_owned()].as_slice()));
    assert_eq!(one.metadata, [("disk".to_owned(), "ssd".to_owned())].into());
    assert_eq!(compute.delete_aggregate(made.id).await.unwrap_err().kind(), ErrorKind::BadRequest, "it has a host");
    assert!(compute.set_aggregate_metadata(made.id, &property("disk", None)).await.unwrap().metadata.is_empty());
    assert!(compute.remove_aggregate_host(made.id, "node1").await.unwrap());
    assert!(!compute.remove_aggregate_host(made.id, "node1").await.unwrap());
    assert!(compute.delete_aggregate(made.id).await.unwrap() && !compute.delete_aggregate(made.id).await.unwrap());
    let stranger = member(&sim, &admin, "shop");
    assert_eq!(stranger.compute().aggregates().await.unwrap_err().kind(), ErrorKind::Forbidden);
    assert_eq!(stranger.compute().compute_services().await.unwrap_err().kind(), ErrorKind::Forbidden);
}

async fn private(compute: &Compute) -> Vec<String> {
    let all: Vec<Flavor> = compute.survey_private_flavors().try_collect().await.unwrap();
    all.into_iter().map(|flavor| flavor.id).collect()
}

#[tokio::test]
async fn a_project_may_be_let_use_a_flavor() {
    let sim = start();
    let admin = admin(&sim);
    let (compute, user) = (admin.compute(), member(&sim, &admin, "shop").compute());
    let now = sim.clock().now();
    sim.cloud().nova.put_flavor(now, sim::Flavor { is_public: false, ..sim::Flavor::new("hidden", "hidden") });
    sim.cloud().nova.put_flavor(now, sim::Flavor::new("open", "open"));
    assert_eq!(private(&compute).await, ["hidden"]);
    assert_eq!(compute.flavor_access("open").await.unwrap(), None);
    assert_eq!(compute.flavor_access("hidden").await.unwrap(), Some([].into()));
    assert_eq!(user.get_flavor("hidden").await.unwrap(), None);
    compute.add_flavor_access("hidden", "project-shop").await.unwrap();
    let again = compute.add_flavor_access("hidden", "project-shop").await.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Conflict);
    assert_eq!(compute.add_flavor_access("open", "project-shop").await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(compute.flavor_access("hidden").await.unwrap(), Some(["project-shop".to_owned()].into()));
    assert!(user.get_flavor("hidden").await.unwrap().is_some());
    assert_eq!(user.flavor_access("hidden").await.unwrap_err().kind(), ErrorKind::Forbidden);
    assert!(compute.remove_flavor_access("hidden", "project-shop").await.unwrap());
    assert!(!compute.remove_flavor_access("hidden", "project-shop").await.unwrap());
    assert_eq!(user.get_flavor("hidden").await.unwrap(), None);
}
