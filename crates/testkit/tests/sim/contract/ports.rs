//! The calls to Neutron about ports on the networks that there are by now, and what is refused along the way.

use super::{
    calls::{Call, NIL, Who},
    neutron::neutron,
};

/// What Neutron makes of a port.
const MADE: [&str; 11] = [
    "/port/revision_number",
    "/port/status",
    "/port/admin_state_up",
    "/port/name",
    "/port/description",
    "/port/device_owner",
    "/port/device_id",
    "/port/fixed_ips/0/ip_address",
    "/port/security_groups",
    "/port/port_security_enabled",
    "/port/allowed_address_pairs/0/ip_address",
];

/// A port on the network, with these parts.
fn create(name: &'static str, parts: &str) -> Call {
    of(name, "{network}", parts)
}

fn of(name: &'static str, network: &str, parts: &str) -> Call {
    let body = format!(r#"{{"port": {{"network_id": "{network}", {parts}}}}}"#);
    neutron(name, Who::Member, "POST /v2.0/ports").body(&body).tells(&MADE)
}

fn change(name: &'static str, id: &str, changes: &str) -> Call {
    let body = format!(r#"{{"port": {changes}}}"#);
    neutron(name, Who::Member, &format!("PUT /v2.0/ports/{id}")).body(&body).tells(&MADE)
}

pub(super) fn ports() -> Vec<Call> {
    use Who::{Admin, Member, Nobody};
    let list = |name, who, query: &str| neutron(name, who, &format!("GET /v2.0/ports?{query}"));
    let names = ["/ports/0/name", "/ports/1/name"];
    vec![
        neutron("ports without a token", Nobody, "GET /v2.0/ports"),
        create("create a port", r#""name": "{run}", "description": "d {run}", "fixed_ips": [{"subnet_id": "{subnet}", "ip_address": "10.91.0.50"}]"#)
            .keep("port", "/port/id")
            .keep("port_mac", "/port/mac_address"),
        neutron("delete a network with a port", Member, "DELETE /v2.0/networks/{network}"),
        of("a port of which nothing is said", "{plain_network}", r#""name": """#).keep("plain_port", "/port/id"),
        create(
            "a port with groups",
            r#""name": "{run}-2", "fixed_ips": [{"ip_address": "10.92.0.25"}], "security_groups": ["{group}"],
                "allowed_address_pairs": [{"ip_address": "10.92.0.60"}], "device_id": "{run}", "mac_address": "FA:16:3E:00:12:34"}"#
                .trim_end_matches('}'),
        )
        .keep("second_port", "/port/id"),
        create("a port without security", r#""fixed_ips": [], "port_security_enabled": false, "mac_address": "fa:16:3e:00:12:36""#).keep("third_port", "/port/id"),
        create("a port without groups", r#""fixed_ips": [{"ip_address": "10.92.0.26"}], "security_groups": []"#)
            .keep("fourth_port", "/port/id"),
        of("a port on a shared network", "{foreign_network}", r#""name": "{run}-3""#).keep("foreign_port", "/port/id"),
        neutron("port", Member, "GET /v2.0/ports/{port}").tells(&MADE),
        neutron("port by an administrator", Admin, "GET /v2.0/ports/{port}").tells(&MADE),
        neutron("no such port", Member, &format!("GET /v2.0/ports/{NIL}")),
        list("ports by name and project", Admin, "name={run}&project_id={project}&limit=1000&sort_key=id&sort_dir=asc").tells(&names),
        list("ports of a device", Member, "device_id={run}").tells(&names),
        list("ports by address", Member, "fixed_ips=ip_address%3D10.91.0.50&project_id={project}").tells(&names),
        list("ports by subnet", Member, "fixed_ips=subnet_id%3D{subnet}&project_id={project}&name={run}").tells(&names),
        list("ports by group", Member, "security_groups={group}").tells(&names),
        list("a marker that is no port", Member, &format!("name={{run}}&limit=1&marker={NIL}")),
    ]
}

pub(super) fn refusals() -> Vec<Call> {
    use Who::Member;
    vec![
        create("a port of a taken address", r#""fixed_ips": [{"subnet_id": "{subnet}", "ip_address": "10.91.0.50"}]"#),
        create(
            "a port of an address elsewhere",
            r#""fixed_ips": [{"subnet_id": "{subnet}", "ip_address": "10.99.0.50"}]"#,
        ),
        create("a port of an address of no subnet", r#""fixed_ips": [{"ip_address": "10.99.0.50"}]"#),
        create("a port of what is no address", r#""fixed_ips": [{"ip_address": "nil"}]"#),
        create("a port of a subnet that is none", &format!(r#""fixed_ips": [{{"subnet_id": "{NIL}"}}]"#)),
        create(
            "a port of the same address twice",
            r#""fixed_ips": [{"ip_address": "10.91.0.51"}, {"ip_address": "10.91.0.51"}]"#,
        ),
        of("a port of a subnet of another network", "{plain_network}", r#""fixed_ips": [{"subnet_id": "{subnet}"}]"#),
        create("a port of a taken MAC", r#""mac_address": "{port_mac}""#),
        create("a port of what is no MAC", r#""mac_address": "nil""#),
        of("a port of no network", NIL, r#""name": "{run}""#),
        create("a port of no group", &format!(r#""security_groups": ["{NIL}"]"#)),
        create("a port of a foreign group", r#""security_groups": ["{foreign_group}"]"#),
        create(
            "a port with groups without security",
            r#""port_security_enabled": false, "security_groups": ["{group}"]"#,
        ),
        create(
            "a port with pairs without security",
            r#""port_security_enabled": false, "allowed_address_pairs": [{"ip_address": "10.91.0.60"}]"#,
        ),
        create("a port with a pair of no address", r#""allowed_address_pairs": [{"ip_address": "nil"}]"#),
        create("a port on a host", r#""binding:host_id": "nil""#),
        create("a port of a kind that is none", r#""binding:vnic_type": "nil""#),
        create("a port of a router", r#""device_owner": "network:router_interface""#),
        create("a port of an unknown attribute", r#""nil": 1"#),
        create("a port of a name that is too long", &format!(r#""name": "{}""#, "x".repeat(256))),
        neutron("a port without a network", Member, "POST /v2.0/ports").body(r#"{"port": {"name": "{run}"}}"#),
        neutron("delete a subnet with ports", Member, "DELETE /v2.0/subnets/{subnet}"),
        neutron("delete a group of a port", Member, "DELETE /v2.0/security-groups/{group}"),
    ]
}

pub(super) fn changes() -> Vec<Call> {
    let own = |name, changes: &str| change(name, "{port}", changes);
    vec![
        own("change a port", r#"{"name": "{run}-1", "description": "e"}"#).header("if-match", "revision_number=1"),
        own("change a port to what it is", r#"{"name": "{run}-1"}"#),
        own("change an earlier port", r#"{"description": "f"}"#).header("if-match", "revision_number=1"),
        own("a port goes down", r#"{"admin_state_up": false}"#),
        own("a port gets groups", r#"{"security_groups": ["{group}"]}"#),
        own("a port loses its groups", r#"{"security_groups": []}"#),
        own("a port gets pairs", r#"{"allowed_address_pairs": [{"ip_address": "10.91.0.0/24"}]}"#),
        own("a port loses its pairs", r#"{"allowed_address_pairs": []}"#),
        own("a port moves", r#"{"fixed_ips": [{"subnet_id": "{subnet}", "ip_address": "10.91.0.52"}]}"#),
        own("a port moves to where another is", r#"{"fixed_ips": [{"ip_address": "10.92.0.25"}]}"#),
        own("a port is given to a device", r#"{"device_id": "{run}", "device_owner": "compute:nova"}"#),
        own("a port loses its security", r#"{"port_security_enabled": false}"#),
        own("a port gets another network", r#"{"network_id": "{plain_network}"}"#),
        own("a port gets another MAC", r#"{"mac_address": "fa:16:3e:00:12:35"}"#),
        own("a port gets a host", r#"{"binding:host_id": "nil"}"#),
        change("change no port", NIL, r#"{"description": "f"}"#),
    ]
}

pub(super) fn ends() -> Vec<Call> {
    use Who::Member;
    vec![
        neutron("delete a port of a device", Member, "DELETE /v2.0/ports/{port}"),
        change("a port is taken from its device", "{port}", r#"{"device_id": "", "device_owner": ""}"#),
        neutron("delete an earlier port", Member, "DELETE /v2.0/ports/{port}").header("if-match", "revision_number=1"),
        neutron("delete a port", Member, "DELETE /v2.0/ports/{port}"),
        neutron("delete no port", Member, "DELETE /v2.0/ports/{port}"),
        neutron("delete the plain port", Member, "DELETE /v2.0/ports/{plain_port}"),
        neutron("delete the second port", Member, "DELETE /v2.0/ports/{second_port}"),
        neutron("delete the third port", Member, "DELETE /v2.0/ports/{third_port}"),
        neutron("delete the fourth port", Member, "DELETE /v2.0/ports/{fourth_port}"),
        neutron("delete the foreign port", Member, "DELETE /v2.0/ports/{foreign_port}"),
    ]
}
