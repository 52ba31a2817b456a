//! Neutron's calls.

use futures::TryStreamExt;
use kupenstack_openstack::{
    ErrorKind, InterfaceBy, Network, NetworkAttributes, NetworkFilter, Nullable, Port, Subnet, SubnetAttributes,
};
use serde_json::{Value, json};
use wiremock::{
    Mock, ResponseTemplate,
    matchers::{body_json, header, method, path, query_param, query_param_is_missing},
};

use crate::support::Cloud;

fn network(id: &str) -> Value {
    json!({
        "id": id, "name": "front", "description": "", "project_id": "p", "tenant_id": "p", "status": "ACTIVE",
        "admin_state_up": true, "shared": false, "mtu": 1442, "subnets": [], "revision_number": 7, "tags": [],
    })
}

#[tokio::test]
async fn a_network_is_made_of_what_is_set() {
    let cloud = Cloud::start().await;
    Mock::given(method("POST"))
        .and(path("/v2.0/networks"))
        .and(body_json(json!({"network": {"name": "front", "mtu": 1400}})))
        .respond_with(ResponseTemplate::new(201).set_body_json(json!({"network": network("n1")})))
        .mount(&cloud.server)
        .await;
    let new = NetworkAttributes { name: Some("front".to_owned()), mtu: Some(1400), ..NetworkAttributes::default() };
    let made = cloud.client().network().networks().create(&new).await.unwrap();
    assert_eq!((made.id.as_str(), made.mtu, made.port_security_enabled), ("n1", Some(1442), None));
}

#[tokio::test]
async fn a_change_is_for_what_was_seen() {
    let cloud = Cloud::start().await;
    Mock::given(method("PUT"))
        .and(path("/v2.0/networks/n1"))
        .and(header("if-match", "revision_number=7"))
        .and(body_json(json!({"network": {"admin_state_up": false}})))
        .respond_with(ResponseTemplate::new(412).set_body_json(json!({"NeutronError": {
            "type": "RevisionNumberConstraintFailed", "message": "Constrained to 7, but current revision is 8", "detail": "",
        }})))
        .mount(&cloud.server)
        .await;
    let seen: Network = serde_json::from_value(network("n1")).unwrap();
    let changes = NetworkAttributes { admin_state_up: Some(false), ..NetworkAttributes::default() };
    let error = cloud.client().network().networks().update(&seen, &changes).await.unwrap_err();
    assert_eq!((error.kind(), error.reason()), (ErrorKind::Outdated, "ChangedMeanwhile"));
    assert!(error.to_string().ends_with("Constrained to 7, but current revision is 8"), "{error}");
}

#[tokio::test]
async fn a_list_follows_the_links_to_its_pages() {
    let cloud = Cloud::start().await;
    let links = json!([
        {"rel": "previous", "href": "http://elsewhere/v2.0/networks?limit=1000&marker=n1&page_reverse=True"},
        {"rel": "next", "href": "http://elsewhere/v2.0/networks?limit=1000&name=front&marker=n1"},
    ]);
    let all = || Mock::given(method("GET")).and(path("/v2.0/networks")).and(query_param("name", "front"));
    let first = json!({"networks": [network("n1")], "networks_links": links});
    all()
        .and(query_param_is_missing("marker"))
        .and(query_param("sort_key", "id"))
        .respond_with(ResponseTemplate::new(200).set_body_json(first))
        .mount(&cloud.server)
        .await;
    let second = json!({"networks": [network("n2")]});
    all()
        .and(query_param("marker", "n1"))
        .respond_with(ResponseTemplate::new(200).set_body_json(second))
        .mount(&cloud.server)
        .await;
    let filter = NetworkFilter { name: Some("front".to_owned()), ..NetworkFilter::default() };
    let found: Vec<Network> = cloud.client().network().networks().list(&filter).try_collect().await.unwrap();
    assert_eq!(found.iter().map(|network| network.id.as_str()).collect::<Vec<_>>(), ["n1", "n2"]);
}

/// So many that they fit into a URL; and of no network there is no subnet.
#[tokio::test]
async fn subnets_of_many_networks_are_asked_for_together() {
    let cloud = Cloud::start().await;
    let none = ResponseTemplate::new(200).set_body_json(json!({"subnets": []}));
    cloud.answer("GET", "/v2.0/subnets", none).await;
    let ids = ["6f2b6a2e-1f0a-4a55-9c58-0d4f3ad0f7a1"; 101];
    for (networks, requests) in [(0, 0), (1, 1), (101, 3)] {
        let before = cloud.requests("GET", "/v2.0/subnets").await.len();
        let all = cloud.client().network().subnets().of_networks(&ids[..networks]);
        assert!(all.try_collect::<Vec<Subnet>>().await.unwrap().is_empty());
        assert_eq!(cloud.requests("GET", "/v2.0/subnets").await.len() - before, requests);
    }
    let all = cloud.requests("GET", "/v2.0/subnets").await;
    assert!(all.iter().all(|request| request.url.as_str().len() < 4000));
}

#[tokio::test]
async fn a_network_that_can_not_be_read_hides_no_other() {
    let cloud = Cloud::start().await;
    let body = json!({"networks": [{"id": "odd"}, network("n1")]});
    cloud.answer("GET", "/v2.0/networks", ResponseTemplate::new(200).set_body_json(body)).await;
    let found: Vec<Network> = cloud.client().network().networks().survey().try_collect().await.unwrap();
    assert_eq!(found.len(), 1);
}

#[tokio::test]
async fn a_full_quota_and_a_network_in_use_are_told_apart() {
    let cloud = Cloud::start().await;
    let fault = |kind: &str| json!({"NeutronError": {"type": kind, "message": "m", "detail": ""}});
    cloud.answer("POST", "/v2.0/networks", ResponseTemplate::new(409).set_body_json(fault("OverQuota"))).await;
    cloud.answer("DELETE", "/v2.0/networks/n1", ResponseTemplate::new(409).set_body_json(fault("NetworkInUse"))).await;
    let networks = cloud.client().network().networks();
    assert_eq!(networks.create(&NetworkAttributes::default()).await.unwrap_err().kind(), ErrorKind::Quota);
    assert_eq!(networks.delete("n1").await.unwrap_err().kind(), ErrorKind::Conflict);
}

/// Neutron tells an absent gateway, which it chooses, from one that is null: there is none.
#[tokio::test]
async fn a_gateway_that_is_not_wanted_is_said() {
    let cloud = Cloud::start().await;
    let subnet = json!({
        "id": "s1", "name": "", "project_id": "p", "network_id": "n1", "ip_version": 4, "cidr": "10.0.0.0/24",
        "gateway_ip": null, "enable_dhcp": true, "dns_nameservers": [], "host_routes": [], "ipv6_ra_mode": null,
        "allocation_pools": [{"start": "10.0.0.1", "end": "10.0.0.254"}], "revision_number": 0, "service_types": [],
    });
    Mock::given(method("POST"))
        .and(path("/v2.0/subnets"))
        .and(body_json(
            json!({"subnet": {"network_id": "n1", "ip_version": 4, "cidr": "10.0.0.0/24", "gateway_ip": null}}),
        ))
        .respond_with(ResponseTemplate::new(201).set_body_json(json!({"subnet": subnet})))
        .mount(&cloud.server)
        .await;
    let new = SubnetAttributes {
        network_id: Some("n1".to_owned()),
        ip_version: Some(4),
        cidr: Some("10.0.0.0/24".to_owned()),
        gateway_ip: Some(Nullable(None)),
        ..SubnetAttributes::default()
    };
    let made: Subnet = cloud.client().network().subnets().create(&new).await.unwrap();
    assert_eq!((made.id.as_str(), made.gateway_ip, made.allocation_pools.len()), ("s1", None, 1));
}

#[tokio::test]
async fn an_interface_is_told_by_its_subnet_or_its_port() {
    let cloud = Cloud::start().await;
    Mock::given(method("PUT"))
        .and(path("/v2.0/routers/r1/add_router_interface"))
        .and(body_json(json!({"subnet_id": "s1"})))
        .respond_with(ResponseTemplate::new(200).set_body_json(json!({
            "id": "r1", "project_id": "p", "port_id": "p1", "network_id": "n1", "subnet_id": "s1", "subnet_ids": ["s1"],
        })))
        .mount(&cloud.server)
        .await;
    Mock::given(method("PUT"))
        .and(path("/v2.0/routers/r1/remove_router_interface"))
        .and(body_json(json!({"port_id": "p1"})))
        .respond_with(ResponseTemplate::new(404).set_body_json(json!({"NeutronError": {
            "type": "RouterInterfaceNotFound", "message": "Router r1 does not have an interface with id p1", "detail": "",
        }})))
        .mount(&cloud.server)
        .await;
    let routers = cloud.client().network().routers();
    assert_eq!(routers.add_interface("r1", InterfaceBy::Subnet("s1")).await.unwrap().port_id, "p1");
    assert!(!routers.remove_interface("r1", InterfaceBy::Port("p1")).await.unwrap());
}

/// What only administrators see of a port is absent for others, and what is not bound has no host.
#[tokio::test]
async fn ports_of_a_device_are_read_with_what_is_shown_of_them() {
    let cloud = Cloud::start().await;
    let port = json!({
        "id": "p1", "name": "", "network_id": "n1", "project_id": "p", "mac_address": "fa:16:3e:81:2d:6b",
        "admin_state_up": true, "status": "DOWN", "device_id": "r1", "device_owner": "network:router_interface",
        "fixed_ips": [{"subnet_id": "s1", "ip_address": "10.0.0.1"}], "allowed_address_pairs": [],
        "security_groups": [], "binding:vnic_type": "normal", "port_security_enabled": false, "revision_number": 2,
    });
    Mock::given(method("GET"))
        .and(path("/v2.0/ports"))
        .and(query_param("device_id", "r1"))
        .respond_with(ResponseTemplate::new(200).set_body_json(json!({"ports": [port]})))
        .mount(&cloud.server)
        .await;
    let found: Vec<Port> = cloud.client().network().ports().of_device("r1").try_collect().await.unwrap();
    assert_eq!((found.len(), &found[0].host_id, found[0].vnic_type.as_deref()), (1, &None, Some("normal")));
}
