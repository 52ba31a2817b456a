//! Nova's services and servers, Neutron's agents, and what both leave out.

use serde_json::json;
use wiremock::ResponseTemplate;

use crate::support::Cloud;

/// An answer in the form that was asked for.
fn at_microversion() -> ResponseTemplate {
    ResponseTemplate::new(200).insert_header("openstack-api-version", "compute 2.61")
}

#[tokio::test]
async fn heartbeats_of_novas_services_are_read() {
    let cloud = Cloud::start().await;
    let service = |binary: &str, state: &str| {
        json!({"id": 1, "binary": binary, "host": "node1", "zone": "nova", "state": state, "status": "enabled",
            "updated_at": "2026-11-27T10:00:00.000000", "disabled_reason": null})
    };
    let body = json!({"services": [service("nova-compute", "up"), service("nova-scheduler", "down")]});
    cloud.answer("GET", "/v2.1/os-services", at_microversion().set_body_json(body)).await;
    let services = cloud.client().compute().services().await.unwrap();
    let found: Vec<_> = services.iter().map(|s| (s.binary.as_str(), s.host.as_str(), s.is_up())).collect();
    assert_eq!(found, [("nova-compute", "node1", true), ("nova-scheduler", "node1", false)]);
}

#[tokio::test]
async fn servers_of_all_projects_are_asked_for() {
    for (servers, expected) in [(json!([]), false), (json!([{"id": "x", "name": "vm"}]), true)] {
        let cloud = Cloud::start().await;
        let answer = at_microversion().set_body_json(json!({"servers": servers}));
        cloud.answer("GET", "/v2.1/servers", answer).await;
        assert_eq!(cloud.client().compute().any_server().await.unwrap(), expected);
        let asked = cloud.requests("GET", "/v2.1/servers").await;
        assert_eq!(asked[0].url.query(), Some("all_tenants=1&limit=1"));
    }
    // a list that can't be read is no list without servers
    let cloud = Cloud::start().await;
    cloud.answer("GET", "/v2.1/servers", at_microversion().set_body_json(json!({}))).await;
    let error = cloud.client().compute().any_server().await.unwrap_err();
    assert!(error.to_string().contains("no `servers`"), "{error}");
}

#[tokio::test]
async fn agents_of_networks_are_read() {
    let cloud = Cloud::start().await;
    let agent = json!({"id": "a", "agent_type": "OVN Metadata agent", "binary": "neutron-ovn-metadata-agent", "host": "node1",
        "alive": true, "admin_state_up": true});
    cloud.answer("GET", "/v2.0/agents", ResponseTemplate::new(200).set_body_json(json!({"agents": [agent]}))).await;
    let agents = cloud.client().network().agents().await.unwrap();
    assert_eq!(
        (agents[0].binary.as_str(), agents[0].host.as_str(), agents[0].alive),
        ("neutron-ovn-metadata-agent", "node1", true)
    );
}

/// What nobody has said anything about is null.
#[tokio::test]
async fn k_orc_187_a_description_that_is_null_is_none() {
    let cloud = Cloud::start().await;
    let flavor = json!({"id": "f7", "name": "small", "vcpus": 1, "ram": 64, "disk": 0, "swap": "",
        "OS-FLV-EXT-DATA:ephemeral": 0, "os-flavor-access:is_public": true, "description": null, "extra_specs": {}});
    cloud.answer("GET", "/v2.1/flavors/f7", at_microversion().set_body_json(json!({"flavor": flavor}))).await;
    let network = json!({"id": "n7", "project_id": "p7", "status": "ACTIVE", "admin_state_up": true, "mtu": null,
        "description": null, "dns_domain": null, "port_security_enabled": null, "revision_number": 1});
    let answer = ResponseTemplate::new(200).set_body_json(json!({"network": network}));
    cloud.answer("GET", "/v2.0/networks/n7", answer).await;
    let group = json!({"id": "g7", "name": "web", "project_id": "p7", "description": null, "stateful": null,
        "security_group_rules": [], "revision_number": 1});
    let answer = ResponseTemplate::new(200).set_body_json(json!({"security_group": group}));
    cloud.answer("GET", "/v2.0/security-groups/g7", answer).await;
    let client = cloud.client();
    let flavor = client.compute().get_flavor("f7").await.unwrap().unwrap();
    let network = client.network().networks().get("n7").await.unwrap().unwrap();
    let group = client.network().security_groups().get("g7").await.unwrap().unwrap();
    assert_eq!([flavor.description, network.description, network.dns_domain, group.description], [const { None }; 4]);
    assert_eq!((network.mtu, network.port_security_enabled, group.stateful), (None, None, None));
}
