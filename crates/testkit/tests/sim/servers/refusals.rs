//! What Nova does not take.

use kupenstack_openstack::{ErrorKind, NewServer, PortAttributes, ServerAction};
use kupenstack_testkit::sim;
use rstest::rstest;
use serde_json::json;

use super::{new_server, resize, shop};

#[rstest]
#[case::flavor(NewServer { flavor_id: "nil".to_owned(), ..new_server("web") }, "Flavor nil could not be found.")]
#[case::image(NewServer { image_id: "nil".to_owned(), ..new_server("web") }, "Can not find requested image")]
#[case::image_without_data(NewServer { image_id: "empty".to_owned(), ..new_server("web") }, "Image empty is not active.")]
#[case::image_of_others(NewServer { image_id: "theirs".to_owned(), ..new_server("web") }, "Can not find requested image")]
#[case::memory(NewServer { image_id: "heavy".to_owned(), ..new_server("web") }, "Flavor's memory is too small for requested image.")]
#[case::disk(NewServer { image_id: "wide".to_owned(), ..new_server("web") }, "Flavor disk is 1073741824 bytes, minimum size is 2147483648 bytes.")]
#[case::data(NewServer { image_id: "full".to_owned(), ..new_server("web") }, "Flavor disk is 1073741824 bytes, image is 1073741825 bytes.")]
#[case::key(NewServer { key_name: Some("nil".to_owned()), ..new_server("web") }, "Invalid key_name provided.")]
#[case::key_of_others(NewServer { key_name: Some("theirs".to_owned()), ..new_server("web") }, "Invalid key_name provided.")]
#[case::port(NewServer { ports: vec!["nil".to_owned()], ..new_server("web") }, "Port id nil could not be found.")]
#[case::port_of_others(NewServer { ports: vec!["theirs".to_owned()], ..new_server("web") }, "Port id theirs could not be found.")]
#[case::port_without_address(NewServer { ports: vec!["bare".to_owned()], ..new_server("web") }, "Port bare requires a FixedIP in order to be used.")]
#[case::user_data(NewServer { user_data: Some(vec![b'x'; 50_000]), ..new_server("web") }, "Invalid input for field/attribute user_data")]
#[case::name(new_server(""), "Invalid input for field/attribute name")]
#[case::long_name(new_server(&"x".repeat(256)), "Invalid input for field/attribute name")]
#[case::description(NewServer { description: Some("two\nlines".to_owned()), ..new_server("web") }, "Invalid input for field/attribute description")]
#[case::metadata(NewServer { metadata: [("a/b".to_owned(), String::new())].into(), ..new_server("web") }, "'a/b' does not match any of the regexes")]
#[case::long_metadata(NewServer { metadata: [("a".to_owned(), "x".repeat(256))].into(), ..new_server("web") }, "field/attribute a. Value: ")]
#[tokio::test]
async fn what_is_no_server_is_refused(#[case] new: NewServer, #[case] words: &str) {
    let shop = shop().await;
    let now = shop.sim.clock().now();
    {
        let mut cloud = shop.sim.cloud();
        for (id, owner, status, size, min_disk, min_ram) in [
            ("empty", "project-shop", "queued", None, 0, 0),
            ("theirs", "project-other", "active", Some(1), 0, 0),
            ("heavy", "project-shop", "active", Some(1), 0, 513),
            ("wide", "project-shop", "active", Some(1), 2, 0),
            ("full", "project-shop", "active", Some((1 << 30) + 1), 0, 0),
        ] {
            let image = sim::Image::new(id.to_owned(), owner, now);
            cloud.glance.put(now, sim::Image { status, size, min_disk, min_ram, ..image });
        }
        cloud.nova.put_key_pair(now, sim::KeyPair::new("user-other", "theirs", super::KEY));
        let fixed = json!([{"ip_address": "10.0.0.9", "subnet_id": "s"}]);
        for (id, owner, fixed) in [("theirs", "project-other", fixed), ("bare", "project-shop", json!([]))] {
            let body = json!({"network_id": shop.network, "device_id": "", "fixed_ips": fixed});
            cloud.neutron.add(now, "ports", id, owner, body);
        }
    }
    let error = shop.client.compute().create_server(&new).await.unwrap_err();
    assert_eq!(error.status(), Some(400), "{error}");
    assert!(error.to_string().contains(words), "{error}");
    assert_eq!(shop.sim.cloud().nova.servers().count(), 0);
}

/// Nova would say what it was given.
#[tokio::test]
async fn user_data_that_is_refused_is_not_told() {
    let shop = shop().await;
    let new = NewServer { user_data: Some(b"battery-staple".repeat(4000)), ..new_server("web") };
    let error = shop.client.compute().create_server(&new).await.unwrap_err();
    let told = error.to_string();
    assert!(told.contains("Invalid input for field/attribute user_data") && told.contains("***"), "{told}");
    assert!(!format!("{error:?}").contains("YmF0dGVyeS"), "{error:?}");
    let cloud = shop.sim.cloud();
    let told = format!("{:?}", cloud.journal.entries().collect::<Vec<_>>());
    assert!(told.contains("/v2.1/servers") && !told.contains("YmF0dGVyeS"), "the journal has no bodies");
}

#[tokio::test]
async fn a_port_connects_one_server() {
    let shop = shop().await;
    let port = shop.port().await;
    let new = NewServer { ports: vec![port.clone()], ..new_server("web") };
    let first = shop.make(&new).await;
    let error = shop.client.compute().create_server(&new).await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Conflict, Some(409)));
    assert!(error.to_string().ends_with(&format!("Port {port} is still in use.")), "{error}");
    assert_eq!(shop.status(&first).await, "ACTIVE");
    // one that something else is connected by
    let taken = PortAttributes {
        network_id: Some(shop.network.clone()),
        device_id: Some("somebody".to_owned()),
        ..PortAttributes::default()
    };
    let taken = shop.client.network().ports().create(&taken).await.unwrap().id;
    let error = shop.client.compute().create_server(&NewServer { ports: vec![taken], ..new }).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(shop.sim.cloud().nova.servers().count(), 1);
}

/// An image without a size of its own could fill a host.
#[tokio::test]
async fn a_flavor_without_a_disk_is_for_administrators() {
    let shop = shop().await;
    let now = shop.sim.clock().now();
    shop.sim.cloud().nova.put_flavor(now, sim::Flavor { disk: 0, ..sim::Flavor::new("none", "m1.none") });
    let new = NewServer { flavor_id: "none".to_owned(), ..new_server("web") };
    let error = shop.client.compute().create_server(&new).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Forbidden);
    assert!(error.to_string().contains("Only volume-backed servers are allowed"), "{error}");
    let id = shop.make(&new_server("web")).await;
    let error = shop.client.compute().act_on_server(&id, &resize("none")).await.unwrap_err();
    assert!(error.to_string().ends_with("Resize to zero disk flavor is not allowed."), "{error}");
}

#[rstest]
#[case("instances", 1, "Quota exceeded for instances: Requested 1, but already used 1 of 1 instances")]
#[case("cores", 1, "Quota exceeded for cores: Requested 1, but already used 1 of 1 cores")]
#[case("ram", 1023, "Quota exceeded for ram: Requested 512, but already used 512 of 1023 ram")]
#[tokio::test]
async fn a_quota_is_kept(#[case] resource: &str, #[case] limit: i64, #[case] words: &str) {
    let shop = shop().await;
    shop.sim.cloud().quotas.set("project-shop", resource, limit);
    let id = shop.make(&new_server("first")).await;
    let error = shop.client.compute().create_server(&new_server("second")).await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Quota, Some(403)));
    assert!(error.to_string().ends_with(words), "{error}");
    if resource != "instances" {
        let error = shop.client.compute().act_on_server(&id, &resize("large")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Quota, "{error}");
    }
    shop.sim.cloud().quotas.set("project-shop", resource, limit * 2);
    shop.make(&new_server("second")).await;
}

#[tokio::test]
async fn several_quotas_are_told_of_at_once() {
    let shop = shop().await;
    shop.sim.cloud().quotas.set("project-shop", "instances", 0);
    shop.sim.cloud().quotas.set("project-shop", "ram", 256);
    let error = shop.client.compute().create_server(&new_server("web")).await.unwrap_err();
    let words = "Quota exceeded for instances, ram: Requested 1, 512, but already used 0, 0 of 0, 256 instances, ram";
    assert!(error.to_string().ends_with(words), "{error}");
}

#[rstest]
#[case::same(resize("small"), "When resizing, instances must change flavor!")]
#[case::none(resize("nil"), "Flavor nil could not be found.")]
#[case::hidden(resize("hidden"), "Flavor hidden could not be found.")]
#[tokio::test]
async fn a_server_is_resized_to_another_flavor(#[case] action: ServerAction, #[case] words: &str) {
    let shop = shop().await;
    let now = shop.sim.clock().now();
    shop.sim.cloud().nova.put_flavor(now, sim::Flavor { is_public: false, ..sim::Flavor::new("hidden", "m1.hidden") });
    let id = shop.make(&new_server("web")).await;
    let error = shop.client.compute().act_on_server(&id, &action).await.unwrap_err();
    assert_eq!(error.status(), Some(400));
    assert!(error.to_string().ends_with(words), "{error}");
    assert_eq!(shop.status(&id).await, "ACTIVE");
}
