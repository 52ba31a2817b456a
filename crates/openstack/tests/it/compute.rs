//! Nova's services and servers, Neutron's agents.

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
