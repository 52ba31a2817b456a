//! Nova's servers and services, Neutron's agents, and what both leave out.

use base64::{Engine, prelude::BASE64_STANDARD};
use futures::TryStreamExt;
use kupenstack_openstack::{NewServer, Server, ServerChanges, ServerFilter};
use serde_json::{Value, json};
use wiremock::{Mock, Request, ResponseTemplate, matchers::path};

use crate::support::{Cloud, log};

/// An answer in the form that was asked for.
fn at_microversion() -> ResponseTemplate {
    ResponseTemplate::new(200).insert_header("openstack-api-version", "compute 2.61")
}

#[tokio::test]
async fn heartbeats_of_novas_services_are_read() {
    let cloud = Cloud::start().await;
    let service = |binary: &str, state: &str| {
        json!({"id": "e81d66a4-ddd3-4aba-8a84-171d1cb4d339", "binary": binary, "host": "node1", "zone": "nova", "state": state, "status": "enabled",
            "updated_at": "2026-11-27T10:00:00.000000", "disabled_reason": null})
    };
    let body = json!({"services": [service("nova-compute", "up"), service("nova-scheduler", "down")]});
    cloud.answer("GET", "/v2.1/os-services", at_microversion().set_body_json(body)).await;
    let services = cloud.client().compute().services().await.unwrap();
    let found: Vec<_> = services.iter().map(|s| (s.binary.as_str(), s.host.as_str(), s.is_up())).collect();
    assert_eq!(found, [("nova-compute", "node1", true), ("nova-scheduler", "node1", false)]);
}

#[tokio::test]
async fn hypervisors_are_read() {
    let cloud = Cloud::start().await;
    let hypervisor = |host: &str, state: &str| json!({"id": "e3b0c442-98fc-4c14-9afb-f4c8996fb924", "hypervisor_hostname": host, "state": state, "status": "enabled"});
    let body = json!({"hypervisors": [hypervisor("node1", "up"), hypervisor("node2", "down")]});
    cloud.answer("GET", "/v2.1/os-hypervisors", at_microversion().set_body_json(body)).await;
    let hypervisors = cloud.client().compute().hypervisors().await.unwrap();
    let found: Vec<_> = hypervisors.iter().map(|h| (h.host.as_str(), h.is_up())).collect();
    assert_eq!(found, [("node1", true), ("node2", false)]);
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

fn server(id: &str, name: &str) -> Value {
    json!({"id": id, "name": name, "tenant_id": "p1", "status": "ACTIVE", "image": "", "metadata": {},
        "flavor": {"original_name": "small", "vcpus": 1, "ram": 512, "disk": 1}, "created": "2026-11-28T10:00:00Z"})
}

#[tokio::test]
async fn servers_are_listed_by_the_whole_of_their_names() {
    let cloud = Cloud::start().await;
    let listed = json!({"servers": [server("1", "web.1"), server("2", "webx1"), server("3", "WEB.1")]});
    cloud.answer("GET", "/v2.1/servers/detail", at_microversion().set_body_json(listed)).await;
    let compute = cloud.client().compute();
    let filter = ServerFilter { name: Some("web.1".to_owned()) };
    let found: Vec<Server> = compute.list_servers(&filter).try_collect().await.unwrap();
    assert_eq!(found.iter().map(|server| server.id.as_str()).collect::<Vec<_>>(), ["1"]);
    let all: Vec<Server> = compute.survey_servers().try_collect().await.unwrap();
    assert_eq!(all.len(), 3);
    let since = "2026-12-01T00:00:00.7Z".parse().unwrap();
    let changed: Vec<Server> = compute.survey_changed_servers(since).try_collect().await.unwrap();
    assert_eq!(changed.len(), 3);
    let asked = cloud.requests("GET", "/v2.1/servers/detail").await;
    let asked: Vec<_> = asked.iter().map(|request| request.url.query().unwrap()).collect();
    let paged = "limit=1000&sort_key=uuid&sort_dir=asc";
    let changed = "all_tenants=1&changes-since=2026-12-01T00%3A00%3A00Z";
    assert_eq!(asked, ["name=%5Eweb.1%24", "all_tenants=1", changed].map(|what| format!("{paged}&{what}")));
}

/// From 2.45 on there is no address of what was made, and what a change is answered with is half a server.
#[tokio::test]
async fn gophercloud_3542_what_an_answer_lacks_is_read_elsewhere() {
    let cloud = Cloud::start().await;
    let made =
        json!({"server": {"id": "s1", "links": [], "OS-DCF:diskConfig": "MANUAL", "adminPass": "correct-horse"}});
    let accepted = ResponseTemplate::new(202).insert_header("openstack-api-version", "compute 2.61");
    cloud.answer("POST", "/v2.1/servers", accepted.set_body_json(made)).await;
    cloud.answer("PUT", "/v2.1/servers/s1", at_microversion().set_body_json(json!({"server": {"id": "s1"}}))).await;
    let whole = json!({"server": server("s1", "web")});
    cloud.answer("GET", "/v2.1/servers/s1", at_microversion().set_body_json(whole)).await;
    let compute = cloud.client().compute();
    assert_eq!(compute.create_server(&new_server()).await.unwrap(), "s1");
    let changes = ServerChanges { name: Some("web".to_owned()), ..ServerChanges::default() };
    assert_eq!(compute.update_server("s1", &changes).await.unwrap().name, "web");
    assert!(!log().contains("correct-horse"), "the password of root is not for a log");
}

const USER_DATA: &[u8] = b"#cloud-config\npassword: battery-staple\n";

fn new_server() -> NewServer {
    NewServer {
        name: "web".to_owned(),
        description: Some("for all".to_owned()),
        flavor_id: "f".to_owned(),
        image_id: "i".to_owned(),
        key_name: None,
        ports: vec!["port".to_owned()],
        user_data: Some(USER_DATA.to_vec()),
        metadata: [("a".to_owned(), "b".to_owned())].into(),
        group_id: None,
    }
}

/// A schema's complaint quotes all that it was given.
#[tokio::test]
async fn user_data_is_in_no_error_and_no_log() {
    let cloud = Cloud::start().await;
    let echo = |request: &Request| {
        let said = String::from_utf8_lossy(&request.body).into_owned();
        let body = json!({"badRequest": {"code": 400, "message": format!("Invalid input: {said}")}});
        ResponseTemplate::new(400).set_body_json(body)
    };
    Mock::given(path("/v2.1/servers")).respond_with(echo).mount(&cloud.server).await;
    let error = cloud.client().compute().create_server(&new_server()).await.unwrap_err();
    let encoded = BASE64_STANDARD.encode(USER_DATA);
    let sent = cloud.requests("POST", "/v2.1/servers").await[0].body_json::<Value>().unwrap();
    assert_eq!(sent["server"]["user_data"], encoded.as_str());
    assert_eq!(sent["server"]["networks"], json!([{"port": "port"}]));
    let told = format!("{error} {error:?} {:?} {}", new_server(), log());
    assert!(told.contains("Invalid input") && !told.contains(&encoded) && !told.contains("battery-staple"), "{error}");
}

fn group(id: usize) -> Value {
    json!({"id": id.to_string(), "name": "web", "policy": "anti-affinity", "rules": {}, "members": [], "project_id": "p",
        "user_id": "u"})
}

/// Nova gives no links to the next page, and as much at once as it is configured to.
#[tokio::test]
async fn server_groups_are_read_page_by_page() {
    for (largest, total, asked) in [(1000, 3, 1), (100, 100, 2), (100, 250, 3)] {
        let cloud = Cloud::start().await;
        let page = move |request: &Request| {
            let query: Vec<_> = request.url.query_pairs().collect();
            let offset = query.iter().find(|(key, _)| key == "offset").map_or(0, |(_, value)| value.parse().unwrap());
            let groups: Vec<Value> = (offset..total).take(largest).map(group).collect();
            let version = request.headers["openstack-api-version"].clone();
            ResponseTemplate::new(200)
                .insert_header("openstack-api-version", version)
                .set_body_json(json!({"server_groups": groups}))
        };
        Mock::given(path("/v2.1/os-server-groups")).respond_with(page).mount(&cloud.server).await;
        let found = cloud.client().compute().survey_server_groups().await.unwrap();
        let ids: Vec<usize> = found.iter().map(|group| group.id.parse().unwrap()).collect();
        assert_eq!(ids, (0..total).collect::<Vec<_>>());
        let requests = cloud.requests("GET", "/v2.1/os-server-groups").await;
        assert_eq!(requests.len(), asked);
        assert!(requests.iter().all(|request| request.url.query().unwrap().contains("all_projects=True")));
        assert_eq!(requests[0].headers["openstack-api-version"], "compute 2.64", "one policy instead of a list");
    }
}
