//! Which host a server is put on.

use kupenstack_openstack::{NewServer, ServerAction};
use kupenstack_testkit::sim;

use super::{new_server, resize, shop};

#[tokio::test]
async fn a_flavor_says_which_aggregates_its_servers_are_put_in() {
    let shop = shop().await;
    let now = shop.sim.clock().now();
    let asking = |id: &str, key: &str, value: &str| {
        let extra_specs = [(key.to_owned(), value.to_owned())].into();
        sim::Flavor { extra_specs, ..sim::Flavor::new(id, id) }
    };
    {
        let mut cloud = shop.sim.cloud();
        cloud.nova.set_hosts(&["node1", "node2", "node3"]);
        cloud.nova.add_aggregate(now, "fast", &["node2", "node3"], &[("disk", "ssd, nvme")]);
        cloud.nova.add_aggregate(now, "west", &["node3"], &[("zone", "west")]);
        cloud.nova.put_flavor(now, asking("ssd", "aggregate_instance_extra_specs:disk", "ssd"));
        cloud.nova.put_flavor(now, asking("tape", "aggregate_instance_extra_specs:disk", "tape"));
        cloud.nova.put_flavor(now, asking("west", "zone", "west"));
        cloud.nova.put_flavor(now, asking("cpu", "hw:cpu_policy", "shared"));
    }
    let host = |id: &str| shop.sim.cloud().nova.server(id).unwrap().host.clone();
    for (flavor, expected) in [("cpu", Some("node1")), ("ssd", Some("node2")), ("west", Some("node3")), ("tape", None)]
    {
        let id = shop.make(&NewServer { flavor_id: flavor.to_owned(), ..new_server(flavor) }).await;
        assert_eq!(host(&id).as_deref(), expected, "{flavor}");
        let fault = shop.look(&id).await.fault.map(|fault| fault.message);
        let none = expected.is_none().then(|| "No valid host was found. ".to_owned());
        assert_eq!(fault, none, "{flavor}");
    }
}

#[tokio::test]
async fn a_resize_goes_where_the_flavor_says_and_back() {
    let shop = shop().await;
    let port = shop.port().await;
    let id = shop.make(&NewServer { ports: vec![port.clone()], ..new_server("web") }).await;
    assert_eq!(shop.status(&id).await, "ACTIVE");
    let now = shop.sim.clock().now();
    let spec = ("aggregate_instance_extra_specs:disk".to_owned(), "ssd".to_owned());
    {
        let mut cloud = shop.sim.cloud();
        cloud.nova.set_hosts(&["node1", "node2"]);
        cloud.nova.put_flavor(now, sim::Flavor { extra_specs: [spec].into(), ..sim::Flavor::new("ssd", "ssd") });
    }
    let place = || {
        let cloud = shop.sim.cloud();
        let server = cloud.nova.server(&id).unwrap();
        let bound = cloud.neutron.get("ports", &port).unwrap().text("binding:host_id").to_owned();
        (server.flavor.id.clone(), server.host.clone().unwrap(), bound)
    };
    shop.act(&id, resize("ssd")).await;
    assert_eq!(shop.status(&id).await, "ACTIVE", "there is no such host");
    shop.sim.cloud().nova.add_aggregate(now, "fast", &["node2"], &[("disk", "ssd")]);
    let (there, before) = (("ssd", "node2", "node2"), ("small", "node1", "node1"));
    let told = |(flavor, host, bound): (&str, &str, &str)| (flavor.to_owned(), host.to_owned(), bound.to_owned());
    for (action, expected) in [(ServerAction::RevertResize, before), (ServerAction::ConfirmResize, there)] {
        shop.act(&id, resize("ssd")).await;
        assert_eq!(shop.status(&id).await, "VERIFY_RESIZE");
        assert_eq!(place(), told(there));
        shop.act(&id, action).await;
        assert_eq!(shop.status(&id).await, "ACTIVE");
        assert_eq!(place(), told(expected));
    }
}
