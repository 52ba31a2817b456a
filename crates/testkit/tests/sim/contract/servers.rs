//! The calls to Nova about a server, from its creation on the networks that there are by now to its end, and about what
//! decides where it is: its group and flavor, aggregates of hosts, the services that run servers.

use super::{
    calls::{Call, NIL, Who, call},
    neutron::neutron,
    nova::new_nova,
};

/// What tells how a server is.
const STATE: [&str; 4] = [
    "/server/status",
    "/server/OS-EXT-STS:vm_state",
    "/server/OS-EXT-STS:task_state",
    "/server/OS-EXT-STS:power_state",
];
const STATUS: &str = "/server/status";
const SERVER: &str = "/v2.1/servers/{server}";
const AGGREGATE: &str = "/v2.1/os-aggregates/{aggregate}";
const SERVICE: &str = "/v2.1/os-services/{service}";

/// At the microversion that our client asks for where groups are concerned.
fn group(name: &'static str, who: Who, request: &str) -> Call {
    call(name, who, "compute", request).header("openstack-api-version", "compute 2.64")
}

fn new_group(name: &'static str, what: &str) -> Call {
    group(name, Who::Member, "POST /v2.1/os-server-groups").body(&format!(r#"{{"server_group": {{{what}}}}}"#))
}

pub(super) fn groups() -> Vec<Call> {
    use Who::{Admin, Member, Nobody};
    let one = "/v2.1/os-server-groups/{server_group}";
    vec![
        new_group("create a server group", r#""name": "{run}", "policy": "anti-affinity""#)
            .keep("server_group", "/server_group/id")
            .tells(&["/server_group/name", "/server_group/policy", "/server_group/project_id"]),
        new_group("another server group of the name", r#""name": "{run}", "policy": "soft-anti-affinity""#)
            .keep("second_server_group", "/server_group/id"),
        new_group("a server group without a policy", r#""name": "{run}""#),
        new_nova("a server group with a list of policies", Member, "POST /v2.1/os-server-groups")
            .body(r#"{"server_group": {"name": "{run}-3", "policies": ["anti-affinity"]}}"#)
            .keep("third_server_group", "/server_group/id"),
        group("server group", Member, &format!("GET {one}")),
        group("server group by an administrator", Admin, &format!("GET {one}")),
        group("server groups", Member, "GET /v2.1/os-server-groups?limit=1"),
        group("server groups after the first", Member, "GET /v2.1/os-server-groups?limit=1&offset=1"),
        group("no such server group", Member, &format!("GET /v2.1/os-server-groups/{NIL}")),
        group("server groups without a token", Nobody, "GET /v2.1/os-server-groups"),
        group("delete a server group", Member, "DELETE /v2.1/os-server-groups/{third_server_group}"),
        group("delete no server group", Member, "DELETE /v2.1/os-server-groups/{third_server_group}"),
    ]
}

/// Which projects may use a flavor.
pub(super) fn access() -> Vec<Call> {
    use Who::{Admin, Member};
    let list = "/v2.1/flavors/{flavor}/os-flavor-access";
    let act = |name, who, action: &str, project: &str| {
        let body = format!(r#"{{"{action}": {{"tenant": "{project}"}}}}"#);
        new_nova(name, who, "POST /v2.1/flavors/{flavor}/action").body(&body)
    };
    vec![
        act("let a project use a flavor", Admin, "addTenantAccess", "{project}"),
        act("let the project use the flavor again", Admin, "addTenantAccess", "{project}"),
        act("let a project use a flavor as a member", Member, "addTenantAccess", "{project}"),
        new_nova("who may use a flavor", Admin, &format!("GET {list}")),
        new_nova("who may use a flavor, to a member", Member, &format!("GET {list}")),
        new_nova("a flavor that the project may use", Member, "GET /v2.1/flavors/{flavor}"),
        new_nova("who may use no flavor", Admin, "GET /v2.1/flavors/nil/os-flavor-access"),
    ]
}

fn act_on_aggregate(name: &'static str, action: &str) -> Call {
    new_nova(name, Who::Admin, &format!("POST {AGGREGATE}/action")).body(action)
}

pub(super) fn aggregates() -> Vec<Call> {
    use Who::{Admin, Member};
    let create = r#"{"aggregate": {"name": "{run}"}}"#;
    let host =
        |name, action: &str, host: &str| act_on_aggregate(name, &format!(r#"{{"{action}": {{"host": "{host}"}}}}"#));
    vec![
        new_nova("who runs servers", Admin, "GET /v2.1/os-services?binary=nova-compute")
            .keep("service", "/services/0/id")
            .keep("host", "/services/0/host")
            .tells(&["/services/0/binary", "/services/0/status", "/services/0/state", "/services/0/zone"]),
        new_nova("services of a host", Admin, "GET /v2.1/os-services?host={host}&binary=nova-compute"),
        new_nova("services by a member", Member, "GET /v2.1/os-services"),
        new_nova("create an aggregate", Admin, "POST /v2.1/os-aggregates")
            .body(create)
            .keep("aggregate", "/aggregate/id"),
        new_nova("create the aggregate again", Admin, "POST /v2.1/os-aggregates").body(create),
        new_nova("create an aggregate as a member", Member, "POST /v2.1/os-aggregates").body(create),
        new_nova("aggregate", Admin, &format!("GET {AGGREGATE}")),
        new_nova("no such aggregate", Admin, "GET /v2.1/os-aggregates/99999999"),
        act_on_aggregate(
            "an aggregate gets a property",
            r#"{"set_metadata": {"metadata": {"{run}": "yes", "b": "1"}}}"#,
        ),
        act_on_aggregate("an aggregate loses a property", r#"{"set_metadata": {"metadata": {"b": null}}}"#)
            .tells(&["/aggregate/metadata"]),
        host("an aggregate gets a host", "add_host", "{host}").tells(&["/aggregate/hosts"]),
        host("an aggregate gets a host again", "add_host", "{host}"),
        host("an aggregate gets no host", "add_host", "{run}"),
        new_nova("delete an aggregate with a host", Admin, &format!("DELETE {AGGREGATE}")),
        host("an aggregate loses a host", "remove_host", "{host}"),
        host("an aggregate loses a host again", "remove_host", "{host}"),
    ]
}

/// A server with all that a server can have, but for the parts that are said.
fn create(name: &'static str, parts: &str, hints: &str) -> Call {
    let mut server = serde_json::json!({
        "name": "{run}", "flavorRef": "{flavor}-server", "imageRef": "{image}", "networks": [{"port": "{server_port}"}],
        "key_name": "{run}", "metadata": {"a": "1"}, "user_data": "YWJj", "description": "d {run}",
    });
    let parts: serde_json::Value = serde_json::from_str(parts).unwrap();
    for (key, value) in parts.as_object().unwrap() {
        match value {
            serde_json::Value::Null => drop(server.as_object_mut().unwrap().remove(key)),
            value => server[key] = value.clone(),
        }
    }
    new_nova(name, Who::Member, "POST /v2.1/servers").body(&format!(r#"{{"server": {server}{hints}}}"#))
}

pub(super) fn creation() -> Vec<Call> {
    use Who::{Admin, Member, Nobody};
    let flavor = |suffix: &str, ram: u32, disk: u32| {
        let body = format!(
            r#"{{"flavor": {{"id": "{{flavor}}-{suffix}", "name": "{{run}}-{suffix}", "vcpus": 1, "ram": {ram}, "disk": {disk}}}}}"#
        );
        move |name| new_nova(name, Admin, "POST /v2.1/flavors").body(&body)
    };
    let port = |name, key| {
        let body = r#"{"port": {"network_id": "{server_network}", "name": "{run}-s"}}"#;
        neutron(name, Member, "POST /v2.0/ports").body(body).keep(key, "/port/id")
    };
    let refused = |name, parts| create(name, parts, "");
    vec![
        flavor("server", 64, 2)("a flavor for servers"),
        flavor("larger", 128, 2)("a larger flavor for servers"),
        flavor("smaller", 64, 1)("a flavor that is smaller than an image"),
        neutron("a network for a server", Member, "POST /v2.0/networks")
            .body(r#"{"network": {"name": "{run}-servers"}}"#)
            .keep("server_network", "/network/id"),
        neutron("a subnet for a server", Member, "POST /v2.0/subnets")
            .body(r#"{"subnet": {"network_id": "{server_network}", "ip_version": 4, "cidr": "10.94.0.0/24"}}"#),
        port("a port for a server", "server_port"),
        port("another port for a server", "other_server_port"),
        new_nova("servers without a token", Nobody, "GET /v2.1/servers"),
        refused("a server of no flavor", r#"{"flavorRef": "nil"}"#),
        refused("a server of no image", &format!(r#"{{"imageRef": "{NIL}"}}"#)),
        refused("a server with no port", &format!(r#"{{"networks": [{{"port": "{NIL}"}}]}}"#)),
        refused("a server with no key pair", r#"{"key_name": "nil"}"#),
        refused("a server without a disk", r#"{"flavorRef": "{flavor}"}"#),
        refused("a server that is smaller than its image", r#"{"flavorRef": "{flavor}-smaller"}"#),
        create("a server of no group", "{}", &format!(r#", "os:scheduler_hints": {{"group": "{NIL}"}}"#)),
        create("create a server", "{}", r#", "os:scheduler_hints": {"group": "{server_group}"}"#)
            .keep("server", "/server/id"),
        new_nova("a server runs", Member, &format!("GET {SERVER}")).until(STATUS, "ACTIVE").tells(&STATE),
        refused("a server with a port in use", r#"{"name": "{run}-2"}"#),
    ]
}

pub(super) fn servers() -> Vec<Call> {
    use Who::{Admin, Member, Wrong};
    let detail = "GET /v2.1/servers/detail";
    vec![
        new_nova("server by an administrator", Admin, &format!("GET {SERVER}"))
            .keep("server_host", "/server/OS-EXT-SRV-ATTR:host")
            .tells(&["/server/name", "/server/description", "/server/metadata", "/server/OS-EXT-SRV-ATTR:user_data"]),
        neutron("the port of a server", Member, "GET /v2.0/ports/{server_port}").tells(&[
            "/port/device_id",
            "/port/device_owner",
            "/port/status",
            "/port/name",
        ]),
        new_nova("server with a wrong token", Wrong, &format!("GET {SERVER}")),
        new_nova("no such server", Member, &format!("GET /v2.1/servers/{NIL}")),
        new_nova("servers in detail", Member, &format!("{detail}?limit=1&sort_key=uuid&sort_dir=asc")),
        new_nova("servers in brief", Member, "GET /v2.1/servers?limit=1000"),
        new_nova("servers by name", Member, &format!("{detail}?name={{run}}")).tells(&["/servers/0/name"]),
        new_nova("servers of no name", Member, &format!("{detail}?name={{run}}-nil")),
        new_nova("servers after another", Member, &format!("{detail}?limit=1&marker={{server}}")),
        new_nova("a marker that is no server", Member, &format!("{detail}?marker={NIL}")),
        new_nova("everybody's servers, to a member", Member, &format!("{detail}?all_tenants=1")),
        new_nova("servers of a project", Admin, &format!("{detail}?all_tenants=1&project_id={{project}}"))
            .tells(&["/servers/0/name"]),
        new_nova(
            "servers that have changed since",
            Admin,
            &format!("{detail}?all_tenants=1&project_id={{project}}&changes-since=2026-01-01T00:00:00Z"),
        )
        .tells(&["/servers/0/name", "/servers/0/status"]),
        new_nova(
            "servers that have changed to come",
            Admin,
            &format!("{detail}?all_tenants=1&changes-since=2999-01-01T00:00:00Z"),
        ),
        new_nova("servers that have changed at no time", Admin, &format!("{detail}?all_tenants=1&changes-since=nil")),
        new_nova("servers on a host", Admin, "GET /v2.1/servers?all_tenants=1&project_id={project}&host={server_host}")
            .tells(&["/servers/0/name"]),
        new_nova("servers on no host", Admin, "GET /v2.1/servers?all_tenants=1&project_id={project}&host={run}"),
        group("server group with a server", Member, "GET /v2.1/os-server-groups/{server_group}")
            .tells(&["/server_group/members"]),
        new_nova("what a server is attached to", Member, &format!("GET {SERVER}/os-interface")),
        new_nova("console of a server", Member, &format!("POST {SERVER}/action"))
            .body(r#"{"os-getConsoleOutput": {"length": 10}}"#),
    ]
}

pub(super) fn changes() -> Vec<Call> {
    use Who::Member;
    let change =
        |name, what: &str| new_nova(name, Member, &format!("PUT {SERVER}")).body(&format!(r#"{{"server": {what}}}"#));
    let metadata = format!("{SERVER}/metadata");
    vec![
        change("rename a server", r#"{"name": "{run}-1"}"#).tells(&["/server/name"]),
        change("describe a server", r#"{"description": "e"}"#).tells(&["/server/description"]),
        new_nova("rename no server", Member, &format!("PUT /v2.1/servers/{NIL}")).body(r#"{"server": {"name": "x"}}"#),
        new_nova("a server gets metadata", Member, &format!("POST {metadata}"))
            .body(r#"{"metadata": {"a": "2", "b": "3"}}"#)
            .tells(&["/metadata"]),
        new_nova("a server loses metadata", Member, &format!("DELETE {metadata}/b")),
        new_nova("a server loses no metadata", Member, &format!("DELETE {metadata}/b")),
        new_nova("metadata of a server", Member, &format!("GET {metadata}")).tells(&["/metadata"]),
    ]
}

/// Its power and its size, and its ports while it is stopped: only a guest that runs lets go of one.
pub(super) fn actions() -> Vec<Call> {
    let attach = |name, port: &str| {
        let body = format!(r#"{{"interfaceAttachment": {{"port_id": "{port}"}}}}"#);
        new_nova(name, Who::Member, &format!("POST {SERVER}/os-interface")).body(&body)
    };
    let act = |name, action: &str| new_nova(name, Who::Member, &format!("POST {SERVER}/action")).body(action);
    let until =
        |name, status| new_nova(name, Who::Member, &format!("GET {SERVER}")).until(STATUS, status).tells(&STATE);
    let resize = |name, flavor: &str| act(name, &format!(r#"{{"resize": {{"flavorRef": "{flavor}"}}}}"#));
    vec![
        act("start a server that runs", r#"{"os-start": null}"#),
        act("stop a server", r#"{"os-stop": null}"#),
        until("a server that was stopped", "SHUTOFF"),
        attach("attach a port", "{other_server_port}"),
        attach("attach a port again", "{other_server_port}"),
        attach("attach no port", NIL),
        new_nova("detach a port", Who::Member, &format!("DELETE {SERVER}/os-interface/{{other_server_port}}")),
        neutron("a port that was detached", Who::Member, "GET /v2.0/ports/{other_server_port}")
            .until("/port/device_id", "")
            .tells(&["/port/device_owner"]),
        act("stop a server that is stopped", r#"{"os-stop": null}"#),
        act("reboot a server that is stopped", r#"{"reboot": {"type": "SOFT"}}"#),
        act("start a server", r#"{"os-start": null}"#),
        until("a server that was started", "ACTIVE"),
        act("reboot a server in no way", r#"{"reboot": {}}"#),
        act("reboot a server hard", r#"{"reboot": {"type": "HARD"}}"#),
        until("a server that was rebooted", "ACTIVE"),
        act("suspend a server", r#"{"suspend": null}"#),
        until("a server that was suspended", "SUSPENDED"),
        act("start a server that is suspended", r#"{"os-start": null}"#),
        act("resume a server", r#"{"resume": null}"#),
        until("a server that was resumed", "ACTIVE"),
        act("resume a server that runs", r#"{"resume": null}"#),
        resize("resize a server to what it is", "{flavor}-server"),
        resize("resize a server to no flavor", "nil"),
        resize("resize a server to less than its image", "{flavor}-smaller"),
        act("confirm no resize", r#"{"confirmResize": null}"#),
        act("revert no resize", r#"{"revertResize": null}"#),
        resize("resize a server", "{flavor}-larger"),
        until("a server that was resized", "VERIFY_RESIZE"),
        act("stop a server that was resized", r#"{"os-stop": null}"#),
        act("confirm a resize", r#"{"confirmResize": null}"#),
        until("a server whose resize was confirmed", "ACTIVE").tells(&["/server/flavor/ram"]),
        act("an action that is none", r#"{"nil": null}"#),
    ]
}

/// Nova is told that a host is down, and that it is not. No server is there any more.
fn services() -> Vec<Call> {
    use Who::{Admin, Member};
    const SAID: [&str; 4] = ["/service/status", "/service/state", "/service/forced_down", "/service/disabled_reason"];
    let say = |name, who, what: &str| new_nova(name, who, &format!("PUT {SERVICE}")).body(what);
    vec![
        say("a host is down, says a member", Member, r#"{"forced_down": true}"#),
        say("a reason for what is enabled", Admin, r#"{"status": "enabled", "disabled_reason": "x"}"#),
        new_nova("no service is down", Admin, &format!("PUT /v2.1/os-services/{NIL}")).body(r#"{"forced_down": true}"#),
        new_nova("a member forgets a host", Member, &format!("DELETE {SERVICE}")),
        new_nova("forget no host", Admin, &format!("DELETE /v2.1/os-services/{NIL}")),
        neutron("agents of no host", Admin, "GET /v2.0/agents?host={run}"),
        neutron("agents by a member", Member, "GET /v2.0/agents"),
        neutron("forget no agent", Admin, &format!("DELETE /v2.0/agents/{NIL}")),
        neutron("a member forgets an agent", Member, &format!("DELETE /v2.0/agents/{NIL}")),
        say("a host is down", Admin, r#"{"status": "disabled", "disabled_reason": "{run}", "forced_down": true}"#)
            .tells(&SAID),
        say("a host is up", Admin, r#"{"status": "enabled", "forced_down": false}"#).tells(&SAID),
    ]
}

pub(super) fn ends() -> Vec<Call> {
    use Who::{Admin, Member};
    let flavor = |name, suffix: &str| new_nova(name, Admin, &format!("DELETE /v2.1/flavors/{{flavor}}-{suffix}"));
    let mut ends = vec![
        new_nova("delete a server", Member, &format!("DELETE {SERVER}")),
        new_nova("a server that was deleted", Member, &format!("GET {SERVER}")).settles(),
        new_nova(
            "servers that have gone since",
            Admin,
            "GET /v2.1/servers/detail?all_tenants=1&project_id={project}&changes-since=2026-01-01T00:00:00Z",
        )
        .tells(&["/servers/0/status", "/servers/0/OS-EXT-STS:vm_state", "/servers/0/OS-EXT-STS:task_state"]),
        new_nova("delete no server", Member, &format!("DELETE {SERVER}")),
        new_nova("stop no server", Member, &format!("POST {SERVER}/action")).body(r#"{"os-stop": null}"#),
        neutron("the port of no server", Member, "GET /v2.0/ports/{server_port}").tells(&["/port/device_id"]),
        neutron("delete the server's port", Member, "DELETE /v2.0/ports/{server_port}"),
        neutron("delete the server's other port", Member, "DELETE /v2.0/ports/{other_server_port}"),
        neutron("delete the server's network", Member, "DELETE /v2.0/networks/{server_network}"),
        group("delete the server group", Member, "DELETE /v2.1/os-server-groups/{server_group}"),
        group("delete the second server group", Member, "DELETE /v2.1/os-server-groups/{second_server_group}"),
        new_nova("delete an aggregate", Admin, &format!("DELETE {AGGREGATE}")),
        new_nova("delete no aggregate", Admin, &format!("DELETE {AGGREGATE}")),
        new_nova("let no project use a flavor", Admin, "POST /v2.1/flavors/{flavor}/action")
            .body(r#"{"removeTenantAccess": {"tenant": "{project}"}}"#),
        new_nova("let no project use a flavor again", Admin, "POST /v2.1/flavors/{flavor}/action")
            .body(r#"{"removeTenantAccess": {"tenant": "{project}"}}"#),
        flavor("delete the flavor for servers", "server"),
        flavor("delete the larger flavor", "larger"),
        flavor("delete the smaller flavor", "smaller"),
    ];
    ends.extend(services());
    ends
}
