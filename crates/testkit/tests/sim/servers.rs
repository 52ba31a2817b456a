//! The simulated Nova's servers, by our client.

mod groups;
mod hosts;
mod lists;
mod placement;
mod refusals;
mod states;

use std::time::Duration;

use futures::TryStreamExt;
use kupenstack_openstack::{
    Client, ErrorKind, NetworkAttributes, NewServer, PortAttributes, Server, ServerAction, ServerChanges, ServerFilter,
    SubnetAttributes,
};
use kupenstack_testkit::sim::{self, Sim, SimOptions};
use serde_json::json;

use crate::support::{admin, member};

const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f somebody@somewhere";
const BUILD: Duration = Duration::from_secs(20);

/// A project with an image, a key pair and a network.
struct Shop {
    sim: Sim,
    admin: Client,
    client: Client,
    network: String,
}

/// One where nothing takes time.
async fn shop() -> Shop {
    shop_in(SimOptions { standing_clock: true, ..SimOptions::default() }).await
}

/// One where whatever is done with a server takes [`BUILD`].
async fn slow_shop() -> Shop {
    shop_in(SimOptions { standing_clock: true, build_time: BUILD, ..SimOptions::default() }).await
}

async fn shop_in(options: SimOptions) -> Shop {
    kupenstack_testkit::install_tls_provider();
    let sim = Sim::start(options);
    let admin = admin(&sim);
    let client = member(&sim, &admin, "shop");
    let now = sim.clock().now();
    {
        let mut cloud = sim.cloud();
        let large = sim::Flavor { vcpus: 2, ram: 1024, disk: 20, ..sim::Flavor::new("large", "m1.large") };
        cloud.nova.put_flavor(now, large);
        cloud.nova.put_flavor(now, sim::Flavor::new("small", "m1.small"));
        cloud.nova.put_key_pair(now, sim::KeyPair::new("user-shop", "laptop", KEY));
        let mut image = sim::Image::new("cirros".to_owned(), "project-shop", now);
        (image.status, image.size) = ("active", Some(1 << 20));
        cloud.glance.put(now, image);
    }
    let networks = client.network();
    let front = NetworkAttributes { name: Some("front".to_owned()), ..NetworkAttributes::default() };
    let network = networks.networks().create(&front).await.unwrap().id;
    let range = SubnetAttributes {
        network_id: Some(network.clone()),
        cidr: Some("10.0.0.0/24".to_owned()),
        ip_version: Some(4),
        ..SubnetAttributes::default()
    };
    networks.subnets().create(&range).await.unwrap();
    Shop { sim, admin, client, network }
}

impl Shop {
    async fn port(&self) -> String {
        let on = PortAttributes { network_id: Some(self.network.clone()), ..PortAttributes::default() };
        self.client.network().ports().create(&on).await.unwrap().id
    }

    async fn make(&self, new: &NewServer) -> String {
        self.client.compute().create_server(new).await.unwrap()
    }

    async fn look(&self, id: &str) -> Server {
        self.client.compute().get_server(id).await.unwrap().unwrap()
    }

    async fn status(&self, id: &str) -> String {
        self.look(id).await.status
    }

    async fn act(&self, id: &str, action: ServerAction) {
        self.client.compute().act_on_server(id, &action).await.unwrap();
    }
}

fn new_server(name: &str) -> NewServer {
    NewServer {
        name: name.to_owned(),
        description: Some("for all mark".to_owned()),
        flavor_id: "small".to_owned(),
        image_id: "cirros".to_owned(),
        key_name: None,
        ports: Vec::new(),
        user_data: None,
        metadata: [("a".to_owned(), "b".to_owned())].into(),
        group_id: None,
    }
}

fn resize(flavor: &str) -> ServerAction {
    ServerAction::Resize { flavor_id: flavor.to_owned() }
}

#[tokio::test]
async fn a_server_lives_and_dies() {
    let shop = shop().await;
    let (compute, ports) = (shop.client.compute(), shop.client.network().ports());
    let port = shop.port().await;
    assert!(!shop.admin.compute().any_server().await.unwrap());
    let new = NewServer {
        key_name: Some("laptop".to_owned()),
        ports: vec![port.clone()],
        user_data: Some(b"#cloud-config".to_vec()),
        ..new_server("web")
    };
    let id = shop.make(&new).await;
    let made = shop.look(&id).await;
    assert_eq!(
        (made.status.as_str(), made.project_id.as_str(), made.task_state.as_deref()),
        ("ACTIVE", "project-shop", None)
    );
    assert_eq!((made.description.as_deref(), made.key_name.as_deref()), (Some("for all mark"), Some("laptop")));
    assert_eq!((made.image_id.as_deref(), made.flavor.original_name.as_str()), (Some("cirros"), "m1.small"));
    assert_eq!((made.host.as_deref(), made.fault.is_none(), &made.metadata), (None, true, &new.metadata));
    assert!(shop.admin.compute().any_server().await.unwrap());
    assert_eq!(shop.sim.cloud().nova.server(&id).unwrap().user_data.as_deref(), Some("I2Nsb3VkLWNvbmZpZw=="));

    let bound = shop.admin.network().ports().get(&port).await.unwrap().unwrap();
    assert_eq!((bound.host_id.as_deref(), bound.vif_type.as_deref()), (Some("node1"), Some("ovs")));
    let taken = ports.get(&port).await.unwrap().unwrap();
    assert_eq!(
        (taken.device_id.as_str(), taken.device_owner.as_str(), taken.status.as_str()),
        (&*id, "compute:nova", "ACTIVE")
    );
    assert_eq!(compute.attached_ports(&id).await.unwrap(), [port.as_str()]);

    let changes = ServerChanges { name: Some("shop".to_owned()), description: Some("d".to_owned()) };
    let shown = compute.update_server(&id, &changes).await.unwrap();
    assert_eq!(
        (shown.name.as_str(), shown.description.as_deref(), shown.key_name.as_deref()),
        ("shop", Some("d"), Some("laptop"))
    );
    compute.set_server_metadata(&id, &[("c".to_owned(), "d".to_owned())].into()).await.unwrap();
    assert!(compute.remove_server_metadata(&id, "a").await.unwrap());
    assert!(!compute.remove_server_metadata(&id, "a").await.unwrap());
    assert_eq!(shop.look(&id).await.metadata, [("c".to_owned(), "d".to_owned())].into());

    let console = compute.console_output(&id, None).await.unwrap();
    assert_eq!(
        (console.lines().count(), compute.console_output(&id, Some(1)).await.unwrap().as_str()),
        (3, "web login: ")
    );

    assert!(compute.delete_server(&id).await.unwrap());
    assert_eq!(compute.get_server(&id).await.unwrap(), None);
    assert!(!compute.delete_server(&id).await.unwrap());
    let freed = ports.get(&port).await.unwrap().unwrap();
    assert_eq!((freed.device_id.as_str(), freed.device_owner.as_str(), freed.status.as_str()), ("", "", "DOWN"));
    assert_eq!(freed.fixed_ips, taken.fixed_ips, "it stays as it was");
    shop.make(&NewServer { ports: vec![port], ..new_server("again") }).await;
}

#[tokio::test]
async fn a_port_is_attached_and_detached() {
    let shop = slow_shop().await;
    let (compute, ports) = (shop.client.compute(), shop.client.network().ports());
    let (first, second) = (shop.port().await, shop.port().await);
    let id = shop.make(&NewServer { ports: vec![first.clone()], ..new_server("web") }).await;
    let early = compute.attach_port(&id, &second).await.unwrap_err();
    assert!(early.kind() == ErrorKind::Conflict && early.to_string().contains("Cannot 'attach_interface'"), "{early}");
    shop.sim.clock().advance(BUILD);
    compute.attach_port(&id, &second).await.unwrap();
    assert_eq!(compute.attached_ports(&id).await.unwrap(), [first.as_str(), &second]);
    let in_use = compute.attach_port(&id, &second).await.unwrap_err();
    assert!(in_use.kind() == ErrorKind::Conflict && in_use.to_string().contains("still in use"), "{in_use}");
    assert_eq!(compute.attach_port(&id, "nil").await.unwrap_err().kind(), ErrorKind::NotFound);

    assert!(compute.detach_port(&id, &second).await.unwrap());
    assert_eq!(compute.attached_ports(&id).await.unwrap().len(), 2, "it takes a while");
    shop.sim.clock().advance(BUILD);
    assert_eq!(compute.attached_ports(&id).await.unwrap(), [first.as_str()]);
    assert_eq!(ports.get(&second).await.unwrap().unwrap().device_id, "");
    assert!(!compute.detach_port("nil", &second).await.unwrap());
    // a port that is deleted is no server's any more
    shop.admin.network().ports().delete(&first).await.unwrap();
    assert!(compute.attached_ports(&id).await.unwrap().is_empty());
    compute.delete_server(&id).await.unwrap();
}

#[tokio::test]
async fn nobody_has_the_servers_of_others() {
    let shop = shop().await;
    let other = member(&shop.sim, &shop.admin, "other");
    let id = shop.make(&new_server("web")).await;
    let theirs = other.compute();
    assert_eq!(theirs.get_server(&id).await.unwrap(), None);
    assert!(!theirs.delete_server(&id).await.unwrap());
    assert!(!theirs.detach_port(&id, "nil").await.unwrap());
    let listed: Vec<Server> = theirs.list_servers(&ServerFilter::default()).try_collect().await.unwrap();
    assert!(listed.is_empty());
    for error in [
        theirs.act_on_server(&id, &ServerAction::Stop).await.unwrap_err(),
        theirs.update_server(&id, &ServerChanges::default()).await.unwrap_err(),
        theirs.set_server_metadata(&id, &[("a".to_owned(), "c".to_owned())].into()).await.unwrap_err(),
        theirs.attached_ports(&id).await.unwrap_err(),
        theirs.console_output(&id, None).await.unwrap_err(),
    ] {
        assert!(error.kind() == ErrorKind::NotFound && error.to_string().contains("could not be found"), "{error}");
    }
    let everything = theirs.survey_servers().try_collect::<Vec<Server>>().await.unwrap_err();
    assert_eq!(everything.kind(), ErrorKind::Forbidden);
    let seen: Vec<Server> = shop.admin.compute().survey_servers().try_collect().await.unwrap();
    assert_eq!((seen.len(), seen[0].host.as_deref(), seen[0].name.as_str()), (1, Some("node1"), "web"));
    assert!(shop.admin.compute().delete_server(&id).await.unwrap());
}

#[tokio::test]
async fn a_server_has_the_addresses_of_its_ports() {
    let shop = shop().await;
    let port = shop.port().await;
    let id = shop.make(&NewServer { ports: vec![port.clone()], ..new_server("web") }).await;
    let now = shop.sim.clock().now();
    let floating = json!({"port_id": port, "floating_ip_address": "203.0.113.7", "fixed_ip_address": "10.0.0.3"});
    shop.sim.cloud().neutron.add(now, "floatingips", "f", "project-shop", floating);
    let server = shop.look(&id).await;
    assert!(server.launched.is_some());
    let told: Vec<_> = server.addresses["front"].iter().map(|one| (one.addr.as_str(), one.is_floating())).collect();
    assert_eq!(told, [("10.0.0.3", false), ("203.0.113.7", true)]);
    let mac = shop.client.network().ports().get(&port).await.unwrap().unwrap().mac_address;
    assert!(server.addresses["front"].iter().all(|address| address.mac_address == mac));
}

#[tokio::test]
async fn servers_outlive_their_project() {
    let shop = shop().await;
    let port = shop.port().await;
    let id = shop.make(&NewServer { ports: vec![port.clone()], ..new_server("web") }).await;
    let now = shop.sim.clock().now();
    assert!(shop.sim.cloud().keystone.remove(now, "projects", "project-shop"));
    assert!(shop.client.compute().get_server(&id).await.is_err());
    let admin = shop.admin.compute();
    assert_eq!(admin.get_server(&id).await.unwrap().unwrap().project_id, "project-shop");
    assert_eq!(admin.attached_ports(&id).await.unwrap(), [port.as_str()]);
    assert!(admin.detach_port(&id, &port).await.unwrap());
    admin.attach_port(&id, &port).await.unwrap();
    assert!(admin.delete_server(&id).await.unwrap());
    assert_eq!(shop.admin.network().ports().get(&port).await.unwrap().unwrap().host_id.as_deref(), Some(""));
}
