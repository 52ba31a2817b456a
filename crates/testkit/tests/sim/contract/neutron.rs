//! The calls to Neutron about networks, and what is refused along the way. A cloud without Neutron is not asked.

use super::calls::{Call, NIL, Who, call};

/// What a change shows in a network.
pub(super) const CHANGING: [&str; 4] =
    ["/network/revision_number", "/network/name", "/network/description", "/network/mtu"];

pub(super) fn neutron(name: &'static str, who: Who, request: &str) -> Call {
    call(name, who, "network", request)
}

fn create(name: &'static str, who: Who, network: &str) -> Call {
    neutron(name, who, "POST /v2.0/networks").body(&format!(r#"{{"network": {network}}}"#))
}

fn change(name: &'static str, who: Who, id: &str, changes: &str) -> Call {
    neutron(name, who, &format!("PUT /v2.0/networks/{id}")).body(&format!(r#"{{"network": {changes}}}"#))
}

pub(super) fn networks() -> Vec<Call> {
    use Who::{Admin, Member, Nobody, Wrong};
    vec![
        neutron("Neutron's versions", Nobody, "GET /"),
        neutron("extensions", Member, "GET /v2.0/extensions"),
        neutron("networks without a token", Nobody, "GET /v2.0/networks"),
        neutron("networks with a wrong token", Wrong, "GET /v2.0/networks"),
        neutron("no such path in Neutron", Member, "GET /v2.0/nil"),
        create(
            "create a network",
            Member,
            r#"{"name": "{run}", "description": "d {run}", "admin_state_up": true, "mtu": 1300, "port_security_enabled": false}"#,
        )
        .keep("network", "/network/id")
        .keep("network_revision", "/network/revision_number")
        .tells(&CHANGING)
        .tells(&["/network/status", "/network/admin_state_up", "/network/port_security_enabled", "/network/project_id"]),
        create("a network of which nothing is said", Member, "{}").keep("plain_network", "/network/id").tells(&CHANGING).tells(&[
            "/network/status",
            "/network/admin_state_up",
            "/network/port_security_enabled",
            "/network/shared",
            "/network/router:external",
            "/network/project_id",
        ]),
        create("another network of the name", Member, r#"{"name": "{run}", "tenant_id": "{project}"}"#)
            .keep("second_network", "/network/id"),
        create("a network for a project", Admin, r#"{"name": "{run}-3", "project_id": "{project}"}"#)
            .keep("given_network", "/network/id")
            .tells(&["/network/project_id", "/network/tenant_id"]),
        create("a network of another project", Admin, r#"{"name": "{run}-4"}"#).keep("foreign_network", "/network/id"),
        neutron("network", Member, "GET /v2.0/networks/{network}").tells(&CHANGING),
        neutron("network by an administrator", Admin, "GET /v2.0/networks/{network}"),
        neutron("some fields of a network", Member, "GET /v2.0/networks/{network}?fields=id&fields=name"),
        neutron("a field that no network has", Member, "GET /v2.0/networks/{network}?fields=nil"),
        neutron("no such network", Member, &format!("GET /v2.0/networks/{NIL}")),
        neutron("no such network, by what is no id", Member, "GET /v2.0/networks/nil"),
    ]
}

pub(super) fn refusals() -> Vec<Call> {
    use Who::Member;
    let long = |length: usize| format!(r#"{{"name": "{}"}}"#, "x".repeat(length));
    let post = |name, body: &str| neutron(name, Member, "POST /v2.0/networks").body(body);
    vec![
        post("a network without a body", ""),
        post("a network of half a body", r#"{"network": "#),
        post("a network that is not wrapped", r#"{"name": "{run}"}"#),
        post("a network that is no object", r#"{"network": 1}"#),
        post("two networks in one", r#"{"network": {}, "nil": {}}"#).keep("odd_network", "/network/id"),
        create("a network of an unknown attribute", Member, r#"{"nil": 1}"#),
        create("a network of a given id", Member, r#"{"id": "{image}"}"#),
        create("a network of a given status", Member, r#"{"status": "ACTIVE"}"#),
        create("a network of a given revision", Member, r#"{"revision_number": 5}"#),
        create("a network of a name that is too long", Member, &long(256)),
        create("a network of a name that is no text", Member, r#"{"name": 1}"#),
        create("a network of no name at all", Member, r#"{"name": null}"#),
        create("a network of a description that is no text", Member, r#"{"description": {}}"#),
        create("a network that may be up", Member, r#"{"admin_state_up": "nil"}"#),
        create("a network of too large packets", Member, r#"{"mtu": 90000}"#),
        create("a network of packets less than none", Member, r#"{"mtu": -1}"#),
        create("a network of packets too small for IPv4", Member, r#"{"mtu": 67}"#)
            .keep("small_network", "/network/id"),
        create("a network of packets in words", Member, r#"{"mtu": "nil"}"#),
        create("a network of names outside", Member, r#"{"dns_domain": "example.org."}"#)
            .keep("dns_network", "/network/id"),
        create("a network of names that are none", Member, r#"{"dns_domain": "no-dot"}"#),
        create("a network with no word about ports", Member, r#"{"port_security_enabled": null}"#),
        create("a network for everybody", Member, r#"{"shared": true}"#),
        create("a network outside", Member, r#"{"router:external": true}"#),
        create("a network for another project", Member, r#"{"project_id": "{admin_project}"}"#),
        create("a network on a wire", Member, r#"{"provider:network_type": "flat"}"#),
        create("a network for two projects", Member, r#"{"project_id": "{project}", "tenant_id": "{admin_project}"}"#),
    ]
}

/// Two networks are called `{run}`, one `{run}-3`, the others nothing.
pub(super) fn lists() -> Vec<Call> {
    use Who::{Admin, Member};
    let list = |name, who, query: &str| neutron(name, who, &format!("GET /v2.0/networks?{query}"));
    let names = ["/networks/0/name", "/networks/1/name", "/networks/2/name", "/networks/3/name"];
    vec![
        list("networks by name", Member, "name={run}").tells(&names),
        list(
            "networks by name and project",
            Admin,
            "name={run}&project_id={project}&limit=1000&sort_key=id&sort_dir=asc",
        )
        .tells(&names),
        list("networks by the former word for a project", Admin, "name={run}&tenant_id={project}").tells(&names),
        list("networks of another project", Member, "project_id={admin_project}"),
        list("networks by a name that is none", Member, "name={run}-nil"),
        list("networks by a name in capitals", Member, "name=CONTRACT-NIL&project_id={project}"),
        list("networks by two names", Member, "name={run}&name={run}-3&sort_key=name&sort_dir=desc").tells(&names),
        list("networks by id", Member, "id={network}").tells(&names),
        list("networks by a flag", Member, "admin_state_up=True&name={run}").tells(&names),
        list("networks by a flag in words", Member, "admin_state_up=nil&name={run}"),
        list("networks by what is no filter", Member, "port_security_enabled=false&name={run}"),
        list("networks by a number", Member, "mtu=1300&name={run}").tells(&names),
        list("networks by a number in words", Member, "mtu=nil&name={run}"),
        list("networks by status", Member, "status=ACTIVE&name={run}").tells(&names),
        list("networks by an attribute that is none", Member, "nil=1&name={run}"),
        list("some fields of networks", Member, "name={run}-3&fields=id&fields=name"),
        list("networks in order", Member, "project_id={project}&sort_key=name&sort_dir=asc&sort_key=mtu&sort_dir=asc")
            .tells(&names),
        list("networks in reverse", Member, "name={run}&name={run}-3&sort_key=name&sort_dir=desc&limit=2")
            .tells(&names),
        list("a full page of networks", Member, "name={run}&name={run}-3&sort_key=name&sort_dir=desc&limit=1")
            .tells(&names),
        list(
            "the page of networks after it",
            Member,
            "name={run}&name={run}-3&sort_key=name&sort_dir=desc&limit=1000&marker={given_network}",
        )
        .tells(&names),
        list(
            "the page of networks after the last",
            Member,
            "name={run}-3&sort_key=name&sort_dir=asc&limit=1&marker={given_network}",
        ),
        list("a marker of networks without a limit", Member, "name={run}-3&marker={given_network}").tells(&names),
        list("a marker that is no network", Member, &format!("limit=1&marker={NIL}")),
        list("a marker that is a foreign network", Member, "name={run}&limit=1&marker={foreign_network}"),
        list("no limit to networks", Member, "name={run}&limit=0").tells(&names),
        list("a limit to networks below none", Member, "limit=-1"),
        list("a limit to networks in words", Member, "limit=nil"),
        list("networks sorted by what is no attribute", Member, "sort_key=nil&sort_dir=asc"),
        list("networks sorted in no direction", Member, "sort_key=name&sort_dir=nil"),
        list("networks sorted without a direction", Member, "sort_key=name"),
        list("networks sorted by what none has", Member, "sort_key=subnets&sort_dir=asc"),
    ]
}

pub(super) fn changes() -> Vec<Call> {
    use Who::Member;
    let own = |name, changes: &str| change(name, Member, "{network}", changes);
    vec![
        own("change a network", r#"{"description": "e", "mtu": 1290}"#)
            .header("if-match", "revision_number={network_revision}")
            .keep("later_revision", "/network/revision_number")
            .tells(&CHANGING),
        own("change a network to what it is", r#"{"description": "e"}"#).tells(&CHANGING),
        own("change nothing in a network", "{}").tells(&CHANGING),
        own("change an earlier network", r#"{"description": "f"}"#)
            .header("if-match", "revision_number={network_revision}"),
        own("change a network of a revision in words", r#"{"description": "f"}"#)
            .header("if-match", "revision_number=nil"),
        own("change a network of another tag", r#"{"description": "f"}"#).header("if-match", "nil"),
        own("a network has the largest packets again", r#"{"mtu": 0}"#).tells(&CHANGING),
        own("give a network too large packets", r#"{"mtu": 90000}"#),
        own("forget a network's packets", r#"{"mtu": null}"#),
        own("rename a network", r#"{"name": "{run}-1"}"#).tells(&CHANGING),
        own("take a network down", r#"{"admin_state_up": false}"#)
            .tells(&["/network/status", "/network/admin_state_up"]),
        own("guard a network's ports", r#"{"port_security_enabled": true}"#).tells(&["/network/port_security_enabled"]),
        own("share a network", r#"{"shared": true}"#),
        own("give a network away", r#"{"project_id": "{admin_project}"}"#),
        own("give a network another id", r#"{"id": "{image}"}"#),
        own("give a network another status", r#"{"status": "DOWN"}"#),
        own("give a network another revision", r#"{"revision_number": 99}"#),
        own("give a network other zones", r#"{"availability_zone_hints": []}"#),
        own("give a network an unknown attribute", r#"{"nil": 1}"#),
        own("give a network a name that is too long", &format!(r#"{{"name": "{}"}}"#, "x".repeat(256))),
        neutron("change a network without a body", Member, "PUT /v2.0/networks/{network}").body(r#"{"name": "{run}"}"#),
        change("change no network", Member, NIL, r#"{"description": "f"}"#),
        neutron("delete an earlier network", Member, "DELETE /v2.0/networks/{network}")
            .header("if-match", "revision_number={network_revision}"),
        neutron("patch a network", Member, "PATCH /v2.0/networks/{network}").body(r#"{"network": {}}"#),
    ]
}

/// A member and a network of somebody else, before and after it is shared.
pub(super) fn of_others() -> Vec<Call> {
    use Who::{Admin, Member};
    vec![
        neutron("foreign network", Member, "GET /v2.0/networks/{foreign_network}"),
        change("change a foreign network", Member, "{foreign_network}", r#"{"description": "f"}"#),
        neutron("delete a foreign network", Member, "DELETE /v2.0/networks/{foreign_network}"),
        neutron("foreign networks by name", Member, "GET /v2.0/networks?name={run}-4"),
        change("share a foreign network", Admin, "{foreign_network}", r#"{"shared": true}"#)
            .tells(&["/network/shared"]),
        neutron("shared network", Member, "GET /v2.0/networks/{foreign_network}").tells(&["/network/shared"]),
        neutron("shared networks by name", Member, "GET /v2.0/networks?name={run}-4").tells(&["/networks/0/name"]),
        change("change a shared network", Member, "{foreign_network}", r#"{"description": "f"}"#),
        neutron("delete a shared network", Member, "DELETE /v2.0/networks/{foreign_network}"),
        change("change a network by an administrator", Admin, "{network}", r#"{"description": "g"}"#).tells(&CHANGING),
    ]
}

pub(super) fn quotas() -> Vec<Call> {
    use Who::{Admin, Member};
    let quota = "/v2.0/quotas/{project}";
    let set = |name, who, body: &str| neutron(name, who, &format!("PUT {quota}")).body(body);
    vec![
        neutron("quotas of the own project", Member, &format!("GET {quota}")),
        neutron("quotas of another project", Member, "GET /v2.0/quotas/{admin_project}"),
        set("set a quota below what is used", Admin, r#"{"quota": {"network": 1}}"#),
        set("set a quota", Admin, r#"{"quota": {"network": 7}}"#).tells(&["/quota/network"]),
        neutron("quotas as they are set", Admin, &format!("GET {quota}")).tells(&["/quota/network"]),
        create("a network too many", Member, r#"{"name": "{run}-5"}"#),
        create("a network too many for a project", Admin, r#"{"name": "{run}-5", "project_id": "{project}"}"#),
        set("set a quota as a member", Member, r#"{"quota": {"network": 9}}"#),
        set("set a quota of what is none", Admin, r#"{"quota": {"nil": 1}}"#),
        set("set a quota below none", Admin, r#"{"quota": {"network": -2}}"#),
        set("set a quota in words", Admin, r#"{"quota": {"network": "nil"}}"#),
        set("lift a quota", Admin, r#"{"quota": {"network": -1}}"#).tells(&["/quota/network"]),
        neutron("forget quotas as a member", Member, &format!("DELETE {quota}")),
        neutron("forget quotas", Admin, &format!("DELETE {quota}")),
        neutron("forget no quotas", Admin, &format!("DELETE {quota}")),
    ]
}

pub(super) fn ends() -> Vec<Call> {
    use Who::{Admin, Member};
    vec![
        neutron("delete a network", Member, "DELETE /v2.0/networks/{network}"),
        neutron("delete no network", Member, "DELETE /v2.0/networks/{network}"),
        neutron("a subnet of a network that was deleted", Member, "GET /v2.0/subnets/{second_subnet}"),
        neutron("a network that was deleted", Member, "GET /v2.0/networks/{network}"),
        neutron("delete the plain network", Member, "DELETE /v2.0/networks/{plain_network}"),
        neutron("delete the second network", Member, "DELETE /v2.0/networks/{second_network}"),
        neutron("delete the given network", Member, "DELETE /v2.0/networks/{given_network}"),
        neutron("delete the small network", Member, "DELETE /v2.0/networks/{small_network}"),
        neutron("delete the odd network", Member, "DELETE /v2.0/networks/{odd_network}"),
        neutron("delete the network of names outside", Member, "DELETE /v2.0/networks/{dns_network}"),
        neutron("delete the foreign network", Admin, "DELETE /v2.0/networks/{foreign_network}"),
    ]
}
